"""Whether two episodes are at the same time: what is said of one, or took its place, goes by it."""

from __future__ import annotations

from typing import Any

Span = tuple[Any, Any]  # start and end, which None leaves open


def share_time(one: Span, other: Span) -> bool:
    """An episode holds its start and not its end, so those that only touch do not overlap: the reading that ends one silence may
    begin the next. A moment (start = end) overlaps what begins with it, and what goes on around it."""
    (start, end), (other_start, other_end) = one, other
    return bool(start == other_start or (_is_before(start, other_end) and _is_before(other_start, end)))


def _is_before(start: Any, end: Any) -> bool:
    return end is None or start < end
