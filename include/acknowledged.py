"""What people said about an alert (P16): it stays on an episode that late data or a rebuild moved: same rule, same sensor, and the times overlap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from include.overlap import share_time

Row = dict[str, Any]


def said_of(alert: Row, said: Iterable[Row]) -> list[Row]:
    """What people said about this episode, or about one that was where it is now; the latest last."""
    on_it = (
        row
        for row in said
        if (row["rule"], row["sensor_id"]) == (alert["rule"], alert["sensor_id"])
        and share_time((row["started_at"], row["seen_until"]), (alert["started_at"], alert["ended_at"]))
    )
    return sorted(on_it, key=lambda row: row["acknowledged_at"])
