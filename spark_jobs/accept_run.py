"""Accept a held run, with name and reason, and publish it: make accept run=… by=… why=…"""

from __future__ import annotations

import argparse
import sys

from spark_jobs.run_pass import main
from spark_jobs.runtime import acceptance
from spark_jobs.runtime.lake import Lake


def accept_run() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="the held run's id")
    parser.add_argument("--by", required=True, help="who accepts it")
    parser.add_argument("--why", required=True, help="why")
    given = parser.parse_args()

    def accept(lake: Lake) -> str:
        held = acceptance.accept(lake, given.run, given.by, given.why)
        print(f"{given.run} is accepted by {given.by}; a pass publishes it now.", flush=True)
        return held.as_of

    return main(accept)


if __name__ == "__main__":
    sys.exit(accept_run())
