"""Each failure really caused: its incident, as the engineer opens it, names the right cause, and following its advice brings the pipeline back to green.

WALKS=all (`make walks`) causes all of them; without it those that fail in different tasks and ways, for each costs a run.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from include.settings import PROJECT
from scripts.processes import stat
from tests.dags.walks.person import Person
from tests.dags.walks.scene import SENSORS, SPARK, Scene, wait

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
INGEST = "ingest_readings"
HOLDER = """
import sys, time
from include.settings import Settings
from spark_jobs.runtime.lease import Lease
lease = Lease(Settings.from_env(), "somebody else")
lease.take()
print("taken", flush=True)
sys.stdin.readline()
lease.give_back()
"""


@dataclass(frozen=True)
class Failure:
    kind: str
    sentence: str  # the incident's first, as a pattern
    causes: Callable[[Scene], str]  # the run that fails
    follows: Callable[[Scene, str, str], str]  # the advice: with the run and the page's text; the run that is green then
    task: str = INGEST


# --- what goes wrong ----------------------------------------------------------------------------------------------------------------------


def with_new_input(scene: Scene) -> str:
    scene.lands(f"new-{time.time_ns()}", scene.fresh(2, 9.0))
    return scene.triggers()


def sensor_twice(scene: Scene) -> str:
    kept = (scene.lake / "reference/sensors.csv").read_text(encoding="utf-8")
    scene.refers("sensors", f"{kept}sensor-1,store-1,,,,\n")
    return scene.triggers()


def column_gone(scene: Scene) -> str:
    scene.refers("sensors", (scene.lake / "reference/sensors.csv").read_text(encoding="utf-8").replace(",retired_at,", ",", 1))
    return scene.triggers()


def s3_down(scene: Scene) -> str:
    scene.s3.stop()
    return scene.triggers()


def jvm_killed(scene: Scene) -> str:
    run = with_new_input(scene)
    os.kill(int(stat(driver(scene, run))[1]), signal.SIGKILL)
    return run


def little_memory(scene: Scene) -> str:
    """Less than the driver's JVM asks for."""
    (scene.folder / "spark_conf/spark-env.sh").write_text("ulimit -v 2500000\n", encoding="utf-8")
    return scene.triggers()


def frozen_past_its_lease(scene: Scene) -> str:
    run = with_new_input(scene)
    frozen = driver(scene, run)
    os.kill(frozen, signal.SIGSTOP)
    try:
        wait(lambda: lease(scene)["expires_at"] < time.time(), "the lease to run out")
        with holder(scene):
            pass
    finally:
        os.kill(frozen, signal.SIGCONT)
    return run


def checkpoint_cut(scene: Scene) -> str:
    metadata = scene.lake / "checkpoints" / INGEST / "metadata"
    metadata.write_bytes(metadata.read_bytes()[:20])
    (metadata.parent / ".metadata.crc").unlink(missing_ok=True)
    return with_new_input(scene)


def bad_lines(scene: Scene) -> str:
    scene.lands("bad", b"not a reading\n" * 300)
    return scene.triggers()


# --- what the advice says -------------------------------------------------------------------------------------------------------------------


def clear(scene: Scene, run: str, page: str) -> str:
    scene.clears(run, INGEST)
    return run


def correct_the_file(scene: Scene, run: str, page: str) -> str:
    scene.refers("sensors", f"{SENSORS}sensor-1,store-1,,,900000,\nsensor-7,store-7,,,,\nsensor-8,store-7,,,,\n")
    return clear(scene, run, page)


def start_the_server(scene: Scene, run: str, page: str) -> str:
    scene.s3.start()
    return clear(scene, run, page)


def give_it_memory(scene: Scene, run: str, page: str) -> str:
    (scene.folder / "spark_conf/spark-env.sh").unlink()
    return clear(scene, run, page)


def recover(scene: Scene, run: str, page: str) -> str:
    assert "make recover, then clear the task" in page
    scene.make("recover")
    return clear(scene, run, page)


def accept(scene: Scene, run: str, page: str) -> str:
    found = re.search(r"make accept run=(\S+) by=… why=…", page)
    assert found is not None and found[1] == run
    scene.make("accept", f"run={found[1]}", "by=Ada", "why=a device was tried out")
    return scene.triggers()


