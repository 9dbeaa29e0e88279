"""Who is told of a failure, a held run and old data: somebody, with the cause and the incident's address, and never twice for the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags import notices
from dags.watch_freshness import WatchFreshness, looked_at
from include.settings import Settings
from published.incident import of_failure
from tests.dags.board_lakes import AS_OF, a_lake
from tests.dags.test_incidents import SAID, failure
from tests.delivery.receiver import Receiver, answers
from webhook import posting

SECRET = "a secret of the tests"


class Variables:
    """Airflow's own are asked for over a connection that only a running task has; through a real one they are used in walks/test_walk_3_incidents.py."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def get(self, key: str, default: Any, deserialize_json: bool) -> Any:
        return self.kept.get(key, default)

    def set(self, key: str, value: Any, serialize_json: bool) -> None:
        self.kept[key] = value


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    made = Receiver()
    settings = {"LAKE": str(a_lake(tmp_path / "lake", {})), "WEBHOOK_URL": made.url, "WEBHOOK_SECRET": SECRET, "WEBHOOK_ATTEMPTS": "2"}
    for name, value in settings.items():
        monkeypatch.setenv(f"COLDSTORE_{name}", value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.example:8080/")
    monkeypatch.setattr(notices, "Variable", Variables())
    monkeypatch.setattr(posting, "FIRST_PAUSE_S", 0.01)
    yield made
    made.close()


def failed(kind: str, run_id: str = "run-1", task_id: str = "check_quality", **facts: Any) -> dict[str, Any]:
    """What Airflow hands to the callback of a task that failed like this."""
    incident = {**of_failure(failure(*SAID[kind])), **facts}
    ti = SimpleNamespace(dag_id="coldstore_pipeline", run_id=run_id, task_id=task_id, map_index=-1)
    return {"ti": ti, "task": SimpleNamespace(incident=incident), "exception": None}


def test_a_notice_names_the_cause_the_advice_and_the_incident(receiver: Receiver) -> None:
    notices.tell(failed("disk-full"))
    (request,) = receiver.requests
    told = request.event
    assert told.pop("at").endswith("Z")
    assert told == {
        "notice_id": request.headers["X-Coldstore-Event"], "dag_id": "coldstore_pipeline", "task_id": "check_quality", "kind": "disk-full",
        "run_id": "run-1", "cause": SAID["disk-full"][1],
        "advice": "Free some space on the disk that is named. Clear the task in Airflow (or let the next run take what is left): nothing is lost or doubled by it.",
        "incident": "http://airflow.example:8080/coldstore/incident?dag_id=coldstore_pipeline&run_id=run-1&task_id=check_quality&map_index=-1",
    }  # fmt: skip
    expected = posting.signature(SECRET, request.headers["X-Coldstore-Timestamp"], request.body)
    assert request.headers["X-Coldstore-Signature"] == expected


def test_the_same_trouble_is_told_once_until_a_run_is_published(receiver: Receiver) -> None:
    for run_id in ("run-1", "run-2", "run-3"):
        notices.tell(failed("held", run_id))
    notices.tell(failed("storage", "run-4"))
    notices.tell(failed("held", "run-5", task_id="publish_tables"))
    notices.tell(failed("held", "run-7", published="run-6"))
    assert [(told["kind"], told["run_id"]) for told in receiver.taken] == [
        ("held", "run-1"), ("storage", "run-4"), ("held", "run-5"), ("held", "run-7"),
    ]  # fmt: skip


def test_what_the_receiver_did_not_take_is_told_at_the_next_failure_under_the_same_id(receiver: Receiver) -> None:
    receiver.does(answers(500), answers(500))
    notices.tell(failed("held", "run-1"))
    assert receiver.taken == []
    notices.tell(failed("held", "run-2"))
    assert [told["run_id"] for told in receiver.taken] == ["run-2"]
    assert len({request.event["notice_id"] for request in receiver.requests}) == 1


def test_a_killed_task_is_told_of_as_well(receiver: Receiver) -> None:
    context = failed("held")
    notices.tell({"ti": context["ti"], "task": SimpleNamespace(incident=None)})
    (told,) = receiver.taken
    assert told["kind"] == "killed" and told["cause"].startswith("The task's own process ended before it could say why")


def test_without_a_webhook_it_is_a_line_in_the_log(receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setenv("COLDSTORE_WEBHOOK_URL", "")
    with caplog.at_level(logging.WARNING):
        notices.tell(failed("disk-full"))
        notices.tell(failed("disk-full", "run-2"))
    (line,) = caplog.messages
    assert line.startswith(f"NOTICE disk-full: {SAID['disk-full'][1]} http://") and receiver.requests == []


def test_a_broken_notice_breaks_nothing_else_and_tells_no_secret(receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    receiver.close()
    notices.tell(failed("disk-full"))
    assert "nobody could be told" in caplog.text and "a-token-in-the-address" not in caplog.text and SECRET not in caplog.text


def test_every_task_tells(dags: DagBag) -> None:
    tasks = [task for dag in dags.dags.values() for task in dag.tasks]
    assert set(dags.dags) == {"coldstore_pipeline", "rebuild_day", "watch_freshness"}
    for task in tasks:
        assert [callback.__name__ for callback in task.on_failure_callback] == ["tell"], task.task_id


# --- old data ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("minutes", "is_told"), [(29, False), (30, False), (30.1, True)])
def test_data_are_old_after_thirty_minutes(receiver: Receiver, minutes: float, is_told: bool) -> None:
    now = AS_OF + timedelta(minutes=minutes)
    if not is_told:
        assert looked_at(Settings.from_env(), now) == "run night, as of 2025-11-08T12:00:00Z is fresh"
        return
    with pytest.raises(AirflowFailException) as old:
        looked_at(Settings.from_env(), now)
    assert (
        str(old.value)
        == "The published data are 30 min old, 30 min are allowed: the last published run is night, as of 2025-11-08T12:00:00Z."
    )


def test_it_says_what_became_of_the_last_run(tmp_path: Path) -> None:
    settings = Settings(lake=str(a_lake(tmp_path / "lake", {}, status="held")), stale_after_s=60)
    with pytest.raises(AirflowFailException, match=r"2 h old, 60 s are allowed: .* the last one of all, morning, is held\.$"):
        looked_at(settings, AS_OF + timedelta(hours=2, minutes=59))


def test_before_anything_is_published_nothing_is_old(tmp_path: Path) -> None:
    with pytest.raises(AirflowSkipException, match="no published run yet"):
        looked_at(Settings(lake=str(tmp_path)), AS_OF)


def test_old_data_leave_an_incident(receiver: Receiver) -> None:
    task, left = WatchFreshness(task_id="watch_freshness"), dict[str, Any]()
    with pytest.raises(AirflowFailException):
        task.execute({"ti": mock.Mock(xcom_push=left.__setitem__)})
    assert left["incident"]["kind"] == "stale" and left["incident"]["cause"].startswith("The published data are ")
    assert left["incident"]["advice"][0].startswith("Open coldstore_pipeline in Airflow")
