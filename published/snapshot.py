"""The published snapshot: of every table the version that fits the others, as the row in `runs` names them. Without Spark; nothing is ever written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include import s3
from include.settings import S3, iso
from include.tables import TABLES

OF_RUNS = ("runs", "run_stores")  # written when the versions of the others are known
SAID_AFTERWARDS = ("acknowledgements", "deliveries")  # at any time, about what was published: of the last run we want the newest
SHOWN = 5  # runs that are named to who asked for one that is not there


class NoSnapshot(Exception):
    """There is none of that run; the message says what there is."""


@dataclass(frozen=True)
class Snapshot:
    lake: str
    run: dict[str, Any]  # its row in `runs`
    until: frozenset[str]  # ids of this run and those before it
    is_last: bool

    @property
    def tables(self) -> list[str]:
        """Those that were there then."""
        return [name for name in TABLES if name in OF_RUNS or name in self.run["versions"]]

    def dataset(self, table: str) -> ds.Dataset:
        if table in OF_RUNS:
            rows = opened(self.lake, table).to_pyarrow_dataset()
            return ds.dataset(rows.to_table(filter=ds.field("run_id").isin(sorted(self.until))))
        newest = self.is_last and table in SAID_AFTERWARDS
        return opened(self.lake, table, None if newest else self.run["versions"][table]).to_pyarrow_dataset()

    def __str__(self) -> str:
        return f"run {self.run['run_id']}, as of {iso(self.run['as_of'])}"


def published(lake: str, run_id: str = "") -> Snapshot:
    """That of the run, or of the last one that was published."""
    try:
        rows = opened(lake, "runs").to_pyarrow_table().to_pylist()
    except TableNotFoundError:
        rows = []
    there = sorted((row for row in rows if row["status"] == "published"), key=lambda row: row["number"])
    if not there:
        last = (
            f"; its last run is {max(rows, key=lambda row: row['number'])['status']}"
            if rows
            else ": take a pass first (make run, make pass)"
        )
        raise NoSnapshot(f"{lake} has no published run yet{last}.")
    found = [row for row in there if row["run_id"] == run_id] if run_id else there
    if not found:
        others = {row["run_id"]: row["status"] for row in rows}
        why = f"was {others[run_id]}, so it has no tables" if run_id in others else "is not known"
        named = ", ".join(row["run_id"] for row in there[: -SHOWN - 1 : -1])
        raise NoSnapshot(f"run {run_id} {why}; published ones, the last first: {named}.")
    run = {**found[-1], "versions": dict(found[-1]["versions"])}
    return Snapshot(lake, run, frozenset(row["run_id"] for row in rows if row["number"] <= run["number"]), is_last=found[-1] is there[-1])


def opened(lake: str, table: str, version: int | None = None) -> DeltaTable:
    return DeltaTable(f"{lake}/tables/{table}", version=version, storage_options=s3.delta_options() if lake.startswith(S3) else None)
