"""P17 by way of Kafka, against a real broker: the same events under the same ids, once for a receiver that knows the ids it has seen."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.deliver_alerts import deliver_alerts
from spark_jobs.runtime import outbox
from spark_jobs.runtime.lake import Lake
from tests.delivery.conftest import SECRET
from tests.delivery.lakes import AlertLake, an_event
from tests.delivery.receiver import Receiver, answers
from tests.servers.kafka import Kafka

OPENED, RESOLVED = an_event(), an_event(change="resolved", clock="10:20", ended="10:19")
OTHER = an_event("alert-2", clock="10:01")

numbers = count(1)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    name = f"coldstore_alerts_{next(numbers)}"
    kafka.creates(name, partitions=3)
    return name


@pytest.fixture
def lake(kafka: Kafka, topic: str, tmp_path: Path) -> AlertLake:
    return AlertLake(tmp_path / "lake", kafka_servers=kafka.servers, kafka_alerts_topic=topic, kafka_timeout_s=6.0)


def told(kafka: Kafka, topic: str) -> list[dict[str, Any]]:
    """What a receiver reads; the key and the header say what the message says."""
    found = []
    for message in kafka.messages(topic):
        event = json.loads(message.value() or b"")
        assert message.key() == event["alert_id"].encode() and message.headers() == [("event_id", event["event_id"].encode())]
        found.append(event)
    return found


def ids(*events: dict[str, Any]) -> list[str]:
    return sorted(event["event_id"] for event in events)


def test_events_are_told_once_with_the_webhooks_words_and_those_of_an_alert_in_order(lake: AlertLake, kafka: Kafka, topic: str) -> None:
    lake.publishes(OPENED, OTHER, an_event("old", is_historic=True))
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"
    assert str(deliver_alerts(lake.lake)) == "no new events"
    lake.publishes(RESOLVED)
    assert str(deliver_alerts(lake.lake)) == "1 event delivered"
    events = told(kafka, topic)
    assert ids(*events) == ids(OPENED, OTHER, RESOLVED)
    assert [event["change"] for event in events if event["alert_id"] == "alert-1"] == ["opened", "resolved"]
    (first,) = (event for event in events if event["event_id"] == OPENED["event_id"])
    assert first == {
        **{name: OPENED[name] for name in OPENED if name not in ("at", "started_at")},
        **{"at": "2025-11-08T10:00:00.000Z", "started_at": "2025-11-08T09:59:00.000Z", "run_id": "run-1"},
    }
    rows = lake.rows("deliveries")
    assert {(row["sink"], row["status"], row["attempts"]) for row in rows} == {("kafka", "delivered", 1)}
    assert all(row["detail"].startswith(f"{topic}-") for row in rows)


@pytest.mark.parametrize("place", ["before it is written down", "before the mark is set"])
def test_a_crash_after_sending_sends_again_under_the_same_ids(
    lake: AlertLake, kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def crash(*_: Any) -> None:
        raise RuntimeError("a crash")

    lake.publishes(OPENED, OTHER, RESOLVED)
    with monkeypatch.context() as broken:
        broken.setattr(*((Lake, "add_rows") if "written down" in place else (outbox, "_remember")), crash)
        with pytest.raises(RuntimeError):
            deliver_alerts(lake.lake)
    deliver_alerts(lake.lake)
    events = told(kafka, topic)
    assert len(events) == (6 if "written down" in place else 3)
    assert ids(*{event["event_id"]: event for event in events}.values()) == ids(OPENED, OTHER, RESOLVED)
    assert len({json.dumps(event) for event in events}) == 3  # a second one says the same
    assert ids(*lake.rows("deliveries")) == ids(OPENED, OTHER, RESOLVED)


def test_each_way_out_has_its_own_books_and_none_waits_for_the_other(lake: AlertLake, receiver: Receiver, kafka: Kafka, topic: str) -> None:
    lake.publishes(OPENED)
    deliver_alerts(lake.lake)
    both = lake.with_settings(webhook_url=receiver.url, webhook_secret=SECRET, webhook_attempts=1)
    lake.publishes(OTHER)
    receiver.does(answers(200), answers(500))
    assert str(deliver_alerts(both)) == "webhook: 1 event delivered, 1 waiting (the webhook answered 500); kafka: 1 event delivered"
    assert str(deliver_alerts(both)) == "webhook: 1 event delivered; kafka: no new events"
    assert ids(*receiver.taken) == ids(*told(kafka, topic)) == ids(OPENED, OTHER)
    assert json.loads((lake.place / "control" / "delivered.json").read_text()) == {"webhook": 2, "kafka": 2}
    assert sorted((row["sink"], row["event_id"]) for row in lake.rows("deliveries")) == sorted(
        (sink, event["event_id"]) for sink in ("webhook", "kafka") for event in (OPENED, OTHER)
    )


def test_a_topic_that_is_not_there_lets_events_wait_and_is_asked_once(lake: AlertLake, kafka: Kafka) -> None:
    lake.publishes(OPENED, OTHER)
    outcome = str(deliver_alerts(lake.with_settings(kafka_alerts_topic="coldstore_alerts_to_come", kafka_timeout_s=3.0)))
    assert outcome.startswith("0 events delivered, 2 waiting (Kafka did not take it: ") and "nknown topic" in outcome
    assert lake.rows("deliveries") == []
    assert str(deliver_alerts(lake.lake)) == "2 events delivered"


def test_what_a_broker_that_is_away_does_not_take_waits_for_it(tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka")
    lake = AlertLake(tmp_path / "lake", kafka_servers=kafka.servers, kafka_alerts_topic="coldstore_alerts", kafka_timeout_s=6.0)
    lake.publishes(OPENED)
    try:
        outcome = str(deliver_alerts(lake.with_settings(kafka_timeout_s=2.0)))
        assert outcome.startswith("0 events delivered, 1 waiting (Kafka did not take it: ")
        kafka.start()
        kafka.creates("coldstore_alerts")
        assert str(deliver_alerts(lake.lake)) == "1 event delivered"
        assert ids(*told(kafka, "coldstore_alerts")) == ids(OPENED)
    finally:
        kafka.stop()
