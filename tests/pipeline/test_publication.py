"""P21: the published tables never show what failed a critical check; a held run loses nothing and doubles nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from include.tables import PUBLISHED, TABLES
from spark_jobs.runtime import acceptance, ingest_batch, reference
from spark_jobs.runtime.errors import Held, Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.ledger import Books
from tests.lakes import TestLake, a_reading, every, moment


def test_a_held_run_shows_nothing_until_it_is_accepted_and_then_all_once(lake: TestLake) -> None:
    lake.receives(*every(30, "10:00", "10:10"), arrived="10:10")
    lake.passes(as_of="10:10")
    assert {path.name for path in (lake.place / "tables").iterdir()} == set(TABLES)
    shown = {table: (lake.version(table), lake.rows(table)) for table in PUBLISHED}

    lake.receives(*every(30, "10:10", "10:50"), *[b"garbage"] * 30, arrived="10:50")
    with pytest.raises(Held, match=r"27\.3 %"):
        lake.passes(as_of="10:50")
    held = lake.one("runs", status="held")
    assert {table: (lake.version(table), lake.rows(table)) for table in PUBLISHED} == shown
    assert (held["lines_read"], held["readings_new"], held["quarantined"], held["versions"]) == (110, 80, 30, [])
    failed = [row for row in lake.rows("quality_results") if row["run_id"] == held["run_id"] and not row["success"]]
    assert ("quarantine", "critical") in {(row["table"], row["severity"]) for row in failed}
    with pytest.raises(Held):
        lake.passes(as_of="10:51")  # nothing new: the cause is not gone

    with pytest.raises(Stop, match="is not held"):
        acceptance.accept(Lake(lake.spark, lake.settings), "pass-000009", "Ada", "why not")
    for run in ("pass-000002", "pass-000003"):
        acceptance.accept(Lake(lake.spark, lake.settings), run, "Ada", "a broken gateway; its lines are known")
    run_id = lake.passes(as_of="10:52")

    published = lake.one("runs", run_id=run_id)
    assert published["status"] == "published" and "accepted by Ada: a broken gateway" in published["note"]
    assert dict(published["versions"])["store_minutes"] == lake.version("store_minutes")
    assert lake.books()["lines_read"] == 130 and lake.books()["readings_new"] == 100
    assert sum(row["readings"] for row in lake.rows("store_minutes")) == 100
    docs = (lake.place / "data_docs/index.html").read_text()
    assert run_id in docs and held["run_id"] in docs


def test_a_good_run_after_a_held_one_publishes_both_and_a_warning_holds_nothing(lake: TestLake) -> None:
    lake.receives(*every(30, "10:00", "10:40"), *[b"garbage"] * 40, arrived="10:40")
    with pytest.raises(Held):
        lake.passes(as_of="10:40")
    assert lake.rows("store_minutes") == [] and lake.rows("heartbeats") == []
    lake.receives(*every(30, "10:40", "10:50"), b"garbage", arrived="10:50")
    lake.passes(as_of="10:50")
    assert sum(row["readings"] for row in lake.rows("store_minutes")) == 100
    warned = [row["table"] for row in lake.rows("quality_results") if row["severity"] == "warning" and not row["success"]]
    assert "quarantine" in warned


def test_accepting_the_last_of_two_held_runs_accepts_both(lake: TestLake) -> None:
    for hour in ("10", "11"):
        lake.receives(*every(60, f"{hour}:00", f"{hour}:40"), *[b"garbage"] * 70, arrived=f"{hour}:40")
        with pytest.raises(Held):
            lake.passes(as_of=f"{hour}:40")
    acceptance.accept(Lake(lake.spark, lake.settings), "pass-000002", "Ada", "a broken gateway; its lines are known")
    assert lake.one("runs", run_id=lake.passes(as_of="11:41"))["status"] == "published"


def test_a_line_that_a_held_run_lost_holds_the_next_one_too(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_a_line(*given: Any) -> Books:
        return replace(books_of(*given), lines_read=4)

    books_of = ingest_batch._books
    lake.receives(*every(60, "10:00", "10:03"), arrived="10:03")
    with monkeypatch.context() as patched, pytest.raises(Held, match="books balance"):
        patched.setattr(ingest_batch, "_books", without_a_line)
        lake.passes(as_of="10:05")
    with pytest.raises(Held, match=r"books balance \(seen 1, allowed 0\)"):
        lake.passes(as_of="10:06")
    acceptance.accept(Lake(lake.spark, lake.settings), "pass-000002", "Ada", "the line was found")
    lake.passes(as_of="10:07")


BROKEN = {
    "a sensor twice": ("sensors", "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s\na,s,,,,\na,s,,,,", "sensors.csv line 3"),
    "an end before its start": ("limits", "store_id,valid_from,valid_to,low_c,high_c\ns,2025-02-01,2025-01-01,0,8", "limits.csv line 2: valid_to"),
    "a missing column": ("suppressions", "store_id,sensor_id,rule,from,to\ns,,,,", "suppressions.csv line 1: the column reason is missing"),
    "no time": ("limits", "store_id,valid_from,valid_to,low_c,high_c\ns,soon,,0,8", "limits.csv line 2: valid_from 'soon'"),
    "no number": ("sensors", "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s\na,s,,,0,", "sensors.csv line 2: silent_after_s"),
    "more seconds than anyone waits": ("sensors", "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s\na,s,,,,99999999999", "sensors.csv line 2: expected_every_s '99999999999' cannot be read as a whole number of seconds"),
    "an empty line before the header": ("limits", "\n\nstore_id,valid_from,valid_to,low_c,high_c\ns,soon,,0,8", "limits.csv line 4: valid_from 'soon'"),
    "a quote left open": ("limits", 'store_id,valid_from,valid_to,low_c,high_c\n"s,,,0,8\nt,,,0,8', "limits.csv line 2: its cells cannot be told apart"),
    "a cell too many": ("limits", "store_id,valid_from,valid_to,low_c,high_c\ns,,,2,5,8", "limits.csv line 2: it has 6 cells"),
    "a column twice": ("limits", "store_id,valid_from,valid_to,low_c,high_c,low_c\ns,,,2,8,3", "limits.csv line 1: the column low_c stands there twice"),
    "limits the wrong way round": ("limits", "store_id,valid_from,valid_to,low_c,high_c\ns,,,8,2", "limits.csv line 2: low_c 8 lies above high_c 2"),
    "a time beyond the last year": ("limits", "store_id,valid_from,valid_to,low_c,high_c\ns,9999-12-31T23:59:59-05:00,,0,8", "limits.csv line 2: valid_from '9999"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_reference_file_is_named_with_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    lake = TestLake(tmp_path, None)  # type: ignore[arg-type]
    lake.knows(name, text)
    with pytest.raises(Stop, match=message) as stop:
        reference.check(lake.settings)
    assert "nothing was changed" in str(stop.value)


def test_a_broken_reference_file_stops_the_run_before_anything_is_written(lake: TestLake) -> None:
    lake.receives(a_reading(), arrived="10:01")
    lake.knows("limits", "store_id,valid_from,valid_to,low_c,high_c", "s,soon,,0,8")
    with pytest.raises(Stop):
        lake.passes(as_of="10:05")
    assert not (lake.place / "tables").exists()


def test_the_inventory_says_who_is_expected_and_who_is_retired(lake: TestLake) -> None:
    lake.knows(
        "sensors", "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s",
        "a,store-1,,,,", "never,store-1,,,,", "slow,store-1,,,600,300", f"old,store-1,,{moment('10:05').isoformat()},,", "later,store-1,2025-11-08T10:03:00Z,,,",
    )  # fmt: skip
    lake.receives(
        *every(30, "10:00", "10:10", "a"), *every(30, "10:02", "10:10", "stranger"), *every(30, "10:00", "10:02", "old"), arrived="10:10"
    )
    lake.receives(a_reading("slow", "10:00"), arrived="10:10")
    lake.passes(as_of="10:20")
    rows = {row["window_start"].strftime("%H:%M"): row for row in lake.rows("store_minutes")}
    expected = {
        clock: (rows[clock]["sensors_expected"], rows[clock]["completeness"]) for clock in ("10:00", "10:02", "10:03", "10:05", "10:08")
    }
    assert expected == {"10:00": (3, 2 / 3), "10:02": (4, 2 / 4), "10:03": (5, 2 / 5), "10:05": (4, 2 / 4), "10:08": (4, 2 / 4)}
    beats = {row["sensor_id"]: (row["status"], row["last_seen_at"], row["silent_since"]) for row in lake.rows("heartbeats")}
    assert beats == {
        "a": ("silent", moment("10:09:30"), moment("10:09:30")),
        "stranger": ("silent", moment("10:09:30"), moment("10:09:30")),
        "slow": ("silent", moment("10:00"), moment("10:00")),
        "never": ("never_reported", None, None),
        "later": ("never_reported", None, None),
        "old": ("retired", moment("10:01:30"), None),
    }
    assert lake.one("outages", sensor_id="old")["ended_at"] == moment("10:05")
