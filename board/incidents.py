"""The incident of a failed task, as Airflow's database and the lake tell it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from markupsafe import Markup, escape
from sqlalchemy import select

from include.settings import PROJECT
from published.incident import of_silence

RUNBOOK = PROJECT / "docs" / "runbook.md"
COMMAND = re.compile(r"(make [a-z]+(?: \w+=\S+)*|COLDSTORE_\w+|spark\.driver\.memory|&lt;lake&gt;[\w/]*)")


@dataclass(frozen=True)
class Failed:
    """A task instance."""

    state: str
    attempt: int
    found: dict[str, Any] | None  # None: nothing went wrong


def of_task(dag_id: str, run_id: str, task_id: str, map_index: int) -> Failed | None:
    """None where there is no such task."""
    with create_session() as session:
        named = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
        task = session.scalar(select(TaskInstance).filter_by(**named))
        if task is None:
            return None
        left = session.scalar(XComModel.get_many(run_id=run_id, key="incident", task_ids=task_id, dag_ids=dag_id, map_indexes=map_index))
        found = XComModel.deserialize_value(left) if left is not None else None
        state, attempt = str(task.state), task.try_number
    if found is None and state in ("failed", "up_for_retry"):
        found = of_silence()
    return Failed(state, attempt, found)


def section(kind: str) -> str:
    """Of the runbook."""
    text = RUNBOOK.read_text(encoding="utf-8") if RUNBOOK.exists() else ""
    found = re.search(rf"^## {re.escape(kind)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else "The runbook has no section on this."


def commands(text: str) -> Markup:
    """Commands and settings, set apart."""
    return Markup(COMMAND.sub(r"<code>\1</code>", str(escape(text))))
