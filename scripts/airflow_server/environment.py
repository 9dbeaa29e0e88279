"""What the servers, and through them the jobs, are told by their environment."""

from __future__ import annotations

import json
import os

from include import s3
from include.settings import PROJECT
from scripts.airflow_server import home
from scripts.ports import LOCALHOST

AIRFLOW = str(PROJECT / ".local" / "airflow" / "bin" / "airflow")


def environment() -> dict[str, str]:
    """What the servers, and through them the Spark jobs, find in their environment; a connection that is already there stays."""
    programs = [str(PROJECT / ".local" / name / "bin") for name in ("spark", "airflow")]  # the operator finds spark-submit by PATH alone
    master = os.environ.get("COLDSTORE_MASTER") or "local[*]"
    spark = {"conn_type": "spark", "host": master, "extra": {"spark-binary": "spark-submit"}}
    ours = {
        "AIRFLOW_HOME": str(home.folder()),
        "PYTHONPATH": str(PROJECT),
        "PATH": os.pathsep.join([*programs, os.environ.get("PATH", os.defpath)]),
        "NO_PROXY": ",".join(filter(None, [LOCALHOST, os.environ.get("NO_PROXY")])),
    }
    return {"AIRFLOW_CONN_COLDSTORE_SPARK": json.dumps(spark), **os.environ, **ours}


def settings() -> dict[str, str]:
    """The settings a server hands on to the jobs for as long as it runs."""
    own = ("COLDSTORE_AS_OF", "COLDSTORE_RUN_ID", "COLDSTORE_AIRFLOW_PORT", home.ELSEWHERE)
    given = {name: value for name, value in os.environ.items() if name.startswith(("COLDSTORE_", *s3.WHERE)) and name not in own}
    return {"COLDSTORE_LAKE": str(PROJECT / "lake"), **given}
