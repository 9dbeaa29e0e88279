"""P17 across runs and crashes: no event is lost, none is sent twice but under its own id, nobody is paged for history."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from include.incidents import kind_of
from include.settings import PROJECT
from spark_jobs import run_pass
from spark_jobs.deliver_alerts import deliver_alerts
from spark_jobs.runtime import outbox
from spark_jobs.runtime.alerts_webhook import AlertsWebhook
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from tests.delivery.conftest import SECRET
from tests.delivery.lakes import AlertLake, an_event
from tests.delivery.receiver import Handler, Receiver, answers
from tests.lakes import moment

OPENED, RESOLVED = an_event(), an_event(change="resolved", clock="10:20", ended="10:19")
OTHER = an_event("alert-2", clock="10:01")


def ids(*events: dict[str, Any]) -> list[str]:
    return [event["event_id"] for event in events]


# --- what is sent, and when ---------------------------------------------------------------------------------------------------------------


def test_a_run_that_is_delivered_is_delivered(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED, OTHER)
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"
    before = lake.rows("deliveries")
    assert str(deliver_alerts(lake.lake)) == "no new events"
    assert receiver.asked() == ids(OPENED, OTHER) and lake.rows("deliveries") == before
    lake.publishes(RESOLVED)
    assert str(deliver_alerts(lake.lake)) == "1 event delivered"
    assert receiver.asked() == ids(OPENED, OTHER, RESOLVED)
    assert [(row["event_id"], row["number"]) for row in lake.rows("deliveries")] == [
        (RESOLVED["event_id"], 2),
        (OPENED["event_id"], 1),
        (OTHER["event_id"], 1),
    ]


def test_history_is_not_posted(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED, an_event("old", is_historic=True), an_event("old", "resolved", is_historic=True))
    lake.publishes(an_event("older", is_historic=True))
    assert str(deliver_alerts(lake.lake)) == "1 event delivered"
    assert receiver.asked() == ids(OPENED) and list(lake.booked()) == ids(OPENED)
    assert lake.delivered_until() == 2


def test_a_receiver_that_was_told_of_an_alert_hears_its_end_even_as_history(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED)
    deliver_alerts(lake.lake)
    late = {**RESOLVED, "is_historic": True}
    lake.publishes(late, an_event("old", "resolved", is_historic=True))
    assert str(deliver_alerts(lake.lake)) == "1 event delivered"
    assert receiver.asked() == ids(OPENED, late)


def test_what_a_run_wrote_that_is_not_published_yet_is_not_posted(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED)
    lake.publishes(RESOLVED, status="")
    assert str(deliver_alerts(lake.lake)) == "1 event delivered"
    assert receiver.asked() == ids(OPENED) and lake.delivered_until() == 1
    lake._append("runs", [{"number": 2, "run_id": "run-2", "status": "published", "as_of": moment("12:10")}])
    assert str(deliver_alerts(lake.lake)) == "1 event delivered"
    assert receiver.asked() == ids(OPENED, RESOLVED)


def test_an_alerts_events_go_in_order_and_others_do_not_wait_for_them(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED, OTHER)
    receiver.does(*[answers(500)] * 4)
    assert str(deliver_alerts(lake.lake)) == "1 event delivered, 1 waiting (the webhook answered 500)"
    lake.publishes(RESOLVED, an_event(change="retracted", clock="10:20"), an_event("alert-2", "resolved", "10:30", "10:29"))
    receiver.does(*[answers(500)] * 4)
    assert str(deliver_alerts(lake.lake)) == "1 event delivered, 3 waiting (the webhook answered 500)"
    assert str(deliver_alerts(lake.lake)) == "3 events delivered"
    changes = [(event["alert_id"], event["change"]) for event in receiver.taken]
    assert changes == [
        ("alert-2", "opened"),
        ("alert-2", "resolved"),
        ("alert-1", "opened"),
        ("alert-1", "resolved"),
        ("alert-1", "retracted"),
    ]


def test_what_a_run_sees_begin_and_end_at_the_same_moment_goes_in_order(lake: AlertLake, receiver: Receiver) -> None:
    alerts = [f"alert-{number}" for number in range(8)]  # some of them have their ids the other way round
    lake.publishes(*(an_event(alert, change, ended="10:00") for alert in alerts for change in ("retracted", "resolved", "opened")))
    assert str(deliver_alerts(lake.lake)) == "24 events delivered"
    changes = {alert: [event["change"] for event in receiver.taken if event["alert_id"] == alert] for alert in alerts}
    assert changes == {alert: ["opened", "resolved", "retracted"] for alert in alerts}


def test_only_what_is_new_is_read(lake: AlertLake, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.publishes(OPENED)
    lake.publishes(OTHER, an_event("alert-3", clock="10:05"))
    receiver.does(answers(200), *[answers(500)] * 4)
    deliver_alerts(lake.lake)
    assert lake.delivered_until() == 1  # of run 2 one event waits
    asked: list[tuple[str, Any]] = []
    rows = Lake.rows
    monkeypatch.setattr(
        Lake, "rows", lambda self, table, columns=None, where=(): (asked.append((table, where)), rows(self, table, columns, where))[1]
    )
    deliver_alerts(lake.lake)
    assert asked == [
        ("runs", [("status", "=", "published"), ("number", ">", 1)]),
        ("deliveries", [("sink", "=", "webhook"), ("number", ">", 1)]),
        ("alert_events", [("number", ">", 1), ("number", "<=", 2)]),
    ]
    assert lake.delivered_until() == 2
    assert [event["alert_id"] for event in receiver.taken] == ["alert-1", "alert-3", "alert-2"]


def test_switched_on_late_it_sends_what_is_open_and_what_ended_within_a_day(lake: AlertLake, receiver: Receiver) -> None:
    long_ago, yesterday = moment("10:00") - timedelta(days=30), moment("12:00") - timedelta(hours=23)
    lake.publishes(
        an_event("over", at=long_ago),
        an_event("open", at=long_ago),
        an_event("ended yesterday", at=long_ago),
        an_event("taken back", at=long_ago),
    )
    lake.publishes(
        an_event("over", "resolved", at=long_ago, ended_at=long_ago),
        an_event("ended yesterday", "resolved", at=yesterday, ended_at=yesterday),
        an_event("taken back", "retracted", at=long_ago),
    )
    lake.publishes(OTHER, as_of=moment("12:00"))
    assert str(deliver_alerts(lake.lake)) == "4 events delivered"
    assert sorted((event["alert_id"], event["change"]) for event in receiver.taken) == [
        ("alert-2", "opened"),
        ("ended yesterday", "opened"),
        ("ended yesterday", "resolved"),
        ("open", "opened"),
    ]


def test_what_was_history_when_delivery_was_switched_on_stays_it(lake: AlertLake, receiver: Receiver) -> None:
    """Also where the first attempt had to leave something for later."""
    long_ago = moment("10:00") - timedelta(days=30)
    lake.publishes(OPENED, an_event("over", at=long_ago))
    lake.publishes(an_event("over", "resolved", at=long_ago, ended_at=long_ago))
    receiver.does(*[answers(500)] * 4)
    deliver_alerts(lake.lake)
    lake.publishes(OTHER)
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"
    assert [event["event_id"] for event in receiver.taken] == ids(OPENED, OTHER)


def test_after_an_outage_of_days_everything_goes_out(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED)
    deliver_alerts(lake.lake)
    lake.publishes(RESOLVED)
    receiver.does(*[answers(500)] * 4)
    deliver_alerts(lake.lake)
    lake.publishes(OTHER, as_of=moment("12:00") + timedelta(days=3))
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"
    assert receiver.taken[1]["event_id"] == RESOLVED["event_id"]


def test_a_lost_mark_costs_time_and_sends_nothing_twice(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED, OTHER)
    deliver_alerts(lake.lake)
    (lake.place / "control" / "delivered.json").unlink()
    assert str(deliver_alerts(lake.lake)) == "no new events"
    assert receiver.asked() == ids(OPENED, OTHER)


# --- crashes ------------------------------------------------------------------------------------------------------------------------------


class Crash(BaseException):
    pass


@pytest.mark.parametrize("place", ["before the book is written", "after it, before the mark is set"])
def test_a_crash_after_the_post_sends_again_at_most_the_same_ids(
    lake: AlertLake, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def crash(*_: Any) -> None:
        raise Crash

    lake.publishes(OPENED, OTHER, RESOLVED)
    with monkeypatch.context() as broken:
        broken.setattr(*((Lake, "add_rows") if place.startswith("before") else (outbox, "_remember")), crash)
        with pytest.raises(Crash):
            deliver_alerts(lake.lake)
    sent = ids(OPENED, OTHER, RESOLVED)
    assert receiver.asked() == sent
    deliver_alerts(lake.lake)
    assert receiver.asked() == (sent * 2 if place.startswith("before") else sent)
    assert {event_id: booked[0] for event_id, booked in lake.booked().items()} == dict.fromkeys(sent, "delivered")


def test_what_was_sent_is_written_down_though_the_next_event_breaks_the_job(
    lake: AlertLake, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publishes(OPENED, OTHER)
    send, sent = AlertsWebhook.send, []

    def breaks(self: Any, event: dict[str, Any]) -> Any:
        if sent:
            raise RuntimeError("a fault of ours")
        sent.append(event)
        return send(self, event)

    with monkeypatch.context() as broken:
        broken.setattr(AlertsWebhook, "send", breaks)
        with pytest.raises(RuntimeError):
            deliver_alerts(lake.lake)
    assert list(lake.booked()) == ids(OPENED)
    deliver_alerts(lake.lake)
    assert receiver.asked() == ids(OPENED, OTHER)


def test_a_long_delivery_is_written_down_on_its_way(lake: AlertLake, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "WRITE_EVERY_S", 0.0)
    seen = []

    def looks(handler: Handler) -> None:
        seen.append(sorted(lake.booked()))
        answers(200)(handler)

    events = [an_event(f"alert-{number}", clock=f"10:0{number}") for number in range(3)]
    lake.publishes(*events)
    receiver.does(looks, looks, looks)
    deliver_alerts(lake.lake)
    assert seen == [[], sorted(ids(*events[:1])), sorted(ids(*events[:2]))]


@pytest.mark.parametrize("is_answered", [False, True], ids=["before the answer", "after the answer"])
def test_a_killed_process_loses_nothing(lake: AlertLake, receiver: Receiver, is_answered: bool) -> None:
    events = [an_event(f"alert-{number}", clock=f"10:0{number}") for number in range(5)]
    lake.publishes(*events)
    process = program(lake)

    def kills(handler: Handler) -> None:
        if is_answered:
            answers(200)(handler)
        process.send_signal(signal.SIGKILL)
        process.wait()

    receiver.does(answers(200), answers(200), kills)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert receiver.asked()[:3] == ids(*events[:3])
    again = program(lake)
    said, complaint = again.communicate(timeout=60)
    assert (said, complaint, again.returncode) == ("alerts: 5 events delivered\n", "", 0)
    assert list(dict.fromkeys(event["event_id"] for event in receiver.taken)) == ids(*events)
    assert sorted(lake.booked()) == sorted(ids(*events))


# --- the program, and the pass ------------------------------------------------------------------------------------------------------------


def program(lake: AlertLake, **settings: str) -> subprocess.Popen[str]:
    """The job as Airflow starts it, on a machine without Java: a Spark session could not start."""
    given = {name.upper(): str(getattr(lake.settings, name)) for name in ("lake", "webhook_url", "webhook_secret")} | settings
    env = {name: value for name, value in os.environ.items() if not name.startswith("COLDSTORE_")}
    env |= {f"COLDSTORE_{name}": value for name, value in given.items()}
    env |= {"PYTHONPATH": str(PROJECT), "PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
    command = [sys.executable, str(PROJECT / "spark_jobs" / "deliver_alerts.py")]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_task_fails_with_one_line_where_events_wait(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED, OTHER)
    receiver.does(answers(200), answers(500))
    process = program(lake, WEBHOOK_ATTEMPTS="1")
    said, complaint = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, "")
    assert complaint == (
        "alerts: 1 event delivered, 1 waiting (the webhook answered 500). "
        "The run is published; what waits goes out with the next one, or with another try.\n"
    )
    assert kind_of(1, [complaint]).name == "not-delivered"


SWITCHED_OFF = "alerts: neither a webhook (COLDSTORE_WEBHOOK_URL) nor a topic (COLDSTORE_KAFKA_ALERTS_TOPIC) is set, so none is sent\n"
CALM = {
    "it is switched off": ({"WEBHOOK_URL": ""}, 0, SWITCHED_OFF, ""),
    "there is no secret": ({"WEBHOOK_SECRET": ""}, 1, "", "COLDSTORE_WEBHOOK_URL is set, but COLDSTORE_WEBHOOK_SECRET is not: nothing was sent."),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "code", "said", "complaint"), CALM.values(), ids=CALM)
def test_nothing_is_sent_where(lake: AlertLake, receiver: Receiver, settings: dict[str, str], code: int, said: str, complaint: str) -> None:
    lake.publishes(OPENED)
    process = program(lake, **settings)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, said)
    assert err.startswith(complaint) and err.count("\n") == bool(complaint)
    assert receiver.requests == [] and lake.booked() == {}


def test_a_lake_from_before_deliveries_is_named(lake: AlertLake, receiver: Receiver) -> None:
    lake.publishes(OPENED)
    (lake.place / "tables" / "deliveries").rename(lake.place / "away")
    with pytest.raises(Stop, match="has no table deliveries yet, so nothing was sent: run a pass first"):
        deliver_alerts(lake.lake)
    assert receiver.requests == []


@pytest.fixture
def takes_a_pass(lake: AlertLake, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A pass whose other jobs have nothing to do."""
    monkeypatch.setattr(run_pass, "JOBS", ())
    monkeypatch.setattr(run_pass, "begin_or_resume", lambda _lake: SimpleNamespace(run_id="pass-000001"))
    return lambda **settings: run_pass.run_pass(lake.with_settings(**settings))


