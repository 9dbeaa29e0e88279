"""P17 against a receiver that fails in every way: each event arrives, signed, in order, under one id, and in time."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from include.settings import PROJECT, SettingError, Settings
from spark_jobs.deliver_alerts import deliver_alerts
from spark_jobs.runtime import outbox
from spark_jobs.runtime.alerts_webhook import AlertsWebhook
from tests.delivery.conftest import SECRET
from tests.delivery.lakes import AlertLake, an_event
from tests.delivery.receiver import Behaviour, Handler, Receiver, Request, answers, answers_and_drips, closes, drips, hangs

OPENED, RESOLVED = an_event(), an_event(change="resolved", clock="10:20", ended="10:19")
OTHER = an_event("alert-2", clock="10:01")
ALL = [OPENED["event_id"], OTHER["event_id"], RESOLVED["event_id"]]  # what is opened goes first


def signed(request: Request) -> str:
    """By the words of docs/operating.md, not by our own code."""
    signed_text = request.headers["X-Coldstore-Timestamp"].encode() + b"." + request.body
    return "sha256=" + hmac.new(SECRET.encode(), signed_text, hashlib.sha256).hexdigest()


def test_a_message_says_all_there_is_to_say(lake: AlertLake, receiver: Receiver) -> None:
    started = datetime(2025, 11, 8, 15, 32, 12, 123000, tzinfo=UTC)
    lake.publishes(an_event("a1", started_at=started, peak=None, sensor_id="Kühlraum 1", suppressed_by="defrost"))
    before = int(time.time())
    deliver_alerts(lake.lake)
    (request,) = receiver.requests
    assert request.body.decode("utf-8") == (
        '{"event_id":"' + an_event("a1")["event_id"] + '","alert_id":"a1","change":"opened","at":"2025-11-08T10:00:00.000Z",'
        '"is_historic":false,"run_id":"run-1","rule":"too_warm","severity":"critical","sensor_id":"Kühlraum 1","store_id":"store-1",'
        '"started_at":"2025-11-08T15:32:12.123Z","ended_at":null,"peak":null,"suppressed_by":"defrost","superseded_by":null}'
    )
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Coldstore-Event"] == an_event("a1")["event_id"]
    assert before <= int(request.headers["X-Coldstore-Timestamp"]) <= time.time()
    assert request.headers["X-Coldstore-Signature"] == signed(request)
    assert request.path == "/hook/a-token-in-the-address"


def test_the_receiver_of_the_manual_knows_a_message_from_a_forged_one(lake: AlertLake, receiver: Receiver) -> None:
    manual = (PROJECT / "docs" / "operating.md").read_text(encoding="utf-8")
    (program,) = [text for text in re.findall(r"```python\n(.*?)```", manual, re.DOTALL) if "def is_genuine" in text]
    known: dict[str, Any] = {}
    exec(program, known)
    lake.publishes(OPENED)
    deliver_alerts(lake.lake)
    headers, body = receiver.requests[0].headers, receiver.requests[0].body
    later = {**headers, "X-Coldstore-Timestamp": str(int(headers["X-Coldstore-Timestamp"]) + 1)}
    asked = [(SECRET, headers, body), ("another", headers, body), (SECRET, headers, body + b" "), (SECRET, later, body)]
    assert [known["is_genuine"](*each) for each in asked] == [True, False, False, False]


FAULTS = {
    "it answers at once": ((), 0),
    "500 three times": ((answers(500),) * 3, 3),
    "502, 503, 504": ((answers(502), answers(503), answers(504)), 3),
    "it does not answer in time": ((hangs,), 1),
    "it sends its headers a byte at a time": ((drips,), 1),
    "it closes the connection in the middle of its answer": ((closes, closes), 2),
    "408 and 425": ((answers(408), answers(425)), 2),
    "429 with seconds": ((answers(429, Retry_After="1"),), 1),
    "429 with something that is no time": ((answers(429, Retry_After="soon"),), 1),
    "all of it, one after the other": ((answers(500), closes, hangs), 3),
}


@pytest.mark.parametrize(("behaviours", "failed"), FAULTS.values(), ids=FAULTS)
def test_every_event_arrives_signed_and_in_order(
    lake: AlertLake, receiver: Receiver, behaviours: tuple[Behaviour, ...], failed: int
) -> None:
    lake.publishes(RESOLVED, OPENED, OTHER)
    receiver.does(*behaviours)
    assert str(deliver_alerts(lake.lake)) == "3 events delivered"
    assert [event["event_id"] for event in receiver.taken] == ALL
    assert receiver.asked() == [ALL[0]] * failed + ALL
    assert [request.headers["X-Coldstore-Signature"] for request in receiver.requests] == [signed(request) for request in receiver.requests]
    assert len({request.body for request in receiver.requests}) == 3  # an attempt says the same as the one before
    expected = {ALL[0]: ("delivered", failed + 1), ALL[1]: ("delivered", 1), ALL[2]: ("delivered", 1)}
    assert {event_id: booked[:2] for event_id, booked in lake.booked().items()} == expected


NO_CHUNK = answers(200, text=b"no length stands here", Transfer_Encoding="chunked")


@pytest.mark.parametrize("behaviour", [answers_and_drips, NO_CHUNK], ids=["it never ends", "it cannot be read"])
def test_an_answer_counts_whatever_its_text_is(lake: AlertLake, receiver: Receiver, behaviour: Behaviour) -> None:
    lake.publishes(OPENED, OTHER)
    receiver.does(behaviour)
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"
    assert receiver.asked() == ALL[:2]


def test_events_share_a_connection(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(*(an_event(f"alert-{number}") for number in range(20)))
    assert str(deliver_alerts(lake.lake)) == "20 events delivered"
    assert len({request.port for request in receiver.requests}) == 1


@pytest.mark.parametrize("status", [400, 409, 410, 413, 422])
def test_what_is_refused_is_written_down_and_not_sent_again(lake: AlertLake, receiver: Receiver, status: int) -> None:
    lake.publishes(OPENED, RESOLVED, OTHER)
    receiver.does(answers(status))
    assert str(deliver_alerts(lake.lake)) == f"2 events delivered, 1 refused (the webhook answered {status})"
    assert lake.booked()[ALL[0]] == ("refused", 1, f"the webhook answered {status}")
    assert receiver.asked() == ALL
    assert str(deliver_alerts(lake.lake)) == "no new events"
    assert receiver.asked() == ALL


@pytest.mark.parametrize("status", [401, 403, 404, 407])
def test_a_wrong_address_or_secret_loses_nothing(lake: AlertLake, receiver: Receiver, status: int) -> None:
    lake.publishes(OPENED, OTHER)
    receiver.does(*[answers(status)] * 2)
    assert str(deliver_alerts(lake.lake)) == f"0 events delivered, 2 waiting (the webhook answered {status})"
    assert receiver.asked() == ALL[:2] and lake.booked() == {}
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(lake: AlertLake, receiver: Receiver, status: int) -> None:
    lake.publishes(OPENED)
    receiver.does(answers(status, Location=receiver.url.replace("/hook/", "/elsewhere/")))
    assert str(deliver_alerts(lake.lake)) == f"0 events delivered, 1 waiting (the webhook answered {status})"
    assert [request.path for request in receiver.requests] == ["/hook/a-token-in-the-address"]


def in_two_seconds(handler: Handler) -> None:
    """Dates have whole seconds, so it is one second at least."""
    answers(429, Retry_After=format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True))(handler)


@pytest.mark.parametrize(
    "behaviour",
    [answers(429, Retry_After="1"), answers(503, Retry_After="1"), in_two_seconds],
    ids=["429 with seconds", "503 with seconds", "429 with a date"],
)
def test_a_receiver_that_asks_for_time_gets_it(lake: AlertLake, receiver: Receiver, behaviour: Behaviour) -> None:
    lake.publishes(OPENED)
    receiver.does(behaviour)
    assert str(deliver_alerts(lake.lake)) == "1 event delivered"
    first, second = receiver.requests
    assert 0.95 <= second.at - first.at < 5


def test_one_that_asks_for_more_time_than_there_is_gets_it_too(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED, OTHER)
    receiver.does(answers(429, Retry_After="300"))
    started = time.monotonic()
    assert str(deliver_alerts(lake.lake)) == "0 events delivered, 2 waiting (the webhook answered 429 and asked to wait 300 s)"
    assert receiver.asked() == ALL[:1] and time.monotonic() - started < 5
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"


def test_one_that_asks_for_time_at_the_last_attempt_is_left_alone_as_long(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED, OTHER)
    receiver.does(answers(429, Retry_After="1"))
    assert (
        str(deliver_alerts(lake.with_settings(webhook_attempts=1)))
        == "1 event delivered, 1 waiting (the webhook answered 429 and asked to wait 1 s)"
    )
    first, second = receiver.requests
    assert second.at - first.at >= 1.0


@pytest.mark.parametrize("behaviour", [hangs, drips], ids=["it is silent", "it sends a byte now and then"])
def test_a_run_ends_in_time_and_the_next_one_delivers(lake: AlertLake, receiver: Receiver, behaviour: Behaviour) -> None:
    lake.publishes(*(an_event(f"alert-{number}") for number in range(30)))
    receiver.does(*[behaviour] * 30)
    started = time.monotonic()
    outcome = deliver_alerts(lake.with_settings(webhook_timeout_s=0.3, webhook_budget_s=0.8)).outcomes["webhook"]
    assert 0.7 < time.monotonic() - started < 2.0
    assert (outcome.delivered, outcome.waiting) == (0, 30) and "did not answer" in outcome.cause
    receiver.does()
    assert str(deliver_alerts(lake.lake)) == "30 events delivered"
    assert len({event["event_id"] for event in receiver.taken}) == 30


def test_a_time_that_runs_out_between_two_events_says_so(lake: AlertLake, receiver: Receiver) -> None:
    webhook = AlertsWebhook(lake.settings)

    def at_the_last_moment(handler: Handler) -> None:
        webhook._deadline = time.monotonic()
        answers(200)(handler)

    lake.publishes(OPENED, OTHER, RESOLVED)
    receiver.does(at_the_last_moment)
    assert str(outbox.deliver(lake.lake, webhook)) == "1 event delivered, 2 waiting (the time for one run was over)"
    assert receiver.asked() == ALL[:1]


def test_after_an_event_that_was_given_up_the_others_get_one_attempt_until_one_gets_through(lake: AlertLake, receiver: Receiver) -> None:
    events = [an_event(f"alert-{number}", clock=f"10:0{number}") for number in range(4)]
    ids = [event["event_id"] for event in events]
    lake.publishes(*events)
    receiver.does(*[answers(500)] * 5, answers(200), answers(500))
    assert str(deliver_alerts(lake.lake)) == "2 events delivered, 2 waiting (the webhook answered 500)"
    assert receiver.asked() == [ids[0]] * 4 + [ids[1], ids[2], ids[3], ids[3]]


def test_nobody_listens(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED)
    receiver.close()
    assert str(deliver_alerts(lake.lake)) == "0 events delivered, 1 waiting (the webhook did not answer (NewConnectionError))"


WRONG = {
    "an address without a secret": ({"webhook_secret": ""}, "COLDSTORE_WEBHOOK_SECRET is not"),
    "a secret of blanks": ({"webhook_secret": " "}, "COLDSTORE_WEBHOOK_SECRET is not"),
    "no scheme": ({"webhook_url": "example.com/hook"}, "COLDSTORE_WEBHOOK_URL is no address"),
    "another scheme": ({"webhook_url": "file:///etc/passwd"}, "COLDSTORE_WEBHOOK_URL is no address"),
    "no host": ({"webhook_url": "https:///hook"}, "COLDSTORE_WEBHOOK_URL is no address"),
    "a port that is none": ({"webhook_url": "https://example.com:99999/"}, "COLDSTORE_WEBHOOK_URL is no address"),
    "no attempt": ({"webhook_attempts": 0}, "COLDSTORE_WEBHOOK_ATTEMPTS has to be"),
    "no time": ({"webhook_timeout_s": float("nan")}, "COLDSTORE_WEBHOOK_TIMEOUT_S has to be"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_a_setting_that_cannot_be_used_is_named_before_anything_is_sent(
    lake: AlertLake, receiver: Receiver, wrong: dict[str, object], message: str
) -> None:
    lake.publishes(OPENED)
    with pytest.raises(SettingError, match=message) as refusal:
        deliver_alerts(lake.with_settings(**wrong))
    assert "nothing was sent" in str(refusal.value) and SECRET not in str(refusal.value)
    assert receiver.requests == [] and lake.booked() == {}


def test_settings_print_neither_address_nor_secret() -> None:
    settings = Settings.from_env({"COLDSTORE_WEBHOOK_URL": "https://example.com/token", "COLDSTORE_WEBHOOK_SECRET": "secret-1"})
    assert (settings.webhook_url, settings.webhook_secret) == ("https://example.com/token", "secret-1")
    for text in (repr(settings), str(settings), f"{settings}"):
        assert "secret-1" not in text and "token" not in text
    assert Settings().webhook_secret == "" and Settings().webhook_url == ""
