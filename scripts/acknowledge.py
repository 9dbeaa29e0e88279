"""Write down that somebody has seen to an alert: python -m scripts.acknowledge (make ack alert=… by=… why=…)"""

from __future__ import annotations

import argparse
import sys

from include.settings import SettingError, Settings
from published.acknowledging import acknowledge
from published.refused import Refused


def main() -> int:
    parser = argparse.ArgumentParser(prog="make ack", description=__doc__, allow_abbrev=False)
    parser.add_argument("--alert", required=True, help="the alert's id, or its first digits")
    parser.add_argument("--by", required=True, help="who has seen to it")
    parser.add_argument("--why", required=True, help="what it was, or what was done")
    given = parser.parse_args()
    try:
        alert = acknowledge(Settings.from_env().lake, given.alert, given.by, given.why)
    except (Refused, SettingError) as refused:
        print(refused, file=sys.stderr)
        return 1
    print(f"{alert['rule']} of {alert['sensor_id']} in {alert['store_id']} is acknowledged by {given.by}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
