"""alerts: episodes per rule and sensor; severity, revisions and retracted rows are not the oracle's business.

Read as:
- too_warm looks at the high limit only, too_cold at the low one only: a reading below the low limit is "inside" for too_warm,
  and where the row in force has no such side the reading is passed over;
- a too_warm episode's readings are those judged from the first up to before the one that ends it: peak and worst are among them, and its
  last one is the evidence's last (readings passed over belong to no episode); low_battery likewise with the readings that name a level;
- of equally bad readings the earliest is the worst;
- evidence of sudden_drop: that reading three times; of door_then_rise: the session's first, then the confirming one twice;
  of door_left_open: the session's; of missed_heartbeat: the reading before, no worst, the reading after (None when there is none);
- every rule shows the limits in force at its first reading, for that reading's store; null where there are none;
- "the sensor's previous one" and "a reading" after the door's are any reading of the sensor, whichever store it names;
- the confirming reading of door_then_rise comes after the first one (not at it), open or closed, in the session or after it; the first such;
- door_left_open's 2 min do not follow the sensor's own timeout, and its "the sensor's last" is the last of all its readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise

from tests.oracle.clock import MINUTE, as_text, heard_until
from tests.oracle.door_sessions import sessions_of
from tests.oracle.lines import Reading
from tests.oracle.measures import degrees
from tests.oracle.outages import silences_of
from tests.oracle.readings import Winners, by_sensor
from tests.oracle.reference import Limit, Reference

DROP_MORE_THAN, DROP_WITHIN = 5_000, 10 * MINUTE
OUT_OF_LIMITS_FOR, CLEARED_BY = 5 * MINUTE, 500
RISE_AT_LEAST, RISE_WITHIN = 2_000, 10 * MINUTE
DOOR_OPEN_FOR, DOOR_HEARD_WITHIN = 5 * MINUTE, 2 * MINUTE
BATTERY_LOW_BELOW, BATTERY_FINE_FROM = 20, 25


def build(winners: Winners, reference: Reference, as_of: int) -> list[dict]:
    """The rows of every rule, by rule, sensor and start."""
    rows = list(missed_heartbeats(winners, reference, as_of))
    for readings in by_sensor(winners).values():
        rows += sudden_drops(readings, reference)
        rows += too_warm(readings, reference)
        rows += too_cold(readings, reference)
        rows += door_then_rises(readings, reference)
        rows += doors_left_open(readings, reference, as_of)
        rows += low_batteries(readings, reference)
    return sorted(rows, key=lambda row: (row["rule"], row["sensor_id"], row["started_at"]))


def sudden_drops(readings: list[Reading], reference: Reference) -> Iterator[dict]:
    """A reading more than 5 °C below the sensor's previous one, at most 10 min older."""
    for previous, reading in pairwise(readings):
        is_recent = reading.event_ms - previous.event_ms <= DROP_WITHIN
        if is_recent and previous.temperature - reading.temperature > DROP_MORE_THAN:
            evidence = (reading, reading, reading)
            yield _alert("sudden_drop", evidence, reading.event_ms, degrees(reading.temperature), reference)


def too_warm(readings: list[Reading], reference: Reference) -> Iterator[dict]:
    """Above the store's limits for 5 min."""

    def excess(reading: Reading, limit: Limit) -> int | None:
        return None if limit.high is None else reading.temperature - limit.high

    yield from _out_of_limits("too_warm", excess, lambda reading: -reading.temperature, readings, reference)


def too_cold(readings: list[Reading], reference: Reference) -> Iterator[dict]:
    """Below the store's limits for 5 min."""

    def excess(reading: Reading, limit: Limit) -> int | None:
        return None if limit.low is None else limit.low - reading.temperature

    yield from _out_of_limits("too_cold", excess, lambda reading: reading.temperature, readings, reference)


