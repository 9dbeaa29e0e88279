"""Judge quarantined lines again by today's rules and take in what is valid now: make replay [reason=…]"""

from __future__ import annotations

import argparse
import sys

from spark_jobs.run_pass import main
from spark_jobs.runtime import requests
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import history


def replay_quarantine() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reason", default="", help="only lines with this reason")
    reason = parser.parse_args().reason

    def ask(lake: Lake) -> str | None:
        if not lake.exists("quarantine"):
            raise Stop(f"{lake.settings.lake} has no quarantine yet: run a pass first.")
        requests.ask_for_replay(lake.place(), reason)
        published = history(lake).published
        return published.as_of if published else None

    return main(ask)


if __name__ == "__main__":
    sys.exit(replay_quarantine())
