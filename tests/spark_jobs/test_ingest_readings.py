"""P1 to P7 through real passes: odd files, duplicates in any order, books, changed files, replay."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import SettingError, Settings
from spark_jobs.readers.raw_line import lines_at
from spark_jobs.runtime import begun_batch, requests
from tests.lakes import TestLake, a_reading, every, moment


def quarantined(lake: TestLake) -> list[tuple[bytes, list[str]]]:
    return sorted((row["line"], row["reasons"]) for row in lake.rows("quarantine"))


def sensors(lake: TestLake) -> list[str]:
    return sorted(row["sensor_id"] for row in lake.rows("readings"))


def test_files_of_every_shape_are_taken_once(spark: SparkSession, tmp_path: Path) -> None:
    lake = TestLake(tmp_path / "here" / ".." / "lake", spark)
    (tmp_path / "here").mkdir()
    lake.receives(raw=b"", arrived="10:01", name="empty.jsonl")
    lake.receives(raw=b"", arrived="10:01", name="nothing.jsonl.gz")
    lake.receives(raw=b"", arrived="10:01", name="nothing.jsonl.zst")
    lake.receives(raw=a_reading("no-newline"), arrived="10:01", name="no-newline.jsonl")
    lake.receives(raw=a_reading("crlf") + b"\r\n \t\r\n", arrived="10:01", name="crlf.jsonl")
    lake.receives(raw=b"\xef\xbb\xbf" + a_reading("marked") + b"\n", arrived="10:01", name="bom.jsonl")
    lake.receives(a_reading("before"), b"x" * 1_000_000, a_reading("after"), arrived="10:01", name="long.jsonl")
    lake.receives(a_reading("deep"), arrived="10:01", name="a/b=1/like-a-file.jsonl/c.jsonl")
    lake.receives(a_reading("named"), arrived="10:01", name="Kühlhaus Nr. 1 [50%] #2.jsonl")
    lake.receives(a_reading("packed"), arrived="10:01", name="packed.jsonl.gz")
    lake.receives(a_reading("pressed"), arrived="10:01", name="pressed.jsonl.zst")
    elsewhere = lake.receives(a_reading("linked"), arrived="10:01", name="../elsewhere/linked.jsonl").parent
    (lake.place / "landing" / "link").symlink_to(elsewhere.resolve())
    for hidden in (".hidden.jsonl", "_hidden.jsonl", "_day=1/x.jsonl", "a/.b/x.jsonl", "other.csv", "other.jsonl.tmp"):
        lake.receives(a_reading("never"), arrived="10:01", name=hidden)

    lake.passes(as_of="10:05")
    lake.passes(as_of="10:05")

    assert sensors(lake) == ["after", "before", "crlf", "deep", "linked", "marked", "named", "no-newline", "packed", "pressed"]
    assert quarantined(lake) == [(b"", ["truncated_file"]), (b"", ["truncated_file"]), (b"x" * 65_536, ["line_too_long"])]
    assert lake.books() == {"lines_read": 14, "readings_new": 10, "duplicates": 0, "quarantined": 3, "blank": 1, "late_rows": 0}
    taken = {Path(row["source"]).name: row["lines"] for row in lake.rows("raw_files")}
    assert taken["empty.jsonl"] == 0 and taken["long.jsonl"] == 3 and len(taken) == 12
    for row in (*lake.rows("readings"), *lake.rows("quarantine")):
        (line,) = lines_at(row["source"], [row["position"]], lake.settings)
        assert line is not None
        assert line[:65_536] == row["line"] if "line" in row else json.loads(line)["sensor_id"] == row["sensor_id"]


def test_a_name_that_is_not_utf_8_is_told_and_stops_nobody(lake: TestLake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.receives(a_reading("good"), arrived="10:01", name="good.jsonl")
    lake.receives(a_reading("other"), arrived="10:01", name=os.fsdecode(b"K\xfchlhaus.jsonl"))
    lake.receives(a_reading("third"), arrived="10:01", name=os.fsdecode(b"K\xfchlhaus/x.jsonl"))
    for _ in range(2):
        lake.passes(as_of="10:05")
        told = capsys.readouterr().out
        assert r"landing/K\xfchlhaus.jsonl has a name that is not UTF-8" in told and r"landing/K\xfchlhaus/x.jsonl has" in told
    assert sensors(lake) == ["good"]
    os.rename(os.fsencode(lake.place) + b"/landing/K\xfchlhaus.jsonl", lake.place / "landing/Kühlhaus.jsonl")
    lake.passes(as_of="10:06")
    assert sensors(lake) == ["good", "other"]


EARLY, LATE = "10:02", "10:03"
CASES = {
    "the same again is a duplicate": ([(a_reading(), EARLY), (a_reading(), LATE)], 2.5, 1, []),
    "another event_id says nothing else": ([(a_reading(event_id="a"), EARLY), (a_reading(event_id="b"), LATE)], 2.5, 1, []),
    "another temperature is a conflict": ([(a_reading(), EARLY), (a_reading(temperature=9), LATE)], 2.5, 0, [9]),
    "at the same instant the colder one wins": ([(a_reading(temperature=9), EARLY), (a_reading(temperature=1), EARLY)], 1.0, 0, [9]),
    "a door that nobody told of comes first": ([(a_reading(door_open=False), EARLY), (a_reading(), EARLY)], 2.5, 0, [2.5]),
    "a third line that agrees with the loser": (
        [(a_reading(temperature=9), LATE), (a_reading(temperature=9), "10:04"), (a_reading(), EARLY)], 2.5, 0, [9, 9]
    ),
    "a third line that agrees with the late winner": (
        [(a_reading(temperature=9), LATE), (a_reading(), "10:04"), (a_reading(), EARLY)], 2.5, 1, [9]
    ),
    "another store": ([(a_reading(store="store-2"), LATE), (a_reading(store="store-1"), EARLY)], 2.5, 0, [2.5]),
}  # fmt: skip


@pytest.mark.parametrize("together", [True, False], ids=["in one pass", "one pass each, as they stand"])
def test_the_first_to_arrive_wins_even_if_it_is_read_last(spark: SparkSession, tmp_path: Path, together: bool) -> None:
    """Every case is a sensor of its own in the same lake: whichever way the lines come in, the tables and the books are the same."""
    lake = TestLake(tmp_path / "lake", spark)
    for turn in range(3):
        for number, (lines, *_) in enumerate(CASES.values()):
            for line, arrived in lines[turn : turn + 1]:
                lake.receives(line.replace(b"sensor-1", b"case-%d" % number), arrived=arrived)
        if not together:
            lake.passes(as_of="10:10")
    if together:
        lake.passes(as_of="10:10")

    won = {row["sensor_id"]: row["temperature_c"] for row in lake.rows("readings")}
    assert won == {f"case-{number}": winner for number, (_, winner, _, _) in enumerate(CASES.values())}
    lost: dict[str, list[float]] = {}
    for row in lake.rows("quarantine"):
        assert row["reasons"] == ["conflicting_duplicate"]
        lost.setdefault(row["sensor_id"], []).append(json.loads(row["line"])["temperature"])
    assert {sensor: sorted(values) for sensor, values in lost.items()} == {
        f"case-{number}": conflicts for number, (_, _, _, conflicts) in enumerate(CASES.values()) if conflicts
    }
    duplicates = sum(count for _, _, count, _ in CASES.values())
    conflicts = sum(len(values) for _, _, _, values in CASES.values())
    lines = sum(len(lines) for lines, *_ in CASES.values())
    assert lake.books() == {
        "lines_read": lines, "readings_new": len(CASES), "duplicates": duplicates, "quarantined": conflicts, "blank": 0, "late_rows": 0,
    }  # fmt: skip
    by_store = {}
    for row in lake.rows("run_stores"):
        by_store[row["store_id"]] = by_store.get(row["store_id"], 0) + row["readings_new"]
    assert {store: count for store, count in by_store.items() if count} == {"store-1": len(CASES)}
    for run in lake.rows("runs"):
        assert run["lines_read"] == run["readings_new"] + run["duplicates"] + run["quarantined"] + run["blank"]


def test_a_file_that_changes_is_noticed_and_only_what_is_new_counts(lake: TestLake, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake.receives(a_reading("a"), b"garbage", b"", arrived="10:01", name="grows.jsonl")
    lake.passes(as_of="10:05")
    lake.receives(a_reading("a"), b"garbage", b"", a_reading("b"), b"rubbish", arrived="10:06", name="grows.jsonl")
    lake.passes(as_of="10:10")
    lake.passes(as_of="10:10")

    assert "grows.jsonl changed after it was taken" in capsys.readouterr().out
    assert sensors(lake) == ["a", "b"]
    assert lake.one("readings", sensor_id="a")["arrived_at"] == moment("10:01")
    assert quarantined(lake) == [(b"garbage", ["malformed_json"]), (b"rubbish", ["malformed_json"])]
    assert lake.books() == {"lines_read": 5, "readings_new": 2, "duplicates": 0, "quarantined": 2, "blank": 1, "late_rows": 1}
    assert [row["is_change"] for row in lake.rows("raw_files", "seq")] == [False, True]
    os.unlink(path)
    lake.passes(as_of="10:20")  # a file that is gone stops nobody


def test_a_file_that_is_gone_is_not_missed_where_the_ledger_has_all_of_it(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that died between the ledger and the note that its batch, or its request, is done."""

    def died(*_: object) -> None:
        raise RuntimeError("died here")

    path = lake.receives(a_reading("a"), arrived="10:01", name="x.jsonl")
    for step in (begun_batch, requests):
        with monkeypatch.context() as patched, pytest.raises(Exception, match="died here"):
            patched.setattr(step, "done", died)
            lake.passes(as_of="10:05")
        os.unlink(path)
        lake.passes(as_of="10:05")
        lake.receives(a_reading("a"), a_reading("b"), arrived="10:04", name="x.jsonl")  # it is back, and changed
    assert sensors(lake) == ["a", "b"]
    assert lake.books()["lines_read"] == 2


