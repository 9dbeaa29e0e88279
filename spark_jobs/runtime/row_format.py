"""Rows of several tables together, a struct for each table: what Spark brings to a review of a sensor or a store, and gets back from it.

In a review of a sensor a row is a plain dictionary, and its times are whole microseconds; in one of a store rows are columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from include.tables import TABLES
from spark_jobs.runtime.lake import Lake

# The structs of a row, and the tables they belong to.
EPISODES = {"outage": "outages", "session": "door_sessions", "alert": "alerts", "event": "alert_events"}
WINDOWS = {"minute": "store_minutes", "trend": "store_trends"}


@dataclass(frozen=True)
class RowFormat:
    key: str
    kinds: Mapping[str, str]
    schema: pa.Schema
    ddl: str

    @staticmethod
    def of(lake: Lake, key: str, kinds: Mapping[str, str]) -> RowFormat:
        structs = (f"{kind} {_struct(name)}" for kind, name in kinds.items())
        ddl = ", ".join((f"{key} string, action string, note string", *structs))
        return RowFormat(key, kinds, to_arrow_schema(lake.schema(ddl)), ddl)

    def schema_of(self, kind: str) -> pa.Schema:
        struct = self.schema.field(kind).type
        return pa.schema([struct.field(i) for i in range(struct.num_fields)])

    def table(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=self.schema)

    def plain(self, table: pa.Table) -> list[dict[str, Any]]:
        return list(table.cast(pa.schema([(field.name, _with_whole_times(field.type)) for field in table.schema])).to_pylist())

    def together(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Rows of the tables, by kind; with their `action`, if they have one."""
        found = [self.table([])]
        for kind, table in tables.items():
            wanted = self.schema_of(kind)
            arrays = [table[field.name].combine_chunks().cast(field.type) for field in wanted]
            columns = {
                self.key: table[self.key].combine_chunks().cast(pa.string()),
                kind: pa.StructArray.from_arrays(arrays, fields=list(wanted)),
            }
            if "action" in table.schema.names:
                columns["action"] = table["action"].combine_chunks()
            parts = [columns.get(field.name, pa.nulls(len(table), field.type)) for field in self.schema]
            found.append(pa.Table.from_arrays(parts, schema=self.schema))
        return pa.concat_tables(found).combine_chunks()  # of a table in several chunks Spark would take the first only

    def of_kind(self, rows: pa.Table, kind: str) -> pa.Table:
        """The reverse: one table's rows."""
        return of_kind(rows, kind, self.schema_of(kind))

    def published(self, lake: Lake, conditions: Mapping[str, Any]) -> DataFrame:
        """What the tables hold, as Spark reads it; a condition for each table."""
        empty = lake.frame(self.ddl, [])
        frames = []
        for kind, name in self.kinds.items():
            if name in conditions and lake.version(name) > 0:
                others = [
                    F.lit(None).cast(field.dataType).alias(field.name) for field in empty.schema if field.name not in (self.key, kind)
                ]
                rows = lake.read(name).filter(conditions[name])
                content = F.struct(*(column.name for column in TABLES[name].content)).alias(kind)
                frames.append(rows.select(self.key, content, *others).select(*empty.columns))
        return reduce(DataFrame.unionByName, frames, empty)


def of_kind(rows: pa.Table, kind: str, schema: pa.Schema) -> pa.Table:
    found = rows[kind].combine_chunks()
    found = found.filter(pc.is_valid(found))
    return pa.Table.from_arrays([found.field(field.name) for field in schema], schema=schema)


def _struct(table: str) -> str:
    return f"struct<{', '.join(f'{column.name}: {column.type}' for column in TABLES[table].content)}>"


def _with_whole_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([(kind.field(i).name, _with_whole_times(kind.field(i).type)) for i in range(kind.num_fields)])
    return kind
