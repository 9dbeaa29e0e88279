"""Start Airflow (`up`), end it (`down`), or take one pass of the pipeline through it (`run`). Standard library only.

`up` starts the real thing: the DAG is not paused, so a pass runs every 10 minutes as of the end of its interval. (A paused DAG would be of
little use: in Airflow 3 a run triggered by hand waits, too, until the DAG is unpaused.) If someone pauses it in the UI, it stays paused
after the next `up`.

`run` starts the same servers on a free port with the timetable switched off (`use_job_schedule`), so that its own run, with its own as_of,
is the only one; it ends them when the run has ended. Where `up` is running, `run` triggers its run there.

Everything lives in `.local/airflow_home`: the metadata (SQLite, which LocalExecutor may use since Airflow 3), logs, and the secrets, made
at random on the first start and readable by nobody else. All servers listen on 127.0.0.1 only; the scheduler's log server, which would
listen everywhere, is left out (the UI reads the log files themselves), and so is the triggerer: no task defers.
"""

from __future__ import annotations

import argparse
import base64
import configparser
import fcntl
import io
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from processes import State, boot, born, end, members, write_private

PROJECT = Path(__file__).resolve().parent.parent
HOME = PROJECT / ".local" / "airflow_home"
AIRFLOW = str(PROJECT / ".local" / "airflow" / "bin" / "airflow")
STATE, LOGS = HOME / "server.json", HOME / "logs"
LOCALHOST, USER, DAG, POOL = "127.0.0.1", "admin", "coldstore_pipeline", "lake_writer"
COMPONENTS = {
    "api-server": ["api-server", "--host", LOCALHOST],
    "dag-processor": ["dag-processor"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
}
START_SECONDS, GRACE_SECONDS = 180, 10
WAITING, ENDED = (None, "scheduled", "queued"), ("success", "failed")
CONFLICT = 409  # "is there already"


class Problem(Exception):
    """What happened and what to do, in one line."""


# --- the home: secrets and configuration --------------------------------------------------------------------------------------------------


def kept(path: Path, make: Callable[[], dict[str, str]]) -> dict[str, str]:
    """The secrets in a file, made at random if there is none yet."""
    if not path.exists():
        write_private(path, json.dumps(make()) + "\n")
    path.chmod(0o600)
    return dict(json.loads(path.read_text(encoding="utf-8")))


def new_secrets() -> dict[str, str]:
    fernet_key = base64.urlsafe_b64encode(os.urandom(32)).decode()
    return {"fernet_key": fernet_key, "jwt_secret": secrets.token_hex(64), "secret_key": secrets.token_hex(32)}


def password(home: Path = HOME) -> str:
    return kept(home / "passwords.json", lambda: {USER: secrets.token_urlsafe(15)})[USER]


def configuration(home: Path, port: int, is_scheduling: bool) -> configparser.ConfigParser:
    own = kept(home / "secrets.json", new_secrets)
    address = f"http://{LOCALHOST}:{port}"
    config = configparser.ConfigParser(interpolation=None)
    config.read_dict(
        {
            "core": {
                "dags_folder": PROJECT / "dags",
                "executor": "LocalExecutor",
                "parallelism": 2,  # processes started in advance; the pool lets one task run at a time
                "load_examples": False,
                "fernet_key": own["fernet_key"],
                "execution_api_server_url": f"{address}/execution/",
                "simple_auth_manager_users": f"{USER}:admin",
                "simple_auth_manager_all_admins": False,
                "simple_auth_manager_passwords_file": home / "passwords.json",
            },
            "database": {"sql_alchemy_conn": f"sqlite:///{home / 'airflow.db'}"},
            "logging": {"base_log_folder": home / "logs"},
            "api": {"host": LOCALHOST, "port": port, "base_url": address, "workers": 1, "secret_key": own["secret_key"]},
            "api_auth": {"jwt_secret": own["jwt_secret"]},
            "workers": {"execution_api_timeout": 60},  # the first call takes the server seconds
            "scheduler": {"use_job_schedule": is_scheduling, "enable_health_check": False, "orphaned_tasks_check_interval": 60},
            "dag_processor": {"refresh_interval": 30},
            "usage_data_collection": {"enabled": False},
        }
    )
    return config


def prepare(home: Path, port: int, is_scheduling: bool) -> None:
    """The home folder with its secrets and airflow.cfg, all private."""
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    (home / "logs").mkdir(exist_ok=True)
    password(home)
    text = io.StringIO()
    configuration(home, port, is_scheduling).write(text)
    write_private(home / "airflow.cfg", text.getvalue())


def environment() -> dict[str, str]:
    """What the servers, and through them the Spark jobs, find in their environment; a connection that is already there stays."""
    programs = [str(PROJECT / ".local" / name / "bin") for name in ("spark", "airflow")]  # the operator finds spark-submit by PATH alone
    master = os.environ.get("COLDSTORE_MASTER") or "local[*]"
    spark = {"conn_type": "spark", "host": master, "extra": {"spark-binary": "spark-submit"}}
    ours = {
        "AIRFLOW_HOME": str(HOME),
        "PYTHONPATH": str(PROJECT),
        "PATH": os.pathsep.join([*programs, os.environ.get("PATH", os.defpath)]),
        "NO_PROXY": ",".join(filter(None, [LOCALHOST, os.environ.get("NO_PROXY")])),
    }
    return {"AIRFLOW_CONN_COLDSTORE_SPARK": json.dumps(spark), **os.environ, **ours}


def settings() -> dict[str, str]:
    """The settings a server hands on to the jobs for as long as it runs."""
    own = ("COLDSTORE_AS_OF", "COLDSTORE_RUN_ID", "COLDSTORE_AIRFLOW_PORT")
    given = {name: value for name, value in os.environ.items() if name.startswith("COLDSTORE_") and name not in own}
    return {"COLDSTORE_LAKE": str(PROJECT / "lake"), **given}


# --- the processes ------------------------------------------------------------------------------------------------------------------------


def ended_by_themselves(state: State) -> list[str]:
    return [name for name, process in state["processes"].items() if process["pid"] not in members(state)]


def read_state() -> State | None:
    """What was started and not ended yet, or None."""
    try:
        state: State = json.loads(STATE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if members(state):
        return state
    STATE.unlink()
    return None


def launch(state: State, *names: str) -> None:
    """Start servers, each in a session of its own, and write each down at once."""
    for name in names:
        with (LOGS / f"{name}.log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [AIRFLOW, *COMPONENTS[name]],
                env=environment(),
                cwd=HOME,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        state["processes"][name] = {"pid": process.pid, "born": born(process.pid)}
        write_private(STATE, json.dumps(state) + "\n")


def stop(state: State) -> None:
    """End every process of the servers, and be sure of it."""
    left = end(state, GRACE_SECONDS)
    if left:
        raise Problem(f"processes {left} of Airflow do not end; look at them with ps, then run `make down` again.")
    STATE.unlink(missing_ok=True)


def free_port(wanted: int = 0) -> int:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, wanted))
        except OSError:
            raise Problem(f"port {wanted} is taken by another program; choose another: COLDSTORE_AIRFLOW_PORT=8081 make up.") from None
        return int(probe.getsockname()[1])


@contextmanager
def lock() -> Iterator[None]:
    """One command at a time; it opens by itself when its holder dies."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "server.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem("another `make run`, `make up` or `make down` is under way here; wait for it to end.") from None
        yield


# --- the server's API ---------------------------------------------------------------------------------------------------------------------


class Api:
    """The REST API of the running server, as the one user there is."""

    def __init__(self, port: int) -> None:
        self.address = f"http://{LOCALHOST}:{port}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._token = ""

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {self._token}"} if self._token else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, headers=headers, method=method)
        for attempts_left in (4, 3, 2, 1, 0):
            try:
                with self._opener.open(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code < 500 or not attempts_left:
                    raise
                time.sleep(1)  # its database was locked
        return None

    def login(self) -> None:
        self._token = self.call("POST", "/auth/token", {"username": USER, "password": password()})["access_token"]

    def dag(self) -> Any:
        return self.call("GET", f"/api/v2/dags/{DAG}")

    def pause(self, is_paused: bool) -> None:
        self.call("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": is_paused})

    def trigger(self, as_of: str) -> str:
        run_id = f"manual__{datetime.now(UTC).isoformat()}"  # ours, so that asking twice starts one run
        try:
            self.call("POST", f"/api/v2/dags/{DAG}/dagRuns", {"dag_run_id": run_id, "logical_date": None, "conf": {"as_of": as_of}})
        except urllib.error.HTTPError as error:
            if error.code != CONFLICT:
                raise Problem(f"Airflow does not take the run: {json.load(error).get('detail', error)}") from None
        return run_id

    def run_state(self, run_id: str) -> str:
        return str(self.call("GET", run_path(run_id))["state"])

    def tasks(self, run_id: str) -> list[dict[str, Any]]:
        return list(self.call("GET", f"{run_path(run_id)}/taskInstances")["task_instances"])

    def close(self, run_id: str) -> None:
        self.call("PATCH", run_path(run_id), {"state": "failed", "note": "closed: its servers were stopped before it had ended"})

    def make_pool(self) -> None:
        """One slot, whatever was there before: the writers of the lake are kept apart by it."""
        pool = {"name": POOL, "slots": 1, "description": "One writer of the lake at a time.", "include_deferred": False}
        try:
            self.call("POST", "/api/v2/pools", pool)
        except urllib.error.HTTPError as error:
            if error.code != CONFLICT:
                raise
            self.call("PATCH", f"/api/v2/pools/{POOL}", pool)


def run_path(run_id: str) -> str:
    return f"/api/v2/dags/{DAG}/dagRuns/{urllib.parse.quote(run_id, safe='')}"


# --- starting -----------------------------------------------------------------------------------------------------------------------------


def migrate() -> None:
    """The metadata database, made or brought up to this Airflow's version; nothing to do, and no seconds spent, where it is."""
    mark, wanted = HOME / "migrated", version("apache-airflow")
    if (HOME / "airflow.db").exists() and mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    with (LOGS / "migrate.log").open("w", encoding="utf-8") as log:
        ended = subprocess.run([AIRFLOW, "db", "migrate"], env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
        if ended.returncode:
            raise Problem(f"Airflow's metadata database could not be made: see {log.name}.")
    with closing(sqlite3.connect(HOME / "airflow.db")) as database:
        # Kept by the file: readers and the one writer no longer wait for each other. The 5 s that a second writer waits stay as they are:
        # Airflow writes its audit log in the server's event loop, where two writers can wait for each other until that time is over.
        database.execute("pragma journal_mode = wal")
    mark.write_text(wanted, encoding="utf-8")


def unfinished_runs() -> list[str]:
    """Runs that an Airflow which is gone left open; asked of the database, because no server is there yet."""
    with closing(sqlite3.connect(f"file:{HOME / 'airflow.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("select run_id from dag_run where dag_id = ? and state in ('queued', 'running')", (DAG,))
        return [str(run_id) for (run_id,) in rows]


def start(mode: str, port: int) -> tuple[State, Api]:
    """All servers, ready to take a run; nothing is left behind where one does not come up."""
    if not (PROJECT / ".local" / "spark-defaults.conf").exists():
        raise Problem("this project is not set up yet: run `make setup` first.")
    prepare(HOME, port, is_scheduling=mode == "up")
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
            raise Problem(f"Airflow's {name} ended by itself: see {LOGS / name}.log.")
        with suppress(OSError):  # nobody listens yet, or the DAG is not known yet
            if is_true():
                return
        time.sleep(0.5)
    raise Problem(f"Airflow did not come up within {START_SECONDS} s: see the logs in {LOGS}.")


# --- following a run ----------------------------------------------------------------------------------------------------------------------


def follow(api: Api, run_id: str) -> bool:
    """A line for each change of a task's state, until the run has ended; whether it succeeded."""
    seen: dict[str, tuple[Any, ...]] = {}
    failures = 0
    while True:
        try:
            state, tasks = api.run_state(run_id), api.tasks(run_id)
            failures = 0
        except OSError as error:
            failures += 1
            if failures > 30:
                raise Problem(f"Airflow no longer answers ({error}): see the logs in {LOGS}.") from None
            time.sleep(1)
            continue
        for task in sorted(tasks, key=lambda task: task["start_date"] or "~"):
            now = (task["state"], task["try_number"])
            if now[0] not in WAITING and seen.get(task["task_id"]) != now:
                seen[task["task_id"]] = now
                took = f" after {task['duration']:.0f} s" if task["duration"] and task["state"] != "running" else ""
                attempt = f", attempt {task['try_number']}" if task["try_number"] > 1 else ""
                say(f"{task['task_id']:<16} {task['state'].replace('_', ' ')}{took}{attempt}")
        if state in ENDED:
            show_failures(tasks, run_id)
            return state == "success"
        time.sleep(0.5)


def show_failures(tasks: list[dict[str, Any]], run_id: str) -> None:
    for task in tasks:
        if task["state"] == "failed":
            log = LOGS / f"dag_id={DAG}" / f"run_id={run_id}" / f"task_id={task['task_id']}" / f"attempt={task['try_number']}.log"
            print(f"\n{task['task_id']} failed. The end of its log ({log}):", flush=True)
            print("\n".join(f"    {line}" for line in last_lines(log)), flush=True)


def last_lines(log: Path, count: int = 30) -> list[str]:
    """What a person wants of a task's log, which is a JSON object per line."""
    try:
        entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    except (OSError, ValueError) as error:
        return [f"(it cannot be read: {error})"]
    lines: list[str] = []
    for entry in entries:
        lines += [line for line in str(entry.get("event", "")).splitlines() if not line.startswith(("::group::", "::endgroup::"))]
        lines += [f"{error['exc_type']}: {error['exc_value']}".splitlines()[0] for error in entry.get("error_detail") or []]
    return lines[-count:]


def say(text: str) -> None:
    print(f"{datetime.now().astimezone():%H:%M:%S}  {text}", flush=True)


# --- the commands -------------------------------------------------------------------------------------------------------------------------


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
            state, _ = start("up", free_port(int(os.environ.get("COLDSTORE_AIRFLOW_PORT") or 8080)))
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


def utc(text: str) -> str:
    """A time as the DAG takes it, in UTC."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise Problem(f"{text!r} is not a time with an offset; write one like 2025-11-08T16:00:00Z.")


def run_alone(as_of: str) -> int:
    say("Airflow is starting …")
    state, api = start("run", free_port())
    try:
        was_paused = api.dag()["is_paused"]
        if was_paused:
            api.pause(False)  # nothing but our own run can start: the timetable is off
        run_id = api.trigger(as_of)
        say(f"run {run_id} as of {as_of or 'now'}; to watch it: {api.address} (user {USER}, password in {HOME / 'passwords.json'})")
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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start Airflow in the background")
    commands.add_parser("down", help="end it")
    one_pass = commands.add_parser("run", help="take one pass through Airflow")
    clock = "the run's clock, like 2025-11-08T16:00:00Z (default: COLDSTORE_AS_OF, else now)"
    one_pass.add_argument("--as-of", default=os.environ.get("COLDSTORE_AS_OF", ""), help=clock)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended here, too
    try:
        return {"up": up, "down": down}[given.command]() if given.command != "run" else run(given.as_of)
    except Problem as problem:
        print(f"airflow: {problem}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"airflow: Airflow does not answer as it should ({error}): see the logs in {LOGS}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
