"""The lake: where each table lies, and the few ways in which jobs read and write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import deltalake
import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from include.settings import Settings
from include.tables import FORMAT, TABLES, Table
from spark_jobs.runtime import fault_points, storage
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.session import session
from spark_jobs.runtime.small_tables import COMPACT_EVERY, Condition, Row, SmallTables, Write

LARGE_FROM_ROWS = 200_000


class Lake:
    def __init__(self, spark: SparkSession | None, settings: Settings, still_mine: Callable[[], None] = lambda: None) -> None:
        self.settings, self.still_mine = settings, still_mine
        self._spark, self._is_session_mine = spark, spark is None
        self._frames: dict[str, DataFrame] = {}
        self.expects_many_rows = False
        self._versions: dict[str, int] = {}
        self.small = SmallTables(settings.lake)

    @property
    def spark(self) -> SparkSession:
        """Started when it is first asked for: a job that handles small tables only does without."""
        if self._spark is None:
            self._spark = session("coldstore", self.settings)
        return self._spark

    def close(self) -> None:
        if self._spark is not None and self._is_session_mine:
            self._spark.stop()

    def place(self, *parts: str) -> str:
        return "/".join((self.settings.lake, *parts))

    def path(self, table: str) -> str:
        return self.place("tables", table)

    def _log(self, table: str) -> str:
        return f"{self.path(table)}/_delta_log"

    def exists(self, table: str) -> bool:
        """A folder without a version is what a crash left of an attempt to make it."""
        return any(name.endswith(".json") for name in storage.names(self._log(table)))

    def expect_rows(self, rows: int) -> None:
        """Compiling plans to Java, and shuffling, pay off for many rows only; a few are done sooner in one piece, interpreted."""
        is_large = self.expects_many_rows = rows >= LARGE_FROM_ROWS
        self.spark.conf.set("spark.sql.shuffle.partitions", str(max(8, self.spark.sparkContext.defaultParallelism)) if is_large else "1")
        self.spark.conf.set("spark.sql.codegen.wholeStage", str(is_large).lower())
        self.spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if is_large else "NO_CODEGEN")

    def read(self, table: str) -> DataFrame:
        """The table as it is now. Nobody else writes it while we hold the lease, so it is looked up again only after a write."""
        if table not in self._frames:
            self._frames[table] = self.spark.read.format("delta").load(self.path(table))
        return self._frames[table]

    def read_at(self, table: str, version: int) -> DataFrame:
        return self.spark.read.format("delta").option("versionAsOf", version).load(self.path(table))

    def changes(self, table: str, after_version: int) -> DataFrame:
        """Rows that were added, changed (before and after) or removed since a version."""
        feed = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", after_version + 1)
        return feed.load(self.path(table))

    def version(self, table: str) -> int:
        """A log keeps a month of versions: only those are listed that came after what is known, unless the table was made anew since."""
        known = self._versions.get(table, 0)
        versions = self._listed(table, known) or self._listed(table, 0)
        self._versions[table] = max(versions)
        return self._versions[table]

    def _listed(self, table: str, known: int) -> list[int]:
        names = storage.names(self._log(table), after=f"{known:020d}")
        return [int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit()]

    def expect_versions(self, published: Mapping[str, int]) -> None:
        """Those of an earlier moment: from there on it is looked for newer ones."""
        self._versions = {**published, **self._versions}

    def create_missing_tables(self) -> None:
        place = self.place("control", "format")
        if storage.read_text(place) != str(FORMAT):
            if self.exists("runs"):
                raise Stop(
                    f"the tables in {self.settings.lake} were made by another version; nothing was changed. Move its folders tables, checkpoints "
                    "and control away: the next pass makes them anew from the landing files."
                )
            self.write_text(str(FORMAT), "control", "format")
        for table in TABLES.values():
            if not self.exists(table.name):
                self._create(table)

    def _create(self, table: Table) -> None:
        """By delta-rs, in milliseconds where Spark takes more than a second each."""
        interval = COMPACT_EVERY if table.is_small else 10  # commits that a reader opens one by one
        properties = {"delta.enableDeletionVectors": "false", "delta.checkpointInterval": str(interval)}  # every reader can read it
        if table.skipping_on:
            properties["delta.dataSkippingStatsColumns"] = ",".join(table.skipping_on)
        if table.has_change_feed:
            properties["delta.enableChangeDataFeed"] = "true"
        schema = deltalake.Schema.from_json(self.schema(table.schema_with_meanings).json())
        with self.lasting(f"the table {table.name}"):
            deltalake.DeltaTable.create(
                self.path(table.name),
                schema,
                mode="ignore",
                partition_by=list(table.partitioned_by),
                description=table.meaning,
                configuration=properties,
                storage_options=storage.delta_options(self.path(table.name)),
            )

    def shut_out(self, epoch: int) -> None:
        """A driver that died, or sleeps, may be in the middle of a commit. A change of a table's properties makes Delta refuse it whatever it began before."""
        for table in TABLES:
            if self.exists(table):
                with self.lasting(f"the epoch of {table}"):
                    properties = {"coldstore.epoch": str(epoch)}
                    self.small.opened(table).alter.set_table_properties(properties, raise_if_not_exists=False)

    @contextmanager
    def lasting(self, what: str) -> Iterator[None]:
        """Around everything that lasts: only while the lake is ours."""
        self.still_mine()
        with fault_points.around(what):
            yield

    @contextmanager
    def _committing(self, table: str, write: Write, what: str) -> Iterator[None]:
        """Around a commit to a table. Where only the answer to it was lost on its way, a second try finds the name taken: by ourselves."""
        with self.lasting(f"{what} {table}"):
            try:
                yield
            except Exception:
                self.still_mine()
                if not self.has_taken(table, write):
                    raise
        self._frames.pop(table, None)

    @contextmanager
    def _writing(self, table: str, write: Write, what: str) -> Iterator[None]:
        """Around a commit of the driver's own: to the table as it was opened before the last look at the lease."""
        self.small.opened(table)
        with self._committing(table, write, what):
            yield

    def write_text(self, text: str, *parts: str) -> None:
        """A small file of the lake's own; what another driver wrote in the meantime stays."""
        place = self.place(*parts)
        seen = storage.read_seen(place)
        with self.lasting(f"{parts[0]}/{parts[-1]}"):
            if storage.write_if(place, text.encode("utf-8"), seen) is None:
                raise Stop(f"another driver wrote {place} at this very moment: this one stops. Nothing is lost; run the pass again.")

    def delete(self, *parts: str) -> None:
        """A file of the lake's own, or a folder."""
        with self.lasting(f"removal of {'/'.join(parts[:-1]) or parts[-1]}"):
            storage.delete(self.place(*parts))

    def append(self, table: str, rows: DataFrame, write: Write) -> None:
        named = rows.select(*TABLES[table].names).write.format("delta").mode("append")
        with self._committing(table, write, "append to"):
            named.option("txnAppId", write.app).option("txnVersion", write.number).save(self.path(table))

    def update(self, table: str, rows: DataFrame, write: Write) -> None:
        """These rows in place of those with the same key."""
        self._name_merges(write)
        columns = TABLES[table].names
        same = " AND ".join(f"target.{column} <=> source.{column}" for column in TABLES[table].key)
        values: dict[str, Any] = {column: f"source.{column}" for column in columns}
        target = DeltaTable.forPath(self.spark, self.path(table)).alias("target")
        with self._committing(table, write, "update of"):
            target.merge(rows.alias("source"), same).whenMatchedUpdate(set=values).execute()

    def remove(self, table: str, rows: DataFrame, write: Write, by: tuple[str, ...], narrowed_by: str) -> None:
        """`narrowed_by` tells which rows of `target` can match."""
        self._name_merges(write)
        same = " AND ".join(f"target.{column} <=> source.{column}" for column in by)
        target = DeltaTable.forPath(self.spark, self.path(table)).alias("target")
        with self._committing(table, write, "removal from"):
            target.merge(rows.select(*by).alias("source"), f"{same} AND {narrowed_by}").whenMatchedDelete().execute()

    def _name_merges(self, write: Write) -> None:
        self.spark.conf.set("spark.databricks.delta.write.txnAppId", write.app)
        self.spark.conf.set("spark.databricks.delta.write.txnVersion", str(write.number))

    # What the driver reads and writes itself

    def table(self, table: str, columns: Sequence[str] | None = None, condition: Any = None) -> pa.Table:
        return self.small.table(table, columns, condition)

    def count(self, table: str, version: int, condition: Any) -> int:
        return self.small.count(table, version, condition)

    def has_taken(self, table: str, write: Write) -> bool:
        return self.small.has_taken(table, write)

    def append_batches(self, table: str, new: Iterator[pa.RecordBatch], write: Write) -> None:
        with self._writing(table, write, "append to"):
            self.small.append_batches(table, new, write)

    def change(self, table: str, changes: pa.Table, write: Write) -> None:
        (day,) = TABLES[table].partitioned_by
        with self._writing(table, write, "change of"):
            self.small.change(table, changes, TABLES[table].key, day, write)

    # Small tables: rows are plain dictionaries, and what one leaves out is null

    def rows(self, table: str, columns: Sequence[str] | None = None, where: Sequence[Condition] = ()) -> list[Row]:
        return self.small.rows(table, columns, where)

    def add_rows(self, table: str, rows: Sequence[Row], write: Write) -> None:
        with self._writing(table, write, "append to"):
            self.small.append(table, rows, write)

    def replace_rows(self, table: str, rows: Sequence[Row], write: Write) -> None:
        with self._writing(table, write, "replacement of"):
            self.small.replace(table, rows, write)

    def frame(self, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        """A small frame that the optimiser can look into: it plans with its size, and drops what an empty one leaves without effect."""
        kinds = self.schema(schema)
        fields = to_arrow_schema(kinds)
        columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(fields)]
        return self.spark.createDataFrame(pa.Table.from_arrays(columns, schema=fields), kinds)

    def schema(self, ddl: str) -> StructType:
        _ = self.spark  # its parser reads the DDL, so it has to be there
        return cast(StructType, StructType.fromDDL(ddl))


def together(*calls: Callable[[], None]) -> None:
    """Run independent steps at once: most of a small Delta write is waiting and planning."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        for future in [pool.submit(call) for call in calls]:
            future.result()
