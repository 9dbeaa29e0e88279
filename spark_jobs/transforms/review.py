"""One sensor looked at again: what its readings now say of silences, door sessions and alerts, against what is published.

A stretch holds what changed, and around it all that a rule has to see (`stretches`). What lies outside of a rule's own region stays as
it is published. Where the readings at hand cannot tell in which state a rule was before them, or will be after them, the
stretch is too short, and the sensor is looked at as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from include.rules import BatteryLow, DoorLeftOpen, Drop, Outage, OutOfLimits, RiseAfterDoor, Rule
from spark_jobs.transforms import door_sessions, outages, spells
from spark_jobs.transforms.alerts import Alert, Desk, overlap
from spark_jobs.transforms.door_sessions import Session
from spark_jobs.transforms.outages import Silence
from spark_jobs.transforms.stretches import Known, Sensed, Stretch
from spark_jobs.transforms.track import BEFORE_ALL, SECOND, Episode, Track

Row = dict[str, Any]


class TooShort(Exception):
    pass


@dataclass(frozen=True)
class Review:
    rules: tuple[Rule, ...]
    desk: Desk
    heard_until: int
    door_gap: int

    def of(self, sensor: Sensed, track: Track, known: Known) -> Iterator[Row]:
        """The rows that change: `action`, and one of `outage`, `session`, `alert`, `event`."""
        for stretch in sensor.stretches:
            yield from _Stretch(self, sensor, track.between(stretch.read_from, stretch.read_to), known, stretch).rows()


class _Stretch:
    def __init__(self, review: Review, sensor: Sensed, track: Track, known: Known, stretch: Stretch) -> None:
        self.review, self.sensor, self.track, self.known, self.stretch = review, sensor, track, known, stretch
        self.since, self.until = stretch.changed_from, stretch.changed_to
        self.is_from_start, self.is_to_end = stretch.read_from <= sensor.first_at, stretch.read_to >= sensor.last_at

    def rows(self) -> Iterator[Row]:
        silences, silent_from = self._silences()
        fresh = [silence.row(self.sensor.sensor_id, self.track, self.sensor.home) for silence in silences]
        before = _starting(self.known.outages, silent_from, self.until)
        yield from _differences("outage", *self._wanted(fresh, before), outages.CONTENT)
        sessions, session_from = self._sessions()
        latest = self.until + self.review.door_gap
        changed = [each for each in sessions if session_from <= each.started_at <= latest]
        fresh, before = [each.row(self.sensor.sensor_id) for each in changed], _starting(self.known.sessions, session_from, latest)
        yield from _differences("session", *self._wanted(fresh, before), door_sessions.CONTENT)
        for rule in self.review.rules:
            match rule.when:
                case Outage():
                    found, start, end = [silence.episode(self.track) for silence in silences], silent_from, self.until
                case Drop():
                    found, start, end = self._drops(rule)
                case DoorLeftOpen():
                    found, start, end = self._doors_left_open(rule, changed), session_from, latest
                case RiseAfterDoor():
                    found, start, end = self._rises(rule, sessions)
                case OutOfLimits() | BatteryLow():
                    found, start, end = self._spells(rule)
            found = [each for each in found if start <= each.started_at <= end and rule.at(each.store_id) is not None]
            fresh = [self.review.desk.alert(rule, self.sensor.sensor_id, each) for each in found]
            yield from self._alerts(fresh, _starting(self.known.alerts.get(rule.name, ()), start, end))
        if not self.sensor.may_resume:
            for name in self.known.alerts.keys() - {rule.name for rule in self.review.rules}:
                yield from self._alerts([], self.known.alerts[name])  # of a rule that there is no more

    def _alerts(self, fresh: list[Alert], before: list[Alert]) -> Iterator[Row]:
        fresh, before = self._wanted(fresh, before)
        published = {alert["alert_id"]: alert for alert in before}
        for alert, events in self.review.desk.changed(fresh, published):
            yield {"action": "update" if alert["alert_id"] in published else "insert", "alert": alert}
            yield from ({"action": "insert", "event": event} for event in events)

    def _wanted(self, fresh: list[Row], published: list[Row]) -> tuple[list[Row], list[Row]]:
        """What reaches into the time that it is about, and what takes the place of something that does."""
        if self.sensor.only is None:
            return fresh, published
        asked = {"started_at": self.sensor.only[0], "ended_at": self.sensor.only[1]}
        reaching = [asked, *(row for row in (*fresh, *published) if overlap(row, asked))]
        return [row for row in fresh if _touches(row, reaching)], [row for row in published if _touches(row, reaching)]

    # Silences: between two readings, one of which changed or has a new neighbour

    def _silences(self) -> tuple[list[Silence], int]:
        track, sensor = self.track, self.sensor
        before, last = track.first_at(self.since) - 1, track.first_at(self.until + 1) - 1
        found = outages.silences(track, max(before, 0), last, sensor.silent_after)
        if self.is_to_end and sensor.is_silent and len(track) and last == len(track) - 1:
            found.append(Silence(last, None, sensor.silence_ended_at))
        return found, int(track.times[before]) if before >= 0 else self.since

    def _drops(self, rule: Rule) -> tuple[list[Episode], int, int]:
        track = self.track
        first, after = max(track.first_at(self.since), 1), track.first_at(self.until + 1)
        falls = track.temperatures[:-1] - track.temperatures[1:]
        ages = np.diff(track.times)
        is_drop = np.zeros(len(ages), bool)
        for kind, here in track.variants(rule):
            assert isinstance(kind, Drop)
            is_drop |= here[1:] & (falls > round(kind.by_c * 1000)) & (ages <= kind.within_s * SECOND)
        places = [place for place in (np.flatnonzero(is_drop) + 1).tolist() if first <= place <= after]
        end = int(track.times[after]) if after < len(track) else self.until
        return [self._moment(place) for place in places], self.since, end

    def _moment(self, place: int) -> Episode:
        track = self.track
        reading, at = track.evidence(place), int(track.times[place])
        return Episode(at, at, track.store(place), reading["temperature_c"], reading, reading, reading, track.evidence(place - 1))

    # Doors

    def _sessions(self) -> tuple[list[Session], int]:
        """All sessions whose start is sure, and from which start on they stand against the published ones."""
        gap, read_from = self.review.door_gap, self.stretch.read_from
        near = [row for row in self.known.sessions if row["ended_at"] >= self.since - gap or self.known.is_left_open(row)]
        near = [row for row in near if row["started_at"] <= self.until + gap]
        start = min((self.since - gap, *(row["started_at"] for row in near)))
        resumed = (
            next((each for row in near if (each := self.known.session_before(row, self.since))), None) if self.sensor.may_resume else None
        )
        sure_from = BEFORE_ALL if self.is_from_start else read_from + gap
        found = door_sessions.sessions(self.track, gap)
        if resumed is None:
            starts = {row["started_at"] for row in near}
            return [each for each in found if each.started_at >= sure_from or each.started_at in starts], start
        later = door_sessions.sessions(self.track.between(self.since, self.stretch.read_to), gap)
        joins = bool(later) and later[0].started_at - resumed.ended_at <= gap
        whole = door_sessions.continued(resumed, later[0] if joins else None)
        others = [each for each in found if each.started_at >= sure_from and not whole.started_at <= each.started_at <= whole.ended_at]
        return sorted([whole, *others], key=lambda each: each.started_at), start

    def _doors_left_open(self, rule: Rule, sessions: Iterable[Session]) -> list[Episode]:
        found = []
        for each in sessions:
            kind = rule.at(each.store_id)
            if isinstance(kind, DoorLeftOpen) and each.ended_at - each.started_at >= kind.for_s * SECOND:
                is_last = each.ended_at == self.sensor.last_at
                may_go_on = is_last and self.review.heard_until - each.ended_at <= kind.heard_within_s * SECOND
                end = None if may_go_on else each.ended_at
                found.append(Episode(each.started_at, end, each.store_id, each.worst["temperature_c"], each.first, each.worst, each.last))
        return found

    def _rises(self, rule: Rule, sessions: Iterable[Session]) -> tuple[list[Episode], int, int]:
        longest = max(kind.within_s for kind in rule.variants if isinstance(kind, RiseAfterDoor)) * SECOND
        since = self.since - longest
        found = (self._rise(rule, each) for each in sessions if each.started_at >= since)
        return [each for each in found if each], since, self.until + self.review.door_gap

    def _rise(self, rule: Rule, session: Session) -> Episode | None:
        kind, track = rule.at(session.store_id), self.track
        if not isinstance(kind, RiseAfterDoor):
            return None
        first, past = track.first_at(session.started_at), track.first_at(session.started_at + kind.within_s * SECOND + 1)
        warmer = np.flatnonzero(track.temperatures[first + 1 : past] - track.temperatures[first] >= round(kind.by_c * 1000))
        if not len(warmer):
            return None
        reading = track.evidence(first + 1 + int(warmer[0]))
        return Episode(
            session.started_at, reading["event_ts"], session.store_id, reading["temperature_c"], session.first, reading, reading
        )  # fmt: skip

    # Spells beyond a threshold

    def _spells(self, rule: Rule) -> tuple[list[Episode], int, int]:
        if not len(self.track.between(self.since, self.until)) and not self.sensor.may_resume:
            return [], self.since, self.since - 1  # it said nothing in the days that are rebuilt
        if isinstance(rule.when, OutOfLimits) and self.sensor.may_resume and not len(self._judged(rule, self.since, self.until).places):
            return [], self.since, self.since - 1  # no limit in force: what changed is passed over
        live = [alert for alert in self.known.alerts.get(rule.name, ()) if alert["status"] != "retracted"]
        open_before = [alert for alert in live if _may_resume(alert, self.since)] if self.sensor.may_resume else []
        if open_before:
            judged = self._judged(rule, self.since)
            resumed, going_on = spells.continued(judged, rule, _as_episode(open_before[0]))
            start, found = resumed.started_at, [resumed]
        else:
            start = self._neutral_from(rule, live)
            judged, going_on, found = self._judged(rule, start), None, []
        rest = [each for each in spells.spells(judged) if going_on is None or each.first >= going_on.stop]
        found += [spells.episode(judged, each, rule) for each in rest if each.has_opened]
        return found, start, self._settled_at(judged, [*([going_on] if going_on else []), *rest], live)

    def _judged(self, rule: Rule, since: int, until: int | None = None) -> spells.Series:
        here = self.track.between(since, self.stretch.read_to if until is None else until)
        return spells.series(rule, here, self.review.desk.limits)

    def _neutral_from(self, rule: Rule, live: list[Alert]) -> int:
        """A moment before the change at which no spell was going on."""
        read_from, since = self.stretch.read_from, self.since
        if self.is_from_start:
            return min(read_from, since)
        reaching = _covering(live, since, since)
        ended = [alert["ended_at"] for alert in live if alert["ended_at"] is not None and alert["ended_at"] < since]
        if self.sensor.may_resume:
            if reaching:
                return int(min(alert["started_at"] for alert in reaching))
            if ended and max(ended) >= read_from:
                return int(max(ended))
        if isinstance(rule.when, OutOfLimits) and read_from <= self.review.desk.limits.first_in_force(self.sensor.stores, rule.when.side):
            return read_from
        if isinstance(rule.when, BatteryLow) and self.sensor.may_resume:
            return since  # it opens at once: what is not published was not open
        judged = self._judged(rule, read_from, since - 1)
        resets = np.flatnonzero(judged.is_clear if not self.sensor.may_resume else ~judged.is_out)
        if len(resets):
            return int(judged.times[int(resets[-1])])
        # All of them are out. Had that been going on for long enough, it would be published as open.
        if self.sensor.may_resume and len(judged.places) and judged.times[-1] - read_from >= judged.hold[0]:
            return int(judged.times[0])
        raise TooShort

    def _settled_at(self, judged: spells.Series, going_on: list[spells.Spell], live: list[Alert]) -> int:
        """The first moment after the change at which no spell goes on, neither now nor as published: from there on all is as it was."""
        times, count = judged.times, len(judged.places)
        spans = [
            (int(times[each.first]) if count else self.since, int(times[each.stop]) if each.stop < count else None) for each in going_on
        ]
        spans += [(alert["started_at"], alert["ended_at"]) for alert in live]
        moment = self.until
        for start, end in sorted(spans, key=lambda span: span[0]):
            if start <= moment and (end is None or moment < end):
                if end is None:
                    if self.is_to_end:
                        return 2**62
                    raise TooShort
                moment = end
        if moment > self.stretch.read_to and not self.is_to_end:
            raise TooShort
        return moment


def _may_resume(alert: Alert, since: int) -> bool:
    """It is open, and nothing of it changed: it goes on from where it stands."""
    return alert["ended_at"] is None and alert["evidence"]["last"]["event_ts"] < since


def _as_episode(alert: Alert) -> Episode:
    evidence = alert["evidence"]
    return Episode(
        alert["started_at"], None, alert["store_id"], alert["peak"], evidence["first"], evidence["worst"], evidence["last"]
    )  # fmt: skip


def _covering(alerts: Iterable[Alert], start: int, end: int) -> list[Alert]:
    return [alert for alert in alerts if alert["started_at"] <= end and (alert["ended_at"] is None or alert["ended_at"] >= start)]


def _touches(row: Row, others: Iterable[Row]) -> bool:
    return any(overlap(row, other) for other in others)


def _starting(rows: Iterable[Row], start: int, end: int) -> list[Row]:
    return [row for row in rows if start <= row["started_at"] <= end]


def _differences(kind: str, fresh: Iterable[Row], published: Iterable[Row], content: tuple[str, ...]) -> Iterator[Row]:
    """Of rows that have a start: new ones, changed ones, and those that are no longer there."""
    now, before = {row["started_at"]: row for row in fresh}, {row["started_at"]: row for row in published}
    for start, row in now.items():
        known = before.get(start)
        if known is None or any(row[name] != known[name] for name in content):
            yield {"action": "update" if known else "insert", kind: row}
    yield from ({"action": "delete", kind: row} for start, row in before.items() if start not in now)
