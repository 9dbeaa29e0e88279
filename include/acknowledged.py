"""What people said about an alert (P16): it stays on an episode that late data or a rebuild moved: same rule, same sensor, and the times overlap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


def said_of(alert: Row, said: Iterable[Row]) -> list[Row]:
    """What people said about this episode, or about one that was where it is now; the latest last."""
    on_it = (
        row
        for row in said
        if (row["rule"], row["sensor_id"]) == (alert["rule"], alert["sensor_id"])
        and row["started_at"] <= (alert["ended_at"] or row["started_at"])
        and alert["started_at"] <= row["seen_until"]
    )
    return sorted(on_it, key=lambda row: row["acknowledged_at"])
