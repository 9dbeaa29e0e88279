"""The command line."""

from __future__ import annotations

import argparse
import os
import signal
import sys

import scripts.airflow_server
from scripts.airflow_server import home
from scripts.airflow_server.commands import down, prepared, run, up
from scripts.problem import Problem


def main() -> int:
    parser = argparse.ArgumentParser(description=(scripts.airflow_server.__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start Airflow in the background")
    commands.add_parser("down", help="end it")
    one_pass = commands.add_parser("run", help="take one pass through Airflow")
    commands.add_parser("prepare", help="make its home and its database, and start nothing")
    clock = "the run's clock, like 2025-11-08T16:00:00Z (default: COLDSTORE_AS_OF, else now)"
    one_pass.add_argument("--as-of", default=os.environ.get("COLDSTORE_AS_OF", ""), help=clock)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended here, too
    try:
        return {"up": up, "down": down, "prepare": prepared}[given.command]() if given.command != "run" else run(given.as_of)
    except Problem as problem:
        print(f"airflow: {problem}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"airflow: Airflow does not answer as it should ({error}): see the logs in {home.logs()}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
