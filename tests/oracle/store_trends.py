"""store_trends: ten minutes of a store, every five, where it said something, with the slope of its temperature.

Read as: the slope runs through all readings of the store in the window, whichever sensor; it is null when all fall on one instant.
With x = event_ts − window_start in ms and y = thousandths, both exact integers,
slope = 3600 × (n Σxy − Σx Σy) / (n Σx² − (Σx)²): one division at the end (thousandths per ms × 3 600 000 ms ÷ 1000).
"""

from __future__ import annotations

from tests.oracle.clock import MINUTE, frontier, is_final, window_start
from tests.oracle.lines import Reading
from tests.oracle.measures import measures
from tests.oracle.readings import Winners, by_store
from tests.oracle.reference import Reference

LENGTH = 10 * MINUTE
EVERY = 5 * MINUTE


def build(winners: Winners, reference: Reference, as_of: int) -> list[dict]:
    """The rows of every store, by store and window."""
    rows = []
    for store_id, readings in by_store(winners).items():
        reached = frontier(readings, as_of)
        latest = {window_start(reading.event_ms, EVERY) for reading in readings}
        for start in sorted(latest | {start - EVERY for start in latest}):
            in_window = [reading for reading in readings if start <= reading.event_ms < start + LENGTH]
            rows.append(
                {
                    "store_id": store_id,
                    "window_start": start,
                    "window_end": start + LENGTH,
                    **measures(in_window),
                    "slope_c_per_hour": slope_c_per_hour(in_window, start),
                    "is_final": is_final(start + LENGTH, reached),
                }
            )
    return rows


def slope_c_per_hour(readings: list[Reading], start: int) -> float | None:
    """Least squares of °C against hours."""
    points = [(reading.event_ms - start, reading.temperature) for reading in readings]
    sum_x, sum_y = sum(x for x, _ in points), sum(y for _, y in points)
    numerator = len(points) * sum(x * y for x, y in points) - sum_x * sum_y
    denominator = len(points) * sum(x * x for x, _ in points) - sum_x * sum_x
    return numerator * 3600 / denominator if denominator else None
