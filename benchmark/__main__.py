"""The benchmark: python -m benchmark --rows N (make bench rows=N)"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from benchmark import agreement, lakes, report
from benchmark.lakes import Lake
from benchmark.measure import Cost
from benchmark.report import Line
from include.settings import PROJECT

FEWEST_ROWS, MOST_ROWS, WRITTEN_FROM = 10_000, 1_000_000_000, 1_000_000
NEW_READINGS = 1_000
PAGE = PROJECT / "docs" / "benchmark.md"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"benchmark: {message} (--help lists the options)", file=sys.stderr)
        sys.exit(2)


def number_of_rows(text: str) -> int:
    try:
        rows = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number; give one like 10000000") from None
    if not FEWEST_ROWS <= rows <= MOST_ROWS:
        raise argparse.ArgumentTypeError(f"{rows:,} is not between {FEWEST_ROWS:,} and {MOST_ROWS:,}")
    return rows


def run(rows: int, folder: Path) -> tuple[list[Line], list[agreement.Agreement]]:
    say(f"simulating {rows:,} and {rows // 100:,} readings")
    large, small = lakes.simulated(folder / "large", rows), lakes.simulated(folder / "small", rows // 100)

    ours = timed(f"a pass over {rows:,} readings", large.passes)
    rival = timed(f"DuckDB over {rows:,} readings", lambda: lakes.rival(large, folder / "rival"))
    found = agreement.compare(large.place / "tables", folder / "rival")
    say("; ".join(map(str, found)))

    first_small = timed(f"a pass over {rows // 100:,} readings", small.passes)
    on_small, on_large = best_in_turns(
        (f"{NEW_READINGS:,} new readings on {rows // 100:,}", lambda: with_new_readings(small)),
        (f"{NEW_READINGS:,} new readings on {rows:,}", lambda: with_new_readings(large)),
    )
    nothing_new, bare = best_in_turns(("a pass with nothing new", small.passes), ("a bare spark-submit", lambda: lakes.bare_submit(folder)))
    return [
        Line(f"{rows:,} readings: a pass", ours, against=rival),
        Line(f"{rows:,} readings: DuckDB", rival),
        Line(f"{NEW_READINGS:,} new readings on a lake of {rows:,}", on_large, against=on_small),
        Line(f"{NEW_READINGS:,} new readings on a lake of {rows // 100:,}", on_small),
        Line(f"nothing new on a lake of {rows // 100:,}", nothing_new, against=bare),
        Line("a bare spark-submit", bare),
        Line(f"{rows // 100:,} readings: a pass", first_small),
    ], found


def with_new_readings(lake: Lake) -> Cost:
    before = lake.readings()
    lake.receives(NEW_READINGS)
    cost = lake.passes()
    taken = lake.readings() - before
    if taken != NEW_READINGS:
        raise lakes.Failed(f"a pass over {NEW_READINGS:,} new readings in {lake.place} took {taken:,}; what it said:\n{cost.output}")
    return cost


def best_in_turns(one: tuple[str, Callable[[], Cost]], other: tuple[str, Callable[[], Cost]]) -> tuple[Cost, Cost]:
    """The quicker of two runs of each, in turns: what else the machine does meanwhile meets both."""
    costs = [(timed(*one), timed(*other)) for _ in range(2)]
    first, second = zip(*costs, strict=True)
    return min(first, key=_seconds), min(second, key=_seconds)


def timed(name: str, work: Callable[[], Cost]) -> Cost:
    cost = work()
    say(f"{name}: {cost.seconds:.1f} s, {cost.cpu_seconds:.1f} s of CPU, {cost.peak_mb:,.0f} MB")
    return cost


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def _seconds(cost: Cost) -> float:
    return cost.seconds


def main() -> int:
    parser = Parser(prog="python -m benchmark", description=__doc__, allow_abbrev=False)
    parser.add_argument("--rows", type=number_of_rows, default=10_000_000, help="readings in the large lake (10,000,000)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(PROJECT)} also below {WRITTEN_FROM:,} rows")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="coldstore-benchmark-") as folder:
            lines, found = run(given.rows, Path(folder))
    except (lakes.Failed, OSError) as error:
        print(f"benchmark: {error}", file=sys.stderr)
        return 1
    print(f"\n{report.table(lines)}\n\n{report.agreements(found)}\n{report.circumstances()}")
    if given.write or given.rows >= WRITTEN_FROM:
        PAGE.write_text(report.page(given.rows, lines, found), encoding="utf-8")
        print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
