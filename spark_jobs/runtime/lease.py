"""The lease on the lake (P20): one writer at a time, and a forgotten driver commits nothing.

It is a file made with a conditional put. Its holder renews it while it works and looks at it before every commit.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from include.settings import Settings
from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop


class Lease:
    def __init__(self, settings: Settings, holder: str) -> None:
        self._place = f"{settings.lake}/control/lease.json"
        self._seconds, self._ended = settings.lease_s, threading.Event()
        self._mine = {"holder": holder, "host": socket.gethostname(), "pid": os.getpid(), "born": _born(os.getpid()), "epoch": 0}
        self._renewed = 0.0

    def take(self) -> None:
        found = self._read()
        if found is not None:
            if not _is_over(found):
                left = max(0, round(found["expires_at"] - time.time()))
                raise Stop(
                    f"the lake is being written by {found['holder']} (process {found['pid']} on {found['host']}); its lease runs "
                    f"{left} s more unless it renews it. Nothing was changed. Wait for it to end, then run the pass again."
                )
            storage.delete(self._place)
        self._mine["epoch"] = (found or {"epoch": 0})["epoch"] + 1
        if not storage.create(self._place, self._text()):
            raise Stop("another driver took the lake at this very moment. Nothing was changed. Run the pass again when it has ended.")
        threading.Thread(target=self._renew, daemon=True).start()

    def still_mine(self) -> None:
        """Raises where another driver has taken over, or where this one slept past its lease."""
        found = self._read()
        if not self._is_mine(found):
            raise Stop(
                "this driver has lost its lease on the lake and stops before it commits. The driver that took over goes on; run the pass again."
            )
        if time.time() - self._renewed > self._seconds:
            raise Stop("this driver slept past its lease on the lake and stops before it commits. Nothing is lost; run the pass again.")

    def give_back(self) -> None:
        self._ended.set()
        found = self._read()
        if self._is_mine(found):
            storage.delete(self._place)

    def _is_mine(self, found: dict[str, Any] | None) -> bool:
        return found is not None and all(found[name] == self._mine[name] for name in ("host", "pid", "born", "epoch"))

    def _renew(self) -> None:
        while not self._ended.wait(self._seconds / 4):
            try:
                self.still_mine()
            except Stop:
                return
            storage.write_text(self._place, self._text())

    def _text(self) -> str:
        self._renewed = time.time()
        return json.dumps({**self._mine, "expires_at": self._renewed + self._seconds})

    def _read(self) -> dict[str, Any] | None:
        text = storage.read_text(self._place)
        return None if text is None else dict(json.loads(text))


@contextmanager
def lease(settings: Settings, holder: str) -> Iterator[Lease]:
    mine = Lease(settings, holder)
    mine.take()
    try:
        yield mine
    finally:
        mine.give_back()


def _is_over(found: dict[str, Any]) -> bool:
    """It has run out, or its holder was a process of this machine that is gone."""
    if found["expires_at"] < time.time():
        return True
    return bool(found["host"] == socket.gethostname() and _born(found["pid"]) != found["born"])


def _born(pid: int) -> str:
    """When a process started, so that a number used again is not taken for the old process; empty where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[19]
    except OSError:
        return ""
