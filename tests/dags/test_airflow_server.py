"""What `make up`, `make down` and `make run` stand on: private secrets, loopback only, and no process left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from include.settings import PROJECT
from scripts.airflow_server import servers
from scripts.airflow_server.commands import cleared, down, run, utc
from scripts.airflow_server.configuration import configuration, prepare
from scripts.airflow_server.environment import environment, settings
from scripts.airflow_server.following import follow
from scripts.airflow_server.home import lock
from scripts.airflow_server.metadata import unfinished_runs
from scripts.airflow_server.servers import COMPONENTS, stop
from scripts.airflow_server.starting import wait_for
from scripts.ports import free_port
from scripts.problem import Problem
from scripts.processes import State, boot, born, members, stat

LOOPBACK = "127.0.0.1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, where the script takes everything from and writes everything to."""
    home = tmp_path / "airflow_home"
    monkeypatch.setenv("COLDSTORE_AIRFLOW_HOME", str(home))
    return home


def prepared(home: Path) -> Path:
    before = os.umask(0)  # as careless as can be
    try:
        prepare(8080, is_scheduling=True)
    finally:
        os.umask(before)
    return home


# --- secrets ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["secrets.json", "passwords.json", "airflow.cfg"])
def test_what_holds_a_secret_is_for_its_owner_only(home: Path, name: str) -> None:
    assert (prepared(home) / name).stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_file_that_was_opened_up_is_closed_again(home: Path) -> None:
    for name in ("secrets.json", "passwords.json", "airflow.cfg"):
        (prepared(home) / name).chmod(0o644)
    prepared(home)
    assert {(home / name).stat().st_mode & 0o777 for name in ("secrets.json", "passwords.json", "airflow.cfg")} == {0o600}


