"""Servers that a script starts and writes down: which of them live, whoever asks. Standard library only; Linux."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from scripts.problem import Problem

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


@contextmanager
def one_at_a_time(file: Path, others: str) -> Iterator[None]:
    """A lock that opens by itself when its holder dies. `others`: the commands that may have it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(f"another {others} is under way here; wait for it to end.") from None
        yield


def launch(state: State, file: Path, name: str, command: Sequence[str], env: Mapping[str, str], folder: Path, log: Path) -> None:
    """Start a server in a session of its own, and write it down at once."""
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    state["processes"][name] = {"pid": process.pid, "born": born(process.pid)}
    write_private(file, json.dumps(state) + "\n")


def written_down(file: Path) -> State | None:
    """What was started and not ended yet, or None."""
    try:
        state: State = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if members(state):
        return state
    file.unlink()
    return None


def ended_by_themselves(state: State) -> list[str]:
    living = members(state)
    return [name for name, process in state["processes"].items() if process["pid"] not in living]


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
