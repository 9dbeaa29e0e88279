"""Processes that a script has started and written down: which of them live, whoever asks. Standard library only; Linux."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

State = dict[str, Any]  # `boot`, and `processes`: by name the number of each, and when it was born


def write_private(path: Path, text: str) -> None:
    """A file that only its owner can read, from its first byte on."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)


def stat(pid: int) -> list[str]:
    """State, parent, group, session … of a process, from its third field on; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
    except OSError:
        return []


def born(pid: int) -> str:
    """When a process started, so that a number used again is not taken for the old process."""
    return (stat(pid) + [""] * 20)[19]


def members(state: State) -> list[int]:
    """Every living process of the servers. Each server leads a session, which its tasks and their JVMs never leave."""
    if state.get("boot") != boot():
        return []
    leaders = {process["pid"] for process in state["processes"].values() if born(process["pid"]) in ("", process["born"])}
    fields = {pid: stat(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    return [pid for pid, values in fields.items() if values and values[0] != "Z" and int(values[3]) in leaders]


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def end(state: State, grace_seconds: float) -> list[int]:
    """End them all, by force where asking does not help; those that live even so."""
    for sign, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + seconds
        for pid in members(state):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
        while members(state) and time.monotonic() < deadline:
            time.sleep(0.2)
    return members(state)
