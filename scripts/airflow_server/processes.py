"""The servers as processes: started in sessions of their own, written down, and ended to the last of their tasks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from scripts.airflow_server import home
from scripts.airflow_server.configuration import LOCALHOST
from scripts.airflow_server.environment import AIRFLOW, environment
from scripts.airflow_server.problem import Problem

COMPONENTS = {
    "api-server": ["api-server", "--host", LOCALHOST],
    "dag-processor": ["dag-processor"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
}
GRACE_SECONDS = 10
State = dict[str, Any]


def state_file() -> Path:
    return home.folder() / "server.json"


def stat(pid: int) -> list[str]:
    """State, parent, group, session … of a process, from its third field on; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
    except OSError:
        return []


def born(pid: int) -> str:
    """When a process started, so that a number used again is not taken for the old process."""
    return (stat(pid) + [""] * 20)[19]


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def members(state: State) -> list[int]:
    """Every living process of the servers. Each server leads a session, which its tasks and their JVMs never leave."""
    if state.get("boot") != boot():
        return []
    leaders = {process["pid"] for process in state["processes"].values() if born(process["pid"]) in ("", process["born"])}
    fields = {pid: stat(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    return [pid for pid, values in fields.items() if values and values[0] != "Z" and int(values[3]) in leaders]


def ended_by_themselves(state: State) -> list[str]:
    return [name for name, process in state["processes"].items() if process["pid"] not in members(state)]


def read_state() -> State | None:
    """What was started and not ended yet, or None."""
    try:
        state: State = json.loads(state_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if members(state):
        return state
    state_file().unlink()
    return None


def launch(state: State, *names: str) -> None:
    """Start servers, each in a session of its own, and write each down at once."""
    for name in names:
        with (home.logs() / f"{name}.log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [AIRFLOW, *COMPONENTS[name]],
                env=environment(),
                cwd=home.folder(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        state["processes"][name] = {"pid": process.pid, "born": born(process.pid)}
        home.write_private(state_file(), json.dumps(state) + "\n")


def stop(state: State) -> None:
    """End every process of the servers, and be sure of it."""
    for sign, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, 5)):
        deadline = time.monotonic() + seconds
        for pid in members(state):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
        while members(state) and time.monotonic() < deadline:
            time.sleep(0.2)
    left = members(state)
    if left:
        raise Problem(f"processes {left} of Airflow do not end; look at them with ps, then run `make down` again.")
    state_file().unlink(missing_ok=True)


def free_port(wanted: int = 0) -> int:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, wanted))
        except OSError:
            raise Problem(f"port {wanted} is taken by another program; choose another: COLDSTORE_AIRFLOW_PORT=8081 make up.") from None
        return int(probe.getsockname()[1])
