"""`make sql`: the published snapshot, of the last run or a past one; nothing can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import PROJECT
from published.refused import Refused
from published.snapshot import published
from scripts.sql import Mistake, answer, connected
from tests.lakes import TestLake, moment


def asked(lake: TestLake, statement: str = "", *options: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "COLDSTORE_LAKE": str(lake.place)}
    return subprocess.run([sys.executable, "-m", "scripts.sql", *options, statement], env=env, input=typed, capture_output=True, text=True)


def test_the_answer_is_that_of_the_last_published_run(told_lake: TestLake) -> None:
    told = asked(told_lake, "select rule, sensor_id, peak from alerts where status = 'open' order by rule")
    assert told.stdout.splitlines() == [
        "rule              sensor_id  peak",
        "----------------  ---------  ----",
        "missed_heartbeat  sensor-2",
        "too_warm          sensor-1   8.25",
    ]
    assert told.stderr == "2 rows; run pass-000002, as of 2025-11-08T10:30:00Z\n"


def test_a_past_run_shows_the_tables_as_they_were(told_lake: TestLake) -> None:
    then, now = (asked(told_lake, "select count(*) n from readings", "--as", "csv", "--at", at).stdout for at in ("pass-000001", ""))
    assert (then, now) == ("n\n20\n", "n\n41\n")
    runs = asked(told_lake, "select run_id, status from runs", "--as", "json", "--at", "pass-000001").stdout
    assert json.loads(runs) == {"run_id": "pass-000001", "status": "published"}


def test_what_people_said_after_the_last_run_is_there_and_in_the_past_it_is_not(told_lake: TestLake) -> None:
    now, then = (connected(published(str(told_lake.place), run), told_lake.settings) for run in ("", "pass-000001"))
    statement = "select acknowledged_by, comment from acknowledgements"
    assert answer(now, statement).to_pylist() == [{"acknowledged_by": "Ada", "comment": "the door was open"}]
    assert answer(then, statement).to_pylist() == []


def test_times_are_utc_and_json_has_structures(told_lake: TestLake) -> None:
    connection = connected(published(str(told_lake.place)), told_lake.settings)
    assert answer(connection, "select max(event_ts) as latest from readings").to_pylist() == [{"latest": moment("10:29")}]
    row = json.loads(asked(told_lake, "select evidence, started_at from alerts where rule = 'too_warm'", "--as", "json").stdout)
    assert row["started_at"] == "2025-11-08T10:10:00Z"
    assert row["evidence"]["first"]["temperature_c"] == 8.25 and row["evidence"]["first"]["event_ts"] == "2025-11-08T10:10:00Z"


@pytest.mark.parametrize(
    "statement",
    [
        "copy alerts to '{place}/stolen.csv'",
        "copy (select 1) to '{place}/tables/alerts/x.parquet' (format parquet)",
        "attach '{place}/new.db'",
        "select * from read_text('{place}/reference/limits.csv')",
        "set enable_external_access = true",
        "insert into alerts select * from alerts",
        "delete from alerts",
    ],
)
def test_nothing_can_be_written_and_no_file_be_read(told_lake: TestLake, statement: str) -> None:
    before = sorted(told_lake.place.rglob("*"))
    with pytest.raises(Mistake):
        answer(connected(published(str(told_lake.place)), told_lake.settings), statement.format(place=told_lake.place))
    assert sorted(told_lake.place.rglob("*")) == before


def test_the_reference_files_are_tables(told_lake: TestLake) -> None:
    connection = connected(published(str(told_lake.place)), told_lake.settings)
    limits = {"store_id": "store-1", "valid_from": None, "valid_to": None, "low_c": 0.0, "high_c": 5.0}
    assert answer(connection, "select * from limits").to_pylist() == [limits]
    assert answer(connection, "select * from suppressions").to_pylist() == []


def test_mistakes_are_told_in_a_line_or_two(told_lake: TestLake) -> None:
    wrong = asked(told_lake, "select nothing from alerts")
    assert wrong.returncode == 1 and wrong.stdout == "" and 'column "nothing" not found' in wrong.stderr and "Traceback" not in wrong.stderr
    assert "as=xml is not known" in asked(told_lake, "select 1", "--as", "xml").stderr
    for run, why in (("pass-000003", "was held, so it has no tables"), ("nobody", "is not known")):
        told = asked(told_lake, "select 1", "--at", run)
        assert told.returncode == 1 and told.stderr == f"run {run} {why}; published ones, the last first: pass-000002, pass-000001.\n"


def test_a_lake_without_a_published_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="has no published run yet: take a pass first"):
        published(str(tmp_path))


def test_the_shell_takes_statements_of_several_lines_and_goes_on_after_a_mistake(told_lake: TestLake) -> None:
    typed = "select count(*) as readings\nfrom readings;\nselect nonsense;\n.columns outages\nselect 7 as seven;\n"
    told = asked(told_lake, typed=typed)
    lines = told.stdout.splitlines()
    assert lines[:3] == ["readings", "--------", "      41"] and lines[-3:] == ["seven", "-----", "    7"]
    assert any(line.startswith("sensor_id") and "string" in line for line in lines)
    assert "nonsense" in told.stderr and told.returncode == 0
