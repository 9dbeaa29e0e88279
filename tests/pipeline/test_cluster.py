"""A pass whose executors are processes of their own, as on any cluster, and one of them dies.

(Several passes, a killed driver, a lake on S3: tests/places.)"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from include.settings import PROJECT, iso
from simulator import Options, simulate
from tests.lakes import TestLake
from tests.servers.spark_cluster import SparkCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]  # two passes; a busy machine takes minutes for each
TABLES = ("readings", "store_minutes", "store_trends", "door_sessions", "heartbeats", "outages", "alerts")
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of three stores with every fault; sorted by name its files are in no order of time."""
    place = tmp_path_factory.mktemp("history")
    options = Options(
        lake=place, stores=3, sensors=3, hours=1, cadence=60, seed=7, cut_off_hours=0.3,
        duplicates=0.05, conflicts=0.05, late=0.05, out_of_order=0.05, bad=0.05, wrong_clock=0.05, silent=0.2,
    )  # fmt: skip
    (place / "as_of").write_text(iso(simulate(options).as_of))
    return place


@pytest.fixture(scope="module")
def on_this_machine(history: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TestLake:
    lake = a_lake(history, tmp_path_factory.mktemp("local") / "lake", spark)
    deliver(lake, history, files(history))
    lake.passes(as_of=(history / "as_of").read_text())
    return lake


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Its workers live by another time."""
    made = SparkCluster(tmp_path_factory.mktemp("cluster"), {"TZ": "America/St_Johns"})
    made.start()
    yield made
    pids = made.processes
    made.stop()
    assert [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE] == []


def a_lake(history: Path, place: Path, spark: SparkSession) -> TestLake:
    shutil.copytree(history / "reference", place / "reference")
    return TestLake(place, spark, quarantine_critical=1.0)


def files(history: Path) -> list[Path]:
    return sorted(path for path in (history / "landing").rglob("*") if path.is_file())


def deliver(lake: TestLake, history: Path, some: list[Path]) -> None:
    for path in some:
        target = lake.place / "landing" / path.relative_to(history / "landing")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def started(cluster: SparkCluster, lake: Path, as_of: str) -> subprocess.Popen[str]:
    """A pass as `make pass` starts it."""
    settings = {"LAKE": str(lake), "AS_OF": as_of, "MASTER": cluster.master, "QUARANTINE_CRITICAL": "1"}
    ours = {f"COLDSTORE_{name}": value for name, value in settings.items()}
    without = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_", "TZ"))}
    return subprocess.Popen(
        [sys.executable, "-m", "spark_jobs.run_pass"],
        env={**without, "PYTHONPATH": str(PROJECT), **ours},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def published(driver: subprocess.Popen[str]) -> str:
    """What it said on standard error, once it has published."""
    try:
        out, err = driver.communicate(timeout=1200)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    assert out.strip().splitlines()[-1].startswith("published"), out[-1500:] + err[-3000:]
    return err


def log(folder: Path) -> str:
    return (folder / "stderr").read_text(errors="replace") if (folder / "stderr").exists() else ""


def listens_elsewhere(pids: Any) -> set[str]:
    sockets = [each for pid in pids if psutil.pid_exists(pid) for each in psutil.Process(pid).net_connections(kind="inet")]
    return {each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN} - {*LOOPBACK}


def test_an_executor_that_is_killed_costs_nothing_but_time(
    history: Path, on_this_machine: TestLake, cluster: SparkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    lake, before = a_lake(history, tmp_path / "lake", spark), cluster.folders()
    deliver(lake, history, files(history))
    driver = started(cluster, lake.place, (history / "as_of").read_text())
    deadline = time.monotonic() + 1200
    while not (at_work := {f: pid for f, pid in cluster.executors().items() if f not in before and "MapInBatchEvaluator" in log(f)}):
        assert driver.poll() is None and time.monotonic() < deadline, "it ended before an executor could be killed"
        time.sleep(0.05)
    assert listens_elsewhere(cluster.processes) == set()
    os.kill(next(iter(at_work.values())), signal.SIGKILL)
    assert not (lake.place / "tables/runs/_delta_log" / f"{1:020d}.json").exists(), "it had published already"

    assert "Lost executor" in published(driver)
    assert lake.tables(*TABLES) == on_this_machine.tables(*TABLES)
    assert lake.books() == on_this_machine.books()
    executors = cluster.folders() - before
    assert len({folder.parent.name for folder in executors}) == 1, "a pass is one application"
    assert len(executors) > 2, "its worker started another one"
    assert {"coldstore.zip", "delta-storage-4.4.0.jar"} <= {path.name for folder in executors for path in folder.iterdir()}


def test_a_cluster_that_runs_is_not_started_again(cluster: SparkCluster) -> None:
    before = cluster.state
    assert f"The cluster is running already: {cluster.master}" in cluster.says("up", "--port", "0")
    assert cluster.state == before
    assert listens_elsewhere(cluster.processes) == set()
