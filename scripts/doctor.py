"""Is everything here that a pass and Airflow need? python3 -m scripts.doctor (make doctor): a verdict per line, and what to do where it is bad.

It works before anything is set up: what a check needs of the environments is imported by the check.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from include.settings import PREFIX, PROJECT, S3, SettingError, Settings
from scripts.ports import free_port
from scripts.problem import Problem
from spark_jobs.runtime.errors import Stop

LOCAL = PROJECT / ".local"
GOOD, WARNING, BAD = "good", "look", "BAD"
DISK_GB, LAKE_GB, MEMORY_GB = 4, 2, 4
# Read elsewhere than in `Settings`.
OTHERS = (
    "AIRFLOW_HOME",
    "AIRFLOW_PORT",
    "AIRFLOW_USERS",
    "CLUSTER_PORT",
    "POSTGRES_PASSWORD",
    "HISTORIES",
    "CRASHES",
    "REAL_DATA",
    "REAL_DATA_LINES",
)


@dataclass(frozen=True)
class Verdict:
    how: str
    told: str


def good(told: str) -> Verdict:
    return Verdict(GOOD, told)


def look(told: str) -> Verdict:
    return Verdict(WARNING, told)


def bad(told: str) -> Verdict:
    return Verdict(BAD, told)


# The machine


def python() -> Iterator[Verdict]:
    found = _output("python3", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])")
    if found is None:
        yield bad("there is no python3: install Python 3.11")
    elif not found.startswith("3.11."):
        yield bad(f"python3 is {found}: put Python 3.11 first on the PATH")
    else:
        yield good(found)


def java() -> Iterator[Verdict]:
    text = _output("java", "-version")
    found = re.search(r'version "(\d+)([^"]*)"', text or "")
    if found is None:
        yield bad("there is no java: install Java 17 (Debian: apt-get install openjdk-17-jre-headless)")
    elif found[1] not in ("17", "21"):
        yield bad(f"java is {found[1]}{found[2]}: put Java 17 or 21 first on the PATH")
    else:
        yield good(found[1] + found[2])


def disk() -> Iterator[Verdict]:
    yield _space(PROJECT, DISK_GB, "set-up and Spark's own files")


def memory() -> Iterator[Verdict]:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        yield look("this machine does not tell (no /proc/meminfo)")
        return
    free = int(text.split("MemAvailable:")[1].split()[0]) / 1024**2
    if free < MEMORY_GB:
        yield look(
            "memory", f"{free:.1f} GB are free: a driver takes up to 3 GB; end something else, or expect passes to be slow or killed"
        )
    else:
        yield good(f"{free:.1f} GB free")


def environments() -> Iterator[Verdict]:
    made = {"spark": "spark/.done", "jars": "jars/.done", "airflow": "airflow/.done"}
    missing = [name for name, mark in made.items() if not (LOCAL / mark).exists()]
    if missing:
        yield look(f"not there yet: {', '.join(missing)}; the next make run installs them")
    else:
        yield good("Spark's environment, Airflow's and the jars are installed")


# Settings and places


def settings() -> Iterator[Verdict]:
    known = {f"{PREFIX}{name}" for name in (*(setting.name.upper() for setting in fields(Settings)), *OTHERS)}
    given = sorted(name for name in os.environ if name.startswith(PREFIX))
    try:
        Settings.from_env()
    except SettingError as error:
        yield bad(str(error))
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            yield look(f"{name} is no setting and has no effect" + (f"; is {near[0]} meant?" if near else ""))
    yield good(f"from the environment: {', '.join(name for name in given if name in known) or 'none'}")


def lake() -> Iterator[Verdict]:
    """Can it be read and written, is there room, who writes now?"""
    found = Settings.from_env()
    from scripts.status import lease
    from spark_jobs.runtime import storage

    for place in found.places:
        storage.check(place)
    probe = f"{found.lake}/control/doctor-{os.getpid()}"
    storage.write(probe, b"can this be written?")
    if storage.read(probe) != b"can this be written?":
        yield bad(f"{found.lake}: what was just written cannot be read back")
    storage.delete(probe)
    yield good(f"{found.lake} can be read and written; lease: {lease(found, datetime.now(UTC))}")


def lake_disk() -> Iterator[Verdict]:
    place = Settings.from_env().lake
    yield good("an S3 server's own matter") if place.startswith(S3) else _space(Path(place), LAKE_GB, "the next passes")


def reference_files() -> Iterator[Verdict]:
    from spark_jobs.runtime import reference

    reference.check(Settings.from_env())
    yield good("sensors.csv, limits.csv and suppressions.csv can be used as they are (one that is absent is empty)")


def kafka() -> Iterator[Verdict]:
    found = Settings.from_env()
    if not found.kafka_servers:
        yield good("not set, not used")
        return
    from spark_jobs.runtime.broker import Broker

    topic = Broker(found).topic(found.kafka_topic)
    if topic is None:
        yield look(f"{found.kafka_servers} has no topic {found.kafka_topic} yet")
    else:
        yield good(f"{found.kafka_servers} has {found.kafka_topic}, {len(topic.ends)} partitions")


def airflow() -> Iterator[Verdict]:
    from scripts.airflow_server.commands import PORT
    from scripts.airflow_server.servers import read_state

    port = int(os.environ.get("COLDSTORE_AIRFLOW_PORT") or PORT)
    if state := read_state():
        yield good(f"is up at port {state['port']}")
        return
    free_port(port, instead="COLDSTORE_AIRFLOW_PORT=… make up")
    yield good(f"is not up; port {port} is free for it")


CHECKS = {
    "Python": python, "Java": java, "disk": disk, "memory": memory, "set-up": environments, "settings": settings, "lake": lake,
    "lake's disk": lake_disk, "reference": reference_files, "Kafka": kafka, "Airflow": airflow,
}  # fmt: skip


def examined(check: Callable[[], Iterator[Verdict]]) -> Iterator[Verdict]:
    """A check that breaks off says why."""
    try:
        yield from check()
    except ModuleNotFoundError as missing:
        yield look(f"cannot be looked at before set-up ({missing.name} is not installed): make setup")
    except SettingError:
        yield look("cannot be looked at with these settings")
    except (Problem, Stop, OSError) as trouble:
        yield bad(str(trouble))


def _space(folder: Path, needed_gb: int, purpose: str) -> Verdict:
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1024**3
    if free < needed_gb:
        return bad(f"{free:.1f} GB are free at {folder}: make room, {purpose} need {needed_gb} GB")
    return good(f"{free:,.0f} GB free at {folder}")


def _output(*command: str) -> str | None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return (ended.stdout + ended.stderr).strip()


def main() -> int:
    count = {GOOD: 0, WARNING: 0, BAD: 0}
    for name, check in CHECKS.items():
        for verdict in examined(check):
            count[verdict.how] += 1
            print(f"{verdict.how:<5} {name:<12} {verdict.told}", flush=True)
    if count[BAD]:
        print(f"{count[BAD]} to put right before the next pass")
    else:
        print("fit to run" + (f"; {count[WARNING]} to look at" if count[WARNING] else ""))
    return 1 if count[BAD] else 0


if __name__ == "__main__":
    sys.exit(main())
