"""A message is judged as the line of a file that arrived when it did."""

from __future__ import annotations

import io
import random
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from include.settings import Settings
from spark_jobs.readers.decoder import FILE, Slice, decode
from spark_jobs.readers.kafka_messages import _decode, is_topic, line_of
from tests.spark_jobs.readers.test_decoder import mutated
from tests.spark_jobs.readers.test_judge import ARRIVED_MS, BAD, GOOD_LINES, line

SETTINGS = Settings()
NAMES = ("source", "position", "arrived_at", "value")


def decoded(*messages: tuple[str, int, int, bytes | None]) -> list[dict[str, Any]]:
    """Of (source, offset, arrival in milliseconds, value)."""
    columns = list(zip(*messages, strict=True))
    arrays = [pa.array(columns[0]), pa.array(columns[1], pa.int64()), pa.array([ms * 1000 for ms in columns[2]], pa.timestamp("us", "UTC"))]
    batch = pa.RecordBatch.from_arrays([*arrays, pa.array(columns[3], pa.binary())], NAMES)
    return [row for part in _decode(SETTINGS, iter([batch])) for row in part.to_pylist()]


def in_a_file(text: bytes, arrived_ms: int) -> list[dict[str, Any]]:
    found = (row for part in decode(Slice("x.jsonl", arrived_ms), io.BytesIO(text), SETTINGS) for row in part.to_pylist())
    return [{name: value for name, value in row.items() if name not in ("source", "position")} for row in found if row["kind"] != FILE]


def test_a_message_gives_the_row_of_a_line_that_arrived_when_it_did() -> None:
    chance = random.Random(2)
    texts = [text for text, _ in (*GOOD_LINES.values(), *BAD.values())] + mutated(500, seed=3)
    texts = [text for text in texts if b"\n" not in text and not text.endswith(b"\r")]
    arrivals = [ARRIVED_MS + chance.choice([-400_000, -300_001, -300_000, 0, 1, 86_400_000]) for _ in texts]
    rows = decoded(*((f"t-{i % 3}", i, arrived_ms, text) for i, (text, arrived_ms) in enumerate(zip(texts, arrivals, strict=True))))
    counts = [row for row in rows if row["kind"] == FILE]
    by_position = {row["position"]: row for row in rows if row["kind"] != FILE}
    for i, (text, arrived_ms) in enumerate(zip(texts, arrivals, strict=True)):
        found = [by_position.pop(i)] if i in by_position else []
        assert all(row["source"] == f"t-{i % 3}" for row in found)
        assert [{name: value for name, value in row.items() if name not in ("source", "position")} for row in found] == in_a_file(
            text, arrived_ms
        ), text
    assert by_position == {} and sum(row["lines"] for row in counts) == len(texts)


def test_each_message_has_its_own_arrival() -> None:
    early, late = ARRIVED_MS - 1_000_000, ARRIVED_MS
    rows = decoded(
        ("t-0", 3, late, line()), ("t-0", 4, early, line()), ("t-0", 7, late, line()), ("t-0", 8, early, b"{"), ("t-0", 9, late, None)
    )
    seen = {row["position"]: (row["reasons"], round(row["arrived_at"].timestamp() * 1000)) for row in rows if row["kind"] != FILE}
    assert seen == {3: (None, late), 4: (["event_ts_in_future"], early), 7: (None, late), 8: (["malformed_json"], early)}
    (counts,) = (row for row in rows if row["kind"] == FILE)
    assert (counts["lines"], counts["blank"]) == (5, 1) and isinstance(counts["arrived_at"], datetime)


LINES = {
    "a tombstone": (None, b""),
    "nothing": (b"", b""),
    "a line's end alone": (b"\r\n", b""),
    "a line's end": (b"{}\n", b"{}"),
    "a lone return ends nothing": (b"{}\r", b"{}\r"),
    "two lines stay one": (b"{}\n{}\n", b"{}\n{}"),
    "a byte-order mark": (b"\xef\xbb\xbf{}", b"{}"),
}


@pytest.mark.parametrize(("value", "text"), LINES.values(), ids=LINES)
def test_the_line_of_a_value(value: bytes | None, text: bytes) -> None:
    assert line_of(value) == text


def test_a_topic_is_told_from_a_file() -> None:
    assert is_topic("coldstore_sensors-0") and is_topic("a.b_c-12@2")
    assert not is_topic("/lake/landing/x.jsonl") and not is_topic("s3a://bucket/landing/x.jsonl")
