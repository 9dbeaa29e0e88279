"""The servers as processes: started in sessions of their own, written down, and ended to the last of their tasks."""

from __future__ import annotations

from pathlib import Path

from scripts.airflow_server import home
from scripts.airflow_server.environment import AIRFLOW, environment
from scripts.ports import LOCALHOST
from scripts.problem import Problem
from scripts.processes import State, end, written_down
from scripts.processes import launch as launch_one

COMPONENTS = {
    "api-server": ["api-server", "--host", LOCALHOST],
    "dag-processor": ["dag-processor"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
}
GRACE_SECONDS = 10


def state_file() -> Path:
    return home.folder() / "server.json"


def read_state() -> State | None:
    return written_down(state_file())


def launch(state: State, *names: str) -> None:
    for name in names:
        launch_one(state, state_file(), name, [AIRFLOW, *COMPONENTS[name]], environment(), home.folder(), home.logs() / f"{name}.log")


def stop(state: State) -> None:
    """End every process of the servers, and be sure of it."""
    left = end(state, GRACE_SECONDS)
    if left:
        raise Problem(f"processes {left} of Airflow do not end; look at them with ps, then run `make down` again.")
    state_file().unlink(missing_ok=True)
