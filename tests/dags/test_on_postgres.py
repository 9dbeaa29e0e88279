"""The pipeline through the real scheduler, its metadata in Postgres: two runs at once, drivers killed under both, and secrets in every setting.

It happens once, in `story`; each test looks at one side of what it left behind.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from include.settings import PROJECT
from scripts.airflow_server.api import Api
from scripts.airflow_server.environment import AIRFLOW, environment
from scripts.airflow_server.following import ENDED
from scripts.airflow_server.starting import start
from scripts.ports import free_port
from scripts.processes import stat
from tests.dags.secret_search import files, found, open_to_others
from tests.delivery.receiver import Receiver
from tests.servers.postgres import Postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
SPARK = PROJECT / ".local" / "spark" / "bin" / "python"
JOBS = ["ingest_readings", "derive_tables", "check_quality", "publish_tables", "deliver_alerts"]
BOOKS = ["lines_read", "readings_new", "duplicates", "quarantined", "blank"]
PRIVATE = {"airflow.cfg", "passwords.json", "secrets.json", "server.json"}
PATIENCE_S = 600  # for one step; a busy machine takes minutes where an idle one takes seconds


@dataclass(frozen=True)
class Attempt:
    run: str
    task: str
    number: int
    state: str
    started: datetime
    ended: datetime


@dataclass
class Story:
    """What happened, written down while it did."""

    home: Path
    lake: Path
    secrets: dict[str, str] = field(repr=False)
    runs: list[str] = field(default_factory=list)  # in the order they were asked for
    spans: dict[str, tuple[datetime, datetime, datetime]] = field(default_factory=dict)  # run: asked for, started, ended
    attempts: list[Attempt] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    sample: list[list[int]] = field(default_factory=list)  # what the simulator says it wrote, for each run
    books: list[dict[str, Any]] = field(default_factory=list)
    outlived: dict[str, list[str]] = field(default_factory=dict)  # killed task: what of its attempt was still there when the next one came
    commands: set[str] = field(default_factory=set)  # command lines of everything that ran
    drivers: dict[str, bytes] = field(default_factory=dict, repr=False)  # job: its driver's environment
    spark_after_the_runs: list[str] = field(default_factory=list)
    left_after_down: list[str] = field(default_factory=list)
    health: int = -1
    health_after_down: int = -1
    rendered: str = ""
    connection: str = ""
    database: str = field(default="", repr=False)
    events: int = 0

    # --- looking around ---------------------------------------------------------------------------------------------------------------

    def processes(self) -> dict[int, str]:
        """Everything alive that was started from here, by the home in its environment: whatever session or parent it has by now."""
        alive = {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with suppress(OSError):
                is_ours = f"COLDSTORE_AIRFLOW_HOME={self.home}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()
                if is_ours and pid != os.getpid() and stat(pid)[:1] not in ([], ["Z"]):
                    alive[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        self.commands |= set(alive.values())
        return alive

    def spark(self) -> list[str]:
        """JVMs, drivers and their Python workers."""
        return [command for command in self.processes().values() if re.match(r"\S*java ", command) or ".local/spark/" in command]

    def running(self, job: str) -> set[int]:
        return {pid for pid, command in self.processes().items() if f"spark_jobs/{job}.py" in command}

    def driver(self, job: str, run: str) -> int | None:
        """The driver that has the lake now, if it is this one."""
        with suppress(OSError, ValueError):
            lease = json.loads((self.lake / "control" / "lease.json").read_text(encoding="utf-8"))
            if lease["holder"] == f"{job} of {run}" and not lease.get("is_given_back") and lease["pid"] in self.processes():
                return int(lease["pid"])
        return None

    def wait(self, until: Callable[[], Any], what: str, pause: float = 0.05) -> Any:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with suppress(OSError):  # a busy server may not answer in time
                if value := until():
                    return value
            time.sleep(pause)
        raise AssertionError(f"waited in vain for: {what}")

    # --- taking part ------------------------------------------------------------------------------------------------------------------

    def sends(self, hours_from: str) -> str:
        """The sample's next hour arrives; its end."""
        command = [str(SPARK), "-m", "simulator", "--lake", str(self.lake), "--stores", "2", "--sensors", "4", "--hours", "1"]
        said = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
        assert f"from {hours_from}" in said
        books = re.search(r"(\d+) lines = (\d+) readings \+ (\d+) duplicates \+ (\d+) for quarantine \+ (\d+) blank", said)
        assert books is not None, said
        self.sample.append([int(number) for number in books.groups()])
        return said.rsplit("as_of=", 1)[1].strip()

    def kills(self, job: str, run: str, is_jvm: bool, when: Callable[[], Any] = lambda: True) -> None:
        """SIGKILL for the driver's Python, or its JVM, in the middle of its work; then what of it is left when the task is tried again."""
        driver = self.wait(lambda: when() and self.driver(job, run), f"{job} of {run} at work")
        self.drivers[job] = Path(f"/proc/{driver}/environ").read_bytes()
        jvm = int(stat(driver)[1])
        assert self.processes()[jvm].split(" ")[0].endswith("java")
        os.kill(jvm if is_jvm else driver, signal.SIGKILL)
        again = self.wait(lambda: self.running(job) - {jvm, driver}, f"{job} again", pause=0.3)
        self.outlived[job] = [command for pid, command in self.processes().items() if pid in {jvm, driver} - again]

    def follows(self, api: Api, run: str) -> None:
        def ended() -> str:
            self.processes()  # so that no command line goes unseen
            state = api.run_state(run)
            return state if state in ENDED else ""

        self.states[run] = self.wait(ended, f"{run} to end", pause=0.5)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("on_postgres")
    postgres, receiver = Postgres(), Receiver()
    told = {name: secrets.token_hex(20) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "COLDSTORE_WEBHOOK_SECRET")}
    token = receiver.url.rsplit("/", 1)[1]
    it = Story(folder / "airflow_home", folder / "lake", {**told, "the Postgres password": postgres.password, "the webhook's token": token})
    with pytest.MonkeyPatch.context() as settings:
        for name, value in {
            **told,
            "COLDSTORE_AIRFLOW_HOME": str(it.home),
            "COLDSTORE_LAKE": str(it.lake),
            "COLDSTORE_WEBHOOK_URL": receiver.url,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": postgres.address,
        }.items():
            settings.setenv(name, value)
        try:
            postgres.start()
            happens(it, postgres, receiver)
            yield it
        finally:
            for pid in it.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            postgres.stop()
            receiver.close()


