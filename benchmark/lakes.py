"""Lakes to measure on: simulated readings, passes over them, and landing files with a few new readings."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from benchmark.agreement import delta_rows
from benchmark.measure import Cost, cost_of
from include.settings import PREFIX, PROJECT, iso, utc

BIN = PROJECT / ".local" / "spark" / "bin"
PROPERTIES = PROJECT / ".local" / "spark-defaults.conf"
CADENCE = timedelta(seconds=30)
Answers = dict[str, dict[str, float]]  # page: seconds until the first answer, and until later ones


class Failed(RuntimeError):
    """A command of the benchmark did not do its work; the message says which and what it said last."""


@dataclass
class Lake:
    place: Path
    as_of: datetime

    def passes(self) -> Cost:
        return pass_over(str(self.place), self.as_of)

    def rebuilds(self) -> Cost:
        """All days anew, as `make rebuild` makes them; they must be as they are published."""
        env = clean_env() | {f"{PREFIX}LAKE": str(self.place)}
        cost = succeeded("the rebuild", [sys.executable, "-m", "spark_jobs.rebuild_tables"], env)
        if "nothing to swap in" not in cost.output:
            raise Failed(f"a rebuild of {self.place} differs from what the passes made; what it said:\n{cost.output}")
        return cost

    def readings(self) -> int:
        """How many the runs have booked."""
        booked = delta_rows(self.place / "tables" / "runs").to_table(columns=["readings_new"])
        return sum(booked["readings_new"].to_pylist())

    def receives(self, count: int) -> None:
        """A landing file with readings that go on where the last ones ended; the clock moves on to just after them."""
        sensors, middle_c = self._active_sensors(), self._middle_c()
        event_ts, lines = self.as_of, []
        for number in range(count):
            sensor_id, store_id = sensors[number % len(sensors)]
            event_ts = self.as_of + CADENCE * (number // len(sensors)) + timedelta(milliseconds=number % len(sensors))
            reading = {"sensor_id": sensor_id, "store_id": store_id, "temperature": middle_c[store_id]}
            lines.append(json.dumps(reading | {"door_open": False, "battery_pct": 80, "event_ts": iso(event_ts)}))
        self.as_of = event_ts.replace(microsecond=0) + timedelta(seconds=10)
        file = self.place / "landing" / f"new-{self.as_of:%Y%m%d%H%M%S}.jsonl"
        unfinished = file.with_name(f".{file.name}.part")
        unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(unfinished, (self.as_of.timestamp(),) * 2)
        unfinished.rename(file)

    def _active_sensors(self) -> list[tuple[str, str]]:
        rows = _rows(self.place / "reference" / "sensors.csv")
        return [(row["sensor_id"], row["store_id"]) for row in rows if not row["retired_at"]]

    def _middle_c(self) -> dict[str, float]:
        """The middle of each store's limits: nothing to be alarmed about."""
        rows = _rows(self.place / "reference" / "limits.csv")
        return {row["store_id"]: (float(row["low_c"]) + float(row["high_c"])) / 2 for row in rows}


def simulated(place: Path, readings: int, *more: str) -> Lake:
    """A fresh lake with landing and reference files, and no table yet; `more`: other options of the simulator."""
    command = [sys.executable, "-m", "simulator", "--lake", str(place), "--readings", str(readings), "--formats", "plain", *more]
    said = succeeded("the simulator", command, clean_env()).output
    as_of = next(line.removeprefix("as_of=") for line in said.splitlines() if line.startswith("as_of="))
    return Lake(place, utc(as_of))


def pass_over(lake: str, as_of: datetime, environment: Mapping[str, str] | None = None) -> Cost:
    """As `make pass` takes it."""
    env = clean_env() | {f"{PREFIX}LAKE": lake, f"{PREFIX}AS_OF": iso(as_of)} | dict(environment or {})
    return succeeded("the pass", [sys.executable, "-m", "spark_jobs.run_pass"], env)


def rival(lake: Lake, tables: Path) -> Cost:
    places = ["--landing", str(lake.place / "landing"), "--reference", str(lake.place / "reference"), "--tables", str(tables)]
    return succeeded("the rival", [sys.executable, "-m", "benchmark.rival", *places, "--as-of", iso(lake.as_of)], clean_env())


def board_answers(lake: Lake, folder: Path) -> Answers:
    env = clean_env() | {f"{PREFIX}LAKE": str(lake.place), f"{PREFIX}AIRFLOW_HOME": str(folder)}
    command = [str(PROJECT / ".local" / "airflow" / "bin" / "python"), "-m", "benchmark.board_answers"]
    said = succeeded("the board", command, env).output
    return dict(json.loads(said.splitlines()[-1]))


def bare_submit(folder: Path) -> Cost:
    """What Spark itself takes: a session that is made and stopped."""
    script = folder / "bare.py"
    script.write_text("from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate().stop()\n", encoding="utf-8")
    env = clean_env() | {"PYSPARK_PYTHON": sys.executable}
    return succeeded("the bare spark-submit", [str(BIN / "spark-submit"), "--properties-file", str(PROPERTIES), str(script)], env)


def clean_env() -> dict[str, str]:
    """The environment without settings of the project or of Spark: everything is measured with the defaults."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "SPARK_", "PYSPARK_"))}
    return kept | {"PYTHONPATH": str(PROJECT), "PATH": f"{BIN}{os.pathsep}{kept.get('PATH', '')}"}


def succeeded(name: str, command: list[str], env: dict[str, str]) -> Cost:
    cost = cost_of(command, env, PROJECT)
    if cost.exit_code != 0:
        last = "\n  ".join(cost.output.strip().splitlines()[-15:])
        raise Failed(f"{name} ended with exit code {cost.exit_code} ({' '.join(command)}). It said last:\n  {last}")
    return cost


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
