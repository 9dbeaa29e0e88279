"""The server's REST API, as far as the commands need it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from typing import Any

from scripts.airflow_server import home
from scripts.airflow_server.names import DAG, POOL, USER
from scripts.ports import LOCALHOST
from scripts.problem import Problem

CONFLICT = 409  # "is there already"


class Api:
    """The REST API of the running server, as the one user there is."""

    def __init__(self, port: int) -> None:
        self.address = f"http://{LOCALHOST}:{port}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._token = ""

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.ask(method, path, body))

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Any page, as it comes."""
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {self._token}"} if self._token else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, headers=headers, method=method)
        for attempts_left in (4, 3, 2, 1, 0):
            try:
                with self._opener.open(request, timeout=30) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                if error.code < 500 or not attempts_left:
                    raise
                time.sleep(1)  # its database was locked
        raise AssertionError("the last attempt answers or raises")

    def login(self) -> None:
        self._token = self.call("POST", "/auth/token", {"username": USER, "password": home.password()})["access_token"]

    def dag(self) -> Any:
        return self.call("GET", f"/api/v2/dags/{DAG}")

    def pause(self, is_paused: bool) -> None:
        self.call("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": is_paused})

    def trigger(self, as_of: str) -> str:
        run_id = f"manual__{datetime.now(UTC).isoformat()}"  # ours, so that asking twice starts one run
        try:
            self.call("POST", f"/api/v2/dags/{DAG}/dagRuns", {"dag_run_id": run_id, "logical_date": None, "conf": {"as_of": as_of}})
        except urllib.error.HTTPError as error:
            if error.code != CONFLICT:
                raise Problem(f"Airflow does not take the run: {json.load(error).get('detail', error)}") from None
        return run_id

    def run_state(self, run_id: str) -> str:
        return str(self.call("GET", run_path(run_id))["state"])

    def tasks(self, run_id: str) -> list[dict[str, Any]]:
        return list(self.call("GET", f"{run_path(run_id)}/taskInstances")["task_instances"])

    def close(self, run_id: str) -> None:
        self.call("PATCH", run_path(run_id), {"state": "failed", "note": "closed: its servers were stopped before it had ended"})

    def make_pool(self) -> None:
        """One slot, whatever was there before: the writers of the lake are kept apart by it."""
        pool = {"name": POOL, "slots": 1, "description": "One writer of the lake at a time.", "include_deferred": False}
        try:
            self.call("POST", "/api/v2/pools", pool)
        except urllib.error.HTTPError as error:
            if error.code != CONFLICT:
                raise
            self.call("PATCH", f"/api/v2/pools/{POOL}", pool)


def run_path(run_id: str) -> str:
    return f"/api/v2/dags/{DAG}/dagRuns/{urllib.parse.quote(run_id, safe='')}"
