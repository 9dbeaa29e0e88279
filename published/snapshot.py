"""The published snapshot: of every table the version that fits the others, as the row in `runs` names them. Without Spark; nothing is ever written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include import s3
from include.settings import S3, iso
from include.tables import TABLES
from published.refused import Refused

OF_RUNS = ("runs", "run_stores")  # written when the versions of the others are known
SAID_AFTERWARDS = ("acknowledgements", "deliveries")  # at any time, about what was published: of the last run we want the newest
SHOWN = 5  # runs that are named to who asked for one that is not there


@dataclass(frozen=True)
class Snapshot:
    lake: str
    run: dict[str, Any]  # its row in `runs`
    last: dict[str, Any]  # the row of the last run of all, which may be held or failed

    @property
    def is_last(self) -> bool:
        """No later run was published."""
        return bool(self.run["number"] == self.last["published"])

    @property
    def tables(self) -> list[str]:
        """Those that were there then."""
        return [name for name in TABLES if name in OF_RUNS or name in self.run["versions"]]

    def dataset(self, table: str) -> ds.Dataset:
        if table in OF_RUNS:
            return ds.dataset(self._of_runs(table))
        newest = self.is_last and table in SAID_AFTERWARDS
        return opened(self.lake, table, None if newest else self.run["versions"][table]).to_pyarrow_dataset()

    def _of_runs(self, table: str) -> pa.Table:
        """Of this run and those before it."""
        columns = None if table == "runs" else ["run_id"]
        until = opened(self.lake, "runs").to_pyarrow_dataset().to_table(columns=columns, filter=ds.field("number") <= self.run["number"])
        if table == "runs":
            return until
        return opened(self.lake, table).to_pyarrow_dataset().to_table(filter=ds.field("run_id").isin(until["run_id"]))

    def __str__(self) -> str:
        return f"run {self.run['run_id']}, as of {iso(self.run['as_of'])}"


def published(lake: str, run_id: str = "") -> Snapshot:
    """That of the run, or of the last one that was published."""
    try:
        runs = opened(lake, "runs").to_pyarrow_dataset()
    except TableNotFoundError:
        raise Refused(f"{lake} has no published run yet: take a pass first (make run, make pass).") from None
    # A year has tens of thousands of runs: only what is asked for is read whole.
    known = runs.to_table(columns=["number", "run_id", "status"]).sort_by("number").to_pylist()
    there = [row for row in known if row["status"] == "published"]
    if not there:
        raise Refused(f"{lake} has no published run yet" + (f"; its last run is {known[-1]['status']}." if known else "."))
    found = [row for row in there if row["run_id"] == run_id] if run_id else there
    if not found:
        others = {row["run_id"]: row["status"] for row in known}
        why = f"was {others[run_id]}, so it has no tables" if run_id in others else "is not known"
        named = ", ".join(row["run_id"] for row in there[: -SHOWN - 1 : -1])
        raise Refused(f"run {run_id} {why}; published ones, the last first: {named}.")
    (run,) = runs.to_table(filter=ds.field("number") == found[-1]["number"]).to_pylist()
    return Snapshot(lake, {**run, "versions": dict(run["versions"])}, {**known[-1], "published": there[-1]["number"]})


def opened(lake: str, table: str, version: int | None = None) -> DeltaTable:
    return DeltaTable(f"{lake}/tables/{table}", version=version, storage_options=s3.delta_options() if lake.startswith(S3) else None)
