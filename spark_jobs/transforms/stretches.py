"""Which stretches of a sensor's readings are looked at again: what changed, and around it what a rule may have to see.

Worked out on the driver, from when something changed and from the published episodes that reach there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from include.rules import DoorLeftOpen, Drop, OutOfLimits, RiseAfterDoor, Rule
from spark_jobs.transforms.door_sessions import Session
from spark_jobs.transforms.track import AFTER_ALL, BEFORE_ALL, SECOND

Row = Mapping[str, Any]
Span = tuple[int, int]
Rows = TypeVar("Rows")


@dataclass(frozen=True)
class Stretch:
    changed_from: int
    changed_to: int
    read_from: int
    read_to: int
    spans: tuple[Span, ...] = ()  # where in it the sensor may have said something; all of it where none is given


EVERYTHING = Stretch(BEFORE_ALL, AFTER_ALL, BEFORE_ALL, AFTER_ALL)


@dataclass(frozen=True)
class Sensed:
    """What a review has to know of a sensor besides its readings."""

    sensor_id: str
    home: str | None  # its store in the inventory
    stores: tuple[str, ...]  # that its readings name
    first_at: int
    last_at: int
    silent_after: int
    is_silent: bool
    silence_ended_at: int | None
    stretches: tuple[Stretch, ...]
    may_resume: bool = True  # rules and limits are those of the published rows: what is open there goes on
    only: Span | None = None  # nothing changes but what reaches into that time; None: wherever the stretches find something


@dataclass(frozen=True)
class Known:
    """A sensor's published rows."""

    outages: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    alerts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by rule, retracted ones too
    doors: Mapping[int, dict[str, Any]] = field(default_factory=dict)  # alerts about a door left open, by start

    @staticmethod
    def of(rows: Iterable[Row], rules: Iterable[Rule]) -> Known:
        known, about_doors = Known(doors=(doors := {})), {rule.name for rule in rules if isinstance(rule.when, DoorLeftOpen)}
        for row in rows:
            if outage := row["outage"]:
                known.outages.append(outage)
            elif session := row["session"]:
                known.sessions.append(session)
            elif alert := row["alert"]:
                known.alerts.setdefault(alert["rule"], []).append(alert)
                if alert["rule"] in about_doors and alert["status"] != "retracted":
                    doors[alert["started_at"]] = alert
        return known

    def is_left_open(self, session: Row) -> bool:
        alert = self.doors.get(session["started_at"])
        return alert is not None and alert["ended_at"] is None

    def session_before(self, row: Row, moment: int) -> Session | None:
        """A session that ended before the moment, as it was known then; its alert tells what the row does not."""
        alert = self.doors.get(row["started_at"])
        if alert is None or row["ended_at"] >= moment:
            return None
        evidence = alert["evidence"]
        return Session(
            row["started_at"], row["ended_at"], row["store_id"], row["readings"], evidence["first"], evidence["worst"], evidence["last"]
        )  # fmt: skip


def margin(rules: Iterable[Rule], silent_after: int, door_gap: int) -> int:
    """How far from a changed reading a rule may have to look, where nothing published reaches further."""
    kinds = [kind for rule in rules for kind in rule.variants]
    looks = [kind.within_s * SECOND for kind in kinds if isinstance(kind, Drop | RiseAfterDoor)]
    holds = [kind.for_s * SECOND for kind in kinds if isinstance(kind, OutOfLimits)]
    return max(silent_after, *looks, door_gap) + max(holds, default=0) + door_gap


def of_sensor(changed: Iterable[Span], known: Known, margin: int, spoke: Span | None, may_resume: bool) -> tuple[Stretch, ...]:
    """`changed`: from when to when, day by day; `spoke`: the sensor's first and last reading as published."""
    days = list(changed)
    if spoke is None:  # all that it ever said
        first, last = min(start for start, _ in days), max(end for _, end in days)
        return (Stretch(first, last, first, last, tuple(days)),)
    return _merged(_around(day, known, margin, spoke, may_resume) for day in days)


def settled(
    near: Span, spoke: Span, load: Callable[[Span], Rows], stretches_in: Callable[[Rows], Mapping[str, tuple[Stretch, ...]]]
) -> tuple[Rows, Mapping[str, tuple[Stretch, ...]]]:
    """The published rows that reach into what is looked at again, and what that is.

    An episode that reaches what changed may go on from there and meet others: their rows have to be known, too, or they would be found
    anew, or left standing beside what took their place. `spoke`: no episode starts outside of it.
    """
    while True:
        rows = load(near)
        found = stretches_in(rows)
        every = [stretch for stretches in found.values() for stretch in stretches]
        first = min((stretch.read_from for stretch in every), default=near[0])
        last = max((stretch.read_to for stretch in every), default=near[1])
        wider = min(near[0], max(first, spoke[0])), max(near[1], min(last, spoke[1]))
        if wider == near:
            return rows, found
        near = wider


def _around(changed: Span, known: Known, margin: int, spoke: Span, may_resume: bool) -> Stretch:
    since, until = changed
    near = since - margin, until + margin
    spans = [near]
    if spoke[1] < near[0]:
        spans.append((spoke[1] - margin, spoke[1]))
    if spoke[0] > near[1]:
        spans.append((spoke[0], spoke[0] + margin))
    for outage in known.outages:
        if _reaches(outage, near):
            end = outage["ended_at"]
            spans += [(outage["started_at"] - margin, outage["started_at"])] + ([] if end is None else [(end, end)])
    for session in known.sessions:
        # What comes after a door left open, however late, says that it was closed or not heard of; what came before it says nothing of it.
        is_near = _reaches(session, near) or (known.is_left_open(session) and session["started_at"] <= near[1])
        if is_near and not (may_resume and known.session_before(session, since)):
            spans.append((session["started_at"], session["ended_at"] + margin))
    for alerts in known.alerts.values():
        spans += [span for alert in alerts if alert["status"] != "retracted" for span in _of_alert(alert, changed, near, may_resume)]
    return Stretch(since, until, min(start for start, _ in spans), max(end for _, end in spans), tuple(spans))


def _of_alert(alert: Row, changed: Span, near: Span, may_resume: bool) -> Iterator[Span]:
    start, end = alert["started_at"], alert["ended_at"]
    if end is None and may_resume and alert["evidence"]["last"] and alert["evidence"]["last"]["event_ts"] < changed[0]:
        yield changed[0], AFTER_ALL
    elif alert["evidence"]["worst"] and start <= near[1] and (end is None or end >= changed[0]):
        yield start, AFTER_ALL if end is None else end


def _reaches(row: Row, near: Span) -> bool:
    return bool(row["started_at"] <= near[1] and (row["ended_at"] is None or row["ended_at"] >= near[0]))


def _merged(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Those that overlap become one, so that nothing is looked at twice."""
    found: list[Stretch] = []
    for each in sorted(stretches, key=lambda stretch: stretch.read_from):
        if found and each.read_from <= found[-1].read_to:
            last = found.pop()
            each = Stretch(
                min(last.changed_from, each.changed_from), max(last.changed_to, each.changed_to),
                min(last.read_from, each.read_from), max(last.read_to, each.read_to), last.spans + each.spans,
            )  # fmt: skip
        found.append(each)
    return tuple(found)