def happens(it: Story, postgres: Postgres, receiver: Receiver) -> None:
    first = it.sends("2025-11-08T06:00:00Z")
    # as a container does; `start` finds it done
    subprocess.run(["bash", "docker/prepare_airflow.sh"], cwd=PROJECT, env=environment(), check=True)
    _, api = start("run", free_port())
    own = [json.loads((it.home / name).read_text(encoding="utf-8")) for name in ("secrets.json", "passwords.json")]
    it.secrets |= {f"Airflow's own {name}": value for kept in own for name, value in kept.items()}

    it.runs = [api.trigger(first), api.trigger("2025-11-08T08:00:00Z")]
    it.kills("ingest_readings", it.runs[0], is_jvm=True, when=(it.lake / "tables" / "readings").exists)
    it.wait(lambda: tasks(api, it.runs[0])["ingest_readings"] == "success", "the first hour in the lake", pause=0.5)
    assert it.sends("2025-11-08T07:00:00Z") == "2025-11-08T08:00:00Z"
    it.follows(api, it.runs[0])
    it.kills("derive_tables", it.runs[1], is_jvm=False)
    it.follows(api, it.runs[1])

    until = time.monotonic() + 20
    while it.spark() and time.monotonic() < until:  # the last one may be about to end
        time.sleep(0.2)
    it.spark_after_the_runs = it.spark()
    shown = subprocess.run(
        [AIRFLOW, "connections", "get", "coldstore_spark", "-o", "json"], env=environment(), capture_output=True, text=True, check=True
    )
    it.connection = shown.stdout + shown.stderr
    it.health = well(api)
    subprocess.run([sys.executable, "-m", "scripts.airflow_server", "down"], cwd=PROJECT, check=True)
    it.health_after_down = well(api)
    it.left_after_down = list(it.processes().values())
    it.events = len(receiver.taken)
    look_up(it, postgres)


def well(api: Api) -> int:
    """What a container's health check says."""
    command = [
        sys.executable,
        "docker/healthy.py",
        "http",
        f"{api.address}/api/v2/monitor/health",
        "metadatabase",
        "scheduler",
        "dag_processor",
    ]
    return subprocess.run(command, cwd=PROJECT, check=False, capture_output=True).returncode


def tasks(api: Api, run: str) -> dict[str, str]:
    return {task["task_id"]: task["state"] for task in api.tasks(run)}


def look_up(it: Story, postgres: Postgres) -> None:
    """What Airflow's database and the lake say about it."""
    columns = "run_id, task_id, try_number, state, start_date, end_date"
    connection = psycopg2.connect(postgres.address.replace("+psycopg2", ""))
    with connection, connection.cursor() as cursor:
        cursor.execute(f"select {columns} from task_instance union all select {columns} from task_instance_history")
        it.attempts = sorted((Attempt(*row) for row in cursor.fetchall()), key=lambda attempt: attempt.started)
        cursor.execute("select run_id, queued_at, start_date, end_date from dag_run")
        it.spans = {run: span for run, *span in cursor.fetchall()}  # type: ignore[misc]
        cursor.execute("select string_agg(rendered_fields::text, '\n') from rendered_task_instance_fields")
        it.rendered = str(cursor.fetchone()[0])
    connection.close()
    it.database = postgres.dump()
    program = f"""
import json, sys
from spark_jobs.runtime.small_tables import SmallTables
print(json.dumps(SmallTables(sys.argv[1]).rows("runs", ["run_id", "status", {", ".join(map(repr, BOOKS))}])))
"""
    read = subprocess.run([str(SPARK), "-c", program, str(it.lake)], cwd=PROJECT, capture_output=True, text=True, check=True)
    it.books = sorted(
        json.loads(read.stdout.splitlines()[-1]), key=lambda row: it.runs.index(row["run_id"]) if row["run_id"] in it.runs else 9
    )


