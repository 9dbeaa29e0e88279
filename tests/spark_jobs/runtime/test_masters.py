"""Kubernetes and YARN as docs/places.md has them, as far as this can be seen without either: Spark takes every setting, and asks the address for executors.

No executor was ever started there. What is shown is that nothing stands between our settings and the cluster's own API.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from include.incidents import kind_of
from include.settings import PROJECT

pytestmark = pytest.mark.slow
SPARK_SUBMIT = Path(sys.executable).parent / "spark-submit"
IMPATIENT = {"ipc.client.connect.max.retries": "0", "yarn.resourcemanager.connect.max-wait.ms": "500"}


def properties(section: str) -> str:
    """The properties that the page shows for a place."""
    page = (PROJECT / "docs" / "places.md").read_text(encoding="utf-8")
    text = page[page.index(f"\n## {section}\n") :].split("\n## ")[1]
    blocks = re.findall(r"^```properties\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(blocks[0])


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def a_pass(tmp_path: Path, master: str, conf: str, **more: str) -> tuple[str, str]:
    """Its last line, and what was said on standard error."""
    (tmp_path / "spark.conf").write_text(conf.replace("<this machine's address>", "127.0.0.1"), encoding="utf-8")
    ours = {"LAKE": str(tmp_path / "lake"), "AS_OF": "2025-11-08T07:00:00Z", "MASTER": master, "SPARK_CONF": str(tmp_path / "spark.conf")}
    env = {**clean(), "PYTHONPATH": str(PROJECT), **{f"COLDSTORE_{name}": value for name, value in ours.items()}, **more}
    command = [sys.executable, "-m", "spark_jobs.run_pass"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 1, done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1], done.stderr


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_", "HADOOP_", "YARN_", "KUBE"))}


def test_on_kubernetes_it_is_the_api_server_that_is_asked(tmp_path: Path, nobody: str) -> None:
    said, _ = a_pass(tmp_path, f"k8s://https://{nobody}", properties("Kubernetes"), KUBERNETES_REQUEST_RETRY_BACKOFFLIMIT="0")
    assert said.startswith(f"failed Spark does not start on k8s://https://{nobody}: ")
    assert "ConnectException" in said and "refused" in said


def test_the_file_of_properties_is_read_by_spark_itself(tmp_path: Path, nobody: str) -> None:
    wrong = re.sub(r"(spark\.executor\.instances +)4", r"\1four", properties("Kubernetes"))
    said, words = a_pass(tmp_path, f"k8s://https://{nobody}", wrong)
    assert "spark-submit does not take its settings" in said
    assert "Number of executors must be a positive number" in words


def test_on_yarn_it_is_the_resource_manager_that_is_asked(tmp_path: Path, nobody: str) -> None:
    hadoop(tmp_path / "hadoop", {"yarn.resourcemanager.address": nobody, **IMPATIENT})
    said, _ = a_pass(tmp_path, "yarn", properties("YARN"), HADOOP_CONF_DIR=str(tmp_path / "hadoop"))
    assert said.startswith("failed Spark does not start on yarn: ") and kind_of(1, [said]).name == "cluster"
    assert "ConnectException" in said and "refused" in said


def hadoop(folder: Path, values: Mapping[str, str]) -> None:
    folder.mkdir()
    lines = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    for name in ("core-site.xml", "yarn-site.xml"):
        (folder / name).write_text(f"<configuration>{lines}</configuration>", encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--master", "yarn"], "HADOOP_CONF_DIR or YARN_CONF_DIR must be set", id="yarn without its configuration"),
        pytest.param(
            ["--master", "spark://127.0.0.1:1", "--deploy-mode", "cluster"],
            "Cluster deploy mode is currently not supported for python applications on standalone clusters",
            id="a Python driver on a standalone cluster",
        ),
        pytest.param(["--master", "cluster:7077"], "Master must either be yarn or start with spark, k8s, or local", id="no kind of master"),
    ],
)
def test_what_cannot_be_is_refused_by_spark_submit(arguments: list[str], said: str) -> None:
    command = [str(SPARK_SUBMIT), *arguments, "--properties-file", str(PROJECT / ".local/spark-defaults.conf"), "spark_jobs/run_pass.py"]
    env = {**clean(), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(spark_home())}
    done = subprocess.run(command, env=env, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert said in done.stderr, done.stderr[-2000:]


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