def test_of_a_file_that_changes_nothing_is_judged_or_booked_twice(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever becomes of its time: a line from the future stays in quarantine, a duplicate stays one, the first arrival is kept."""
    lake = TestLake(tmp_path / "lake", spark, split_bytes=200)

    def tables() -> dict[str, list[dict[str, object]]]:
        return {name: lake.rows(name, "source", "position") for name in ("readings", "duplicates", "quarantine")}

    def booked() -> list[int]:
        return list(lake.books().values())[:5]

    lake.receives(a_reading("a"), arrived="10:02", name="other.jsonl")
    good = (a_reading("a"), a_reading("a", temperature=9), a_reading("b"), a_reading("b"))
    lines = (*good, a_reading("c", "10:30"), a_reading("d", temperature=99), b"garbage", b"")
    lake.receives(*lines, arrived="10:03", name="x.jsonl")
    lake.passes(as_of="10:05")
    before = tables()
    assert booked() == [9, 2, 2, 4, 1]
    for arrived in ("10:40", "10:01"):
        lake.receives(*lines, arrived=arrived, name="x.jsonl")
        lake.passes(as_of="10:45")
        assert (tables(), booked()) == (before, [9, 2, 2, 4, 1])
    lake.receives(*lines, b"garbage", b"", a_reading("c", "10:30"), a_reading("b"), a_reading("e"), arrived="10:50", name="x.jsonl")
    lake.passes(as_of="10:55", highest_temperature_c=100.0)
    assert sensors(lake) == ["a", "b", "c", "e"] and booked() == [14, 4, 3, 5, 2]
    assert len(lake.rows("duplicates")) == 3 and [line for line, _ in quarantined(lake)].count(b"garbage") == 2
    assert [row["is_change"] for row in lake.rows("raw_files", "seq")] == [False, False, True, True, True]


def test_replay_takes_in_what_is_valid_by_the_new_rule_once(lake: TestLake) -> None:
    lake.receives(a_reading("hot", temperature=75), a_reading("hotter", temperature=95), b"garbage", arrived="10:01")
    lake.passes(as_of="10:05")
    assert sensors(lake) == []

    for _ in range(2):
        requests.ask_for_replay(str(lake.place), reason="temperature_out_of_range")
        lake.passes(as_of="10:10", highest_temperature_c=80.0)

    hot = lake.one("readings", sensor_id="hot")
    assert (hot["temperature_c"], hot["arrived_at"], hot["position"]) == (75.0, moment("10:01"), 0)
    assert {row["line"]: row["replayed_at"] is not None for row in lake.rows("quarantine")} == {
        a_reading("hot", temperature=75): True,
        a_reading("hotter", temperature=95): False,
        b"garbage": False,
    }
    assert lake.books() == {"lines_read": 3, "readings_new": 1, "duplicates": 0, "quarantined": 2, "blank": 0, "late_rows": 0}


def test_a_replayed_line_leaves_the_books_of_the_store_it_was_booked_under(lake: TestLake) -> None:
    lake.receives(b"garbage", arrived="10:01")
    lake.passes(as_of="10:05")
    lake.delta("quarantine").update({"line": f"X'{a_reading('a').hex()}'"})  # as if a reader of today could make sense of it
    requests.ask_for_replay(str(lake.place), reason="")
    lake.passes(as_of="10:10")
    assert sensors(lake) == ["a"]
    booked = [(row["store_id"], row["readings_new"], row["quarantined"]) for row in lake.rows("run_stores")]
    assert sorted(booked, key=str) == [("store-1", 1, 0), (None, 0, -1), (None, 0, 1)]


def test_a_taken_file_moves_to_the_archive_and_its_lines_are_found_there(spark: SparkSession, tmp_path: Path) -> None:
    lake = TestLake(tmp_path / "lake", spark, archive=str(tmp_path / "archive"))
    lake.receives(*every(60, "10:00", "10:03"), arrived="10:03", name="day/x.jsonl")
    lake.passes(as_of="10:05")
    assert not (lake.place / "landing/day/x.jsonl").exists()
    row = lake.rows("readings", "event_ts")[1]
    assert lines_at(row["source"], [row["position"]], lake.settings) == [a_reading(clock="10:01:00.000")]


def test_an_archive_in_the_landing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="lies in the landing folder"):
        Settings.from_env({"COLDSTORE_LAKE": str(tmp_path), "COLDSTORE_ARCHIVE": f"{tmp_path}/landing/archive"})