# --- queue --------------------------------------------------------------------------------------------------------------------------------


def test_of_two_runs_asked_for_at_once_the_second_waits_for_the_first(story: Story) -> None:
    first, second = (story.spans[run] for run in story.runs)
    assert second[0] < first[2], "the second was not asked for while the first was under way"
    assert second[1] >= first[2]


def test_never_do_two_tasks_run_at_the_same_time(story: Story) -> None:
    assert len(story.attempts) == 2 * len(JOBS) + 2
    overlaps = [(before, after) for before, after in pairwise(story.attempts) if after.started < before.ended]
    assert overlaps == []


# --- retry --------------------------------------------------------------------------------------------------------------------------------


def test_a_task_whose_driver_was_killed_is_tried_again_and_both_runs_succeed(story: Story) -> None:
    assert list(story.states.values()) == ["success", "success"]
    again = [
        (attempt.run, attempt.task, attempt.number, attempt.state)
        for attempt in story.attempts
        if attempt.state != "success" or attempt.number > 1
    ]
    first, second = story.runs
    assert again == [
        (first, "ingest_readings", 1, "failed"),
        (first, "ingest_readings", 2, "success"),
        (second, "derive_tables", 1, "failed"),
        (second, "derive_tables", 2, "success"),
    ]


def test_the_books_are_those_of_the_sample_as_if_nothing_had_died(story: Story) -> None:
    assert [(row["run_id"], row["status"]) for row in story.books] == [(run, "published") for run in story.runs]
    assert [[row[name] for name in BOOKS] for row in story.books] == story.sample


@pytest.mark.parametrize("job", ["ingest_readings", "derive_tables"])
def test_nothing_of_a_killed_driver_is_left_when_its_task_is_tried_again(story: Story, job: str) -> None:
    assert story.outlived[job] == []


# --- no process left behind ---------------------------------------------------------------------------------------------------------------


def test_no_jvm_and_no_driver_is_left_after_the_runs(story: Story) -> None:
    assert any(" org.apache.spark.deploy.SparkSubmit " in command for command in story.commands), "none was ever seen"
    assert story.spark_after_the_runs == []


def test_nothing_at_all_is_left_after_down(story: Story) -> None:
    assert story.left_after_down == []


def test_the_containers_health_check_tells_a_running_airflow_from_one_that_has_ended(story: Story) -> None:
    assert (story.health, story.health_after_down) == (0, 1)


# --- secrets ------------------------------------------------------------------------------------------------------------------------------


def test_no_secret_is_in_a_log(story: Story) -> None:
    logs = files(story.home / "logs")
    assert sum("/attempt=" in name and b"Spark-Submit cmd" in text for name, text in logs) == 2 * len(JOBS) + 2
    assert found(story.secrets, logs) == []


def test_no_secret_is_in_a_rendered_template(story: Story) -> None:
    assert story.rendered.count("COLDSTORE_AS_OF") >= 2 * len(JOBS)
    assert found(story.secrets, [("rendered fields", story.rendered.encode())]) == []


def test_no_secret_is_anywhere_in_airflows_database(story: Story) -> None:
    assert all(run in story.database for run in story.runs)
    assert found(story.secrets, [("the database", story.database.encode())]) == []


def test_no_secret_is_in_the_connection_as_airflow_prints_it(story: Story) -> None:
    assert "local[*]" in story.connection
    assert found(story.secrets, [("the connection", story.connection.encode())]) == []


def test_no_secret_is_in_a_command_line(story: Story) -> None:
    assert found(story.secrets, [(command[:80], command.encode()) for command in story.commands]) == []


def test_no_secret_is_in_the_lake(story: Story) -> None:
    kept = files(story.lake)
    assert sum("/_delta_log/" in name for name, _ in kept) > 10
    assert story.events > 0, "no alert was sent, so the webhook's secret was never used"
    assert found(story.secrets, kept) == []


def test_files_that_others_may_read_hold_no_secret(story: Story) -> None:
    holding = {line.split(":")[0] for line in found(story.secrets, files(story.home))}
    assert holding <= PRIVATE
    assert found(story.secrets, open_to_others(story.home)) == []
    assert (
        found(
            story.secrets, [(path.name, path.read_bytes()) for path in (PROJECT / ".local").iterdir() if path.suffix in (".conf", ".log")]
        )
        == []
    )


def test_a_job_does_not_get_what_is_airflows_alone(story: Story) -> None:
    """Keys to the lake and the webhook's secret reach a driver by its environment; Airflow's database and its own secrets are none of its affair."""
    needed = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "COLDSTORE_WEBHOOK_SECRET", "the webhook's token"}
    for job, text in story.drivers.items():
        assert set(found(story.secrets, [(job, text)])) == {f"{job}: {name}" for name in needed}
