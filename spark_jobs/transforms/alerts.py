"""alerts: what the rules find, as rows with a life: opened, resolved, moved, retracted; and the events that tell of it (P13, P17)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from include.overlap import Span, share_time
from include.rules import Rule
from spark_jobs.transforms.limits import Limits
from spark_jobs.transforms.suppressions import Suppressions
from spark_jobs.transforms.track import AFTER_ALL, SECOND, Episode

Alert = dict[str, Any]
Event = dict[str, Any]

CONTENT = (
    "rule", "severity", "sensor_id", "store_id", "started_at", "ended_at", "peak", "evidence",
    "limit_low_c", "limit_high_c", "status", "suppressed_by", "superseded_by",
)  # fmt: skip
TOLD = ("rule", "severity", "sensor_id", "store_id", "started_at", "ended_at", "peak", "suppressed_by", "superseded_by")
HISTORIC_AFTER_S = 24 * 3600


@dataclass(frozen=True)
class Desk:
    """Where alerts are written: by which run and clock, with which limits and suppressions."""

    limits: Limits
    suppressions: Suppressions
    as_of: int
    run_id: str
    number: int
    is_backfill: bool = False  # nobody is paged for history

    def alert(self, rule: Rule, sensor_id: str, found: Episode) -> Alert:
        limit = self.limits.in_force(found.store_id, found.started_at)
        return {
            "alert_id": alert_id(rule.name, sensor_id, found.started_at),
            "rule": rule.name,
            "severity": rule.severity,
            "sensor_id": sensor_id,
            "store_id": found.store_id,
            "started_at": found.started_at,
            "ended_at": found.ended_at,
            "peak": found.peak,
            "evidence": {"first": found.first, "worst": found.worst, "last": found.last, "before": found.before},
            "limit_low_c": _degrees(limit.low_mc if limit else None),
            "limit_high_c": _degrees(limit.high_mc if limit else None),
            "status": "open" if found.ended_at is None else "resolved",
            "suppressed_by": self.suppressions.reason(rule.name, sensor_id, found.store_id, found.started_at),
            "superseded_by": None,
        }

    def changed(self, fresh: Iterable[Alert], published: Mapping[str, Alert]) -> list[tuple[Alert, list[Event]]]:
        """The alerts that are other than published, with the events that say so. `published` are those that the fresh ones stand
        against: what is not borne out any more is retracted."""
        now = {alert["alert_id"]: alert for alert in fresh}
        gone = [alert for key, alert in published.items() if key not in now and alert["status"] != "retracted"]
        alive = {key for key, alert in published.items() if alert["status"] != "retracted"}
        new = [alert for key, alert in now.items() if key not in alive]
        wanted = [*now.values(), *(self._retracted(alert, new, now.values()) for alert in gone)]
        return [self._written(alert, published.get(alert["alert_id"])) for alert in wanted if _differs(alert, published)]

    def _retracted(self, alert: Alert, new: Iterable[Alert], fresh: Iterable[Alert]) -> Alert:
        """`superseded_by` names the first of the new ones at its time; where none is new, one that has its time now as well, as when two
        have become one. Open exactly while it has no end."""
        successors = _at_the_time_of(alert, new) or _at_the_time_of(alert, fresh)
        end = alert["ended_at"] if alert["ended_at"] is not None else max(alert["started_at"], self.as_of)
        successor = successors[0]["alert_id"] if successors else None
        return {**alert, "status": "retracted", "superseded_by": successor, "ended_at": end}

    def _written(self, alert: Alert, before: Alert | None) -> tuple[Alert, list[Event]]:
        revision = 0 if before is None else before["revision"] + 1
        written = {**alert, "revision": revision, "run_id": self.run_id}
        return written, [self._event(written, change) for change in changes(before, alert)]

    def _event(self, alert: Alert, change: str) -> Event:
        """The same id on every retry: an alert has each revision once."""
        at = {"opened": alert["started_at"], "resolved": alert["ended_at"], "retracted": self.as_of}[change]
        ended = alert["ended_at"]
        return {
            **{name: alert[name] for name in TOLD},
            "event_id": _hash(f"{alert['alert_id']}|{change}|{alert['revision']}"),
            "alert_id": alert["alert_id"],
            "change": change,
            "at": at,
            "is_historic": self.is_backfill or (ended is not None and ended < self.as_of - HISTORIC_AFTER_S * SECOND),
            "run_id": self.run_id,
            "number": self.number,
        }


def changes(before: Alert | None, after: Alert) -> list[str]:
    """What a receiver has to be told. An alert that is seen for the first time when it is over was opened, and is resolved."""
    was, now = before["status"] if before and before["status"] != "retracted" else None, after["status"]
    if was == now:
        return []
    if now == "retracted":
        return ["retracted"]
    if now == "open":
        return ["opened"]
    return ["resolved"] if was else ["opened", "resolved"]


def alert_id(rule: str, sensor_id: str, started_at: int) -> str:
    milliseconds = started_at // 1000 % 1000
    text = datetime.fromtimestamp(started_at // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return _hash(f"{rule}|{sensor_id}|{text}.{milliseconds:03d}Z")


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def _differs(alert: Alert, published: Mapping[str, Alert]) -> bool:
    before = published.get(alert["alert_id"])
    return before is None or any(alert[name] != before[name] for name in CONTENT)


def _at_the_time_of(alert: Alert, others: Iterable[Alert]) -> list[Alert]:
    there = (other for other in others if share_time(_span(other), _span(alert)))
    return sorted(there, key=lambda other: int(other["started_at"]))


def _span(alert: Alert) -> Span:
    return alert["started_at"], alert["ended_at"]


def overlap(one: Alert, other: Alert) -> bool:
    """Or touch."""
    return bool(one["started_at"] <= _end(other) and other["started_at"] <= _end(one))


def _end(alert: Alert) -> int:
    return AFTER_ALL if alert["ended_at"] is None else int(alert["ended_at"])


def _degrees(thousandths: int | None) -> float | None:
    return None if thousandths is None else thousandths / 1000
