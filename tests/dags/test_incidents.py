"""The incident of a failed task: the right cause from what the driver said at last, what is safe to do, and nothing secret; it never hides the failure itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from airflow.api_fastapi.core_api.security import get_user
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException
from fastapi.testclient import TestClient

from board import app as board_app
from board import incidents as board_incidents
from board.incidents import Failed
from dags.incident import IncidentLink
from dags.lake_job import LakeJob
from include.incidents import KILLED, KINDS, UNKNOWN, scrubbed
from include.reference import BrokenReference
from include.settings import PROJECT
from published.incident import of_failure
from tests.dags.board_lakes import a_lake
from tests.dags.visitors import visit, words

SAID = {
    "held": (3, "quarantine: share of bad lines (seen 1.0, allowed 0.2). The published tables stay as they were and nothing is lost. Once the cause is gone the next run publishes this one's data too; to publish it all the same: make accept run=night by=… why=…"),
    "killed": (137, "26/11/18 01:02:03 WARN something that has nothing to do with it"),
    "out-of-memory": (1, "java.lang.OutOfMemoryError: Java heap space"),
    "lease-taken": (1, "the lake is being written by make pass (process 7 on host); its lease runs 40 s more unless it renews it. Nothing was changed."),
    "lease-lost": (1, "this driver has lost its lease on the lake and stops before it commits. The driver that took over goes on; run the pass again."),
    "storage": (1, "s3a://lake/x: the S3 server http://127.0.0.1:9 cannot be used: it does not answer (EndpointConnectionError). What is done so far is kept."),
    "disk-full": (1, "the disk of /lake has less than 64 MB left. What is done so far is kept; free some space and run the pass again."),
    "checkpoint": (1, "/lake/checkpoints/x/offsets/3 is damaged, so Spark cannot tell what is new. make recover, then run the pass again."),
    "missing-column": (1, str(BrokenReference("limits", 1, "the column high_c is missing"))),
    "reference-file": (1, str(BrokenReference("sensors", 7, "sensor_id a stands in line 3 already"))),
    "superseded": (1, "run x is not the one under way (y): a later one has taken its place. Nothing was changed."),
    "difference": (1, "4 rows of 2025-11-08 are not as a rebuild makes them (alerts 4)."),
    "not-delivered": (1, "alerts: 3 delivered, 2 waiting (it answers 500). The run is published; what waits goes out with the next one, or with another try."),
    "kafka": (1, "Kafka at 127.0.0.1:9 cannot be asked (it does not answer). Nothing is lost: see to the broker, or to the COLDSTORE_KAFKA_ settings, and run it again."),
    "cluster": (1, "Spark does not start on spark://127.0.0.1:7077: the master does not answer"),
    "stale": (1, "The published data are 47 min old, 30 min are allowed: the last published run is night, as of 2025-11-08T12:00:00Z."),
    "no-comparison": (1, "/lake/control/comparisons/x.json is not there: clear the task compare_day, it writes it."),
    "unknown": (1, "AnalysisException: something nobody has thought of"),
}  # fmt: skip
OWN_WORDS = {
    "killed": "The driver was ended from outside (SIGKILL) before it could say why.",
    "out-of-memory": "The driver ran out of memory.",
}


def failure(exit_code: int, *lines: str) -> str:
    """As Airflow's operator puts it."""
    return f"Cannot execute: spark-submit x.py. Error code is: {exit_code}.\nLast spark-submit output:\n" + "\n".join(lines)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = a_lake(tmp_path / "lake", {})
    (place / "control").mkdir()
    (place / "control/run.json").write_text(
        '{"run_id": "morning", "number": 2, "as_of": "2025-11-08T13:00:00Z", "started_at": "2025-11-08T13:00:01Z"}'
    )
    files = ", ".join(f'{{"path": "/landing/{number}.jsonl", "size": 1, "modified_ms": 1}}' for number in range(25))
    (place / "control/begun.json").write_text(f'{{"origin": "stream-1", "number": 4, "topic": "", "files": [{files}]}}')
    monkeypatch.setenv("COLDSTORE_LAKE", str(place))
    return place


MEMORY = (
    "Terminating due to java.lang.OutOfMemoryError: Java heap space",
    "Could not reserve enough space for 2097152KB object heap",
    "Could not allocate compressed class space: 1073741824 bytes",
    "There is insufficient memory for the Java Runtime Environment to continue.",
    "OSError: [Errno 12] Cannot allocate memory",
)


@pytest.mark.parametrize("line", MEMORY)
def test_memory_runs_out_in_many_words(lake: Path, line: str) -> None:
    assert of_failure(failure(1, line))["cause"] == "The driver ran out of memory."


@pytest.mark.parametrize("kind", SAID)
def test_the_cause_is_named_in_one_sentence(lake: Path, kind: str) -> None:
    exit_code, line = SAID[kind]
    found = of_failure(failure(exit_code, "26/11/18 01:02:03 INFO before it", line))
    assert (found["kind"], found["exit_code"]) == (kind, exit_code)
    assert found["cause"] == OWN_WORDS.get(kind, line)
    assert found["advice"]


