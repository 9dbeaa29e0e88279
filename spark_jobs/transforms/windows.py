"""The windows of one store, as columns: which rows of store_minutes and store_trends change, given what was measured and what is published.

A column is an array, one entry per window, in the order of time. Times are whole microseconds; what is not known is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.transforms.track import BEFORE_ALL

Columns = dict[str, NDArray[Any]]
DAY = 24 * 3600 * 1_000_000


@dataclass(frozen=True)
class Changed:
    """Rows that differ from the published ones, with their `revision`, and how: insert, update or delete."""

    rows: Columns
    actions: NDArray[np.str_]


def of_arrow(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> Columns:
    """In the order of time; whole numbers that are null become -1, times long ago, and fractions NaN."""
    ordered = table.sort_by([("window_start", "ascending")])
    return {name: _array(ordered[name]) for name in names}


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = pc.fill_null(column.cast(pa.int64()), BEFORE_ALL)
    elif pa.types.is_integer(kind):
        column = pc.fill_null(column, -1)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def to_arrow(columns: Columns, schema: pa.Schema) -> pa.Table:
    """The reverse, for the columns of a schema."""
    arrays = []
    for field in schema:
        values = columns[field.name]
        if pa.types.is_timestamp(field.type):
            arrays.append(pa.array(values, pa.int64(), mask=values == BEFORE_ALL).cast(field.type))
        elif pa.types.is_floating(field.type):
            arrays.append(pa.array(values, field.type, mask=np.isnan(values)))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def taken(columns: Columns, which: Any) -> Columns:
    return {name: values[which] for name, values in columns.items()}


def joined(parts: Iterable[Columns], names: Sequence[str]) -> Columns:
    """Rows of several parts together, in the order of time."""
    listed = list(parts)
    both = {name: np.concatenate([part[name] for part in listed]) for name in names}
    return taken(both, np.argsort(both["window_start"], kind="stable"))


def is_on(moments: NDArray[np.int64], days: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """Which moments lie on these days (counted from 1970); None: all days."""
    return np.ones(len(moments), bool) if days is None else np.isin(moments // DAY, days)


def differences(fresh: Columns, published: Columns, content: Sequence[str], deletes: bool) -> Changed:
    """A final row that changes takes the next revision; one that was not final yet keeps it."""
    now, was = fresh["window_start"], published["window_start"]
    names, is_known = (*content, "window_start", "revision"), np.isin(now, was)
    before = taken(published, np.searchsorted(was, now[is_known]))
    is_same = is_known.copy()
    is_same[is_known] = np.logical_and.reduce([_equal(fresh[name][is_known], before[name]) for name in content])
    revision = np.zeros(len(now), np.int64)
    revision[is_known] = before["revision"] + before["is_final"]
    changed = taken({**fresh, "revision": revision}, ~is_same)
    gone = taken(published, ~np.isin(was, now) if deletes else np.zeros(len(was), bool))
    actions = np.concatenate((np.where(is_known[~is_same], "update", "insert"), np.full(len(gone["window_start"]), "delete")))
    return Changed({name: np.concatenate((changed[name], gone[name])) for name in names}, actions)


def _equal(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = one == other
    return same | (np.isnan(one) & np.isnan(other)) if one.dtype.kind == "f" else same
