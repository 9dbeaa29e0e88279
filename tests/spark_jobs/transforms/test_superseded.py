"""P13: which alert takes the place of one that the readings do not bear out any more. No Spark."""

from __future__ import annotations

from typing import Any

import pytest

from include.rules import RULES
from spark_jobs.transforms.alerts import Alert, Desk, alert_id
from spark_jobs.transforms.limits import Limits
from spark_jobs.transforms.suppressions import Suppressions
from spark_jobs.transforms.track import SECOND, Episode
from tests.lakes import moment
from tests.oracle.lines import Reading
from tests.spark_jobs.transforms.test_review import Case, Published

Times = tuple[str, str | None]
RULE = next(rule for rule in RULES if rule.name == "missed_heartbeat")
DESK = Desk(Limits(), Suppressions(), 0, "run", 1)


def micros(clock: str) -> int:
    return round(moment(clock).timestamp()) * SECOND


def an_alert(times: Times, **more: Any) -> Alert:
    start, end = times
    episode = Episode(micros(start), end and micros(end), "store-1", None, None, None, None)
    return {**DESK.alert(RULE, "s", episode), "revision": 0, **more}


CASES: dict[str, tuple[list[Times], list[Times], str | None]] = {
    "it was moved": ([("10:00", "10:10")], [("10:03", "10:10")], "10:03"),
    "it was split, and the first part counts": ([("10:00", "10:30")], [("10:15", "10:30"), ("10:01", "10:15")], "10:01"),
    "the one that it overlapped stays, and it was moved": ([("09:50", "10:10"), ("10:00", "10:10")], [("09:50", "10:10"), ("10:05", "10:10")], "10:05"),
    "one that was there before goes on to where it was": ([("09:50", "10:00"), ("10:01", "10:10")], [("09:50", "10:10")], "09:50"),
    "the one before it only touches": ([("09:50", "10:00"), ("10:00", "10:10")], [("09:50", "10:00")], None),
    "a new one only touches": ([("10:00", "10:10")], [("10:10", "10:20")], None),
    "a moment is inside another": ([("10:05", "10:05")], [("10:00", "10:10")], "10:00"),
    "nothing is there any more": ([("10:00", None)], [], None),
}  # fmt: skip


@pytest.mark.parametrize(("before", "now", "successor"), CASES.values(), ids=CASES)
def test_a_retracted_alert_names_the_one_that_took_its_place(before: list[Times], now: list[Times], successor: str | None) -> None:
    published = {alert["alert_id"]: alert for alert in map(an_alert, before)}
    (gone,) = (alert for alert, _ in DESK.changed([an_alert(times) for times in now], published) if alert["status"] == "retracted")
    assert gone["started_at"] == micros(before[-1][0])
    assert gone["superseded_by"] == (successor and alert_id(RULE.name, "s", micros(successor)))


def test_one_that_comes_back_takes_the_place_too() -> None:
    known = [an_alert(("09:50", "10:20")), an_alert(("10:00", "10:10")), an_alert(("10:05", "10:10"), status="retracted")]
    now = [an_alert(("09:50", "10:20")), an_alert(("10:05", "10:10"))]
    changed = {alert["started_at"]: alert for alert, _ in DESK.changed(now, {alert["alert_id"]: alert for alert in known})}
    assert changed[micros("10:00")]["superseded_by"] == alert_id(RULE.name, "s", micros("10:05"))


def test_a_late_reading_moves_a_door_session_and_its_alert_names_the_moved_one() -> None:
    def read(clock: str, temperature: int, door_open: bool) -> Reading:
        time = micros(clock) // 1000
        return Reading("s", "A", temperature, time, time, door_open)

    first = [read("10:00", 2_000, True), read("10:05", 2_000, True), read("10:09", 4_500, False)]
    late = [read("10:03:30", 2_000, True)]
    published = Published(Case([first, late], [], [], 600, None))
    for new, as_of in ((first, "10:12"), (late, "10:13")):
        published.take(new, micros(as_of) // 1000)
    rises = {row["started_at"]: row for row in published.alerts.values() if row["rule"] == "door_then_rise"}
    assert [rises[micros(clock)]["status"] for clock in ("10:00", "10:03:30", "10:05")] == ["resolved", "resolved", "retracted"]
    assert rises[micros("10:05")]["superseded_by"] == rises[micros("10:03:30")]["alert_id"]
