"""One-way imports: dags → include ← spark_jobs → expectations → include; what DAGs and jobs share is standard library only."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
OURS = {"include", "published", "webhook", "board", "spark_jobs", "expectations", "dags", "simulator", "benchmark", "tests"}
MAY_IMPORT = {
    "include": {"include"},
    "published": {"published", "include", "deltalake", "pyarrow"},
    "webhook": {"webhook", "include", "requests"},
    "board": {"board", "published", "include", "airflow", "fastapi", "jinja2", "markupsafe", "sqlalchemy"},
    "expectations": {"expectations", "include", "great_expectations", "pandas"},
    "spark_jobs": {
        "spark_jobs",
        "expectations",
        "include",
        "pyspark",
        "delta",
        "deltalake",
        "pyarrow",
        "numpy",
        "msgspec",
        "zstandard",
        "webhook",
        "boto3",
        "botocore",
        "urllib3",
        "confluent_kafka",
    },
    "dags": {"dags", "include", "published", "webhook", "airflow"},
    "simulator": {"simulator", "numpy", "zstandard", "msgspec"},
}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"__future__"}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_it_may(package: str) -> None:
    offences = {
        str(path.relative_to(PROJECT)): strange
        for path in (PROJECT / package).rglob("*.py")
        if (strange := imported(path) - MAY_IMPORT[package])
    }
    assert offences == {}


def test_a_transform_knows_no_session_path_or_clock_of_its_own() -> None:
    for path in (PROJECT / "spark_jobs/transforms").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "spark_jobs.runtime" not in text and "datetime.now" not in text, path.name
