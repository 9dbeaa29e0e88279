"""A Spark cluster on this machine, one master and two workers, from the pip package: start it (`up`) or end it (`down`). Standard library only.

It is for trying out what a cluster does: jobs in processes of their own that share nothing with the driver but the lake. All of it listens on
127.0.0.1 only, but asks nobody who he is: whoever has an account on this machine can run programs on it as you.

Everything lives in one folder, `.local/cluster` unless another is named: logs, the workers' folders, and which processes there are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from scripts.ports import LOCALHOST, free_port
from scripts.problem import Problem
from scripts.processes import State, boot, end, ended_by_themselves, launch, one_at_a_time, written_down

PROJECT = Path(__file__).resolve().parent.parent
SPARK_HOME = PROJECT / ".local" / "spark" / "lib" / "python3.11" / "site-packages" / "pyspark"
STATE = "cluster.json"
MASTER_PORT = 7077
WORKERS, CORES, MEMORY = 2, 1, "1g"
START_SECONDS, GRACE_SECONDS = 90, 10
# What a worker must not have from the shell that started it: it would find by chance what a job has to bring along, or know a secret.
NOT_HANDED_ON = ("COLDSTORE_", "SPARK_", "PYSPARK_", "PYTHON", "AIRFLOW_")


def environment() -> dict[str, str]:
    """Executors inherit this from their worker, and with it the keys of an S3 server (AWS_…)."""
    handed_on = {name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}
    return handed_on | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOCALHOST,  # web pages listen here, too
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "SPARK_WORKER_OPTS": "-Dspark.worker.cleanup.enabled=true -Dspark.worker.cleanup.appDataTtl=86400",
    }


def commands(home: Path, port: int, page: int) -> dict[str, list[str]]:
    deploy = "org.apache.spark.deploy"
    found = {"master": [f"{deploy}.master.Master", "--host", LOCALHOST, "--port", str(port), "--webui-port", str(page)]}
    for number in range(1, WORKERS + 1):
        own = ["--cores", str(CORES), "--memory", MEMORY, "--work-dir", str(home / f"worker-{number}"), "--webui-port", "0"]
        found[f"worker-{number}"] = [f"{deploy}.worker.Worker", "--host", LOCALHOST, *own, f"spark://{LOCALHOST}:{port}"]
    return found


def start(home: Path, wanted_port: int) -> State:
    """All of them, the workers known to the master; nothing is left behind where one does not come up."""
    if not SPARK_HOME.exists():
        raise Problem("this project is not set up yet: run `make setup` first.")
    port, page = free_port(wanted_port, "COLDSTORE_CLUSTER_PORT=7078 make cluster"), free_port()
    (home / "logs").mkdir(parents=True, exist_ok=True)
    state: State = {"boot": boot(), "port": port, "page": page, "processes": {}}
    try:
        for name, command in commands(home, port, page).items():
            (home / name).mkdir(exist_ok=True)
            started = [str(SPARK_HOME / "bin" / "spark-class"), *command]
            launch(state, home / STATE, name, started, environment(), home / name, home / "logs" / f"{name}.log")
        wait_for_workers(home, state)
        return state
    except BaseException:
        stop(home, state)
        raise


def wait_for_workers(home: Path, state: State) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for name in ended_by_themselves(state):
            raise Problem(f"the cluster's {name} ended by itself: see {home / 'logs' / name}.log.")
        with suppress(OSError):  # nobody listens yet
            if status(state)["aliveworkers"] == WORKERS:
                return
        time.sleep(0.3)
    raise Problem(f"the cluster did not come up within {START_SECONDS} s: see the logs in {home / 'logs'}.")


def status(state: State) -> dict[str, Any]:
    """What the master says of itself."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{LOCALHOST}:{state['page']}/json/", timeout=10) as answer:
        return dict(json.load(answer))


def stop(home: Path, state: State) -> None:
    left = end(state, GRACE_SECONDS)
    if left:
        raise Problem(f"processes {left} of the cluster do not end; look at them with ps, then run `make cluster-down` again.")
    (home / STATE).unlink(missing_ok=True)


def lock(home: Path) -> AbstractContextManager[None]:
    return one_at_a_time(home / "cluster.lock", "`make cluster` or `make cluster-down`")


def up(home: Path, port: int) -> int:
    with lock(home):
        state = written_down(home / STATE)
        if state is not None and ended_by_themselves(state):
            stop(home, state)  # what is left of a broken one
            state = None
        word = "is running already" if state else "is running"
        state = state or start(home, port)
    master = f"spark://{LOCALHOST}:{state['port']}"
    print(
        f"The cluster {word}: {master}, {WORKERS} workers of {CORES} core and {MEMORY} each; http://{LOCALHOST}:{state['page']} shows them"
    )
    print(f"a pass on it:       COLDSTORE_MASTER={master} make pass")
    print(f"through Airflow:    COLDSTORE_MASTER={master} make run   (or make up)")
    print("stop it:            make cluster-down")
    return 0


def down(home: Path) -> int:
    with lock(home):
        state = written_down(home / STATE)
        if state is None:
            print("The cluster is not running.")
            return 0
        stop(home, state)
        print("The cluster has ended.")
        return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=["up", "down"])
    parser.add_argument("--home", type=Path, default=PROJECT / ".local" / "cluster", help="the folder it lives in")
    parser.add_argument("--port", type=int, default=int(os.environ.get("COLDSTORE_CLUSTER_PORT") or MASTER_PORT), help="0: any free one")
    given = parser.parse_args()
    try:
        return up(given.home.absolute(), given.port) if given.command == "up" else down(given.home.absolute())
    except Problem as problem:
        print(f"cluster: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