def _out_of_limits(
    rule: str,
    excess: Callable[[Reading, Limit], int | None],
    badness_order: Callable[[Reading], int],
    readings: list[Reading],
    reference: Reference,
) -> Iterator[dict]:
    episode: list[Reading] = []
    has_opened = False

    def alert(ended_at: int | None) -> dict:
        worst = min(episode, key=badness_order)
        return _alert(rule, (episode[0], worst, episode[-1]), ended_at, degrees(worst.temperature), reference)

    for reading in readings:
        limit = reference.limit_at(reading.store_id, reading.event_ms)
        beyond = excess(reading, limit) if limit else None
        # A reading at whose time no limit is in force is passed over.
        if beyond is None:
            continue
        # Exactly at a limit is inside.
        if beyond > 0:
            episode.append(reading)
            has_opened = has_opened or reading.event_ms - episode[0].event_ms >= OUT_OF_LIMITS_FOR
        # Once open, only a reading inside by 0.5 °C ends it; exactly 0.5 does.
        elif has_opened and beyond > -CLEARED_BY:
            episode.append(reading)
        else:
            if has_opened:
                yield alert(reading.event_ms)
            episode, has_opened = [], False
    # Silence never clears a temperature alert.
    if has_opened:
        yield alert(None)


def door_then_rises(readings: list[Reading], reference: Reference) -> Iterator[dict]:
    """Within 10 min after the first reading of a door session, one ≥ 2 °C warmer; one per session."""
    for first, *_ in sessions_of(readings):
        for reading in readings:
            is_within = 0 < reading.event_ms - first.event_ms <= RISE_WITHIN
            if is_within and reading.temperature - first.temperature >= RISE_AT_LEAST:
                yield _alert("door_then_rise", (first, reading, reading), reading.event_ms, degrees(reading.temperature), reference)
                break


def doors_left_open(readings: list[Reading], reference: Reference, as_of: int) -> Iterator[dict]:
    """A door session ≥ 5 min long; open while it may still go on."""
    for session in sessions_of(readings):
        first, last = session[0], session[-1]
        if last.event_ms - first.event_ms < DOOR_OPEN_FOR:
            continue
        may_go_on = last is readings[-1] and heard_until(as_of) - last.event_ms <= DOOR_HEARD_WITHIN
        worst = max(session, key=lambda reading: reading.temperature)
        ended_at = None if may_go_on else last.event_ms
        yield _alert("door_left_open", (first, worst, last), ended_at, degrees(worst.temperature), reference)


def missed_heartbeats(winners: Winners, reference: Reference, as_of: int) -> Iterator[dict]:
    """An outage; it ends with it. Its store is the first reading's, as every alert's."""
    for silence in silences_of(winners, reference, as_of):
        yield _alert("missed_heartbeat", (silence.before, None, silence.after), silence.ended_at, None, reference)


def low_batteries(readings: list[Reading], reference: Reference) -> Iterator[dict]:
    """From below 20 % until 25 % or more; readings without a level say nothing."""
    episode: list[Reading] = []

    def alert(ended_at: int | None) -> dict:
        worst = min(episode, key=lambda reading: reading.battery_pct)
        return _alert("low_battery", (episode[0], worst, episode[-1]), ended_at, worst.battery_pct, reference)

    for reading in readings:
        if reading.battery_pct is None:
            continue
        if episode and reading.battery_pct >= BATTERY_FINE_FROM:
            yield alert(reading.event_ms)
            episode = []
        elif episode or reading.battery_pct < BATTERY_LOW_BELOW:
            episode.append(reading)
    if episode:
        yield alert(None)


def alert_id(rule: str, sensor_id: str, started_at: int) -> str:
    """The first 32 hex digits of SHA-256 of rule, sensor and start."""
    return sha256(f"{rule}|{sensor_id}|{as_text(started_at)}".encode()).hexdigest()[:32]


def _alert(
    rule: str,
    evidence: tuple[Reading, Reading | None, Reading | None],
    ended_at: int | None,
    peak: float | None,
    reference: Reference,
) -> dict:
    first = evidence[0]
    limit = reference.limit_at(first.store_id, first.event_ms) or Limit(first.store_id)
    return {
        "alert_id": alert_id(rule, first.sensor_id, first.event_ms),
        "rule": rule,
        "sensor_id": first.sensor_id,
        "store_id": first.store_id,
        "started_at": first.event_ms,
        "ended_at": ended_at,
        "peak": peak,
        "evidence": {name: reading and reading.event_ms for name, reading in zip(("first", "worst", "last"), evidence, strict=True)},
        "limit_low_c": None if limit.low is None else degrees(limit.low),
        "limit_high_c": None if limit.high is None else degrees(limit.high),
        "status": "open" if ended_at is None else "resolved",
        "suppressed_by": reference.suppressed_by(rule, first.sensor_id, first.store_id, first.event_ms),
    }
