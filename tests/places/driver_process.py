"""A driver in a process of its own: for each line on standard input it takes a pass with those settings, and says how it ended."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

from include.settings import PREFIX, Settings
from spark_jobs.run_pass import main
from spark_jobs.runtime.session import session


def drive() -> None:
    spark = session("tests", Settings.from_env())
    print("ready", flush=True)
    for line in sys.stdin:
        for name in [name for name in os.environ if name.startswith(PREFIX)]:  # what the pass before had
            del os.environ[name]
        os.environ.update(json.loads(line))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            main(spark=spark)
        print(json.dumps(said.getvalue().splitlines()[-1]), flush=True)


if __name__ == "__main__":
    drive()
