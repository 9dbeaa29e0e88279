"""P22: a rebuild finds nothing where live runs made the tables; after a rule or a reference file changed it shows what would, then swaps it in."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from include.incidents import kind_of
from include.tables import PUBLISHED
from spark_jobs.compare_day import compare_day
from spark_jobs.rebuild_tables import rebuild_tables
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.swap_day import swap_day
from tests.lakes import DAY, TestLake, a_reading, at, every, moment

HEAD = "store_id,valid_from,valid_to,low_c,high_c"


def rebuilt(lake: TestLake, first: str = "2025-11-08", last: str = "2025-11-08", is_applied: bool = False) -> int:
    return rebuild_tables(Lake(lake.spark, lake.settings), first, last, is_applied, is_told=False)


def test_a_rebuild_differs_only_after_a_limit_changed_and_is_swapped_in_when_asked(
    lake: TestLake, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Stop, match="run a pass first"):
        Lake(lake.spark, lake.settings).create_missing_tables()
        rebuilt(lake)
    lake.knows("limits", HEAD, "store-1,,,-1,5")
    day_before = [line.replace(b"2025-11-08", b"2025-11-07") for line in every(60, "23:50", "23:59:30", temperature=9.0)]
    lake.receives(*day_before, *every(60, "00:00", "00:20", temperature=9.0), *every(60, "09:00", "09:30"), arrived="09:31")
    lake.passes(as_of="09:40")
    lake.receives(*every(60, "10:00", "10:20", temperature=6.0), *every(60, "09:10", "09:20", sensor="s2"), arrived="10:20")
    lake.receives(a_reading(clock="10:07:30", temperature=1.0, door_open=True), arrived="10:21")
    lake.passes(as_of="10:30")
    versions = {table: lake.version(table) for table in PUBLISHED}
    assert rebuilt(lake) == 0 and rebuilt(lake, first="", last="") == 0
    assert "nothing to swap in" in capsys.readouterr().out

    lake.knows("limits", HEAD, "store-1,,2025-11-08T10:00:00Z,-1,5", "store-1,2025-11-08T10:00:00Z,,-1,8")
    assert rebuilt(lake) > 0
    said = capsys.readouterr().out
    assert "Nothing was changed" in said and "too_warm" in said
    place = Lake(lake.spark, lake.settings)
    with pytest.raises(Stop, match=r"4 rows of 2025-11-08 are not as a rebuild makes them \(alerts 4\)") as differs:
        compare_day(place, DAY, "nightly", must_be_equal=True)
    assert "trigger rebuild_day for 2025-11-08" in str(differs.value) and kind_of(1, [str(differs.value)]).name == "difference"
    told = json.loads((lake.place / "control/comparisons/nightly.json").read_text())
    assert (told["day"], told["rows"]) == (DAY, 4)
    (alerts,) = (each for each in told["tables"] if each["table"] == "alerts")
    assert alerts["actions"] == {"update": 4}
    warm = sorted(line for line in alerts["shown"] if "too_warm" in line)
    assert [line.partition(": ")[2] for line in warm] == [
        "status resolved → retracted",
        "ended_at none → 2025-11-08T10:30:00Z; status open → retracted",
    ]
    assert [line.partition(": ")[2] for line in alerts["shown"] if line not in warm] == ["limit_high_c 5 → 8"] * 2
    live = Lake(lake.spark, replace(lake.settings, run_id="scheduled__1", as_of=at("10:30")))
    runs.begin(live, runs.history(live))
    with pytest.raises(Stop, match="run scheduled__1 is under way"):
        swap_day(place, DAY, told["fingerprint"], "")
    lake.passes(as_of="10:30")  # finds that it is dead
    with pytest.raises(Stop) as superseded:
        runs.continued(live)
    assert kind_of(1, [str(superseded.value)]).name == "superseded"
    with pytest.raises(Stop, match="has changed since it was compared, 4 rows now: nothing was swapped in"):
        swap_day(place, DAY, "another", "")
    assert {table: lake.version(table) for table in PUBLISHED} == versions

    swap_day(place, DAY, told["fingerprint"], "approved by Ada: the limit was wrong")
    warm = [(row["started_at"], row["status"]) for row in lake.rows("alerts", "started_at") if row["rule"] == "too_warm"]
    crossing = moment("00:00").replace(day=7, hour=23, minute=50)
    assert warm == [(crossing, "resolved"), (moment("10:00"), "retracted"), (moment("10:08"), "retracted")]
    run = lake.rows("runs", "number")[-1]
    assert (run["run_id"], run["status"], run["lines_read"]) == ("rebuild-000005", "published", 0)
    assert run["note"] == "approved by Ada: the limit was wrong"
    count = len(lake.rows("runs"))
    swap_day(place, DAY, told["fingerprint"], "approved by Ada: the limit was wrong")  # Airflow tries it again
    compare_day(place, DAY, "nightly", must_be_equal=True)
    assert len(lake.rows("runs")) == count
    changed = [(row["change"], row["is_historic"]) for row in lake.rows("alert_events") if row["run_id"] == run["run_id"]]
    assert changed == [("retracted", True), ("retracted", True)]
    assert rebuilt(lake) == 0
    versions = {table: lake.version(table) for table in PUBLISHED}
    lake.passes(as_of="10:30")
    assert {table: lake.version(table) for table in PUBLISHED} == versions
    with pytest.raises(Stop, match="lies before"):
        rebuilt(lake, first="2025-11-09")
