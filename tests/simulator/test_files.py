"""Landing files: their formats, their arrival stamps, their places, and uploads that break off."""

import json
import zlib
from collections import Counter, defaultdict

import pytest
import zstandard

from simulator.timestamps import MINUTE, SECOND, from_iso


def test_files_take_turns_among_the_formats(lake):
    lake.simulate(hours=1)
    endings = Counter("".join(path.suffixes) for path in lake.files)
    assert endings.keys() == {".jsonl", ".jsonl.gz", ".jsonl.zst"}
    assert max(endings.values()) - min(endings.values()) <= 3


def test_a_store_has_its_own_files_by_day_and_time(lake):
    lake.simulate(hours=0.5)
    assert {path.parent.relative_to(lake.landing).as_posix() for path in lake.files} == {f"store-00{n}/2025-11-08" for n in (1, 2, 3)}
    for line in lake.lines:
        assert line.file.split("/")[2][:4] == f"06{line.arrived_ms // MINUTE % 60:02}"


def test_all_that_was_delivered_had_arrived_and_healthy_readings_arrive_within_two_minutes(lake):
    delivery = lake.simulate(hours=1, cut_off_hours=0, late=0, duplicates=0, conflicts=0, wrong_clock=0)
    waits = [fact["arrived_at"] - fact["event_ms"] for fact in lake.truth if "event_ms" in fact]
    assert max(fact["arrived_at"] for fact in lake.truth) <= delivery.as_of_ms == from_iso("2025-11-08T07:00:00Z")
    assert min(waits) > 0 and max(waits) < 2 * MINUTE + 15 * SECOND


def test_the_default_sample_is_mostly_healthy(lake):
    delivery = lake.simulate(stores=12, sensors=8, hours=2)
    late = [fact["arrived_at"] >= fact["event_ms"] // MINUTE * MINUTE + MINUTE + 150 * SECOND for fact in lake.truth if "event_ms" in fact]
    assert 0.005 < sum(late) / len(late) < 0.1
    assert 0.002 < delivery.quarantined / delivery.lines < 0.02
    assert delivery.lines == len(lake.truth) == delivery.readings + delivery.duplicates + delivery.quarantined + delivery.blank


def test_the_delivery_counts_what_is_in_the_files(lake):
    delivery = lake.simulate(hours=2, bad=0.1, conflicts=0.1, truncated=0.1)
    assert delivery.kinds == Counter(fact["kind"] for fact in lake.truth)
    assert delivery.reasons == Counter(reason for fact in lake.truth for reason in fact["reasons"])
    assert sorted(delivery.files) == lake.files, "and nothing unfinished is left behind"


def test_an_upload_that_breaks_off_keeps_its_whole_lines(lake):
    delivery = lake.simulate(hours=2, truncated=1.0, conflicts=0.05, odd=0)
    breaks = {fact["file"]: fact["offset"] for fact in lake.truth if fact["kind"] == "truncated_file"}
    packed = [path for path in lake.files if path.suffix != ".jsonl"]
    assert len(breaks) > 0.8 * len(packed) and delivery.lost > len(breaks) / 2
    left_over = Counter()
    for name, offset in breaks.items():
        path = lake.landing / name
        reader = zlib.decompressobj(31) if path.suffix == ".gz" else zstandard.ZstdDecompressor().decompressobj()
        text = reader.decompress(path.read_bytes())
        assert not reader.eof
        assert text[:offset].endswith(b"\n") and b"\n" not in text[offset:] and not text.endswith(b"}")
        left_over[offset == len(text)] += 1
    assert left_over[True] and left_over[False], "some break between two lines"


def test_an_original_is_never_lost(lake):
    lake.simulate(hours=3, truncated=1.0, conflicts=0.2, duplicates=0.2, late=0.02)
    kinds = defaultdict(set)
    for fact in lake.truth:
        if "event_ms" in fact:
            kinds[fact["sensor_id"], fact["event_ms"]].add(fact["kind"])
    copied = [seen for seen in kinds.values() if seen & {"conflict", "duplicate_near", "duplicate_far"}]
    assert copied and all("original" in seen for seen in copied)


def test_some_files_end_without_a_line_end(lake):
    lake.simulate(hours=3, formats=("plain",))
    ends = Counter(path.read_bytes()[-1:] for path in lake.files)
    assert ends[b"}"] and ends[b"\n"] > 10 * ends[b"}"]


def test_many_readings_come_in_few_large_files(lake):
    delivery = lake.simulate(readings=60_000, stores=20, sensors=20)
    assert 55_000 < delivery.lines < 65_000
    assert len(delivery.files) <= 10
    assert {path.parent.parent.name for path in delivery.files} == {"all-stores"}


@pytest.mark.parametrize("file_minutes", [0.2, 1.5, 30])
def test_a_file_is_one_upload_whatever_its_length(lake, file_minutes):
    lake.simulate(hours=1, file_minutes=file_minutes, stores=2)
    stamps = defaultdict(set)
    for fact in lake.truth:
        stamps[fact["file"]].add(fact["arrived_at"])
    assert all(len(stamp) == 1 for stamp in stamps.values())


def test_lines_look_like_a_sensor_wrote_them(lake):
    lake.simulate(hours=0.5)
    good = {(fact["file"], fact["offset"]) for fact in lake.truth if fact["kind"] == "good"}
    for line in lake.lines:
        if (line.file, line.offset) in good:
            said = json.loads(line.text)
            assert json.dumps(said, separators=(",", ":")).encode() == line.text
            assert list(said) == ["sensor_id", "store_id", "temperature", "door_open", "battery_pct", "event_ts"]
