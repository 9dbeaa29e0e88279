"""Make the checkpoint anew where it is damaged; the ledger knows which files were taken: make recover"""

from __future__ import annotations

import sys

from include.settings import Settings
from spark_jobs.runtime.checkpoint import Checkpoint
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake


def recover_checkpoint(lake: Lake) -> None:
    Checkpoint(lake, "ingest_readings").remove()
    known = len({row["source"] for row in lake.rows("raw_files", ["source"])})
    print(f"The checkpoint is removed. The ledger knows {known:,} files; the next pass begins a new one and takes what is not among them.")


def main() -> None:
    with opened(Settings.from_env(), "make recover") as lake:
        recover_checkpoint(lake)


if __name__ == "__main__":
    sys.exit(program(main))
