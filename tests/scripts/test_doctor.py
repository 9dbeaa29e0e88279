"""`make doctor`: a verdict per line, and a way out for each that is bad."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import PROJECT


def examined(tmp_path: Path, **environment: str) -> tuple[int, dict[str, list[str]]]:
    """The exit code, and what is said of each thing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLDSTORE_")}
    env = {
        **kept,
        "PYTHONPATH": str(PROJECT),
        "COLDSTORE_LAKE": str(tmp_path / "lake"),
        "COLDSTORE_AIRFLOW_HOME": str(tmp_path / "airflow"),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.doctor"], env={**env, **environment}, cwd=PROJECT, capture_output=True, text=True
    )
    assert ended.stderr == ""
    said: dict[str, list[str]] = {}
    for line in ended.stdout.splitlines()[:-1]:
        said.setdefault(line[6:18].strip(), []).append(f"{line[:5].strip()}: {line[19:]}")
    return ended.returncode, said | {"at last": [ended.stdout.splitlines()[-1]]}


def free() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_a_machine_that_is_fit(tmp_path: Path) -> None:
    port = free()
    code, said = examined(tmp_path, COLDSTORE_AIRFLOW_PORT=port)
    assert code == 0 and said["at last"][0].startswith("fit to run")
    assert said["Java"][0].startswith("good: ")
    assert said["lake"] == [f"good: {tmp_path}/lake can be read and written; lease: free"]
    assert said["Airflow"] == [f"good: is not up; port {port} is free for it"]
    assert not list((tmp_path / "lake/control").iterdir()), "its probe is gone"


def test_what_is_wrong_is_named_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "lake/reference").mkdir(parents=True)
    (tmp_path / "lake/reference/sensors.csv").write_text("sensor_id\nsensor-1\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = examined(
            tmp_path, COLDSTORE_AIRFLOW_PORT=str(taken.getsockname()[1]), COLDSTORE_LANDIGN="x", COLDSTORE_KAFKA_SERVERS="127.0.0.1:9",
            COLDSTORE_KAFKA_TIMEOUT_S="2",
        )  # fmt: skip
    assert code == 1 and said["at last"] == ["3 to put right before the next pass"]
    assert said["settings"][0] == "look: COLDSTORE_LANDIGN is no setting and has no effect; is COLDSTORE_LANDING meant?"
    assert "sensors.csv" in said["reference"][0] and "line 1" in said["reference"][0]
    assert said["Kafka"][0].startswith("BAD: Kafka at 127.0.0.1:9 cannot be asked")
    assert said["Airflow"][0].startswith("BAD: port ") and "choose another: COLDSTORE_AIRFLOW_PORT=" in said["Airflow"][0]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"COLDSTORE_LEASE_S": "soon"}, ("settings", "BAD: COLDSTORE_LEASE_S='soon' is not a number; give one like 60.")),
        ({"COLDSTORE_LAKE": "/proc/lake"}, ("lake", "BAD: the disk of /proc/lake has less than 64 MB left.")),
    ],
)
def test_a_lake_or_a_setting_that_cannot_be_used(tmp_path: Path, wrong: dict[str, str], told: tuple[str, str]) -> None:
    code, said = examined(tmp_path, COLDSTORE_AIRFLOW_PORT=free(), **wrong)
    assert code == 1 and any(line.startswith(told[1]) for line in said[told[0]]), said


def test_without_java_and_before_set_up_it_still_tells(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(Path(sys.executable).resolve())
    env = {"PATH": str(tmp_path / "bin"), "PYTHONPATH": str(PROJECT), "COLDSTORE_LAKE": str(tmp_path / "lake")}
    ended = subprocess.run(
        [str(tmp_path / "bin/python3"), "-S", "-m", "scripts.doctor"], env=env, cwd=PROJECT, capture_output=True, text=True
    )
    assert ended.returncode == 1 and ended.stderr == ""
    assert "BAD   Java         there is no java: install Java 17" in ended.stdout
