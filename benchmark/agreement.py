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
    near: str = ""  # a number that may differ by a billionth: it is divided once, from whole numbers of any length


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


TEMPERATURES = "temperature_avg_c, temperature_min_c, temperature_max_c, door_open_share"
COUNTS = "readings, sensors_reporting, sensors_expected, completeness, late_rows"
READING = "sensor_id, epoch_us(event_ts), store_id, temperature_c, door_open, battery_pct, event_id, epoch_us(arrived_at), is_late"
MINUTE = f"store_id, epoch_us(window_start), epoch_us(window_end), {COUNTS}, {TEMPERATURES}, is_final"
TREND = f"store_id, epoch_us(window_start), epoch_us(window_end), readings, {TEMPERATURES}, is_final"
EPISODE = "sensor_id, store_id, epoch_us(started_at), epoch_us(ended_at)"
HEARTBEAT = "sensor_id, store_id, status, epoch_us(last_seen_at), epoch_us(silent_since), cause, epoch_us(as_of)"
ALERT = f"alert_id, {EPISODE}, peak, limit_low_c, limit_high_c, status, suppressed_by"
RULES = ("sudden_drop", "too_warm", "too_cold", "door_then_rise", "door_left_open", "missed_heartbeat", "low_battery")
COMPARED = (
    Compared("readings", "readings", READING),
    Compared("quarantined lines", "quarantine", "list_sort(reasons), source, epoch_us(arrived_at)"),
    Compared("minutes with readings", "store_minutes", MINUTE, "readings > 0"),
    Compared("silent minutes", "store_minutes", MINUTE, "readings = 0"),
    Compared("trends", "store_trends", TREND, near="slope_c_per_hour"),
    Compared("door sessions", "door_sessions", f"{EPISODE}, readings, peak_c, rise_c"),
    Compared("heartbeats", "heartbeats", HEARTBEAT),
    Compared("outages that ended", "outages", f"{EPISODE}, cause", "ended_at IS NOT NULL"),
    Compared("open outages", "outages", f"{EPISODE}, cause", "ended_at IS NULL"),
    *(Compared(f"alerts {rule}", "alerts", ALERT, f"rule = '{rule}' AND status <> 'retracted'") for rule in RULES),
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
    ours, rivals = _sums(db, what, "ours"), _sums(db, what, "rivals")
    only_ours, only_rivals = (0, 0) if ours == rivals else (_only(db, what, "ours", "rivals"), _only(db, what, "rivals", "ours"))
    apart = _apart(db, what) if what.near else 0
    return Agreement(what.name, ours[0], rivals[0], only_ours + apart, only_rivals + apart)


def _sums(db: duckdb.DuckDBPyConnection, what: Compared, side: str) -> tuple[int, int]:
    sums = f"SELECT count(*), coalesce(sum(hash({what.columns})::hugeint), 0) FROM {side} WHERE {what.where}"
    [(rows, total)] = db.execute(sums).fetchall()
    return int(rows), int(total)


def _only(db: duckdb.DuckDBPyConnection, what: Compared, one: str, other: str) -> int:
    rows = "SELECT {} FROM {} WHERE {}"
    difference = f"{rows.format(what.columns, one, what.where)} EXCEPT ALL {rows.format(what.columns, other, what.where)}"
    [(rows,)] = db.execute(f"SELECT count(*) FROM ({difference})").fetchall()
    return int(rows)


def _apart(db: duckdb.DuckDBPyConnection, what: Compared) -> int:
    """Rows that are equal but for a number too far from the other side's."""
    rows = [f"(SELECT row({what.columns}) AS same, {what.near} AS number FROM {side} WHERE {what.where})" for side in ("ours", "rivals")]
    is_near = "ours.number IS NOT DISTINCT FROM rivals.number OR abs(ours.number - rivals.number) <= 1e-9 * abs(rivals.number)"
    counted = f"SELECT count(*) FROM {rows[0]} AS ours JOIN {rows[1]} AS rivals USING (same) WHERE ({is_near}) IS NOT TRUE"
    [(apart,)] = db.execute(counted).fetchall()
    return int(apart)
