"""What the driver reads and writes itself, with delta-rs, in milliseconds where Spark takes a second.

Small tables (the books, runs, checks, one row per file or sensor: `is_small` in the data dictionary) as plain rows; of the published tables the days
that change, as Arrow has them. A table has one kind of writer: what ingest writes is Spark's, all else the driver's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from spark_jobs.runtime import storage

COMPACT_EVERY = 5  # commits: each leaves a file of its own, and a read opens them all; on an S3 server each is a request
CLEAR_EVERY = 100  # commits: to find what is older than a month a table's whole log is listed

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


class SmallTables:
    """The tables of one lake, for as long as it is open.

    Who writes opens the table first, then makes sure that the lake is still ours, then writes to what was opened, without another look: so whatever
    another driver did since then makes Delta refuse it.
    """

    def __init__(self, lake: str) -> None:
        self._lake, self._known = lake, dict[str, DeltaTable]()

    def opened(self, table: str) -> DeltaTable:
        """As it is now. Its log is read whole once, after that only what was added to it: on an S3 server each part of it is a request."""
        if table in self._known:
            self._known[table].update_incremental()
        else:
            self._known[table] = self._opened(table)
        return self._known[table]

    def _opened(self, table: str, version: int | None = None) -> DeltaTable:
        place = self._place(table)
        return DeltaTable(place, version=version, storage_options=storage.delta_options(place))

    def _place(self, table: str) -> str:
        return f"{self._lake}/tables/{table}"

    def schema(self, table: str) -> pa.Schema:
        return _schema_of(self.opened(table))

    def table(self, table: str, columns: Sequence[str] | None = None, condition: Any = None) -> pa.Table:
        """The rows that meet the condition (of pyarrow.compute), as Arrow has them."""
        return self._rows_of(table, self.opened(table), columns, condition)

    def _rows_of(self, table: str, known: DeltaTable, columns: Sequence[str] | None, condition: Any) -> pa.Table:
        dataset = known.to_pyarrow_dataset(filesystem=storage.arrow_files(self._place(table)))
        found = dataset.to_table(columns=list(columns) if columns else None, filter=condition)
        wanted = _schema_of(known)
        return found.cast(pa.schema([wanted.field(name) for name in found.schema.names]))

    def count(self, table: str, version: int, condition: Any) -> int:
        """How many rows of that version meet the condition; of whole partitions the files' footers tell."""
        dataset = self._opened(table, version).to_pyarrow_dataset(filesystem=storage.arrow_files(self._place(table)))
        return int(dataset.count_rows(filter=condition))

    def rows(self, table: str, columns: Sequence[str] | None = None, where: Sequence[Condition] = ()) -> list[Row]:
        """The rows that meet all conditions; none where there is no table."""
        try:
            known = self.opened(table)
        except TableNotFoundError:
            return []
        filesystem = storage.arrow_files(self._place(table))
        found = known.to_pyarrow_table(columns=list(columns) if columns else None, filters=list(where) or None, filesystem=filesystem)
        return list(found.to_pylist())

    def has_taken(self, table: str, write: Write) -> bool:
        """Whether a write of that name was made, by Spark or by us."""
        return _is_done(self.opened(table), write)

    def append(self, table: str, new: Sequence[Row], write: Write) -> None:
        known = self._known[table]
        _write(known, pa.Table.from_pylist(list(new), schema=_schema_of(known)), write, "append")

    def replace(self, table: str, new: Sequence[Row], write: Write) -> None:
        """These rows instead of all that were there, in one commit."""
        known = self._known[table]
        _write(known, pa.Table.from_pylist(list(new), schema=_schema_of(known)), write, "overwrite")

    def append_batches(self, table: str, new: Iterator[pa.RecordBatch], write: Write) -> None:
        known = self._known[table]
        _write(known, _reader(new, _schema_of(known)), write, "append")

    def change(self, table: str, changes: pa.Table, key: Sequence[str], day: str, write: Write) -> None:
        """Insert, update and delete by the key, as the column `action` says: the days that change are written anew, in one commit.

        Not by delta-rs's own MERGE: the text columns it writes cannot be filtered by readers that use Arrow.
        """
        known = self._known[table]
        if _is_done(known, write):
            return
        days = changes[day].unique()
        there = self._rows_of(table, known, None, pc.field(day).isin(days))
        numbered = there.select(list(key)).append_column("row", pa.array(range(len(there)), pa.int64()))
        stay = numbered.join(changes.select(list(key)), list(key), join_type="left anti")["row"].combine_chunks()
        new = changes.filter(pc.field("action") != "delete").select(there.schema.names).cast(there.schema)
        written = pa.concat_tables([there.take(stay.sort()), new])
        names = ", ".join(f"'{each}'" for each in days.to_pylist())
        predicate = f"{day} IN ({names})"
        write_deltalake(
            known, written, mode="overwrite", predicate=predicate, commit_properties=_named(write), post_commithook_properties=_after(known)
        )


def _write(table: DeltaTable, new: Any, write: Write, mode: Any) -> None:
    if _is_done(table, write):
        return
    write_deltalake(table, new, mode=mode, commit_properties=_named(write), post_commithook_properties=_after(table))
    if mode == "append" and table.version() % COMPACT_EVERY == 0:
        table.optimize.compact(post_commithook_properties=_after(table))


def _is_done(table: DeltaTable, write: Write) -> bool:
    done = table.transaction_version(write.app)
    return done is not None and done >= write.number


def _named(write: Write) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(write.app, write.number)])


def _after(table: DeltaTable) -> PostCommitHookProperties:
    """What is done with its log after the next commit."""
    is_due = (table.version() + 1) % CLEAR_EVERY == 0
    return PostCommitHookProperties(cleanup_expired_logs=None if is_due else False)


def _reader(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, (batch.select(schema.names).cast(schema) for batch in batches if len(batch)))


def _schema_of(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())
