"""Tables of few rows a run (the books, runs, checks, one row per file or sensor): the driver reads and writes them itself.

With delta-rs, in milliseconds where Spark takes a second. A table has one kind of writer: `is_small` in the data dictionary says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

COMPACT_EVERY = 100  # commits: each leaves a file of its own, and a read opens them all

Row = dict[str, Any]
Condition = tuple[str, str, Any]  # like ("seq", ">", 7)


@dataclass(frozen=True)
class Write:
    """Names a write, so that a second attempt at the same one is passed over.

    A table takes one write per name and number: a second, different one needs a name of its own.
    """

    app: str
    number: int

    def named(self, step: str) -> Write:
        return Write(f"{self.app}/{step}", self.number)


def rows(place: str, columns: Sequence[str] | None = None, where: Sequence[Condition] = ()) -> list[Row]:
    """The rows that meet all conditions; none where there is no table."""
    try:
        table = DeltaTable(place)
    except TableNotFoundError:
        return []
    # With delta-rs's own file system, threads of Arrow may still call Python when the process ends, and abort it.
    plain = SubTreeFileSystem(place, LocalFileSystem())
    found = table.to_pyarrow_table(columns=list(columns) if columns else None, filters=list(where) or None, filesystem=plain)
    return list(found.to_pylist())


def append(place: str, new: Sequence[Row], write: Write) -> None:
    _write(place, new, write, "append")


def replace(place: str, new: Sequence[Row], write: Write) -> None:
    """These rows instead of all that were there, in one commit."""
    _write(place, new, write, "overwrite")


def _write(place: str, new: Sequence[Row], write: Write, mode: Any) -> None:
    table = DeltaTable(place)
    done = table.transaction_version(write.app)
    if done is not None and done >= write.number:
        return
    named = CommitProperties(app_transactions=[Transaction(write.app, write.number)])
    write_deltalake(table, pa.Table.from_pylist(list(new), schema=schema_of(table)), mode=mode, commit_properties=named)
    if mode == "append" and table.version() % COMPACT_EVERY == 0:
        table.optimize.compact()


def schema_of(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())
