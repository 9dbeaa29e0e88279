"""Airflow's metadata database: which it is, made and brought up to date, and looked at where no server is there to ask.

Airflow's own setting AIRFLOW__DATABASE__SQL_ALCHEMY_CONN names a Postgres; it reaches the servers by their environment and is written down
nowhere. Without it the database is an SQLite file in the home.
"""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import version
from typing import Any

from scripts.airflow_server.environment import AIRFLOW, environment
from scripts.airflow_server.home import folder, logs
from scripts.airflow_server.names import DAG
from scripts.problem import Problem

ADDRESS = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


def given_address() -> str:
    return os.environ.get(ADDRESS, "")


def own_address() -> str:
    return f"sqlite:///{folder() / 'airflow.db'}"


def migrate() -> None:
    """The database, made or brought up to this Airflow's version; nothing to do, and no seconds spent, where it is."""
    mark, wanted = folder() / "migrated", version("apache-airflow")
    if mark.exists() and mark.read_text(encoding="utf-8") == f"{wanted} {revision()}":
        return
    with (logs() / "migrate.log").open("w", encoding="utf-8") as log:
        ended = subprocess.run([AIRFLOW, "db", "migrate"], env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
        if ended.returncode:
            raise Problem(f"Airflow's metadata database could not be made: see {log.name}.")
    if not given_address():
        # Kept by the file: readers and the one writer no longer wait for each other. The 5 s that a second writer waits stay as they are:
        # Airflow writes its audit log in the server's event loop, where two writers can wait for each other until that time is over.
        answer("pragma journal_mode = wal")
    mark.write_text(f"{wanted} {revision()}", encoding="utf-8")


def revision() -> str:
    """How far the tables are; empty where there are none, so that another database, or a deleted one, is not taken for the one of before."""
    is_there = "select count(*) from information_schema.tables where table_name = 'alembic_version'"
    if not given_address():
        is_there = "select count(*) from sqlite_master where name = 'alembic_version'"
    return str(answer("select version_num from alembic_version")[0][0]) if answer(is_there)[0][0] else ""


def unfinished_runs() -> list[str]:
    """Runs that an Airflow which is gone left open."""
    return [
        str(run_id) for (run_id,) in answer("select run_id from dag_run where dag_id = :dag and state in ('queued', 'running')", dag=DAG)
    ]


def answer(question: str, **values: Any) -> list[Any]:
    from sqlalchemy import create_engine, exc, text  # half a second that `down` need not spend
    from sqlalchemy.pool import NullPool

    try:
        with create_engine(given_address() or own_address(), poolclass=NullPool).connect() as connection:
            return list(connection.execute(text(question), values))
    except exc.SQLAlchemyError as error:  # its text may name the server and the user, never the password
        place = ADDRESS if given_address() else own_address()
        raise Problem(f"Airflow's metadata database ({place}) does not answer: {str(error).splitlines()[0]}") from None
