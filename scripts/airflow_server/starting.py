"""From nothing to servers that take a run; where one does not come up, back to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from include.settings import PROJECT
from scripts.airflow_server import home
from scripts.airflow_server.api import Api
from scripts.airflow_server.configuration import prepare
from scripts.airflow_server.environment import settings
from scripts.airflow_server.metadata import migrate, unfinished_runs
from scripts.airflow_server.names import DAG
from scripts.airflow_server.servers import COMPONENTS, launch, stop
from scripts.problem import Problem
from scripts.processes import State, boot, ended_by_themselves

START_SECONDS = 180


def start(mode: str, port: int) -> tuple[State, Api]:
    """All servers, ready to take a run; nothing is left behind where one does not come up."""
    if not (PROJECT / ".local" / "spark-defaults.conf").exists():
        raise Problem("this project is not set up yet: run `make setup` first.")
    prepare(port, is_scheduling=mode == "up")
    migrate()
    state: State = {"mode": mode, "port": port, "boot": boot(), "settings": settings(), "processes": {}}
    api = Api(port)
    try:
        left_open = unfinished_runs() if mode == "run" else []
        if left_open:  # before the scheduler sees them: it would take them up again, ahead of the run that was asked for
            launch(state, "api-server")
            wait_for(lambda: api.call("GET", "/api/v2/monitor/health"), state)
            api.login()
            for run_id in left_open:
                api.close(run_id)
        launch(state, *(name for name in COMPONENTS if name not in state["processes"]))
        since = datetime.now(UTC)
        wait_for(lambda: is_ready(api, since), state)
        return state, api
    except BaseException:
        stop(state)
        raise


def is_ready(api: Api, since: datetime) -> bool:
    """The API answers, this scheduler beats, and the DAG was read anew."""
    health = api.call("GET", "/api/v2/monitor/health")
    if not is_after(health["scheduler"]["latest_scheduler_heartbeat"], since):
        return False
    api.login()
    for error in api.call("GET", "/api/v2/importErrors")["import_errors"]:
        if error["filename"].endswith(f"{DAG}.py") and is_after(error["timestamp"], since):
            raise Problem(f"{DAG}.py cannot be read as a DAG: {error['stack_trace'].strip().splitlines()[-1]}")
    if not is_after(api.dag()["last_parsed_time"], since):
        return False
    api.make_pool()
    return True


def is_after(text: str | None, since: datetime) -> bool:
    return bool(text) and datetime.fromisoformat(str(text)) >= since


def wait_for(is_true: Callable[[], Any], state: State) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for name in ended_by_themselves(state):
            raise Problem(f"Airflow's {name} ended by itself: see {home.logs() / name}.log.")
        with suppress(OSError):  # nobody listens yet, or the DAG is not known yet
            if is_true():
                return
        time.sleep(0.5)
    raise Problem(f"Airflow did not come up within {START_SECONDS} s: see the logs in {home.logs()}.")