SAID = {
    "all goes well": ({}, (), "alerts: 2 events delivered\n"),
    "the receiver is broken": ({"webhook_attempts": 1}, [answers(500)] * 9, "alerts: 0 events delivered, 2 waiting (the webhook answered 500)\n"),
    "the secret is missing": ({"webhook_secret": ""}, (), "alerts: not delivered: COLDSTORE_WEBHOOK_URL is set, but"),
    "it is switched off": ({"webhook_url": ""}, (), ""),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "behaviours", "said"), SAID.values(), ids=SAID)
def test_a_pass_is_published_whatever_becomes_of_its_alerts(
    lake: AlertLake, receiver: Receiver, takes_a_pass: Callable[..., str], capsys: pytest.CaptureFixture[str], settings: Any, behaviours: Any, said: str
) -> None:  # fmt: skip
    lake.publishes(OPENED, OTHER)
    receiver.does(*behaviours)
    assert takes_a_pass(**settings) == "pass-000001"
    out = capsys.readouterr().out
    assert out.startswith(said) and out.count("\n") == bool(said)


def test_a_pass_is_published_though_delivery_has_a_fault_of_its_own(
    lake: AlertLake, takes_a_pass: Callable[..., str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any) -> None:
        raise OSError("no space left on device")

    lake.publishes(OPENED)
    monkeypatch.setattr(Lake, "add_rows", breaks)
    assert takes_a_pass() == "pass-000001"
    assert capsys.readouterr().out == "alerts: not delivered: OSError; the next run tries again\n"


def test_neither_secret_nor_address_is_printed_whatever_happens(
    lake: AlertLake,
    receiver: Receiver,
    takes_a_pass: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake.publishes(OPENED, OTHER)
    receiver.does(answers(302, Location=receiver.url))
    takes_a_pass(webhook_attempts=1)
    receiver.close()
    takes_a_pass(webhook_attempts=1)
    takes_a_pass(webhook_url="http://" + "a-token-in-the-address" * 20 + "/")  # no name can be that long
    monkeypatch.setattr(outbox, "_send", lambda *_: 1 / 0)
    takes_a_pass()
    shown = "".join(capsys.readouterr()) + repr(lake.rows("deliveries"))
    assert SECRET not in shown and "a-token" not in shown
    assert shown.count("alerts: ") == 4
