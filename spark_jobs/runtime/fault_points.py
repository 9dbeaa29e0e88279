"""Fault points: the moments before and after anything that lasts is written, where a test has the driver killed (docs/reliability.md).

COLDSTORE_DIE_AT names the one at which the process and all its children die, as by a power cut; COLDSTORE_FREEZE_AT the one at which they are
suspended; COLDSTORE_POINTS a file to list those that were passed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def around(step: str) -> Iterator[None]:
    passed(f"before {step}")
    yield
    passed(f"after {step}")


def passed(point: str) -> None:
    if listed := os.environ.get("COLDSTORE_POINTS"):
        with open(listed, "a", encoding="utf-8") as file:
            file.write(f"{point}\n")
    for setting, how in (("COLDSTORE_DIE_AT", signal.SIGKILL), ("COLDSTORE_FREEZE_AT", signal.SIGSTOP)):
        if os.environ.get(setting) == point:
            os.killpg(0, how)
