"""Airflow's metadata database, where no server is there to ask: made, brought up to date, and looked at."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from importlib.metadata import version

from scripts.airflow_server import home
from scripts.airflow_server.api import DAG
from scripts.airflow_server.environment import AIRFLOW, environment
from scripts.airflow_server.problem import Problem


def migrate() -> None:
    """The metadata database, made or brought up to this Airflow's version; nothing to do, and no seconds spent, where it is."""
    mark, wanted = home.folder() / "migrated", version("apache-airflow")
    if (home.folder() / "airflow.db").exists() and mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    with (home.logs() / "migrate.log").open("w", encoding="utf-8") as log:
        ended = subprocess.run([AIRFLOW, "db", "migrate"], env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
        if ended.returncode:
            raise Problem(f"Airflow's metadata database could not be made: see {log.name}.")
    with closing(sqlite3.connect(home.folder() / "airflow.db")) as database:
        # Kept by the file: readers and the one writer no longer wait for each other. The 5 s that a second writer waits stay as they are:
        # Airflow writes its audit log in the server's event loop, where two writers can wait for each other until that time is over.
        database.execute("pragma journal_mode = wal")
    mark.write_text(wanted, encoding="utf-8")


def unfinished_runs() -> list[str]:
    """Runs that an Airflow which is gone left open; asked of the database, because no server is there yet."""
    with closing(sqlite3.connect(f"file:{home.folder() / 'airflow.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("select run_id from dag_run where dag_id = ? and state in ('queued', 'running')", (DAG,))
        return [str(run_id) for (run_id,) in rows]
