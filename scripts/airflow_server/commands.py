"""`up`, `down`, `prepare` and `run`."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime

from scripts.airflow_server.api import Api
from scripts.airflow_server.configuration import prepare
from scripts.airflow_server.environment import settings
from scripts.airflow_server.following import ENDED, follow, say
from scripts.airflow_server.home import folder, lock, password
from scripts.airflow_server.metadata import migrate
from scripts.airflow_server.names import DAG, USER
from scripts.airflow_server.servers import read_state, stop
from scripts.airflow_server.starting import start
from scripts.ports import LOCALHOST, free_port
from scripts.problem import Problem
from scripts.processes import State, ended_by_themselves

PORT = 8080


def cleared(state: State | None) -> State | None:
    """The server that `up` started, if it is whole; what is left of another, or of a `run` whose command died, is ended first."""
    if state is not None and (state["mode"] == "run" or ended_by_themselves(state)):
        stop(state)
        return None
    return state


def up() -> int:
    with lock():
        state = cleared(read_state())
        if state is not None:
            print(f"Airflow is running already: http://{LOCALHOST}:{state['port']}")
        else:
            print("Airflow is starting …", flush=True)
            state, _ = start("up", free_port(int(os.environ.get("COLDSTORE_AIRFLOW_PORT") or PORT), "COLDSTORE_AIRFLOW_PORT=8081 make up"))
            print(f"Airflow is running:  http://{LOCALHOST}:{state['port']}")
    print(f"user, password:      {USER}, {password()}")
    print(f"the pipeline:        {DAG} runs every 10 minutes; pause it, or trigger a run as of another time, in the UI")
    print("stop it:             make down")
    return 0


def down() -> int:
    with lock():
        state = read_state()
        if state is None:
            print("Airflow is not running.")
            return 0
        stop(state)
        print("Airflow has ended.")
        return 0


def prepared() -> int:
    """For servers that somebody else starts, each in a container of its own: the home they share, and the database."""
    with lock():
        prepare(PORT, is_scheduling=True)
        migrate()
    print(f"Airflow's home is {folder()}; the password of the user {USER} is in passwords.json there.")
    return 0


def run(as_of: str) -> int:
    as_of = as_of and utc(as_of)
    with lock():
        state = cleared(read_state())
        if state is None:
            return run_alone(as_of)
    if state["settings"] != settings():
        differ = ", ".join(sorted({name for name, _ in state["settings"].items() ^ settings().items()}))
        raise Problem(f"the Airflow that is running was started with other settings ({differ}); run `make down` first.")
    api = Api(state["port"])
    api.login()
    if api.dag()["is_paused"]:
        raise Problem(f"{DAG} is paused, so a run would wait for ever; unpause it at {api.address}/dags/{DAG}.")
    run_id = api.trigger(as_of)
    say(f"run {run_id} as of {as_of or 'now'} in the Airflow at {api.address}")
    return 0 if follow(api, run_id) else 1


def run_alone(as_of: str) -> int:
    say("Airflow is starting …")
    state, api = start("run", free_port())
    try:
        was_paused = api.dag()["is_paused"]
        if was_paused:
            api.pause(False)  # nothing but our own run can start: the timetable is off
        run_id = api.trigger(as_of)
        say(f"run {run_id} as of {as_of or 'now'}; to watch it: {api.address} (user {USER}, password in {folder() / 'passwords.json'})")
        try:
            return 0 if follow(api, run_id) else 1
        finally:
            with suppress(OSError):  # the servers may be what failed
                if api.run_state(run_id) not in ENDED:
                    api.close(run_id)
                if was_paused:
                    api.pause(True)
    finally:
        stop(state)
        say("Airflow has ended.")


def utc(text: str) -> str:
    """A time as the DAG takes it, in UTC."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise Problem(f"{text!r} is not a time with an offset; write one like 2025-11-08T16:00:00Z.")
