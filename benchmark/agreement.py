"""Do the two sides agree? Row counts, and the rows themselves: every table is compared by value, not by its size alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.dataset
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem


@dataclass(frozen=True)
class Compared:
    name: str
    table: str
    columns: str
    where: str = "true"


@dataclass(frozen=True)
class Agreement:
    name: str
    ours: int
    rivals: int
    only_ours: int
    only_rivals: int

    @property
    def holds(self) -> bool:
        return self.only_ours == 0 and self.only_rivals == 0

    def __str__(self) -> str:
        counts = f"{self.name}: {self.ours:,} and {self.rivals:,} rows"
        return f"{counts}, equal" if self.holds else f"{counts}; {self.only_ours:,} only ours, {self.only_rivals:,} only the rival's"


MEASURES = "readings, sensors_reporting, temperature_avg_c, temperature_min_c, temperature_max_c, door_open_share, late_rows"
MINUTE = f"store_id, epoch_us(window_start), {MEASURES}, is_final"
READING = "sensor_id, epoch_us(event_ts), store_id, temperature_c, door_open, battery_pct, event_id, epoch_us(arrived_at), is_late"
COMPARED = (
    Compared("readings", "readings", READING),
    Compared("quarantined lines", "quarantine", "list_sort(reasons), source, epoch_us(arrived_at)"),
    Compared("minutes with readings", "store_minutes", MINUTE, "readings > 0"),
    Compared("silent minutes", "store_minutes", MINUTE, "readings = 0"),
    Compared("outages that ended", "outages", "sensor_id, store_id, epoch_us(started_at), epoch_us(ended_at)", "ended_at IS NOT NULL"),
    Compared("open outages", "outages", "sensor_id, store_id, epoch_us(started_at)", "ended_at IS NULL"),
    Compared("sudden drops", "alerts", "alert_id, sensor_id, store_id, epoch_us(started_at), peak", "rule = 'sudden_drop'"),
)


def compare(ours: Path, rivals: Path) -> list[Agreement]:
    """Each side's rows as a sum of hashes; where these differ, the rows that only one side has are counted."""
    with duckdb.connect(config={"preserve_insertion_order": "false"}) as db:
        found = []
        for what in COMPARED:
            for side, tables in (("ours", ours), ("rivals", rivals)):
                db.register(side, delta_rows(tables / what.table))
            found.append(_agreement(db, what))
        return found


def delta_rows(table: Path) -> pyarrow.dataset.Dataset:
    """A Delta table's rows, read by Arrow's own threads: delta-rs's file system calls Python from them, and may abort a process that ends."""
    return DeltaTable(str(table)).to_pyarrow_dataset(filesystem=SubTreeFileSystem(str(table), LocalFileSystem()))


def _agreement(db: duckdb.DuckDBPyConnection, what: Compared) -> Agreement:
    sides = {side: _sums(db, what, side) for side in ("ours", "rivals")}
    counts = (sides["ours"][0], sides["rivals"][0])
    if sides["ours"] == sides["rivals"]:
        return Agreement(what.name, *counts, 0, 0)
    return Agreement(what.name, *counts, _only(db, what, "ours", "rivals"), _only(db, what, "rivals", "ours"))


def _sums(db: duckdb.DuckDBPyConnection, what: Compared, side: str) -> tuple[int, int]:
    sums = f"SELECT count(*), coalesce(sum(hash({what.columns})::hugeint), 0) FROM {side} WHERE {what.where}"
    [(rows, total)] = db.execute(sums).fetchall()
    return int(rows), int(total)


def _only(db: duckdb.DuckDBPyConnection, what: Compared, one: str, other: str) -> int:
    rows = "SELECT {} FROM {} WHERE {}"
    difference = f"{rows.format(what.columns, one, what.where)} EXCEPT ALL {rows.format(what.columns, other, what.where)}"
    [(rows,)] = db.execute(f"SELECT count(*) FROM ({difference})").fetchall()
    return int(rows)
