"""A real driver, as a user's `make pass` is one: a process group of its own that can be told, watched, frozen and killed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from include.settings import PROJECT

KEPT = ("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR", "SPARK_SUBMIT_OPTS")


class Driver:
    def __init__(self, environment: Mapping[str, str], before: Sequence[str] = ()) -> None:
        """`before`: a command that starts it."""
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 — it lives as long as the driver
        env = {name: os.environ[name] for name in KEPT if name in os.environ} | {"PYTHONPATH": str(PROJECT)} | dict(environment)
        self._process = subprocess.Popen(
            [*before, sys.executable, "-m", "tests.places.driver_process"],
            env=env, cwd=PROJECT, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        self._is_ready = False

    def begin(self, **settings: str) -> None:
        """A pass, without waiting for its end."""
        assert self._process.stdin is not None
        self.wait_until_ready()
        self._process.stdin.write(json.dumps({f"COLDSTORE_{name.upper()}": value for name, value in settings.items()}) + "\n")
        self._process.stdin.flush()

    def end(self) -> str | None:
        """The pass's last line; None where the driver died."""
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        return str(json.loads(answer)) if answer else None

    def has_answered(self, within_s: float = 0.5) -> bool:
        return bool(select.select([self._process.stdout], [], [], within_s)[0])

    def passes(self, **settings: str) -> str | None:
        self.begin(**settings)
        return self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        if not self._is_ready:
            assert self._process.stdout is not None and self._process.stdout.readline() == "ready\n", self.said()
            self._is_ready = True

    def state(self) -> str:
        """Of the process, as the kernel has it: R, S, T (frozen), Z."""
        return Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def signal(self, how: signal.Signals) -> None:
        os.killpg(self._process.pid, how)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it was quicker
            self.signal(signal.SIGKILL)
        self._process.communicate()

    def said(self) -> str:
        """What it wrote on standard error."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")
