"""The columns of a line before it is written: all that its text, its file and its place there depend on."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.void]

# The order is kept in saved states: new kinds go to the end.
KINDS = (
    "good",
    "original",
    "buffered",
    "late",
    "out_of_order",
    "odd",
    "duplicate_near",
    "duplicate_far",
    "conflict",
    "wrong_clock",
    "bad",
    "blank",
)
KIND = {name: code for code, name in enumerate(KINDS)}
NEW_READINGS = ("good", "original", "buffered", "late", "out_of_order", "odd")
DUPLICATES = ("duplicate_near", "duplicate_far")

ROW = np.dtype(
    [
        ("sensor", np.int32),
        ("store", np.int32),  # the one the line names; the sensor's own decides which gateway brings it
        ("event_ms", np.int64),
        ("milli", np.int32),
        ("door", np.bool_),
        ("battery", np.int16),
        ("kind", np.int8),
        ("queued_ms", np.int64),  # the place among the lines of a file
        ("arrived_ms", np.int64),
        ("dice", np.uint64),  # what the odd and the bad lines are made from
    ],
    align=True,
)


def empty(count: int = 0) -> Rows:
    return np.zeros(count, dtype=ROW)


def together(*parts: Rows) -> Rows:
    """One after the other. As bare bytes, because numpy copies records field by field, nine times as slowly."""
    return np.concatenate([part.view(f"V{ROW.itemsize}") for part in parts]).view(ROW)


def in_files(rows: Rows, gateway: NDArray[np.int64]) -> list[Rows]:
    """Split by file (arrival and gateway), each in the order of places; never in the order in which rows were made."""
    place = (rows["queued_ms"] << 22) | (rows["sensor"].astype(np.int64) << 4) | rows["kind"]
    file = rows["arrived_ms"] * (int(gateway.max()) + 1) + gateway
    order = np.lexsort((place, file))
    begins = np.flatnonzero(np.diff(file[order])) + 1
    return np.split(np.take(rows, order), begins)
