"""The incident that a failed task leaves: what happened, to which input, and what is safe to do. It is left even when the JVM is gone, and told to somebody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from airflow.sdk import BaseOperatorLink
from airflow.sdk.exceptions import AirflowSkipException


def page(ti: Any) -> str:
    """Where the board shows it; `ti` is a task instance or its key."""
    named = {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": ti.task_id, "map_index": ti.map_index}
    return f"/coldstore/incident?{urlencode(named)}"


class IncidentLink(BaseOperatorLink):
    name = "Incident"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return page(ti_key) if getattr(operator, "incident", None) else ""


@contextmanager
def incident_left(task: Any, context: Any) -> Iterator[None]:
    """By a task that fails in here, for whatever reason."""
    try:
        yield
    except AirflowSkipException:
        raise
    except Exception as failure:
        _leave(task, str(failure), context)
        raise


def _leave(task: Any, failure: str, context: Any) -> None:
    """Whatever becomes of this, the task fails for its own reason."""
    try:
        from published.incident import of_failure  # here, so that reading the DAG stays cheap

        task.incident = of_failure(failure)
        context["ti"].xcom_push("incident", task.incident)
    except Exception:
        task.log.exception("no incident could be left")