FAILURES = [
    Failure("reference-file", r".*sensors\.csv line 5: sensor_id sensor-1 .*line 2.*", sensor_twice, correct_the_file),
    Failure("missing-column", r".*sensors\.csv line 1: the column retired_at is missing.*", column_gone, correct_the_file),
    Failure("storage", r".*the S3 server http://127\.0\.0\.1:\d+ cannot be used: it does not answer.*", s3_down, start_the_server),
    Failure("killed", r"The driver was ended from outside \(SIGKILL\) before it could say why\.", jvm_killed, clear),
    Failure("out-of-memory", r"The driver ran out of memory\.", little_memory, give_it_memory),
    Failure("lease-lost", r".*(has lost its lease|slept past its lease|another driver).*", frozen_past_its_lease, clear),
    Failure(
        "checkpoint", r".*checkpoints/ingest_readings/metadata is damaged, so Spark cannot tell what is new.*", checkpoint_cut, recover
    ),
    Failure("held", r"quarantine: .*(allowed|at most 20 %).*", bad_lines, accept, task="check_quality"),
]


CAUSED = [
    failure for failure in FAILURES if os.environ.get("WALKS") == "all" or failure.kind in ("missing-column", "storage", "killed", "held")
]


@pytest.mark.parametrize("failure", CAUSED, ids=lambda failure: failure.kind)
def test_the_incident_names_the_cause_and_its_advice_brings_the_pipeline_back(admin: Person, scene: Scene, failure: Failure) -> None:
    before = len(notices(scene))
    run = failure.causes(scene)
    scene.fails(run, failure.task)
    scene.api.pause(True)  # so that it is not tried again before somebody has looked
    lines = admin.reads_incident("coldstore_pipeline", run, failure.task)
    if failure.kind == "missing-column":
        admin.pictures("incident", scene.folder / "pictures")
    admin.page.goto("about:blank")  # Airflow's own page keeps a core busy with refreshing itself
    scene.api.pause(False)
    page = "\n".join(lines)
    assert re.fullmatch(failure.sentence, lines[0]), lines[0]
    assert f"Runbook: {failure.kind}" in page and "What is safe to do now" in page
    assert scene.s3.secret not in page and scene.secret not in page and scene.receiver.url not in page
    green = failure.follows(scene, run, page)
    assert scene.ends(green) == "success"
    told = notices(scene)[before:]
    assert [notice["kind"] for notice in told] == (["held"] if failure.kind == "held" else []), (
        "what is tried again, and succeeds, is told to nobody"
    )


def test_old_data_are_told_once(scene: Scene) -> None:
    """The scene calls data old after a minute."""
    wait(lambda: time.time() > last_clock(scene) + 60, "the data to be old")
    before = len(notices(scene))
    for _ in range(2):
        run = scene.triggers("watch_freshness")
        assert scene.ends(run, "watch_freshness") == "failed"
    (told,) = notices(scene)[before:]
    assert told["kind"] == "stale" and re.match(r"The published data are \d+ (s|min) old, 60 s are allowed: ", told["cause"])
    assert told["incident"].startswith(f"{scene.api.address}/coldstore/incident?dag_id=watch_freshness&")


# --- helpers --------------------------------------------------------------------------------------------------------------------------------


def notices(scene: Scene) -> list[dict[str, str]]:
    return [message for message in scene.receiver.taken if "notice_id" in message]


def last_clock(scene: Scene) -> float:
    return max(float(row["as_of"].timestamp()) for row in scene.rows("runs", "as_of"))


def lease(scene: Scene) -> dict[str, object]:
    with suppress(OSError, ValueError):
        return dict(json.loads((scene.lake / "control/lease.json").read_text(encoding="utf-8")))
    return {"is_given_back": True, "expires_at": float("inf")}


def driver(scene: Scene, run: str) -> int:
    """The process that has the lake for that run."""

    def found() -> int:
        held = lease(scene)
        return int(str(held["pid"])) if held.get("holder") == f"{INGEST} of {run}" and not held.get("is_given_back") else 0

    return int(wait(found, f"{INGEST} of {run} at work"))


@contextmanager
def holder(scene: Scene) -> Iterator[None]:
    """Another driver that has the lake."""
    env = {**os.environ, **scene.settings, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(
        [str(SPARK), "-c", HOLDER], cwd=PROJECT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline() == "taken\n"
        try:
            yield
        finally:
            other.stdin.write("\n")
            other.stdin.close()
            other.wait()
