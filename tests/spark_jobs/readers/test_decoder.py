"""The fast path and the thorough one agree on every line, and packed files give all that can be had of them."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import zlib
from typing import Any

import pytest
import zstandard

from include.settings import Settings
from spark_jobs.readers import unpacker
from spark_jobs.readers.decoder import BAD, FILE, READING, Slice, decode
from spark_jobs.readers.judge import is_blank, judge
from tests.spark_jobs.readers.test_judge import ARRIVED_MS, GOOD_LINES, line
from tests.spark_jobs.readers.test_judge import BAD as BAD_LINES

SETTINGS = Settings()
READING_FIELDS = ("sensor_id", "store_id", "temperature_mc", "door_open", "battery_pct", "event_id")


def rows(content: bytes, source: str = "x.jsonl", start: int = 0, end: int | None = None) -> list[dict[str, Any]]:
    stream = io.BytesIO(content)
    return [row for batch in decode(Slice(source, ARRIVED_MS, start, end), stream, SETTINGS) for row in batch.to_pylist()]


def mutated(count: int, seed: int) -> list[bytes]:
    """Good lines with one to three bytes changed at random."""
    chance, lines = random.Random(seed), []
    start = [line(), line(door_open=True, battery_pct=50, event_id="é"), line(event_ts="2025-11-08T15:32:12+00:00")]
    while len(lines) < count:
        text = bytearray(chance.choice(start))
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.randrange(256)
        lines.append(bytes(text).replace(b"\n", b" "))
    return lines


TIMES = [
    line(event_ts=f"{time}Z")
    for time in (
        *(f"2025-11-08T15:32:12.{'1234567890123'[:digits]}" for digits in range(14)),  # with no digit at all it is no time
        "2024-02-29T00:00:00", "2025-02-29T00:00:00", "2000-02-29T23:59:59.999", "2025-04-31T00:00:00", "2025-12-31T23:59:59",
        "2025-13-01T00:00:00", "2025-00-10T00:00:00", "2025-01-00T00:00:00", "2025-01-32T00:00:00", "0000-01-01T00:00:00",
        "2025-01-01T24:00:00", "2025-01-01T00:60:00", "2025-01-01T00:00:60", "2025-01-01T00:00:0a", "2025-01-01T00:00:00.1b3",
    )
]  # fmt: skip


def test_the_fast_path_says_what_the_thorough_one_says() -> None:
    texts = [text for text, _ in (*GOOD_LINES.values(), *BAD_LINES.values())] + TIMES + mutated(20_000, seed=1)
    by_position = {row["position"]: row for row in rows(b"\n".join(texts) + b"\n")}
    offset = 0
    for text in texts:
        plain = text[:-1] if text.endswith(b"\r") else text
        verdict, row = judge(plain, ARRIVED_MS, SETTINGS), by_position.pop(offset, None)
        offset += len(text) + 1
        if is_blank(plain):
            assert row is None
        elif verdict.reasons:
            assert row is not None and (row["kind"], row["reasons"]) == (BAD, list(verdict.reasons)), text
        else:
            assert row is not None and row["kind"] == READING, text
            assert {name: row[name] for name in READING_FIELDS} == {name: getattr(verdict, name) for name in READING_FIELDS}, text
            assert round(row["event_ts"].timestamp() * 1000) == verdict.event_ms, text
    assert [row["kind"] for row in by_position.values()] == [FILE]


CUT = line() * 1 + b"\n"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gz", "zst"])
def test_a_packed_file_gives_the_same_rows_as_a_plain_one(pack: Any) -> None:
    content = b"".join(text + b"\n" for text, _ in GOOD_LINES.values()) + b"garbage\n\n"
    ending = "gz" if pack is gzip.compress else "zst"
    without = {"source", "sha256", "bytes"}
    plain, packed = rows(content), rows(pack(content), f"x.jsonl.{ending}")
    assert [{k: v for k, v in row.items() if k not in without} for row in packed] == [
        {k: v for k, v in row.items() if k not in without} for row in plain
    ]
    assert packed[-1]["sha256"] == hashlib.sha256(pack(content)).hexdigest()


def test_members_one_after_the_other_are_one_text() -> None:
    content = gzip.compress(line() + b"\n") + gzip.compress(line() + b"\n") + b"\0\0"
    assert rows(content, "x.jsonl.gz")[-1]["lines"] == 2


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (gzip.compress(CUT * 3, mtime=0)[:-4], "x.jsonl.gz"),
        (gzip.compress(CUT * 3 + b"unfinished", mtime=0)[:-6], "x.jsonl.gz"),
        (b"", "x.jsonl.gz"),
        (zstandard.compress(CUT * 3)[:-3], "x.jsonl.zst"),
        (gzip.compress(CUT) + b"no gzip", "x.jsonl.gz"),
    ],
    ids=["without its checksum", "in the middle of a line", "nothing at all", "a cut frame", "something else behind it"],
)
def test_a_truncated_file_gives_its_whole_lines_and_one_row_for_the_rest(content: bytes, source: str) -> None:
    found = rows(content, source)
    rests = [row for row in found if row["reasons"] == ["truncated_file"]]
    assert len(rests) == 1
    assert found[-1]["lines"] == 1 + sum(row["kind"] == READING for row in found)
    if b"unfinished" in gzip.compress(b"") + content or source.endswith("gz"):
        assert rests[0]["position"] == (found[-1]["lines"] - 1) * len(CUT)


LINES = [line(sensor_id=f"s{i}", event_id=random.Random(i).randbytes(20).hex()) + b"\n" for i in range(500)]
TEXT = b"".join(LINES)
CHECKED = zstandard.ZstdCompressor(write_checksum=True)


def flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0xFF
    return bytes(changed)


def lines_in(packed: bytes) -> int:
    """How many whole lines a gz cut off there holds."""
    return zlib.decompressobj(wbits=31).decompress(packed).count(b"\n")


PACKED, FRAME = gzip.compress(TEXT, mtime=0), CHECKED.compress(TEXT)
MIDDLE = len(PACKED) // 2
DAMAGED = {
    "a wrong checksum": (flipped(PACKED, -8), "gz", 500),
    "a wrong checksum, zst": (flipped(FRAME, -1), "zst", 500),
    "a wrong checksum behind a good member": (gzip.compress(CUT) + flipped(PACKED, -8), "gz", 501),
    "a wrong byte in the middle": (flipped(PACKED, MIDDLE), "gz", lines_in(PACKED[:MIDDLE])),
    "a cut member, and a good one behind it": (PACKED[:MIDDLE] + PACKED, "gz", lines_in(PACKED[:MIDDLE])),
}


@pytest.mark.parametrize("piece", [1 << 16, 1000], ids=["in one piece", "in many pieces"])
@pytest.mark.parametrize(("content", "ending", "whole"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_gives_every_line_before_the_damage(
    content: bytes, ending: str, whole: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacker, "GZ_PIECE", piece)
    monkeypatch.setattr(unpacker, "ZST_PIECE", piece)
    found = rows(content, f"x.jsonl.{ending}")
    sensors = [row["sensor_id"] for row in found if row["kind"] == READING and row["sensor_id"] != "sensor-42"]
    expected = [f"s{i}" for i in range(500)][: min(whole, 500)]
    assert whole > 200 and sensors[: len(expected)] == expected
    (rest,) = (row for row in found if row["reasons"] == ["truncated_file"])
    if whole >= 500:
        assert (rest["line"], len(found)) == (b"", whole + 2)


def test_a_large_plain_file_in_parts_gives_each_line_once() -> None:
    content = b"".join(line(sensor_id=f"s{i}") + b"\n" for i in range(500))
    for cut in (1, 100, 101, len(line(sensor_id="s0")), 5_000):
        parts = rows(content, start=0, end=cut) + rows(content, start=cut)
        assert [row["sensor_id"] for row in parts if row["kind"] == READING] == [f"s{i}" for i in range(500)]
