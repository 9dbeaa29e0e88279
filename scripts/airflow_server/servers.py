"""The servers as processes: started in sessions of their own, written down, and ended to the last of their tasks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from scripts.airflow_server import home
from scripts.airflow_server.environment import AIRFLOW, environment
from scripts.ports import LOCALHOST
from scripts.problem import Problem
from scripts.processes import State, born, end, members, write_private

COMPONENTS = {
    "api-server": ["api-server", "--host", LOCALHOST],
    "dag-processor": ["dag-processor"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
}
GRACE_SECONDS = 10


def state_file() -> Path:
    return home.folder() / "server.json"


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
        write_private(state_file(), json.dumps(state) + "\n")


def stop(state: State) -> None:
    """End every process of the servers, and be sure of it."""
    left = end(state, GRACE_SECONDS)
    if left:
        raise Problem(f"processes {left} of Airflow do not end; look at them with ps, then run `make down` again.")
    state_file().unlink(missing_ok=True)
