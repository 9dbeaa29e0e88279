"""Readings from a real Kafka broker: P1 to P7, P12 and P19 by that way in, topics that lose messages, and alerts that go out by it."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from include.incidents import kind_of
from include.settings import SettingError, Settings
from spark_jobs import ingest_readings, show_line
from spark_jobs.readers import kafka_messages
from spark_jobs.readers.raw_line import lines_at
from spark_jobs.runtime import ingest_batch, message_intake
from spark_jobs.runtime.beginning import begin_or_resume
from spark_jobs.runtime.broker import Broker
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from tests.lakes import TestLake, a_reading, at, moment
from tests.oracle.comparison import a_lake, deliver, differences, oracle_tables, tables
from tests.oracle.histories import START_MS, History, histories, iso
from tests.servers.kafka import Kafka

HISTORIES = 1

numbers = count(1)


def ms(clock: str) -> int:
    return round(moment(clock).timestamp() * 1000)


class Topic:
    """A topic of its own for each test."""

    def __init__(self, kafka: Kafka, partitions: int = 1) -> None:
        self.kafka, self.name = kafka, f"coldstore_sensors_{next(numbers)}"
        kafka.creates(self.name, partitions)

    def receives(self, *values: bytes | None, arrived: str, partition: int = 0, **more: Any) -> None:
        self.kafka.receives(self.name, *values, arrived_ms=ms(arrived), partition=partition, **more)

    def is_made_anew(self) -> None:
        self.kafka.deletes(self.name)
        self.kafka.creates(self.name)


@pytest.fixture
def topic(kafka: Kafka) -> Topic:
    return Topic(kafka)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, kafka: Kafka, topic: Topic) -> TestLake:
    return TestLake(tmp_path / "lake", spark, kafka_servers=kafka.servers, kafka_topic=topic.name, quarantine_critical=1.0)


def ingests(lake: TestLake, as_of: str = "12:00", **changed: Any) -> None:
    """The first job of a pass alone: it takes the lines."""
    opened = Lake(lake.spark, replace(lake.settings, as_of=at(as_of), **changed))
    ingest_readings.ingest_readings(begin_or_resume(opened), opened)


def booked(lake: TestLake) -> dict[str, int]:
    """The sums over all batches."""
    counts = ("lines_read", "readings_new", "duplicates", "quarantined", "blank", "late_rows")
    return {name: sum(row[name] for row in lake.rows("batches")) for name in counts}


def sensors(lake: TestLake) -> list[tuple[str, str, int]]:
    return sorted((row["sensor_id"], row["source"], row["position"]) for row in lake.rows("readings"))


# --- what becomes of a message ------------------------------------------------------------------------------------------------------------


def test_messages_of_every_shape_are_kept_whole_and_taken_once(
    spark: SparkSession, tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, alerts = Topic(kafka, partitions=2), Topic(kafka)
    lake = TestLake(
        tmp_path / "lake",
        spark,
        kafka_servers=kafka.servers,
        kafka_topic=topic.name,
        kafka_alerts_topic=alerts.name,
        quarantine_critical=1.0,
    )
    good, far = a_reading(clock="10:00", temperature=12), a_reading("ahead", "10:06:00.001")
    headers = [("gateway", b"g-7"), ("gateway", None), ("", b"\xff")]
    topic.receives(good, arrived="10:01", key=b"sensor-1", headers=headers)
    topic.receives(None, b"", b" \t", b"\r\n", arrived="10:01", key="a tombstone's key")
    topic.receives(b"{", b"x" * 70_000, far, b"[]\n", good + b"\n" + good, arrived="10:01")
    topic.receives(b"\xef\xbb\xbf" + a_reading("marked") + b"\r\n", arrived="10:01:00.123")
    topic.receives(good, a_reading(clock="10:00", temperature=9), arrived="10:02")
    topic.receives(a_reading(clock="10:01", temperature=6), arrived="10:02", partition=1)

    lake.passes(as_of="10:05", kafka_batch_messages=9)  # several batches
    monkeypatch.setattr(kafka_messages, "stream", lambda *_: 1 / 0)  # where nothing is new no stream is started
    lake.passes(as_of="10:05")

    first, second = f"{topic.name}-0", f"{topic.name}-1"
    assert sensors(lake) == [("marked", first, 10), ("sensor-1", first, 0), ("sensor-1", second, 0)]
    assert lake.one("readings", sensor_id="marked")["arrived_at"] == moment("10:01:00.123")
    assert sorted((row["position"], row["line"], row["reasons"]) for row in lake.rows("quarantine")) == [
        (5, b"{", ["malformed_json"]),
        (6, b"x" * 65_536, ["line_too_long"]),
        (7, far, ["event_ts_in_future"]),
        (8, b"[]", ["not_an_object"]),
        (9, good + b"\n" + good, ["malformed_json"]),
        (12, a_reading(clock="10:00", temperature=9), ["conflicting_duplicate"]),
    ]
    assert lake.books() == {"lines_read": 14, "readings_new": 3, "duplicates": 1, "quarantined": 6, "blank": 4, "late_rows": 0}
    raw = {(row["source"], row["position"]): row for row in lake.rows("raw_messages")}
    assert sorted(raw) == [*((first, offset) for offset in range(13)), (second, 0)] and len(lake.rows("raw_messages")) == 14
    kept = raw[first, 0]
    assert (kept["key"], kept["value"], kept["arrived_at"]) == (b"sensor-1", good, moment("10:01"))
    assert [(header["key"], header["value"]) for header in kept["headers"]] == headers
    assert (raw[first, 1]["key"], raw[first, 1]["value"], raw[first, 1]["headers"]) == (b"a tombstone's key", None, None)
    assert raw[first, 6]["value"] == b"x" * 70_000
    assert lake.rows("raw_files") == []

    told = {message.header: message.value for message in events_in(kafka, alerts.name)}
    assert {row["event_id"] for row in lake.rows("alert_events")} == told.keys() and told
    assert "sudden_drop" in {event["rule"] for event in told.values()}


def test_a_readings_line_is_shown_and_so_is_that_of_a_conflict_whatever_displaced_it(
    lake: TestLake, topic: Topic, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    warm, other, cold = a_reading(temperature=9), a_reading(temperature=8), a_reading()
    topic.receives(b"", warm + b"\r\n", other, arrived="10:03")
    ingests(lake)
    assert sensors(lake) == [("sensor-1", f"{topic.name}-0", 2)]
    lake.receives(cold, arrived="10:02", name="early.jsonl")
    ingests(lake)
    assert [row["source"] for row in lake.rows("readings")] == [str(lake.place / "landing" / "early.jsonl")]
    conflicts = sorted((row["position"], row["line"]) for row in lake.rows("quarantine"))
    assert conflicts == [(1, warm), (2, other)]
    assert lines_at(f"{topic.name}-0", [0, 1, 2, 3], lake.settings) == [b"", warm, other, None]

    monkeypatch.setenv("COLDSTORE_LAKE", str(lake.place))
    for position, shown in ((2, (0, other + b"\n")), (3, (1, b""))):
        monkeypatch.setattr(sys, "argv", ["show_line", "--source", f"{topic.name}-0", "--position", str(position)])
        capfdbinary.readouterr()
        assert (show_line.show_line(), capfdbinary.readouterr().out) == shown


@pytest.mark.timeout(900)
def test_files_and_messages_at_once_give_the_oracles_tables(spark: SparkSession, kafka: Kafka) -> None:
    @settings(
        max_examples=HISTORIES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(history=histories().filter(lambda history: len(history.lines) >= 30), seed=st.integers(0, 1000))
    def tried(history: History, seed: int) -> None:
        _by_both_ways(spark, kafka, history, random.Random(seed))

    tried()


def _by_both_ways(spark: SparkSession, kafka: Kafka, history: History, chance: random.Random) -> None:
    """Each arrival goes into a file, into the topic, or in part into both; in any order, in three passes."""
    topic = Topic(kafka, partitions=2)
    with tempfile.TemporaryDirectory() as folder:
        lake = a_lake(Path(folder) / "lake", spark, history)
        lake.settings = replace(
            lake.settings, kafka_servers=kafka.servers, kafka_topic=topic.name, kafka_batch_messages=chance.choice([7, 1000])
        )
        arrivals = history.files()
        chance.shuffle(arrivals)
        cuts = sorted(chance.sample(range(1, len(arrivals)), min(len(arrivals) - 1, 2)))
        for start, end in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
            for arrived_ms, lines in arrivals[start:end]:
                as_message = [chance.random() < 0.5 for _ in lines]
                if not all(as_message):
                    deliver(lake, [(arrived_ms, [line for line, is_message in zip(lines, as_message, strict=True) if not is_message])])
                messages = [line for line, is_message in zip(lines, as_message, strict=True) if is_message]
                kafka.receives(topic.name, *messages, arrived_ms=arrived_ms, partition=chance.randint(0, 1))
            clock = chance.randint(START_MS, history.as_of_ms) if end < len(arrivals) else history.as_of_ms
            lake.passes(as_of=iso(clock))
        assert not (wrong := differences(tables(lake), oracle_tables(history))), f"{wrong}\n{history}"
        assert len(lake.rows("raw_messages")) == sum(ends(kafka, topic.name))


def ends(kafka: Kafka, topic: str) -> list[int]:
    found = Broker(replace(Settings(), kafka_servers=kafka.servers)).topic(topic)
    assert found is not None
    return list(found.ends.values())


# --- crashes ------------------------------------------------------------------------------------------------------------------------------


class Crash(Exception):
    pass


def _before_the_messages_are_kept(broken: pytest.MonkeyPatch) -> None:
    append = Lake.append
    broken.setattr(Lake, "append", lambda self, table, *rest: _crash() if table == "raw_messages" else append(self, table, *rest))


def _once_the_messages_are_kept(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(ingest_readings, "take", _crash)


def _before_the_books(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(ingest_batch, "write_batch", _crash)


def _before_spark_knows(broken: pytest.MonkeyPatch) -> None:
    take = ingest_readings.take
    broken.setattr(ingest_readings, "take", lambda *given: (take(*given), _crash()))


def _crash(*_: Any) -> None:
    raise Crash


CRASHES = [_before_the_messages_are_kept, _once_the_messages_are_kept, _before_the_books, _before_spark_knows]


@pytest.mark.parametrize("crash", CRASHES, ids=lambda crash: crash.__name__.strip("_"))
def test_a_batch_that_died_halfway_is_taken_once(
    lake: TestLake, topic: Topic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], crash: Callable[[Any], None]
) -> None:
    topic.receives(a_reading("a"), b"{", a_reading("a"), b"", a_reading("b"), arrived="10:01")
    with monkeypatch.context() as broken:
        crash(broken)
        with pytest.raises(Exception, match="Crash"):
            ingests(lake)
    if crash is not _before_the_messages_are_kept:  # what the lake has, the topic may lose
        topic.is_made_anew() if crash is _before_the_books else topic.kafka.truncates(topic.name, before=5)
    topic.receives(a_reading("c"), arrived="10:02")
    capsys.readouterr()
    ingests(lake)
    said = capsys.readouterr().out

    anew = crash is _before_the_books
    assert ("was deleted and made anew" in said) == anew and "lost up to" not in said
    first, last = f"{topic.name}-0", (f"{topic.name}-0@2", 0) if anew else (f"{topic.name}-0", 5)
    assert sensors(lake) == [("a", first, 0), ("b", first, 4), ("c", *last)]
    assert [(row["line"], row["reasons"]) for row in lake.rows("quarantine")] == [(b"{", ["malformed_json"])]
    assert len(lake.rows("duplicates")) == 1
    assert booked(lake) == {"lines_read": 6, "readings_new": 3, "duplicates": 1, "quarantined": 1, "blank": 1, "late_rows": 0}
    kept = sorted((row["source"], row["position"]) for row in lake.rows("raw_messages"))
    assert kept == [*((first, offset) for offset in range(5)), last]


# --- topics that are not what they were ---------------------------------------------------------------------------------------------------


def test_a_topic_that_loses_messages_or_is_made_anew_is_reported_and_what_is_there_is_taken(
    lake: TestLake, topic: Topic, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{topic.name}-0"
    topic.receives(a_reading("a"), a_reading("b"), arrived="10:01")
    kafka.truncates(topic.name, before=1)  # before it was first seen: not ours to miss
    lake.passes(as_of="10:05")
    assert sensors(lake) == [("b", name, 1)]
    assert "lost" not in capsys.readouterr().out and last_run(lake)["note"] == "" and topic_check(lake) == (True, "0")
    kafka.truncates(topic.name, before=2)  # what was read may go

    topic.receives(*(a_reading(sensor) for sensor in "cdef"), arrived="10:06")
    kafka.truncates(topic.name, before=4)
    lake.passes(as_of="10:10")
    lost = f"topic {topic.name} lost up to 2 messages before they were read (partition 0, offsets 2 to 3)"
    assert lost in capsys.readouterr().out and last_run(lake)["note"].startswith(lost)
    assert topic_check(lake) == (False, "1")
    assert sensors(lake) == [("b", name, 1), ("e", name, 4), ("f", name, 5)]

    topic.is_made_anew()
    topic.receives(a_reading("g"), a_reading("b"), arrived="10:11")
    lake.passes(as_of="10:15")
    anew = f"topic {topic.name} was deleted and made anew. Whatever it still held beyond what was read (next offset by partition: 0: 6) is lost"
    assert anew in capsys.readouterr().out and last_run(lake)["note"].startswith(anew)
    assert sensors(lake)[-1] == ("g", f"{name}@2", 0)
    assert [(row["sensor_id"], row["source"], row["position"]) for row in lake.rows("duplicates")] == [("b", f"{name}@2", 1)]
    assert lines_at(f"{name}@2", [1], lake.settings) == [a_reading("b")] == lines_at(name, [1], lake.settings)

    kafka.grows(topic.name, 2)
    topic.receives(a_reading("h"), arrived="10:16", partition=1)
    topic.receives(a_reading("i"), arrived="10:16")
    lake.passes(as_of="10:20")
    assert sensors(lake)[-2:] == [("h", f"{topic.name}-1@2", 0), ("i", f"{name}@2", 2)]
    assert last_run(lake)["note"] == "" and topic_check(lake) == (True, "0")

    kafka.deletes(topic.name)
    lake.receives(a_reading("j"), arrived="10:21")
    with pytest.raises(Stop, match=f"has no topic {topic.name} any more. What was read of it is in the lake."):
        ingests(lake)
    assert sensors(lake)[-1][0] == "j"  # files are taken all the same


def last_run(lake: TestLake) -> dict[str, Any]:
    return max(lake.rows("runs"), key=lambda row: row["number"])


def topic_check(lake: TestLake) -> tuple[bool, str]:
    row = lake.one("quality_results", run_id=last_run(lake)["run_id"], expectation="the Kafka topic lost no message unread")
    return row["success"], row["observed"]


def test_what_is_deleted_while_it_is_read_stops_the_pass_and_the_next_one_tells(
    lake: TestLake, topic: Topic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic.receives(*(a_reading(sensor) for sensor in "abc"), arrived="10:01")
    stream = kafka_messages.stream

    def loses(*given: Any) -> Any:
        topic.kafka.truncates(topic.name, before=2)
        return stream(*given)

    with monkeypatch.context() as losing:
        losing.setattr(message_intake.kafka_messages, "stream", loses)
        with pytest.raises(Stop, match=f"the broker deleted messages of topic {topic.name} while they were read. Run the pass again"):
            ingests(lake)
    ingests(lake)
    assert "lost up to 2 messages before they were read (partition 0, offsets 0 to 1)" in capsys.readouterr().out
    assert sensors(lake) == [("c", f"{topic.name}-0", 2)]


def test_a_topic_that_is_not_there_yet_is_named_and_files_go_in(lake: TestLake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.receives(a_reading(), arrived="10:01")
    ingests(lake, kafka_topic="coldstore_sensors_to_come")
    assert "Kafka has no topic coldstore_sensors_to_come (COLDSTORE_KAFKA_TOPIC) yet: no message was read." in capsys.readouterr().out
    assert len(lake.rows("readings")) == 1


# --- who may come in ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(kafka: Kafka, topic: Topic, tmp_path: Path) -> Iterator[Settings]:
    yield Settings.from_env({"COLDSTORE_LAKE": str(tmp_path / "lake"), **kafka.guarded, "COLDSTORE_KAFKA_TOPIC": topic.name})


def test_with_a_user_and_a_certificate_and_no_word_of_the_password(
    lake: TestLake, topic: Topic, kafka: Kafka, guarded: Settings, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans, stream = [], kafka_messages.stream
    monkeypatch.setattr(kafka_messages, "stream", lambda *given: plans.append(frame := stream(*given)) or frame)
    lake.settings = replace(guarded, as_of=at("12:00"))
    topic.receives(a_reading("a"), arrived="10:01")
    ingests(lake)
    assert sensors(lake) == [("a", f"{topic.name}-0", 0)]

    topic.receives(a_reading("b"), arrived="10:02")
    with pytest.raises(Stop) as stopped:
        ingests(lake, kafka_password="not the password", kafka_timeout_s=3.0)
    assert str(stopped.value).startswith(f"Kafka at {guarded.kafka_servers} cannot be asked (") and "uthenticat" in str(stopped.value)
    with monkeypatch.context() as broken:
        broken.setattr(ingest_batch, "write_batch", _crash)
        with pytest.raises(Exception, match="Crash") as failed:
            ingests(lake)
    for frame in plans:
        frame.explain("extended")
    shown = "".join(capfd.readouterr()) + repr(lake.settings) + str(stopped.value) + str(failed.value)
    files = b"".join(path.read_bytes() for path in lake.place.rglob("*") if path.is_file())
    assert "not the password" not in shown and kafka.password not in shown and kafka.user not in shown
    assert kafka.password.encode() not in files


WRONG = {
    "a way in that nobody knows": ({"kafka_security": "TLS"}, "COLDSTORE_KAFKA_SECURITY='TLS' is not known"),
    "no password": ({"kafka_password": ""}, "give COLDSTORE_KAFKA_USER and COLDSTORE_KAFKA_PASSWORD"),
    "a user whom nobody asks for": ({"kafka_security": "SSL"}, "COLDSTORE_KAFKA_USER is given, but SSL asks for none"),
    "no broker": ({"kafka_servers": ""}, "COLDSTORE_KAFKA_SERVERS is not"),
    "alerts into the readings": ({"kafka_alerts_topic": "coldstore_sensors"}, "is the topic that readings come from"),
    "batches of nothing": ({"kafka_batch_messages": 0}, "COLDSTORE_KAFKA_BATCH_MESSAGES has to be a number above 0"),
}


@pytest.mark.parametrize(("changed", "complaint"), WRONG.values(), ids=WRONG)
def test_settings_that_do_not_fit_are_named(changed: dict[str, Any], complaint: str) -> None:
    given = Settings(kafka_servers="127.0.0.1:1", kafka_security="SASL_SSL", kafka_user="u", kafka_password="a-password")
    with pytest.raises(SettingError, match=complaint):
        Broker(replace(given, **changed))
    assert "a-password" not in repr(given)


def test_a_broker_that_does_not_answer_is_one_clear_line() -> None:
    with pytest.raises(Stop, match=r"Kafka at 127.0.0.1:1 cannot be asked \(.*\)\. Nothing is lost: see to the broker") as stopped:
        Broker(Settings(kafka_servers="127.0.0.1:1", kafka_timeout_s=2.0)).topic("coldstore_sensors")
    assert kind_of(1, [str(stopped.value)]).name == "kafka"


# --- alerts that go out -------------------------------------------------------------------------------------------------------------------


class Told:
    """A message in the topic of alerts, as a receiver reads it."""

    def __init__(self, message: Any) -> None:
        self.key, self.value = message.key().decode(), json.loads(message.value())
        self.header = dict(message.headers())["event_id"].decode()


def events_in(kafka: Kafka, topic: str) -> list[Told]:
    return [Told(message) for message in kafka.messages(topic)]
