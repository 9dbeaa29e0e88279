"""The policy for our DAGs, as tests, and what the jobs of a run get told."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable
from airflow.sdk.api.datamodels._generated import DagRun
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    ParamValidationError,
)

from tests.dags.runs import SCHEDULED, a_run

PROJECT = Path(__file__).resolve().parents[2]
DAG_FILES = sorted((PROJECT / "dags").glob("*.py"))
JOBS = ["ingest_readings", "derive_tables", "check_quality", "publish_tables", "deliver_alerts"]


@pytest.fixture
def dag(dags: DagBag) -> DAG:
    return dags.dags["coldstore_pipeline"]


@pytest.fixture(params=["coldstore_pipeline", "rebuild_day", "watch_freshness"])
def each_dag(dags: DagBag, request: pytest.FixtureRequest) -> DAG:
    return dags.dags[request.param]


def test_every_dag_file_is_read_without_errors(dags: DagBag) -> None:
    assert dags.import_errors == {}
    assert sorted(dags.dags) == ["coldstore_pipeline", "rebuild_day", "watch_freshness"]


def test_reading_the_dag_does_no_work() -> None:
    """Neither process nor connection nor file is made, and neither Spark nor Great Expectations is imported."""
    program = """
import sys
import airflow.sdk, airflow.providers.apache.spark.operators.spark_submit, airflow.providers.standard.operators.hitl, airflow.sdk.exceptions
from airflow.sdk import DAG, BaseHook, CronDataIntervalTimetable, Param
work = []
def note(event, args):
    is_write = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+") and ".pyc" not in str(args[0])
    if is_write or event in ("subprocess.Popen", "os.system", "os.fork", "socket.connect", "sqlite3.connect", "os.mkdir"):
        work.append((event, args))