def test_secrets_are_made_once_and_differ_between_installations(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def secrets(place: Path) -> set[str]:
        monkeypatch.setenv("COLDSTORE_AIRFLOW_HOME", str(place))
        texts = [(prepared(place) / name).read_text(encoding="utf-8") for name in ("secrets.json", "passwords.json")]
        return {value for text in texts for value in json.loads(text).values()}

    first, again, other = secrets(home), secrets(home), secrets(tmp_path / "other")
    assert first == again
    assert not first & other
    assert len(first) == 4
    assert min(map(len, first)) >= 20


def test_each_user_has_a_role_and_a_password_that_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = json.loads((prepared(home) / "passwords.json").read_text())
    monkeypatch.setenv("COLDSTORE_AIRFLOW_USERS", "ada:user, store-7:viewer")
    then = json.loads((prepared(home) / "passwords.json").read_text())
    assert list(then) == ["admin", "ada", "store-7"] and len(set(then.values())) == 3
    assert first == {"admin": then["admin"]}
    assert configuration_of(home)["core"]["simple_auth_manager_users"] == "admin:admin,ada:user,store-7:viewer"


@pytest.mark.parametrize("wrong", ["ada", "ada:boss", ":viewer", "a b:viewer", "admin:viewer"])
def test_a_user_without_a_role_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("COLDSTORE_AIRFLOW_USERS", wrong)
    with pytest.raises(Problem, match="COLDSTORE_AIRFLOW_USERS"):
        prepared(home)


# --- configuration ------------------------------------------------------------------------------------------------------------------------


def test_airflow_itself_reads_a_configuration_that_is_closed_to_the_outside(home: Path) -> None:
    program = """
import json
from airflow.configuration import conf
asked = [("api", "host"), ("api", "base_url"), ("core", "execution_api_server_url"), ("core", "simple_auth_manager_all_admins"),
         ("core", "load_examples"), ("scheduler", "enable_health_check"), ("core", "executor"), ("api", "workers")]
known = json.load(open(f"{conf.get('core', 'simple_auth_manager_passwords_file').rsplit('/', 1)[0]}/secrets.json"))
kept = [conf.get("core", "fernet_key"), conf.get("api_auth", "jwt_secret"), conf.get("api", "secret_key")]
values = [conf.get(*name) for name in asked]
print(json.dumps({"values": values, "secrets": kept == list(known.values()), "parallelism": conf.getint("core", "parallelism")}))
"""
    env = {**os.environ, "AIRFLOW_HOME": str(prepared(home))}
    del env["AIRFLOW__CORE__LOAD_EXAMPLES"]
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    address = f"http://{LOOPBACK}:8080"
    assert seen["values"] == [LOOPBACK, address, f"{address}/execution/", "False", "False", "False", "LocalExecutor", "1"]
    assert seen["secrets"]
    assert seen["parallelism"] <= 4


def test_with_a_database_of_ones_own_there_are_more_workers_and_its_password_is_written_down_nowhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = configuration_of(home)
    assert (own["core"]["parallelism"], own["database"]["sql_alchemy_conn"]) == ("2", f"sqlite:///{home}/airflow.db")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql+psycopg2://airflow:a-password@127.0.0.1/airflow")
    given = configuration_of(home)
    assert (given["core"]["executor"], given["core"]["parallelism"]) == ("LocalExecutor", "4")
    assert not given.has_option("database", "sql_alchemy_conn")
    assert "a-password" not in "".join(path.read_text(encoding="utf-8") for path in home.rglob("*") if path.is_file())
    assert "a-password" not in repr(settings())


def test_a_database_that_does_not_answer_is_named_without_its_password(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"postgresql+psycopg2://airflow:a-password@127.0.0.1:{free_port()}/airflow")
    with pytest.raises(Problem, match=r"SQL_ALCHEMY_CONN\) does not answer") as problem:
        unfinished_runs()
    assert "a-password" not in str(problem.value)


@pytest.mark.parametrize("address", ["postgresql+psycopg2:/airflow:a-password@host", "nothing+such://airflow:a-password@host/airflow"])
def test_an_address_that_is_none_is_refused_without_its_password(home: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", address)
    with pytest.raises(Problem, match="SQL_ALCHEMY_CONN") as problem:
        unfinished_runs()
    assert "a-password" not in str(problem.value)


def configuration_of(home: Path) -> ConfigParser:
    read = ConfigParser(interpolation=None)
    read.read(prepared(home) / "airflow.cfg", encoding="utf-8")
    return read


def test_no_server_is_started_that_listens_elsewhere() -> None:
    assert set(COMPONENTS) == {"api-server", "dag-processor", "scheduler"}
    assert COMPONENTS["api-server"][1:] == ["--host", LOOPBACK]
    assert "--skip-serve-logs" in COMPONENTS["scheduler"]  # its log server would listen on every address


def test_the_timetable_is_off_where_one_pass_was_asked_for(home: Path) -> None:
    home.mkdir()
    asked = [configuration(8080, is_scheduling)["scheduler"]["use_job_schedule"] for is_scheduling in (True, False)]
    assert asked == ["True", "False"]


def test_the_servers_find_spark_submit_and_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_COLDSTORE_SPARK", raising=False)
    given = environment()
    assert given["PATH"].split(os.pathsep)[0] == f"{PROJECT}/.local/spark/bin"
    assert json.loads(given["AIRFLOW_CONN_COLDSTORE_SPARK"])["host"] == "local[*]"
    assert LOOPBACK in given["NO_PROXY"].split(",")
    monkeypatch.setenv("COLDSTORE_MASTER", "spark://127.0.0.1:7077")
    assert json.loads(environment()["AIRFLOW_CONN_COLDSTORE_SPARK"])["host"] == "spark://127.0.0.1:7077"
    monkeypatch.setenv("AIRFLOW_CONN_COLDSTORE_SPARK", "spark://a-cluster:7077")
    assert environment()["AIRFLOW_CONN_COLDSTORE_SPARK"] == "spark://a-cluster:7077"


# --- processes ----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def family(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[State, list[int]]]:
    """A server that ignores SIGTERM, and a task of it in a process group of its own."""
    home.mkdir()
    monkeypatch.setattr(servers, "GRACE_SECONDS", 1)
    program = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen(["sleep", "60"], process_group=0).pid, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    task = int(process.stdout.readline())
    state = {
        "boot": boot(),
        "mode": "up",
        "port": 1,
        "processes": {"scheduler": {"pid": process.pid, "born": born(process.pid)}},
    }
    yield state, [process.pid, task]
    for pid in [process.pid, task]:
        if stat(pid)[:1] not in ([], ["Z"]):
            os.kill(pid, 9)
    process.wait()
    process.stdout.close()


def test_stop_ends_the_whole_session(family: tuple[State, list[int]]) -> None:
    state, pids = family
    assert sorted(members(state)) == sorted(pids)
    stop(state)
    assert members(state) == []
    assert [pid for pid in pids if stat(pid)[:1] not in ([], ["Z"])] == []


@pytest.mark.parametrize(
    "stale", [{"boot": "another"}, {"processes": {"scheduler": {"pid": 0, "born": "1"}}}], ids=["before a reboot", "a number used again"]
)
def test_a_strangers_process_is_left_alone(family: tuple[State, list[int]], stale: dict[str, Any]) -> None:
    state, pids = family
    if "processes" in stale:
        stale["processes"]["scheduler"]["pid"] = pids[0]
    stop({**state, **stale})
    assert stat(pids[0])[0] != "Z"


@pytest.mark.parametrize("mode", ["up", "run"])
def test_what_is_left_of_a_broken_start_is_cleared_away(family: tuple[State, list[int]], mode: str) -> None:
    state, pids = family
    assert cleared({**state, "mode": "up"}) is not None
    if mode == "up":
        os.kill(pids[0], 9)
        time.sleep(0.2)
    assert cleared({**state, "mode": mode}) is None
    assert members(state) == []


def test_down_says_so_where_nothing_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert down() == 0
    assert capsys.readouterr().out == "Airflow is not running.\n"


def test_one_command_at_a_time(home: Path) -> None:
    with lock(), pytest.raises(Problem, match="under way"), lock():
        pass


def test_a_taken_port_is_named() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken, pytest.raises(Problem, match=f"port {taken.getsockname()[1]} is taken"):
        free_port(taken.getsockname()[1])


def test_a_server_that_dies_while_it_starts_is_named(family: tuple[State, list[int]]) -> None:
    state, pids = family
    os.kill(pids[0], 9)
    time.sleep(0.2)
    with pytest.raises(Problem, match="scheduler ended by itself"):
        wait_for(lambda: False, state)


# --- one pass -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["now", "2025-11-08", "2025-11-08T16:00:00", "2025-02-30T16:00:00Z"])
def test_a_time_without_offset_is_refused_before_anything_starts(text: str) -> None:
    with pytest.raises(Problem, match="write one like"):
        run(text)


def test_a_time_is_passed_on_in_utc() -> None:
    assert [utc("2025-11-08T17:00:00+01:00"), utc(" 2025-11-08T16:00Z ")] == ["2025-11-08T16:00:00Z"] * 2


def a_task(task_id: str, state: str | None, attempt: int = 1, took: float | None = None) -> dict[str, Any]:
    return {"task_id": task_id, "state": state, "try_number": attempt, "duration": took, "start_date": "2025-11-08T16:00:00Z"}


class ApiOf:
    """An API that tells one stage of a run after the other; an exception is a moment in which it does not answer."""

    def __init__(self, *stages: tuple[str, list[dict[str, Any]]] | Exception) -> None:
        self._stages = list(stages)

    def run_state(self, _run_id: str) -> str:
        stage = self._stages.pop(0)
        if isinstance(stage, Exception):
            raise stage
        self._tasks = stage[1]
        return stage[0]

    def tasks(self, _run_id: str) -> list[dict[str, Any]]:
        return self._tasks


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)


@pytest.mark.usefixtures("no_waiting", "home")
def test_a_line_for_each_change_of_state(capsys: pytest.CaptureFixture[str]) -> None:
    api = ApiOf(
        ("queued", [a_task("ingest_readings", None, attempt=0)]),
        ("running", [a_task("ingest_readings", "queued")]),
        ("running", [a_task("ingest_readings", "running")]),
        URLError("a moment without an answer"),
        ("running", [a_task("ingest_readings", "running")]),
        ("running", [a_task("ingest_readings", "up_for_retry", took=3.2)]),
        ("running", [a_task("ingest_readings", "running", attempt=2)]),
        ("success", [a_task("ingest_readings", "success", attempt=2, took=4.0)]),
    )
    assert follow(api, "run-1") is True
    lines = [line.split("  ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "ingest_readings  running",
        "ingest_readings  up for retry after 3 s",
        "ingest_readings  running, attempt 2",
        "ingest_readings  success after 4 s, attempt 2",
    ]


@pytest.mark.usefixtures("no_waiting")
def test_a_failed_run_shows_the_end_of_the_failed_tasks_log(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = home / "logs" / "dag_id=coldstore_pipeline" / "run_id=run-1" / "task_id=check_quality" / "attempt=1.log"
    log.parent.mkdir(parents=True)
    error = {"exc_type": "AirflowException", "exc_value": "Cannot execute: spark-submit. Error code is: 3.\nLast output:\n…"}
    events = [{"event": f"line {number}"} for number in range(40)]
    events += [{"event": "run-1 is held"}, {"event": "Task failed", "error_detail": [error]}, {"event": "::endgroup::"}]
    log.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")

    assert follow(ApiOf(("failed", [a_task("check_quality", "failed"), a_task("publish_tables", "upstream_failed")])), "run-1") is False
    shown = capsys.readouterr().out
    assert f"check_quality failed. The end of its log ({log}):" in shown
    end = ["run-1 is held", "Task failed", "AirflowException: Cannot execute: spark-submit. Error code is: 3."]
    assert shown.splitlines()[-30:] == [f"    {line}" for line in [*(f"line {number}" for number in range(13, 40)), *end]]


@pytest.mark.usefixtures("no_waiting", "home")
def test_a_server_that_answers_no_more_is_a_problem() -> None:
    with pytest.raises(Problem, match="no longer answers"):
        follow(ApiOf(*[URLError("gone")] * 40), "run-1")
