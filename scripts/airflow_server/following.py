"""A run as a person watches it: a line for each change, and the end of the log of what failed."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from scripts.airflow_server import home
from scripts.airflow_server.api import Api
from scripts.airflow_server.names import DAG
from scripts.problem import Problem

WAITING, ENDED = (None, "scheduled", "queued"), ("success", "failed")


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
                raise Problem(f"Airflow no longer answers ({error}): see the logs in {home.logs()}.") from None
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
            log = home.logs() / f"dag_id={DAG}" / f"run_id={run_id}" / f"task_id={task['task_id']}" / f"attempt={task['try_number']}.log"
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
