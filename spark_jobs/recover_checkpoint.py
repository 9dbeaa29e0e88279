"""Make the checkpoints anew where one is damaged; the ledger knows what was taken: make recover"""

from __future__ import annotations

import sys

from include.settings import Settings
from spark_jobs.runtime import topic_life
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake


def recover_checkpoint(lake: Lake) -> None:
    topic_life.forget_checkpoints(lake)  # first: without this a topic would be read again from where its old checkpoint began
    lake.delete("checkpoints")
    known = len({row["source"] for row in lake.rows("raw_files", ["source"])})
    print(
        f"The checkpoints are removed. The ledger knows {known:,} files, and where each topic was left; the next pass begins new ones and takes "
        "what is not known."
    )


def main() -> None:
    with opened(Settings.from_env(), "make recover") as lake:
        recover_checkpoint(lake)


if __name__ == "__main__":
    sys.exit(program(main))
