"""The DAG that makes a day anew: what it asks of whom. A backfill through the real scheduler is walked in walks/test_walk_2_backfill.py."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.approval import told
from include.incidents import kind_of
from tests.dags.runs import SCHEDULED, a_run

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


def test_a_comparison_that_is_gone_is_asked_for_again(dag: DAG, tmp_path: Path) -> None:
    task: Any = dag.get_task("approve_change").prepare_for_execution()
    task.comparison = str(tmp_path / "gone.json")
    with pytest.raises(AirflowFailException) as failed:
        task.execute({"ti": mock.Mock()})
    assert kind_of(1, [str(failed.value)]).name == "no-comparison"
