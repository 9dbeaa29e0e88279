"""Show the raw line behind a reading or a quarantined row: make line source=… position=…"""

from __future__ import annotations

import argparse
import sys

from include.settings import Settings
from spark_jobs.readers.kafka_messages import is_topic
from spark_jobs.readers.raw_line import lines_at


def show_line() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="the row's source, as the table has it")
    parser.add_argument(
        "--position", required=True, type=int, help="the row's position: a byte offset in the unpacked file, or a message's offset"
    )
    given = parser.parse_args()
    (line,) = lines_at(given.source, [given.position], Settings.from_env())
    if line is None:
        gone = (
            "raw_messages has no such message"
            if is_topic(given.source)
            else "it is not there, or does not reach so far; was it moved away or cut?"
        )
        print(f"{given.source} at {given.position}: {gone}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(line + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(show_line())
