"""One day made anew, checked and swapped in, as it was compared and approved: a task of the DAG `rebuild_day`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from include.settings import Settings
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.rebuild import rebuilt, swap_in


def swap_day(lake: Lake, day: str, expected: str, note: str) -> None:
    """Live runs went on since it was compared: what is swapped in has to be what was looked at. A second attempt finds nothing left to do."""
    run, found = rebuilt(lake, day, day, is_applied=True, gives_way=True)
    if found.rows == 0:
        return
    if found.fingerprint != expected:
        raise Stop(
            f"what differs on {day} has changed since it was compared, {found.rows:,} rows now: nothing was swapped in. Clear the task compare_day "
            "with those after it, and look again."
        )
    swap_in(lake, run, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--day", required=True, help="UTC, like 2025-11-08")
    parser.add_argument("--expect", required=True, help="the fingerprint of what was compared")
    parser.add_argument("--note", default="", help="who approved it, and why")
    given = parser.parse_args()
    settings = replace(Settings.from_env(), run_id="")
    with opened(settings, f"swap_day of {given.day}") as lake:
        swap_day(lake, given.day, given.expect, given.note)


if __name__ == "__main__":
    sys.exit(program(main))
