"""Write down that somebody has seen to an alert: make ack alert=… by=… why=…"""

from __future__ import annotations

import argparse
import sys

from include.settings import Settings
from spark_jobs.runtime import acknowledgements
from spark_jobs.runtime.job import opened, program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alert", required=True, help="the alert's id, or its first digits")
    parser.add_argument("--by", required=True, help="who has seen to it")
    parser.add_argument("--why", required=True, help="what it was, or what was done")
    given = parser.parse_args()
    with opened(Settings.from_env(), "make ack") as lake:
        alert = acknowledgements.acknowledge(lake, given.alert, given.by, given.why)
    print(f"{alert['rule']} of {alert['sensor_id']} in {alert['store_id']} is acknowledged by {given.by}.")


if __name__ == "__main__":
    sys.exit(program(main))
