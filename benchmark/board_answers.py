"""How soon the store board answers, asked as a browser asks it: of a real Airflow, with a login, on the lake that COLDSTORE_LAKE names.

Needs Airflow's environment; what it finds goes to standard output as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median

from include.settings import Settings
from published.board import stores
from published.snapshot import published
from scripts.airflow_server.names import DAG
from scripts.airflow_server.servers import stop
from scripts.airflow_server.starting import start
from scripts.ports import free_port

LATER = 10


def main() -> None:
    worst, *_ = stores(published(Settings.from_env().lake))
    pages = {  # each with what stands on it
        "the board": ("/coldstore/", worst.store_id),
        f"a store of {sum(worst.sensors.values())} sensors": (f"/coldstore/stores/{worst.store_id}", worst.store_id),
        "quality": ("/coldstore/quality", "Completeness"),
        "Airflow's own list of DAGs": ("/api/v2/dags", DAG),
    }
    state, api = start("run", free_port())
    try:
        found = {}
        for name, (path, shown) in pages.items():
            seconds = []
            for _ in range(1 + LATER):
                began = time.perf_counter()
                answer = api.ask("GET", path)
                seconds.append(time.perf_counter() - began)
                assert shown.encode() in answer, f"{path} does not show {shown}"
            found[name] = {"first": seconds[0], "later": median(seconds[1:])}
    finally:
        stop(state)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
