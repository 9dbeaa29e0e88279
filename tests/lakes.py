"""A lake under test: files that arrive at a given time, passes in the shared session, and tables as plain rows."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import zstandard
from pyspark.sql import SparkSession

from include.settings import Settings, utc
from spark_jobs.run_pass import run_pass
from spark_jobs.runtime.lake import Lake

DAY = "2025-11-08"
# What P12 lets differ between two ways in.
MAY_DIFFER = {"revision", "source", "position", "run_id", "batch", "seq", "event_date", "window_date"}


def at(clock: str) -> str:
    """ "10:00" or "10:00:30.5" of the day that the tests play on."""
    return f"{DAY}T{clock if clock.count(':') == 2 else clock + ':00'}Z"


def moment(clock: str) -> datetime:
    return utc(at(clock))


def a_reading(sensor: str = "sensor-1", clock: str = "10:00", store: str = "store-1", temperature: float = 2.5, **more: Any) -> bytes:
    fields = {"sensor_id": sensor, "store_id": store, "temperature": temperature, "event_ts": at(clock), **more}
    return json.dumps({name: value for name, value in fields.items() if value != "absent"}).encode()


def every(seconds: int, start: str, end: str, sensor: str = "sensor-1", store: str = "store-1", temperature: float = 2.5) -> list[bytes]:
    """Readings of a sensor from start (inside) to end (outside)."""
    first, last = moment(start).timestamp(), moment(end).timestamp()
    times = [first + i * seconds for i in range(int((last - first) // seconds) + 1) if first + i * seconds < last]
    return [a_reading(sensor, datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S.%f")[:-3], store, temperature) for time in times]


class TestLake:
    __test__ = False

    def __init__(self, place: Path, spark: SparkSession, **settings: Any) -> None:
        self.place, self.spark = place, spark
        self.settings = Settings.from_env({"COLDSTORE_LAKE": str(place), **{f"COLDSTORE_{k.upper()}": str(v) for k, v in settings.items()}})
        self._files = 0

    def receives(self, *lines: bytes, arrived: str, name: str = "", raw: bytes | None = None) -> Path:
        """A landing file with these lines (or these very bytes) that arrived at that time."""
        self._files += 1
        path = self.place / "landing" / (name or f"file-{self._files:04d}.jsonl")
        content = b"".join(line + b"\n" for line in lines) if raw is None else raw
        if path.suffix == ".gz" and raw is None:
            content = gzip.compress(content)
        if path.suffix == ".zst" and raw is None:
            content = zstandard.compress(content)
        self.keeps(f"landing/{path.relative_to(self.place / 'landing')}", content, round(moment(arrived).timestamp() * 1000))
        return path

    def keeps(self, name: str, content: bytes, arrived_ms: int | None = None) -> None:
        """A file of that name in the lake, from that time if one is given."""
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if arrived_ms is not None:
            os.utime(path, ns=(arrived_ms * 1_000_000, arrived_ms * 1_000_000))

    def knows(self, name: str, *rows: str) -> None:
        """A reference file."""
        self.keeps(f"reference/{name}.csv", ("\n".join(rows) + "\n").encode())

    def passes(self, as_of: str, **settings: Any) -> str:
        """One pass; the run's id. A held one raises Held, a stopped one Stop."""
        as_of = as_of if "T" in as_of else at(as_of)
        changed = Settings(**{**self.settings.__dict__, **settings, "as_of": as_of})
        return run_pass(Lake(self.spark, changed))

    def rows(self, table: str, *sort: str) -> list[dict[str, Any]]:
        found = self.delta(table).to_pyarrow_table().to_pylist()
        return sorted(found, key=lambda row: tuple(str(row[name]) for name in sort)) if sort else list(found)

    def one(self, table: str, **where: Any) -> dict[str, Any]:
        (row,) = (row for row in self.rows(table) if all(row[name] == value for name, value in where.items()))
        return row

    def version(self, table: str) -> int:
        return int(self.delta(table).version())

    def delta(self, table: str) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(str(self.place / "tables" / table))

    def tables(self, *names: str) -> dict[str, list[str]]:
        """What must be the same on any way in, to the bit: rows without the columns that may differ, as sorted text."""
        return {name: sorted(_text(row) for row in self.rows(name) if row.get("status") != "retracted") for name in names}

    def books(self) -> dict[str, int]:
        """The sums over all runs."""
        counts = ("lines_read", "readings_new", "duplicates", "quarantined", "blank", "late_rows")
        return {name: sum(row[name] for row in self.rows("runs")) for name in counts}


def _text(row: dict[str, Any]) -> str:
    return repr(
        {name: float.hex(value) if isinstance(value, float) else value for name, value in sorted(row.items()) if name not in MAY_DIFFER}
    )
