"""Make the published tables anew for some days, beside the live ones; show what differs, and swap it in: make rebuild from=… to=… [apply=1]"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from include.settings import Settings
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.rebuild import rebuilt, swap_in


def rebuild_tables(lake: Lake, first: str, last: str, is_applied: bool, is_told: bool) -> int:
    """How many rows differ."""
    run, comparison = rebuilt(lake, first, last, is_applied, is_told)
    if comparison.rows and is_applied:
        swap_in(lake, run)
    elif comparison.rows:
        print("Nothing was changed. To swap it in: the same command with apply=1")
    return comparison.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--from", dest="first", default="", metavar="DAY", help="the first day, UTC, like 2025-11-08; empty: that of the first reading"
    )
    parser.add_argument("--to", dest="last", default="", metavar="DAY", help="the last day, inside; empty: that of the last reading")
    parser.add_argument("--apply", choices=["", "0", "1"], default="", help="1: check what differs and swap it in")
    parser.add_argument("--tell", choices=["", "0", "1"], default="", help="1: alert events go out as new ones, not as history")
    given = parser.parse_args()
    settings = replace(Settings.from_env(), run_id="")
    with opened(settings, "make rebuild") as lake:
        rebuild_tables(lake, given.first, given.last, given.apply == "1", given.tell == "1")


if __name__ == "__main__":
    sys.exit(program(main))
