"""The DAG that makes a day anew: what it asks of whom, and a backfill over three days through the real scheduler, one approved and one rejected."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from deltalake import DeltaTable

from dags.approval import told
from include.settings import PROJECT
from scripts.airflow_server.api import Api
from scripts.airflow_server.servers import stop
from scripts.airflow_server.starting import start
from scripts.ports import free_port
from tests.dags.runs import SCHEDULED, a_run

SPARK = PROJECT / ".local" / "spark" / "bin" / "python"
DAYS = ["2025-11-06", "2025-11-07", "2025-11-08"]
LIMITS = "store_id,valid_from,valid_to,low_c,high_c\n"
PATIENCE_S = 600
COMPARED = {
    "day": "2025-11-08",
    "rows": 3,
    "fingerprint": "f1",
    "tables": [
        {
            "table": "alerts",
            "actions": {"update": 1, "insert": 2},
            "shown": ["insert too_warm a", "insert too_warm b", "update c: peak 1 → 2"],
        },
        {"table": "outages", "actions": {}, "shown": []},
    ],
}


# --- what the tasks are told ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def dag(dags: DagBag) -> DAG:
    return dags.dags["rebuild_day"]


def arguments(dag: DAG, task_id: str, run: Any) -> list[str]:
    task = dag.get_task(task_id).prepare_for_execution()
    params = process_params(dag, task, run.conf, suppress_exception=False)
    ti = mock.Mock(xcom_pull=lambda task_ids, key: f"{key} of {task_ids}")
    task.render_template_fields({"dag_run": run, "run_id": run.run_id, "params": params, "ti": ti})  # type: ignore[typeddict-item]
    return list(task.application_args)  # type: ignore[attr-defined]


def test_at_night_the_day_before_must_be_equal(dag: DAG) -> None:
    run = a_run(**SCHEDULED | {"data_interval_start": datetime(2025, 11, 8, tzinfo=UTC), "run_id": "scheduled__2025-11-09T00:00:00+00:00"})
    assert arguments(dag, "compare_day", run) == ["--day=2025-11-08", "--report=scheduled__2025-11-09T00_00_00_00_00", "--must-be-equal=1"]
    assert dag.timetable.expression == "0 0 * * *"  # type: ignore[attr-defined]


def test_a_backfill_takes_the_day_of_its_interval_and_a_person_names_one(dag: DAG) -> None:
    backfill = a_run(run_type="backfill", data_interval_start=datetime(2025, 11, 6, tzinfo=UTC))
    assert arguments(dag, "compare_day", backfill)[::2] == ["--day=2025-11-06", "--must-be-equal=0"]
    assert arguments(dag, "compare_day", a_run(conf={"day": "2025-11-07"}))[::2] == ["--day=2025-11-07", "--must-be-equal=0"]


def test_without_a_day_nothing_is_started(dag: DAG) -> None:
    with pytest.raises(AirflowFailException, match="which day"):
        arguments(dag, "compare_day", a_run())


def test_what_is_swapped_in_is_what_was_compared(dag: DAG) -> None:
    assert arguments(dag, "swap_day", a_run(conf={"day": "2025-11-07"})) == [
        "--day=2025-11-07", "--expect=fingerprint of approve_change", "--note=note of approve_change",
    ]  # fmt: skip


# --- who is asked -----------------------------------------------------------------------------------------------------------------------


def asked(dag: DAG, tmp_path: Path, found: dict[str, Any], dry_run: str = "False") -> tuple[Any, dict[str, Any]]:
    """The task, and what it left for the next one; a person's answer is not waited for."""
    (tmp_path / "found.json").write_text(json.dumps(found))
    task: Any = dag.get_task("approve_change").prepare_for_execution()
    task.comparison, task.dry_run, left = str(tmp_path / "found.json"), dry_run, dict[str, Any]()
    context = {"ti": mock.Mock(xcom_push=left.__setitem__)}
    with mock.patch("airflow.providers.standard.operators.hitl.HITLOperator.execute", return_value="waits"):
        return task.execute(context), left | {"subject": task.subject, "body": task.body}


def test_few_changes_need_nobody(dag: DAG, tmp_path: Path) -> None:
    answer, left = asked(dag, tmp_path, COMPARED)
    assert answer is None
    assert (left["fingerprint"], left["note"]) == ("f1", "2025-11-08 rebuilt: 3 rows, too few to need approval")
    assert left["comparison"] == COMPARED


