"""The result for people: a table on the screen, and the same with its circumstances in docs/benchmark.md."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import psutil

from benchmark.agreement import Agreement
from benchmark.lakes import Answers
from benchmark.measure import Cost

PACKAGES = ("pyspark", "delta-spark", "duckdb", "deltalake")
ANSWERS = ("page, 100 stores, 2,000 sensors", "first answer, s", "later ones, s", "ratio to the last row")
HEADER = ("measurement", "seconds", "CPU seconds", "peak MB", "ratio of seconds", "of CPU")

COMPARED = """\
**The rival** is DuckDB, which writes with delta-rs, in one process over the same landing files, with as many threads as there are
cores. Both sides parse every line, put the bad ones into `quarantine` with all their reasons, keep one row per reading (the first to
arrive; a contradicting copy goes to `quarantine`), derive what the readings say, and write Delta tables: `readings`, `quarantine`,
`store_minutes` (the silent ones too), `store_trends`, `door_sessions`, `heartbeats`, `outages` with their causes, and `alerts` of all
seven rules with limits and suppressions. The oracle that judges the pipeline judges the rival, too.

**What the rival leaves out**, and a pass does: anything but a start from nothing (increments, repair of what late rows touch, restart
after a crash, the lease); byte positions, checksums and books of the files; packed files; the table of duplicates; evidence of alerts,
and the events that go out for them; revisions; the checks of the reference files; the quality checks and publication after them. Of
trailing commas it sees those right before a bracket, of `NaN` and `Infinity` those in the temperature; bytes that are no UTF-8 it keeps
as `?`, and the line of a contradicting copy is made anew from its fields.

**How it is measured.** Each measurement is a command of its own, from its start to its exit. CPU is user and system time of all its
processes (driver, JVM, Python workers). Memory is the highest sum over all of them, looked at every 0.2 s, shared pages counted once
(a height that lasts shorter than that is not seen).
Where a ratio is about one start (1,000 new readings, nothing new, bare) or about a place, each was run twice, in turns, and the quicker run counts.
The S3 server (SeaweedFS) runs on the same machine and takes its share of the cores; its CPU is not counted.
The readings are simulated; making them is not timed. The pages are asked of a real Airflow, over HTTP and with a login; of ten later answers
the median counts. The board is kept until something changes; what a store's page shows is read anew each time."""


@dataclass(frozen=True)
class Line:
    name: str
    cost: Cost
    against: Cost | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        ratios = ("", "")
        if self.against:
            ratios = (f"{self.cost.seconds / self.against.seconds:.2f}", f"{self.cost.cpu_seconds / self.against.cpu_seconds:.2f}")
        return (self.name, f"{self.cost.seconds:.1f}", f"{self.cost.cpu_seconds:.1f}", f"{self.cost.peak_mb:,.0f}", *ratios)


def table(lines: list[Line]) -> str:
    return _drawn([HEADER, *(line.cells for line in lines)])


def answers(found: Answers) -> str:
    """How soon each page answers, beside the last, which is Airflow's own."""
    if not found:
        return ""
    *_, own = (seconds["later"] for seconds in found.values())
    rows = [(name, f"{one['first']:.2f}", f"{one['later']:.2f}", f"{one['later'] / own:.1f}") for name, one in found.items()]
    return _drawn([ANSWERS, *rows])


def _drawn(rows: list[tuple[str, ...]]) -> str:
    """Aligned for a screen, and Markdown all the same."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def drawn(row: tuple[str, ...]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return f"| {' | '.join(cells)} |"

    ruler = f"|{'-' * (widths[0] + 2)}|{'|'.join('-' * (width + 1) + ':' for width in widths[1:])}|"
    return "\n".join([drawn(rows[0]), ruler, *map(drawn, rows[1:])])


def agreements(found: list[Agreement]) -> str:
    verdict = "Both sides agree" if all(one.holds for one in found) else "The sides differ"
    return "\n".join([f"{verdict} (rows compared by value):", "", *(f"- {one}" for one in found)])


def findings(lines: list[Line], pages: Answers, found: list[Agreement]) -> str:
    """What there is of them: a step may have failed."""
    return "\n\n".join(filter(None, [table(lines), answers(pages), agreements(found)]))


def page(rows: int, lines: list[Line], pages: Answers, found: list[Agreement]) -> str:
    title = f"# Benchmark: {rows:,} readings"
    written = f"`make bench rows={rows}` wrote this page on {datetime.now(UTC):%Y-%m-%d}."
    command = f"{written} A ratio compares its row with the one below."
    return "\n\n".join([title, command, findings(lines, pages, found), COMPARED, circumstances()]) + "\n"


def circumstances() -> str:
    memory = psutil.virtual_memory().total / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB of memory, {platform.system()} {platform.machine()}"
    return f"**The machine**: {machine}. Python {platform.python_version()}, {packages}."