sys.addaudithook(note)
import dags.coldstore_pipeline, dags.rebuild_day
assert not work, work
assert not {"pyspark", "great_expectations", "delta", "deltalake", "pyarrow"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", DAG_FILES, ids=lambda file: file.name)
def test_a_dag_imports_airflow_ours_that_is_light_and_the_standard_library_only(file: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    assert imported - sys.stdlib_module_names <= {"airflow", "include", "dags", "published", "webhook"}


@pytest.mark.parametrize("file", DAG_FILES, ids=lambda file: file.name)
def test_no_graph_is_shaped_by_the_environment(file: Path) -> None:
    """Nobody asks it: a task may only add to it, for the program that it starts."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)]
    added_to = {id(node.value) for node in nodes if node.attr == "update"}
    assert not {node.attr for node in nodes if id(node) not in added_to} & {"environ", "getenv"}


def test_the_manual_has_its_four_parts(each_dag: DAG) -> None:
    parts = [line.removeprefix("### ") for line in str(each_dag.doc_md).splitlines() if line.startswith("### ")]
    assert parts == ["What", "When", "Inputs and outputs", "How to recover"]


def test_runs_are_alone_and_missed_ones_are_not_caught_up(each_dag: DAG) -> None:
    assert isinstance(each_dag.timetable, CronDataIntervalTimetable) and str(each_dag.timetable.timezone) == "UTC"
    assert (each_dag.max_active_runs, each_dag.catchup, each_dag.is_paused_upon_creation) == (1, False, False)
    assert each_dag.tags
    assert each_dag.owner == "coldstore"


def test_a_run_covers_ten_minutes(dag: DAG) -> None:
    assert dag.timetable.expression == "*/10 * * * *"  # type: ignore[attr-defined]


def test_the_jobs_run_in_the_order_of_a_pass(dag: DAG) -> None:
    assert [task.task_id for task in dag.topological_sort()] == JOBS
    assert [sorted(dag.get_task(job).downstream_task_ids) for job in JOBS] == [[job] for job in JOBS[1:]] + [[]]


@pytest.mark.parametrize("job", JOBS)
def test_a_task_is_a_job_of_the_same_name_in_the_one_writers_slot(dag: DAG, job: str) -> None:
    task = dag.get_task(job)
    assert task.application == str(PROJECT / "spark_jobs" / f"{job}.py")
    assert (PROJECT / "spark_jobs" / f"{job}.py").is_file()
    assert (task.pool, task.pool_slots) == ("lake_writer", 1)
    assert task.properties_file == str(PROJECT / ".local" / "spark-defaults.conf")
    assert task.doc_md
    assert task.execution_timeout == timedelta(hours=1)


@pytest.mark.parametrize(
    ("job", "retries"),
    [("ingest_readings", 2), ("derive_tables", 2), ("check_quality", 0), ("publish_tables", 2), ("deliver_alerts", 1)],
    ids=lambda value: str(value),
)
def test_what_may_pass_is_tried_again_and_a_held_run_is_not(dag: DAG, job: str, retries: int) -> None:
    task = dag.get_task(job)
    assert (task.retries, task.retry_delay, task.retry_exponential_backoff) == (retries, timedelta(seconds=30), 2)


# --- as_of --------------------------------------------------------------------------------------------------------------------------------


def environment(dag: DAG, run: DagRun, job: str = "ingest_readings") -> dict[str, str]:
    """What a job finds in its environment, rendered as the task runner does it."""
    task: BaseOperator = dag.get_task(job).prepare_for_execution()
    params = process_params(dag, task, run.conf, suppress_exception=False)
    task.render_template_fields({"dag_run": run, "run_id": run.run_id, "params": params})  # type: ignore[typeddict-item]
    return dict(task.env_vars)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("run", "as_of"),
    [
        pytest.param(a_run(**SCHEDULED), "2025-11-08T16:00:00Z", id="a scheduled run: the end of its interval"),
        pytest.param(a_run(), "2025-11-08T16:03:12.345Z", id="a manual run: when it was due"),
        pytest.param(a_run(conf={"as_of": ""}), "2025-11-08T16:03:12.345Z", id="an empty as_of is none"),
        pytest.param(a_run(conf={"as_of": None}), "2025-11-08T16:03:12.345Z", id="a null as_of is none"),
        pytest.param(a_run(conf={"as_of": "2025-11-07T09:00:00Z"}), "2025-11-07T09:00:00Z", id="a manual run with as_of"),
        pytest.param(a_run(conf={"as_of": "2025-11-07T09:00:00.250+01:00"}), "2025-11-07T08:00:00.250Z", id="an offset is turned into UTC"),
        pytest.param(a_run(**SCHEDULED, conf={"as_of": "2025-11-07T09:00Z"}), "2025-11-07T09:00:00Z", id="as_of goes before the interval"),
    ],
)
def test_the_clock_of_a_run(dag: DAG, run: DagRun, as_of: str) -> None:
    for job in JOBS:
        assert environment(dag, run, job)["COLDSTORE_AS_OF"] == as_of


@pytest.mark.parametrize("as_of", ["now", "2025-11-08", "2025-11-08T16:00:00", "2025-13-08T16:00:00Z", "2025-11-08T24:10:00Z", 5])
def test_what_is_no_time_with_an_offset_is_refused_when_the_run_is_triggered(dag: DAG, as_of: object) -> None:
    with pytest.raises(ParamValidationError, match="as_of"):
        environment(dag, a_run(conf={"as_of": as_of}))


def test_a_day_that_does_not_exist_fails_the_task_without_another_try(dag: DAG) -> None:
    with pytest.raises(AirflowFailException, match="2025-02-30"):
        environment(dag, a_run(conf={"as_of": "2025-02-30T16:00:00Z"}))


def test_a_job_gets_its_run_its_lake_and_the_projects_own_spark(dag: DAG, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLDSTORE_LAKE", str(tmp_path))
    spark = PROJECT / ".local" / "spark"
    assert environment(dag, a_run(**SCHEDULED)) == {
        "PYTHONPATH": str(PROJECT),
        "PYSPARK_PYTHON": f"{spark}/bin/python",
        "PYSPARK_DRIVER_PYTHON": f"{spark}/bin/python",
        "SPARK_HOME": f"{spark}/lib/python3.11/site-packages/pyspark",
        "COLDSTORE_LAKE": str(tmp_path),
        "COLDSTORE_LANDING": f"{tmp_path}/landing",
        "COLDSTORE_RUN_ID": "scheduled__2025-11-08T16:00:00",
        "COLDSTORE_AS_OF": "2025-11-08T16:00:00Z",
    }


# --- where Spark runs ---------------------------------------------------------------------------------------------------------------------


def test_spark_submit_is_called_as_the_connection_says(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_COLDSTORE_SPARK", '{"conn_type": "spark", "host": "local[*]", "extra": {"spark-binary": "spark-submit"}}'
    )
    task: Any = dag.get_task("derive_tables").prepare_for_execution()
    task.pre_execute({})
    command = task._get_hook()._build_spark_submit_command(task.application)
    assert command == [
        *("spark-submit", "--master", "local[*]"),
        *("--properties-file", f"{PROJECT}/.local/spark-defaults.conf"),
        *("--name", "derive_tables", f"{PROJECT}/spark_jobs/derive_tables.py"),
    ]


def a_connection(monkeypatch: pytest.MonkeyPatch, master: str, **extra: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_COLDSTORE_SPARK", json.dumps({"conn_type": "spark", "host": master, "extra": extra}))
    monkeypatch.setattr(
        "airflow.providers.apache.spark.hooks.spark_submit.kube_client", object(), raising=False
    )  # as where its provider is installed


@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "yarn", "k8s://https://kubernetes.example.com:6443"])
def test_a_job_on_a_cluster_has_its_master_and_its_environment(dag: DAG, monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    a_connection(monkeypatch, master)
    monkeypatch.setenv("COLDSTORE_AS_OF", "")  # so that it is put back
    run = a_run(**SCHEDULED)
    task: Any = dag.get_task("derive_tables").prepare_for_execution()
    params = process_params(dag, task, run.conf, suppress_exception=False)
    context: Any = {"dag_run": run, "run_id": run.run_id, "params": params, "task": task}
    task.render_template_fields(context)
    with mock.patch.dict(os.environ):
        task._pre_execute_hook(context)
        hook = task._get_hook()
        command = hook._build_spark_submit_command(task.application)
        found = {**os.environ, **(hook._env or {})}  # what the operator starts spark-submit with
    assert command[1:3] == ["--master", master]
    assert "--deploy-mode" not in command
    assert (found["COLDSTORE_AS_OF"], found["COLDSTORE_RUN_ID"]) == ("2025-11-08T16:00:00Z", "scheduled__2025-11-08T16:00:00")


def test_a_driver_elsewhere_is_refused(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    a_connection(monkeypatch, "k8s://https://kubernetes.example.com:6443", **{"deploy-mode": "cluster"})
    task: Any = dag.get_task("derive_tables").prepare_for_execution()
    with pytest.raises(AirflowFailException, match="deploy-mode"):
        task._pre_execute_hook({})


def test_a_missing_connection_is_an_error_not_yarn(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_COLDSTORE_SPARK", raising=False)
    monkeypatch.setattr("airflow.sdk.execution_time.context._get_connection", missing)
    task: Any = dag.get_task("derive_tables").prepare_for_execution()
    with pytest.raises(AirflowException, match="coldstore_spark"):
        task._pre_execute_hook({})


# --- where alerts go ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("receiver", ["COLDSTORE_WEBHOOK_URL", "COLDSTORE_KAFKA_ALERTS_TOPIC"])
def test_where_alerts_go_nowhere_nothing_is_started_and_the_task_says_so(dag: DAG, monkeypatch: pytest.MonkeyPatch, receiver: str) -> None:
    monkeypatch.setattr("airflow.sdk.execution_time.context._get_connection", missing)
    task: Any = dag.get_task("deliver_alerts").prepare_for_execution()
    with pytest.raises(AirflowSkipException, match=receiver):
        task._pre_execute_hook({})
    monkeypatch.setenv(receiver, "https://example.com/alerts")
    with pytest.raises(AirflowException, match="coldstore_spark"):
        task._pre_execute_hook({})


def test_what_a_task_shows_of_itself_holds_no_secret(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDSTORE_WEBHOOK_URL", "https://example.com/a-token-in-the-address")
    monkeypatch.setenv("COLDSTORE_WEBHOOK_SECRET", "a-secret")
    monkeypatch.setenv("COLDSTORE_KAFKA_USER", "a-token")
    monkeypatch.setenv("COLDSTORE_KAFKA_PASSWORD", "a-secret")
    for job in JOBS:
        shown = repr(environment(dag, a_run(**SCHEDULED), job)) + repr(dag.get_task(job).__dict__)
        assert "a-secret" not in shown and "a-token" not in shown


def missing(conn_id: str) -> None:
    raise AirflowNotFoundException(f"The conn_id `{conn_id}` isn't defined")
