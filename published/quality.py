"""What the checks have seen over the last runs, published or held, and what was allowed then. Plain rows; no page, no Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import quote

import pyarrow.dataset as ds
from deltalake.exceptions import TableNotFoundError

from published.files import names
from published.snapshot import opened

RUNS = 144  # a day of the timetable
SHARES = (
    ("Completeness", "store_minutes", "sensors report by their cadence"),
    ("Late readings", "readings", "readings arrive in time"),
    ("Quarantined lines", "quarantine", "few lines are quarantined"),
)
PERCENT = re.compile(r"(\d+(?:\.\d+)?) %")
Row = dict[str, Any]


@dataclass(frozen=True)
class Mark:
    """What a check saw in one run."""

    run_id: str
    as_of: datetime
    status: str  # the run's
    success: bool
    observed: str
    limit: str

    @property
    def percent(self) -> float | None:
        """None where there was nothing to judge."""
        return _percent(self.observed)

    @property
    def allowed(self) -> float | None:
        return _percent(self.limit)


@dataclass(frozen=True)
class Trend:
    name: str
    marks: list[Mark]  # the last run at the end

    @property
    def thresholds(self) -> list[tuple[str, Mark]]:
        """Each with the first run that it was in force for, the present one first."""
        return [(limit, next(marks)) for limit, marks in groupby(self.marks, lambda mark: mark.limit)][::-1]


@dataclass(frozen=True)
class Quality:
    trends: list[Trend]
    missed: list[Row]  # of the last run that was judged: expectations that did not hold
    last: Row  # that run; empty where none was judged yet


def of_lake(lake: str) -> Quality:
    try:
        rows = opened(lake, "runs").to_pyarrow_dataset().to_table(columns=["number", "run_id", "as_of", "status"])
        results = opened(lake, "quality_results").to_pyarrow_dataset()
    except TableNotFoundError:
        return Quality([Trend(name, []) for name, _, _ in SHARES], [], {})
    runs = rows.sort_by([("number", "descending")]).slice(0, RUNS).to_pylist()[::-1]
    found = results.to_table(filter=ds.field("run_id").isin([run["run_id"] for run in runs])).to_pylist()
    by_check = {(row["run_id"], row["table"], row["expectation"]): row for row in found}
    trends = []
    for name, table, expectation in SHARES:
        judged = [(run, by_check.get((run["run_id"], table, expectation))) for run in runs]
        trends.append(Trend(name, [_mark(run, row) for run, row in judged if row]))
    known = {row["run_id"] for row in found}
    last: Row = next((run for run in reversed(runs) if run["run_id"] in known), {})
    return Quality(trends, [row for row in found if row["run_id"] == last.get("run_id") and not row["success"]], last)


def data_docs(lake: str) -> dict[str, dict[str, str]]:
    """The page of each table, by run; the newest run first. Its place is <table>/<run>/<when it was checked>/<page>."""
    parts = [name.split("/") for name in names(f"{lake}/data_docs/validations") if name.endswith(".html")]
    found: dict[str, dict[str, str]] = {}
    for table, run_id, when, page in sorted((part for part in parts if len(part) == 4), key=lambda part: part[2], reverse=True):
        found.setdefault(run_id, {}).setdefault(table, f"validations/{quote(f'{table}/{run_id}/{when}/{page}')}")
    return found


def _mark(run: Row, row: Row) -> Mark:
    return Mark(run["run_id"], run["as_of"], run["status"], row["success"], row["observed"], row["limit"])


def _percent(text: str) -> float | None:
    found = PERCENT.search(text)
    return float(found[1]) if found else None
