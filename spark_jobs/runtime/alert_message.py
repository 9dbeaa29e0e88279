"""An alert event as receivers get it, whatever way it takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Protocol

from spark_jobs.runtime.small_tables import Row
from webhook.sent import Sent

# What a receiver may rely on, in this order: columns of `alert_events`.
MESSAGE = (
    *("event_id", "alert_id", "change", "at", "is_historic", "run_id", "rule", "severity", "sensor_id", "store_id"),
    *("started_at", "ended_at", "peak", "suppressed_by", "superseded_by"),
)


class Sink(Protocol):
    """A way out for alert events."""

    @property
    def name(self) -> str:
        """As `deliveries` has it."""

    @property
    def is_over(self) -> bool:
        """Nothing more is sent in this run."""

    def send(self, event: Row) -> Sent: ...


def message(event: Row) -> bytes:
    """The event as compact JSON; the same bytes at every attempt."""
    values = {name: _time(event[name]) if isinstance(event[name], datetime) else event[name] for name in MESSAGE}
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _time(moment: datetime) -> str:
    """Always with milliseconds, as the alert's id has it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
