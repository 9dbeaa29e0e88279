"""What the walks happen on: a real Airflow with its timetable off, a lake on disk, its landing folder on a real S3 server, and somebody who takes alerts and notices."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from deltalake import DeltaTable

from include.settings import PROJECT
from scripts.airflow_server.api import Api
from scripts.airflow_server.servers import stop
from scripts.airflow_server.starting import start
from scripts.ports import free_port
from tests.delivery.receiver import Receiver
from tests.servers.running import running
from tests.servers.s3_server import BUCKET
from tests.servers.seaweedfs import SeaweedFS

SPARK = PROJECT / ".local" / "spark" / "bin" / "python"
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [f"{TODAY - timedelta(days=ago):%Y-%m-%d}" for ago in (3, 2, 1)]
LIMITS = "store_id,valid_from,valid_to,low_c,high_c\n"
SENSORS = "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s\n"
PATIENCE_S = 600  # for one step; a busy machine takes minutes where an idle one takes seconds
VIEWER = "vera"


@dataclass
class Scene:
    folder: Path
    s3: SeaweedFS
    receiver: Receiver
    api: Api = field(init=False)
    secret: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def settings(self) -> dict[str, str]:
        return {
            **self.s3.environment,
            "COLDSTORE_LAKE": str(self.lake),
            "COLDSTORE_LANDING": f"s3a://{BUCKET}/landing",
            "COLDSTORE_AIRFLOW_HOME": str(self.folder / "airflow_home"),
            "COLDSTORE_AIRFLOW_USERS": f"{VIEWER}:viewer",
            "COLDSTORE_REBUILD_APPROVAL_ROWS": "0",
            "COLDSTORE_LEASE_S": "15",
            "COLDSTORE_STALE_AFTER_S": "60",
            "COLDSTORE_WEBHOOK_URL": self.receiver.url,
            "COLDSTORE_WEBHOOK_SECRET": self.secret,
            "COLDSTORE_WEBHOOK_ATTEMPTS": "1",
            "NO_PROXY": "127.0.0.1",
            "SPARK_CONF_DIR": str(self.folder / "spark_conf"),  # empty, until a driver is to have little memory
        }

    # --- the lake -----------------------------------------------------------------------------------------------------------------------

    def lands(self, name: str, lines: list[dict[str, Any]] | bytes) -> None:
        body = lines if isinstance(lines, bytes) else "".join(json.dumps(line) + "\n" for line in lines).encode()
        self.s3.client().put_object(Bucket=BUCKET, Key=f"landing/{name}.jsonl", Body=body)

    def lay(self) -> None:
        """Three days with nineteen warm minutes each, and a limit of 5 °C; today one sensor that is warm and one that has fallen silent."""
        (self.lake / "reference").mkdir(parents=True)
        (self.folder / "spark_conf").mkdir()
        self.refers("limits", f"{LIMITS}store-1,,,0,5\nstore-7,,,0,5\n")
        # Nobody in store-1 is missed between the days: an outage would reach from one into the next.
        self.refers("sensors", f"{SENSORS}sensor-1,store-1,,,900000,\nsensor-7,store-7,,,,\nsensor-8,store-7,,,,\n")
        for day in DAYS:
            warm = [6.0] * 19 + [3.0]
            self.lands(day, [reading("sensor-1", "store-1", t, f"{day}T10:{minute:02}:00Z") for minute, t in enumerate(warm)])
        self.lands("today", self.fresh(120, 9.0) + self.fresh(120, 3.0, sensor="sensor-8", until=90))

    def fresh(self, minutes: int, temperature: float, sensor: str = "sensor-7", until: int = 0) -> list[dict[str, Any]]:
        """Of store-7, minute by minute, so many up to now or until so many minutes ago."""
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        return [
            reading(sensor, "store-7", temperature, f"{now - timedelta(minutes=ago):%Y-%m-%dT%H:%M:%SZ}")
            for ago in range(minutes, until, -1)
        ]

    def refers(self, name: str, text: str) -> None:
        (self.lake / "reference" / f"{name}.csv").write_text(text, encoding="utf-8")

    def rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        return list(DeltaTable(str(self.lake / "tables" / table)).to_pyarrow_table(columns=list(columns)).to_pylist())

    def make(self, *command: str) -> str:
        """A command of the Makefile, as an incident names it."""
        done = subprocess.run(["make", *command], cwd=PROJECT, env={**os.environ, **self.settings}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    # --- Airflow ------------------------------------------------------------------------------------------------------------------------

    def triggers(self, dag_id: str = "coldstore_pipeline", **conf: Any) -> str:
        body = {"logical_date": None, "conf": conf}
        return str(self.api.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def tasks(self, run: str, dag_id: str = "coldstore_pipeline") -> dict[str, str]:
        found = self.api.call("GET", f"{at(run, dag_id)}/taskInstances")["task_instances"]
        return {task["task_id"]: task["state"] for task in found}

    def state(self, run: str, dag_id: str = "coldstore_pipeline") -> str:
        return str(self.api.call("GET", at(run, dag_id))["state"])

    def ends(self, run: str, dag_id: str = "coldstore_pipeline") -> str:
        return str(wait(lambda: state if (state := self.state(run, dag_id)) in ("success", "failed") else "", f"{run} to end"))

    def fails(self, run: str, task: str, dag_id: str = "coldstore_pipeline") -> None:
        """For good, or until it is tried again."""
        wait(lambda: self.tasks(run, dag_id).get(task) in ("failed", "up_for_retry"), f"{task} of {run} to fail")

    def clears(self, run: str, task: str, dag_id: str = "coldstore_pipeline") -> None:
        body = {
            "dag_run_id": run,
            "task_ids": [task],
            "dry_run": False,
            "only_failed": False,
            "include_downstream": True,
            "reset_dag_runs": True,
        }
        self.api.call("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body)


def reading(sensor: str, store: str, temperature: float, at: str) -> dict[str, Any]:
    return {"sensor_id": sensor, "store_id": store, "temperature": temperature, "event_ts": at}


def at(run: str, dag_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run, safe='')}"


def wait(until: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(OSError, KeyError):  # a busy server may not answer in time, or not know it yet
            if value := until():
                return value
        time.sleep(0.5)
    raise AssertionError(f"waited in vain for: {what}")


@contextmanager
def opened(folder: Path) -> Iterator[Scene]:
    receiver = Receiver()
    with running(SeaweedFS(folder / "s3")) as s3, pytest.MonkeyPatch.context() as patched:
        scene = Scene(folder, s3, receiver)
        for name, value in scene.settings.items():
            patched.setenv(name, value)
        scene.lay()
        state, scene.api = start("run", free_port())
        try:
            yield scene
        finally:
            stop(state)
            receiver.close()
