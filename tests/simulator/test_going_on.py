"""The same seed gives the same bytes, and a call goes on exactly where the last one stopped."""

from collections import Counter
from pathlib import Path

import pytest

from simulator import OptionsError

LIVELY = {
    "duplicates": 0.05,
    "conflicts": 0.05,
    "late": 0.05,
    "out_of_order": 0.05,
    "wrong_clock": 0.02,
    "bad": 0.05,
    "odd": 0.05,
    "blank": 0.02,
}


def contents(files: list[Path], root: Path) -> dict[str, tuple[bytes, int]]:
    return {path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_the_same_seed_gives_the_same_bytes(a_lake):
    one, other = a_lake("one"), a_lake("other")
    for lake in (one, other):
        lake.simulate(hours=1, seed=11, **LIVELY)
    assert contents(one.files, one.landing) == contents(other.files, other.landing)
    assert one.truth == other.truth


def test_another_seed_gives_other_lines(a_lake):
    one, other = a_lake("one"), a_lake("other")
    one.simulate(hours=0.5, seed=1)
    other.simulate(hours=0.5, seed=2)
    assert not {line.text for line in one.lines if line.text} & {line.text for line in other.lines if b"sensor-" in line.text}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((2, 2), id="two halves"),
        pytest.param((0.01, 1.237, 2.753), id="three uneven parts that end in the middle of a file"),
    ],
)
def test_hours_in_one_call_or_in_several_are_the_same_lines(a_lake, parts):
    whole, cut = a_lake("whole"), a_lake("cut")
    world = {"cut_off_hours": 1.5, "silent": 0.2, **LIVELY}
    delivered = whole.simulate(hours=4, **world)
    for hours in parts:
        last = cut.simulate(hours=hours, **world)
    assert Counter((line.text, line.arrived_ms) for line in cut.lines) == Counter((line.text, line.arrived_ms) for line in whole.lines)
    assert contents(cut.files, cut.landing) == contents(whole.files, whole.landing)
    assert (last.as_of, last.on_the_way) == (delivered.as_of, delivered.on_the_way)


def test_memory_for_few_readings_at_once_changes_no_line(a_lake, monkeypatch):
    whole, piecewise = a_lake("whole"), a_lake("piecewise")
    whole.simulate(hours=1, **LIVELY)
    monkeypatch.setattr("simulator.simulation.READINGS_AT_ONCE", 50)
    monkeypatch.setattr("simulator.landing.ROWS_AT_ONCE", 7)
    piecewise.simulate(hours=1, **LIVELY)
    assert contents(piecewise.files, piecewise.landing) == contents(whole.files, whole.landing)
    assert piecewise.truth == whole.truth


def test_a_buffer_that_outlasts_the_call_is_delivered_later(lake):
    first = lake.simulate(hours=1, cut_off_hours=2, stores=2, silent=0, input_stop_minutes=0)
    cut = first.cut_offs[0]
    assert first.on_the_way > 100
    second = lake.simulate(hours=3, cut_off_hours=2, stores=2, silent=0, input_stop_minutes=0)
    buffered = [fact for fact in lake.truth if fact["kind"] == "buffered"]
    assert second.kinds["buffered"] == len(buffered) > 400
    assert min(fact["arrived_at"] for fact in buffered) >= cut.ended_ms > first.as_of_ms


def test_going_on_never_touches_what_is_there(lake):
    lake.simulate(hours=0.5)
    before = contents(lake.files, lake.landing)
    lake.simulate(hours=0.5)
    after = contents(lake.files, lake.landing)
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)


def test_a_file_name_that_is_taken_is_left_alone(lake):
    taken = lake.landing / "store-001" / "2025-11-08" / "0601.jsonl"
    taken.parent.mkdir(parents=True)
    taken.write_text("mine\n")
    lake.simulate(hours=0.1, formats=("plain",))
    assert taken.read_text() == "mine\n"
    assert taken.with_name("0601-2.jsonl").exists()
    assert {lake.landing / fact["file"] for fact in lake.truth} == set(lake.files) - {taken}


def test_a_call_that_died_is_simply_repeated(lake):
    lake.simulate(hours=0.5, **LIVELY)
    once = contents(lake.files, lake.landing)
    (lake.path / "sample.json").unlink()
    lake.simulate(hours=0.5, **LIVELY)
    assert contents(lake.files, lake.landing) == once


@pytest.mark.parametrize(
    "change", [{"seed": 8}, {"stores": 4}, {"sensors": 5}, {"cadence": 10}, {"start": "2025-11-08T06:00:00Z"}], ids=str
)
def test_a_lake_keeps_its_world(lake, change):
    lake.simulate(hours=0.1)
    with pytest.raises(OptionsError, match="another lake"):
        lake.simulate(hours=0.1, **change)
