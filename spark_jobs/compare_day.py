"""One day of the published tables made anew, beside the live ones, and how they differ: a task of the DAG `rebuild_day`. Nothing that people read changes."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace

from include.settings import Settings
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.comparison import NOTHING
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.rebuild import rebuilt


def compare_day(lake: Lake, day: str, report: str, must_be_equal: bool) -> None:
    """`report` names the file that tells the tasks that follow."""
    if lake.exists("runs") and runs.history(lake).published:
        _, found = rebuilt(lake, day, day, is_applied=False)
    else:
        print("nothing is published yet, so there is nothing to compare.", flush=True)
        found = NOTHING
    told = {"day": day, "rows": found.rows, "fingerprint": found.fingerprint, "tables": [asdict(each) for each in found.tables]}
    lake.write_text(json.dumps(told), "control", "comparisons", f"{report}.json")
    if must_be_equal and found.rows:
        differing = ", ".join(f"{each.table} {each.rows:,}" for each in found.tables if each.rows)
        raise Stop(
            f"{found.rows:,} rows of {day} are not as a rebuild makes them ({differing}). A reference file, a rule or a setting was changed since; if none "
            f"was, the pipeline is at fault. The tables stay as they are. To swap the rebuilt rows in: trigger rebuild_day for {day}."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--day", required=True, help="UTC, like 2025-11-08")
    parser.add_argument("--report", required=True, help="a name for what was found")
    parser.add_argument("--must-be-equal", choices=["0", "1"], default="0", help="1: fail where something differs")
    given = parser.parse_args()
    settings = replace(Settings.from_env(), run_id="")
    with opened(settings, f"compare_day of {given.day}") as lake:
        compare_day(lake, given.day, given.report, given.must_be_equal == "1")


if __name__ == "__main__":
    sys.exit(program(main))
