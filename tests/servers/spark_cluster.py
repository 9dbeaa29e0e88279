"""A real Spark cluster on this machine's loopback, started by the command that `make cluster` runs, in a folder of its own.

Its workers know nothing of the project: they start with a bare environment, in another folder, and with Spark's own jars only.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from include.settings import PROJECT
from scripts.processes import members

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class SparkCluster:
    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
        self._environment = {**kept, **environment}

    def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.says("up", "--port", "0")

    def stop(self) -> None:
        self.says("down")

    def says(self, *arguments: str) -> str:
        """What the command prints."""
        command = [sys.executable, "-m", "scripts.spark_cluster", *arguments, "--home", str(self.home)]
        done = subprocess.run(
            command,
            env={**self._environment, "PYTHONPATH": str(PROJECT)},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def state(self) -> dict[str, Any]:
        return dict(json.loads((self.home / "cluster.json").read_text()))

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.state['port']}"

    @property
    def processes(self) -> dict[int, str]:
        """Every living process of it, and its command: master, workers, executors and their Python."""
        return {pid: _command(pid) for pid in members(self.state)}

    def executors(self) -> dict[Path, int]:
        """Those that live now: the folder of each, and its process."""
        found = {}
        for pid, command in self.processes.items():
            if EXECUTOR in command and (named := re.search(r"--executor-id (\d+) .*--app-id (\S+)", command)):
                found.update(dict.fromkeys(self.home.glob(f"worker-*/{named[2]}/{named[1]}"), pid))
        return found

    def folders(self) -> set[Path]:
        """One for each executor that there ever was: what it was given, and its log."""
        return {folder for folder in self.home.glob("worker-*/app-*/*") if folder.is_dir()}

    def texts(self) -> str:
        """All that anything of it has written down."""
        logs = [*self.home.glob("logs/*.log"), *self.home.glob("worker-*/app-*/*/std*")]
        return "\n".join(path.read_text(errors="replace") for path in logs)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
