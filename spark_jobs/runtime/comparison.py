"""What a rebuild would change in the published tables: how many rows, which, and what in them (P22)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from include.settings import iso
from include.tables import PUBLISHED, TABLES, Table
from spark_jobs.runtime import staging
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row

MOST = 20  # rows of a table that are shown
WHO_WROTE_IT = ("revision", "run_id")
NAMES = ("rule", "sensor_id", "store_id", "window_start", "started_at", "ended_at", "status")


@dataclass(frozen=True)
class Difference:
    """Of one table."""

    table: str
    actions: dict[str, int]  # insert, update, delete: how many rows
    shown: list[str]  # the first of them, and what changes in each

    @property
    def rows(self) -> int:
        return sum(self.actions.values())

    def __str__(self) -> str:
        how = ", ".join(f"{count:,} {action}" for action, count in sorted(self.actions.items()))
        return f"{self.table:<14} {self.rows:>8,} rows differ" + (f" ({how}); the first: {self.shown[0]}" if self.rows else "")


@dataclass(frozen=True)
class Comparison:
    tables: list[Difference]
    fingerprint: str  # the same exactly where the same changes would be made to windows and episodes

    @property
    def rows(self) -> int:
        return sum(difference.rows for difference in self.tables)


NOTHING = Comparison([], "")


def compared(lake: Lake, run: Run) -> Comparison:
    """What the run has staged, with what is published. Alert events are left out: they follow from the alerts."""
    differences, content = [], hashlib.sha256()
    for table in (TABLES[name] for name in PUBLISHED if name != "alert_events"):
        if table.is_small:
            differences.append(_of_rows(table, staging.staged_rows(lake, run, table.name), lake.rows(table.name)))
        else:
            staged = staging.staged_table(lake, run, table.name)
            differences.append(_of_changes(lake, table, staged))
            if staged is not None:
                content.update(_content(table, staged))
    return Comparison(differences, content.hexdigest())


def _of_rows(table: Table, now: list[Row], before: list[Row]) -> Difference:
    new, old = ({_key(table, row): row for row in rows} for rows in (now, before))
    keys = sorted(key for key in new.keys() | old.keys() if new.get(key) != old.get(key))
    actions = {key: "update" if key in new and key in old else "insert" if key in new else "delete" for key in keys}
    shown = [_said(table, actions[key], new.get(key), old.get(key)) for key in keys[:MOST]]
    return Difference(table.name, dict(Counter(actions.values())), shown)


def _of_changes(lake: Lake, table: Table, staged: pa.Table | None) -> Difference:
    if staged is None:
        return Difference(table.name, {}, [])
    actions = {row["values"]: row["counts"] for row in staged["action"].value_counts().to_pylist()}
    first = staged.sort_by([(name, "ascending") for name in table.key]).slice(0, MOST)
    old = {_key(table, row): row for row in _published(lake, table, first).to_pylist()}
    return Difference(table.name, actions, [_said(table, row["action"], row, old.get(_key(table, row))) for row in first.to_pylist()])


def _published(lake: Lake, table: Table, rows: pa.Table) -> pa.Table:
    """The rows with these keys, as they are now; and some more."""
    (day,) = table.partitioned_by
    condition = pc.field(day).isin(rows[day].unique())
    for name in table.key:
        condition &= pc.field(name).isin(rows[name].unique())
    return lake.table(table.name, None, condition)


def _content(table: Table, staged: pa.Table) -> bytes:
    """Equal where the changes are, whoever made them and when: Parquet keeps neither a time nor what lies behind a null."""
    sink = pa.BufferOutputStream()
    ordered = staged.drop_columns([name for name in WHO_WROTE_IT if name in staged.schema.names])
    pq.write_table(ordered.sort_by([(name, "ascending") for name in table.key]).combine_chunks(), sink)
    return bytes(sink.getvalue())


def _key(table: Table, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.key)


def _said(table: Table, action: str, new: Row | None, old: Row | None) -> str:
    named = new or old or {}
    who = " ".join(_text(named[name]) for name in NAMES if named.get(name) is not None)
    return f"{action} {who}" + (f": {'; '.join(changed)}" if new and old and (changed := list(_changed(table, new, old))) else "")


def _changed(table: Table, new: Row, old: Row) -> Iterator[str]:
    for name in table.names:
        if name not in (*table.key, *table.partitioned_by, *WHO_WROTE_IT) and new.get(name) != old.get(name):
            yield f"{name} {_text(old.get(name))} → {_text(new.get(name))}" if not isinstance(new.get(name), dict) else name


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, datetime):
        return iso(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