def test_many_wait_for_a_person_who_sees_what_would_change(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDSTORE_REBUILD_APPROVAL_ROWS", "2")
    answer, left = asked(dag, tmp_path, COMPARED)
    assert answer == "waits" and "note" not in left
    assert left["subject"] == "2025-11-08: a rebuild changes 3 rows of published tables"
    assert left["body"].splitlines() == [
        "**2025-11-08**: 3 rows would change.", "", "**alerts**: 2 insert, 1 update", "", "- insert too_warm a",
        "- insert too_warm b", "- update c: peak 1 → 2",
    ]  # fmt: skip


def test_a_long_list_is_cut_and_says_so() -> None:
    table = {"table": "store_minutes", "actions": {"update": 700}, "shown": [f"update {number}" for number in range(20)]}
    lines = told({"day": "2025-11-08", "rows": 700, "tables": [table]}).splitlines()
    assert len([line for line in lines if line.startswith("- update")]) == 10 and lines[-1] == "- … and 690 more"


@pytest.mark.parametrize(
    ("found", "dry_run", "why"), [(COMPARED | {"rows": 0}, "False", "nothing to swap in"), (COMPARED, "True", "a preview")]
)
def test_nothing_follows_a_preview_or_an_empty_difference(dag: DAG, tmp_path: Path, found: dict[str, Any], dry_run: str, why: str) -> None:
    with pytest.raises(AirflowSkipException, match=why):
        asked(dag, tmp_path, found, dry_run)


# --- a backfill -------------------------------------------------------------------------------------------------------------------------


@dataclass
class Story:
    lake: Path
    states: dict[str, dict[str, str]] = field(default_factory=dict)  # day: task: state
    waiting: dict[str, Any] = field(default_factory=dict)  # what a person saw of the first day
    slots: int = -1  # of the writers' pool, while a person was waited for
    before: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    rejected: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    after: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    board: list[tuple[int, bool]] = field(
        default_factory=list
    )  # without a login, and with one: the answer's code, and whether the store is on it
    preview: dict[str, str] = field(default_factory=dict)  # of the approved day, at the end: task: state

    def rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        return list(DeltaTable(str(self.lake / "tables" / table)).to_pyarrow_table(columns=list(columns)).to_pylist())

    def alerts(self) -> dict[str, list[tuple[Any, ...]]]:
        """By the day they start, without who wrote them."""
        found: dict[str, list[tuple[Any, ...]]] = {day: [] for day in DAYS}
        for row in self.rows("alerts", "started_at", "rule", "status", "limit_high_c"):
            found[row["started_at"].strftime("%Y-%m-%d")].append((row["rule"], row["status"], row["limit_high_c"]))
        return {day: sorted(rows) for day, rows in found.items()}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("backfill")
    it = Story(folder / "lake")
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("COLDSTORE_AIRFLOW_HOME", str(folder / "airflow_home"))
        settings.setenv("COLDSTORE_LAKE", str(it.lake))
        settings.setenv("COLDSTORE_REBUILD_APPROVAL_ROWS", "0")
        lay(it.lake)
        command, env = [str(SPARK), "-m", "spark_jobs.run_pass"], {**os.environ, "COLDSTORE_AS_OF": "2025-11-08T12:00:00Z"}
        subprocess.run(command, cwd=PROJECT, env={**env, "PYTHONPATH": str(PROJECT)}, check=True, capture_output=True)
        (it.lake / "reference/limits.csv").write_text(f"{LIMITS}store-1,,2025-11-08T00:00:00Z,0,7\nstore-1,2025-11-08T00:00:00Z,,0,5\n")
        state, api = start("run", free_port())
        try:
            happens(it, api)
        finally:
            stop(state)
    yield it


def lay(lake: Path) -> None:
    """Three days with nineteen warm minutes each, and a limit of 5 °C. Nobody is missed in between: an outage would reach into the next day."""
    (lake / "reference").mkdir(parents=True)
    (lake / "landing").mkdir()
    (lake / "reference/limits.csv").write_text(f"{LIMITS}store-1,,,0,5\n")
    inventory = "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s\nsensor-1,store-1,,,200000,\n"
    (lake / "reference/sensors.csv").write_text(inventory)
    for day in DAYS:
        times = [f"{day}T10:{minute:02}:00Z" for minute in range(20)]
        warm = [6.0] * 19 + [3.0]
        lines = [
            {"sensor_id": "sensor-1", "store_id": "store-1", "temperature": t, "event_ts": at} for t, at in zip(warm, times, strict=True)
        ]
        path = lake / "landing" / f"{day}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        arrived = datetime.fromisoformat(times[-1]).timestamp()
        os.utime(path, (arrived, arrived))


def happens(it: Story, api: Api) -> None:
    it.before = it.alerts()
    it.board = [seen(api, is_known) for is_known in (False, True)]
    wait(lambda: api.call("GET", "/api/v2/dags/rebuild_day")["dag_id"], "the DAG")
    body = {"dag_id": "rebuild_day", "from_date": f"{DAYS[0]}T00:00:00Z", "to_date": f"{DAYS[2]}T00:00:00Z", "max_active_runs": 1}
    api.call("POST", "/api/v2/backfills", body)
    runs = {day: wait(lambda day=day: run_of(api, day), f"a run of {day}") for day in DAYS}

    wait(lambda: tasks(api, runs[DAYS[0]])["approve_change"] == "awaiting_input", "the first day to wait for a person")
    it.waiting = api.call("GET", f"{path(runs[DAYS[0]])}/taskInstances/approve_change/-1/hitlDetails")
    it.slots = api.call("GET", "/api/v2/pools/lake_writer")["occupied_slots"]
    answer(api, runs[DAYS[0]], "Approve", "the limit was wrong")
    wait(lambda: tasks(api, runs[DAYS[1]])["approve_change"] == "awaiting_input", "the second day to wait for a person")
    between = it.alerts()
    answer(api, runs[DAYS[1]], "Reject", "not that day")
    for day in DAYS:
        wait(lambda day=day: api.call("GET", path(runs[day]))["state"] in ("success", "failed"), f"the end of {day}")
        it.states[day] = tasks(api, runs[day])
    it.rejected, it.after = between, it.alerts()

    body = {"dag_run_id": "preview", "logical_date": None, "conf": {"day": DAYS[0], "dry_run": True}}
    api.call("POST", "/api/v2/dags/rebuild_day/dagRuns", body)
    wait(lambda: api.call("GET", path("preview"))["state"] in ("success", "failed"), "the preview")
    it.preview = tasks(api, "preview")


def seen(api: Api, is_known: bool) -> tuple[int, bool]:
    headers = {"Authorization": f"Bearer {api._token}"} if is_known else {}
    try:
        with build_opener(ProxyHandler({})).open(Request(f"{api.address}/coldstore/", headers=headers), timeout=60) as answer:
            return answer.status, "store-1" in answer.read().decode()
    except HTTPError as error:
        return error.code, "store-1" in error.read().decode()


def run_of(api: Api, day: str) -> str:
    runs = api.call("GET", "/api/v2/dags/rebuild_day/dagRuns")["dag_runs"]
    return next((run["dag_run_id"] for run in runs if (run["logical_date"] or "").startswith(day)), "")


def path(run: str) -> str:
    return f"/api/v2/dags/rebuild_day/dagRuns/{quote(run, safe='')}"


def tasks(api: Api, run: str) -> dict[str, str]:
    return {task["task_id"]: task["state"] for task in api.call("GET", f"{path(run)}/taskInstances")["task_instances"]}


def answer(api: Api, run: str, option: str, why: str) -> None:
    """As often as it is asked for: an answer as quick as a program's may come before the scheduler has heard that the process which asked has ended."""
    body = {"chosen_options": [option], "params_input": {"why": why}}

    def is_taken() -> bool:
        state = tasks(api, run)["approve_change"]
        if state == "awaiting_input":
            api.call("PATCH", f"{path(run)}/taskInstances/approve_change/-1/hitlDetails", body)
        return state in ("success", "failed")

    wait(is_taken, f"the answer of {run} to be taken")


def wait(until: Any, what: str) -> Any:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(OSError, HTTPError, KeyError):  # a busy server may not answer in time, or not know it yet
            if value := until():
                return value
        time.sleep(0.5)
    raise AssertionError(f"waited in vain for: {what}")


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_backfill_shows_each_day_before_anything_changes_and_holds_no_writers_slot_meanwhile(story: Story) -> None:
    assert story.waiting["subject"] == "2025-11-06: a rebuild changes 1 row of published tables"
    assert "status resolved → retracted" in story.waiting["body"]
    assert story.slots == 0


@pytest.mark.slow
def test_an_approved_day_is_swapped_in_and_then_live_equals_rebuild(story: Story) -> None:
    assert story.states[DAYS[0]] == {"compare_day": "success", "approve_change": "success", "swap_day": "success"}
    assert story.before[DAYS[0]] == [("too_warm", "resolved", 5.0)]
    assert story.after[DAYS[0]] == [("too_warm", "retracted", 5.0)]
    assert story.preview == {"compare_day": "success", "approve_change": "skipped", "swap_day": "skipped"}
    (rebuilt,) = (row for row in story.rows("runs", "run_id", "status", "note") if row["run_id"].startswith("rebuild-"))
    assert rebuilt["note"] == "2025-11-06 rebuilt, approved by admin: the limit was wrong"


@pytest.mark.slow
def test_a_rejected_day_stays_as_it_was_and_one_without_differences_is_left_alone(story: Story) -> None:
    assert story.states[DAYS[1]] == {"compare_day": "success", "approve_change": "success", "swap_day": "skipped"}
    assert story.states[DAYS[2]] == {"compare_day": "success", "approve_change": "skipped", "swap_day": "skipped"}
    for day in DAYS[1:]:
        assert story.after[day] == story.rejected[day] == story.before[day]


@pytest.mark.slow
def test_a_backfill_pages_nobody(story: Story) -> None:
    events = [row for row in story.rows("alert_events", "run_id", "change", "is_historic") if row["run_id"].startswith("rebuild-")]
    assert [(row["change"], row["is_historic"]) for row in events] == [("retracted", True)]


@pytest.mark.slow
def test_airflow_serves_the_board_to_whom_it_knows(story: Story) -> None:
    assert story.board == [(401, False), (200, True)]
