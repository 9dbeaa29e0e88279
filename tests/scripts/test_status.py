"""`make status`: the state of a lake in a few lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from include.settings import PROJECT, Settings
from scripts import status
from spark_jobs.runtime.lease import lease
from tests.lakes import TestLake


def test_the_state_of_a_lake(told_lake: TestLake) -> None:
    last = max(row["finished_at"] for row in told_lake.rows("runs"))
    lines = status.of_lake(told_lake.settings, last + timedelta(minutes=5)).splitlines()
    assert lines[0] == f"Lake     {told_lake.place}"
    assert lines[1] == "Lease    free"
    assert re.match(
        r"Runs     pass-000003: held 5 min ago, as of 2025-11-08T10:40:00Z: 0 new readings, 0 duplicates, 200 quarantined; .*quarantine",
        lines[2],
    )
    assert re.match(
        r" {9}pass-000002: published 5 min ago, as of 2025-11-08T10:30:00Z: 21 new readings, 0 duplicates, 0 quarantined$", lines[3]
    )
    assert lines[5:] == [
        "Held     YES: people see the tables of the last published run.",
        "         Remove the cause and let the next run publish, or: make accept run=pass-000003 by=… why=…",
        "Fresh    published 5 min ago; newest reading 2025-11-08T10:29:00Z, 60 s before that run's clock",
        "Sensors  2 reporting, 1 silent (sensor)",
        "Alerts   1 critical, 1 warning open; 1 not yet acknowledged",
    ]


def test_old_data_are_called_old(told_lake: TestLake) -> None:
    last = max(row["finished_at"] for row in told_lake.rows("runs"))
    assert "Fresh    published 2 h ago (OLD); " in status.of_lake(told_lake.settings, last + timedelta(hours=2, minutes=5))


def test_who_writes_is_named(told_lake: TestLake, tmp_path: Path) -> None:
    settings = Settings.from_env({"COLDSTORE_LAKE": str(tmp_path / "lake")})
    with lease(settings, "the night pass"):
        text = subprocess.run(
            [sys.executable, "-m", "scripts.status"],
            env={**os.environ, "PYTHONPATH": str(PROJECT), "COLDSTORE_LAKE": settings.lake}, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    assert f"Lease    the night pass (process {os.getpid()} on " in text and " s more unless it renews it" in text
    assert "Runs     none yet; make run, or make pass" in text
