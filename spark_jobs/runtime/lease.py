"""The lease on the lake (P20): one writer at a time, and a forgotten driver commits nothing.

It is a file that is only ever written over what the writer saw there. Its holder renews it while it works and looks at it before every
commit; one that takes it over after a crash also closes the door behind it (`Lake.shut_out`).
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from include.settings import Settings
from spark_jobs.runtime import fault_points, storage
from spark_jobs.runtime.entry import Seen
from spark_jobs.runtime.errors import Stop


class Lease:
    def __init__(self, settings: Settings, holder: str) -> None:
        self._place = f"{settings.lake}/control/lease.json"
        self._seconds, self._ended = settings.lease_s, threading.Event()
        self._mine: dict[str, Any] = {"holder": holder, "host": _host(), "pid": os.getpid(), "born": _born(os.getpid()), "epoch": 1}
        self._seen: Seen | None = None  # the lease as it was last read or written
        self._renewed, self._lock = 0.0, threading.Lock()
        self.after_a_crash = False  # the holder before this one did not give it back, and was not shut out yet

    @property
    def epoch(self) -> int:
        return int(self._mine["epoch"])

    def take(self) -> None:
        self._seen, found = self._read()
        if found is not None:
            if not _is_over(found):
                left = max(0, round(found["expires_at"] - time.time()))
                raise Stop(
                    f"the lake is being written by {found['holder']} (process {found['pid']} on {found['host'][0]}); its lease runs "
                    f"{left} s more unless it renews it. Nothing was changed. Wait for it to end, then run the pass again."
                )
            self._mine["epoch"] = found["epoch"] + 1
            self.after_a_crash = not found.get("is_given_back")
        if not self._write():
            raise Stop("another driver took the lake at this very moment. Nothing was changed. Run the pass again when it has ended.")
        fault_points.passed("after the lease is taken")
        threading.Thread(target=self._renew, daemon=True).start()

    def still_mine(self) -> None:
        """Raises where another driver has taken over, or where this one slept past its lease."""
        _, found = self._read()
        if not self._is_mine(found):
            raise Stop(
                "this driver has lost its lease on the lake and stops before it commits. The driver that took over goes on; run the pass again."
            )
        if time.time() - self._renewed > self._seconds:
            raise Stop("this driver slept past its lease on the lake and stops before it commits. Nothing is lost; run the pass again.")

    def give_back(self) -> None:
        self._ended.set()
        fault_points.passed("before the lease is given back")
        with suppress(Stop, OSError):  # it runs out by itself
            self._write(is_given_back=not self.after_a_crash, expires_at=0)

    def _is_mine(self, found: dict[str, Any] | None) -> bool:
        return found is not None and all(found[name] == self._mine[name] for name in ("host", "pid", "born", "epoch"))

    def _renew(self) -> None:
        while not self._ended.wait(self._seconds / 4):
            try:
                self.still_mine()
                if not self._ended.is_set() and not self._write():
                    return
            except (
                Stop,
                OSError,
            ):  # an S3 server or a disk that does not answer may do so the next time; a lost lease is seen before the next commit
                continue

    def _write(self, **more: Any) -> bool:
        """Only over what we saw there: whoever took it over in between keeps it."""
        now = time.time()
        text = json.dumps({**self._mine, "expires_at": now + self._seconds, **more})
        with self._lock:
            written = storage.write_if(self._place, text.encode(), self._seen)
            if written is not None:
                self._seen, self._renewed = written, now
        return written is not None

    def _read(self) -> tuple[Seen | None, dict[str, Any] | None]:
        seen = storage.read_seen(self._place)
        return seen, None if seen is None else dict(json.loads(seen.content))


@contextmanager
def lease(settings: Settings, holder: str) -> Iterator[Lease]:
    mine = Lease(settings, holder)
    mine.take()
    try:
        yield mine
    finally:
        mine.give_back()


def _is_over(found: dict[str, Any]) -> bool:
    """It has run out, or its holder was a process of this machine that is gone; or it is our own, which we could not give back."""
    if found["expires_at"] < time.time():
        return True
    return bool(found["host"] == _host() and (_born(found["pid"]) != found["born"] or found["pid"] == os.getpid()))


def _host() -> list[str]:
    """Machine and space of process numbers: two may have the same name, and other processes under the same numbers."""
    try:
        return [socket.gethostname(), os.readlink("/proc/self/ns/pid"), Path("/proc/sys/kernel/random/boot_id").read_text().strip()]
    except OSError:
        return [socket.gethostname(), ""]


def _born(pid: int) -> str:
    """When a process started, so that a number used again is not taken for the old process; empty where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[19]
    except OSError:
        return ""