def test_advice_names_the_run_and_facts_come_from_the_lake(lake: Path) -> None:
    found = of_failure(failure(*SAID["held"]))
    assert "make accept run=morning by=… why=…" in found["advice"][1]
    assert found["batch"] == {
        "origin": "stream-1",
        "number": 4,
        "files": [f"/landing/{number}.jsonl" for number in range(20)],
        "more_files": 5,
    }
    assert found["versions"]["alerts"] == [0, 0] and "quarantine" not in found["versions"]
    assert found["run"]["run_id"] == "morning" and not found["run"]["has_ended"]
    (lake / "control/run.json").write_text('{"run_id": "night", "number": 1}')
    assert of_failure(failure(*SAID["held"]))["run"]["has_ended"]


def test_a_lake_that_cannot_be_reached_is_a_fact_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "control").mkdir()
    (tmp_path / "control/run.json").write_text("{ cut off")
    monkeypatch.setenv("COLDSTORE_LAKE", str(tmp_path))
    found = of_failure(failure(*SAID["storage"]))
    assert found["kind"] == "storage" and found["unreachable"].startswith("JSONDecodeError")


def test_secrets_of_the_environment_are_not_handed_on(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret-value")
    assert "very-secret-value" not in str(of_failure(failure(1, "key=very-secret-value is wrong")))
    assert scrubbed("abc", {"A_TOKEN": "abc"}) == "abc", "what is as short as that would black out half the text"


def test_every_kind_has_its_section_in_the_runbook() -> None:
    sections = re.findall(r"^## (.+)$", (PROJECT / "docs/runbook.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(sections) == sorted(kind.name for kind in (*KINDS, KILLED, UNKNOWN))


def a_task() -> LakeJob:
    return LakeJob(task_id="publish_tables", application="x.py")


def test_a_failed_job_leaves_its_incident_and_fails_for_its_own_reason(lake: Path) -> None:
    task, left = a_task(), dict[str, Any]()
    with (
        mock.patch.object(SparkSubmitOperator, "execute", side_effect=AirflowException(failure(*SAID["disk-full"]))),
        pytest.raises(AirflowException, match="64 MB"),
    ):
        task.execute({"ti": mock.Mock(xcom_push=left.__setitem__)})
    assert left["incident"]["kind"] == "disk-full"
    key = mock.Mock(dag_id="coldstore_pipeline", run_id="manual__2025-11-08T16:00:00+00:00", task_id="publish_tables", map_index=-1)
    link = IncidentLink().get_link(task, ti_key=key)
    assert (
        link
        == "/coldstore/incident?dag_id=coldstore_pipeline&run_id=manual__2025-11-08T16%3A00%3A00%2B00%3A00&task_id=publish_tables&map_index=-1"
    )
    assert IncidentLink().get_link(a_task(), ti_key=key) == ""


def test_where_no_incident_can_be_left_the_failure_is_still_the_drivers(lake: Path) -> None:
    with (
        mock.patch.object(SparkSubmitOperator, "execute", side_effect=AirflowException(failure(*SAID["disk-full"]))),
        pytest.raises(AirflowException, match="64 MB"),
    ):
        a_task().execute({"ti": mock.Mock(xcom_push=mock.Mock(side_effect=OSError("the database is gone")))})


# --- the page -----------------------------------------------------------------------------------------------------------------------------

TASK = {"dag_id": "coldstore_pipeline", "run_id": "night", "task_id": "check_quality"}


@pytest.fixture
def page(lake: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What somebody with these rights sees of a task that ended like this."""

    def asked(failed: Failed | None, *rights: str, **changed: str) -> Any:
        monkeypatch.setattr(board_incidents, "of_task", lambda *named: failed)
        return visit(monkeypatch, lake, *rights).get("/incident", params={**TASK, **changed})

    return asked


def test_the_page_has_all_that_the_engineer_needs_at_three_in_the_morning(page: Any) -> None:
    found = of_failure(failure(3, "before", SAID["held"][1], "<b>after</b>"))
    answer = page(Failed("failed", 1, found), "GET")
    told = words(answer.text)
    assert answer.status_code == 200
    for wanted in (
        "quarantine: share of bad lines (seen 1.0, allowed 0.2)", "check_quality, attempt 1, failed · exit code 3", "What is safe to do now",
        "To publish it as it is: make accept run=morning by=… why=…", "morning, number 2, as of 2025-11-08T13:00:00Z", "stream-1 number 4",
        "/landing/0.jsonl", "and 5 more", "alerts 0 0", "Runbook: held", "People stay on the last good state", "The driver's last lines",
    ):  # fmt: skip
        assert wanted in told, wanted
    assert "<code>make accept run=morning by=… why=…</code>" in answer.text and "&lt;b&gt;after&lt;/b&gt;" in answer.text


def test_a_task_without_an_incident_says_so(page: Any) -> None:
    assert "is success: there is no incident to tell of" in words(page(Failed("success", 1, None), "GET").text)
    assert page(None, "GET").status_code == 404


def test_who_may_not_see_the_dag_does_not_see_its_incidents(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Failed("failed", 1, of_failure(failure(*SAID["unknown"])))
    assert page(found).status_code == 403
    assert page(found, "GET", dag_id="somebody_elses").status_code == 403
    monkeypatch.delitem(board_app.app.dependency_overrides, get_user)
    assert TestClient(board_app.app).get("/incident", params=TASK).status_code == 401
