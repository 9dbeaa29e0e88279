"""store_trends: ten minutes of a store, every five, where it said something, with the slope of its temperature.

A window is made of minutes: their sums are whole numbers, so that any way of adding them up gives the same to the bit.
"""

from __future__ import annotations

import numpy as np

from spark_jobs.transforms.store_minutes import SUMS, Store
from spark_jobs.transforms.track import SECOND
from spark_jobs.transforms.windows import Columns, taken

LENGTH, EVERY = 600 * SECOND, 300 * SECOND
CONTENT = ("readings", "temperature_avg_c", "temperature_min_c", "temperature_max_c", "door_open_share", "slope_c_per_hour", "is_final")


def build(minutes: Columns, store: Store) -> Columns:
    """From the minutes that have readings, as store_minutes has them."""
    spoken = taken(minutes, minutes["readings"] > 0)
    parts = [in_windows(spoken, back) for back in range(0, LENGTH, EVERY)]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rows = taken(rows, np.argsort(rows["window_start"], kind="stable"))
    starts, firsts = np.unique(rows["window_start"], return_index=True)
    sums = {name: _reduced(np.add, rows[name], firsts) for name in ("readings", *SUMS)}
    shares = np.full(len(starts), np.nan)
    return {
        "window_start": starts,
        "window_end": starts + LENGTH,
        "readings": sums["readings"],
        "temperature_avg_c": sums["sum_mc"] / sums["readings"] / 1000,
        "temperature_min_c": _reduced(np.minimum, rows["temperature_min_c"], firsts),
        "temperature_max_c": _reduced(np.maximum, rows["temperature_max_c"], firsts),
        "door_open_share": np.divide(sums["door_open"], sums["door_said"], out=shares, where=sums["door_said"] > 0),
        "slope_c_per_hour": slopes(sums),
        "is_final": starts + LENGTH <= store.final_until,
    }


def in_windows(minutes: Columns, back: int) -> Columns:
    """Each minute in the window that starts `back` before the latest one that holds it; its times counted from that window's start."""
    starts = minutes["window_start"]
    windows = starts - starts % EVERY - back
    shift, count = (starts - windows) // 1000, minutes["readings"]
    return {
        **minutes,
        "window_start": windows,
        "sum_ms": minutes["sum_ms"] + shift * count,
        "sum_ms_ms": minutes["sum_ms_ms"] + 2 * shift * minutes["sum_ms"] + shift * shift * count,
        "sum_ms_mc": minutes["sum_ms_mc"] + shift * minutes["sum_mc"],
    }


def slopes(sums: Columns) -> np.ndarray:
    """Least squares of °C against hours, in Python's whole numbers: products of the sums outgrow 64 bits. NaN where all readings are of
    one moment."""
    names = ("readings", "sum_ms", "sum_mc", "sum_ms_ms", "sum_ms_mc")
    found = []
    for n, ms, mc, ms_ms, ms_mc in zip(*(sums[name].tolist() for name in names), strict=True):
        run = n * ms_ms - ms * ms
        found.append((n * ms_mc - ms * mc) * 3600 / run if run else np.nan)
    return np.array(found, np.float64)


def _reduced(how: np.ufunc, values: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    return how.reduceat(values, firsts) if len(firsts) else values
