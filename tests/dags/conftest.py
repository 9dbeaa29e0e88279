"""Airflow gets a home of its own for these tests, before anything imports it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
HOME = tempfile.mkdtemp(prefix="airflow-tests-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

for name in [name for name in os.environ if name.startswith(("AIRFLOW_", "COLDSTORE_"))]:
    del os.environ[name]
os.environ |= {"AIRFLOW_HOME": HOME, "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags")}
sys.path.insert(0, str(PROJECT))


@pytest.fixture
def dags() -> Any:
    """Read anew for each test: a value given to a param stays with the DAG."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=PROJECT / "dags", bundle_path=PROJECT / "dags")
