"""Times as people say them."""

from __future__ import annotations

from datetime import timedelta


def lasted(time: timedelta) -> str:
    """In the largest unit of which there are two."""
    seconds = max(time.total_seconds(), 0)
    for size, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:,.0f} {name}"
    return f"{seconds:.0f} s"
