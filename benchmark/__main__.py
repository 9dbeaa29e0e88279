"""The benchmark: python -m benchmark --rows N (make bench rows=N)"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from benchmark import agreement, lakes, on_s3, report
from benchmark.agreement import Agreement
from benchmark.lakes import Lake
from benchmark.measure import Cost
from benchmark.report import Line
from include.settings import PROJECT

FEWEST_ROWS, MOST_ROWS, WRITTEN_FROM = 10_000, 1_000_000_000, 1_000_000
NEW_READINGS, MOST_ON_S3 = 1_000, 1_000_000
BOARD = ("--stores", "100", "--sensors", "20", "--cadence", "60")
MOST_ON_BOARD = 100 * 20 * 60 * 24  # a day
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


@dataclass
class Results:
    """What was measured so far; a step that fails does not take the others with it."""

    lines: list[Line] = field(default_factory=list)
    agreements: list[Agreement] = field(default_factory=list)
    answers: lakes.Answers = field(default_factory=dict)

    def pair(self, name: str, cost: Cost, other_name: str, other: Cost) -> None:
        self.lines += [Line(name, cost, against=other), Line(other_name, other)]


def run(rows: int, folder: Path, results: Results) -> None:
    few = rows // 100
    say(f"simulating {rows:,} and {few:,} readings")
    large, small = lakes.simulated(folder / "large", rows), lakes.simulated(folder / "small", few)

    ours = timed(f"a pass over {rows:,} readings", large.passes)
    rival = timed(f"DuckDB over {rows:,} readings", lambda: lakes.rival(large, folder / "rival"))
    results.pair(f"{rows:,} readings: a pass", ours, f"{rows:,} readings: DuckDB", rival)
    results.agreements += agreement.compare(large.place / "tables", folder / "rival")
    say("; ".join(map(str, results.agreements)))

    rebuilt = timed(f"a rebuild of {rows:,} readings", large.rebuilds)
    results.pair(f"{rows:,} readings: a rebuild of all days", rebuilt, f"{rows:,} readings: the pass that took them", ours)

    timed(f"a pass over {few:,} readings", small.passes)
    new = f"{NEW_READINGS:,} new readings on a lake of"
    on_small, on_large = best_in_turns(
        (f"{new} {few:,}", lambda: with_new_readings(small)), (f"{new} {rows:,}", lambda: with_new_readings(large))
    )
    results.pair(f"{new} {rows:,}", on_large, f"{new} {few:,}", on_small)

    nothing_new, bare = best_in_turns(("a pass with nothing new", small.passes), ("a bare spark-submit", lambda: lakes.bare_submit(folder)))
    results.pair(f"nothing new on a lake of {few:,}", nothing_new, "a bare spark-submit", bare)

    some = min(rows, MOST_ON_S3)
    origin = large if some == rows else lakes.simulated(folder / "some", some)
    with on_s3.twins(origin, folder / "twins") as twins:
        s3, files = best_in_turns((f"{some:,} readings on S3", twins.on_s3), (f"{some:,} readings on files", twins.on_files))
    results.pair(f"{some:,} readings: a pass on S3", s3, f"{some:,} readings: a pass on local files", files)

    shown = lakes.simulated(folder / "board", min(rows, MOST_ON_BOARD), *BOARD)
    timed("a pass for the board", shown.passes)
    results.answers = lakes.board_answers(shown, folder / "airflow_home")


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
    results, failure = Results(), ""
    try:
        with tempfile.TemporaryDirectory(prefix="coldstore-benchmark-") as folder:
            run(given.rows, Path(folder), results)
    except (lakes.Failed, OSError) as error:
        failure = str(error)
    if results.lines:
        print(f"\n{report.findings(results.lines, results.answers, results.agreements)}\n\n{report.circumstances()}")
    if failure:
        print(f"benchmark: {failure}", file=sys.stderr)
        return 1
    if given.write or given.rows >= WRITTEN_FROM:
        PAGE.write_text(report.page(given.rows, results.lines, results.answers, results.agreements), encoding="utf-8")
        print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
