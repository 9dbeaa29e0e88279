"""A backfill over three days, started in the UI: one day approved, one rejected, one without differences; then a preview. It happens once, in `walk`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.dags.walks.person import Person
from tests.dags.walks.scene import DAYS, LIMITS, Scene, wait

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
Alerts = dict[str, list[tuple[Any, ...]]]


@dataclass
class Walk:
    scene: Scene
    said: str = ""  # by the form, before it was sent
    seen: str = ""  # of the first day, before anything changed
    slots: int = -1  # of the writers' pool, while a person was waited for
    states: dict[str, dict[str, str]] = field(default_factory=dict)  # day: task: state
    before: Alerts = field(default_factory=dict)
    between: Alerts = field(default_factory=dict)  # when one day was approved, and the next waited
    after: Alerts = field(default_factory=dict)
    preview: dict[str, str] = field(default_factory=dict)  # of the approved day, at the end

    def alerts(self) -> Alerts:
        """By the day they start, without who wrote them."""
        found: Alerts = {day: [] for day in DAYS}
        for row in self.scene.rows("alerts", "started_at", "rule", "status", "limit_high_c"):
            if (day := row["started_at"].strftime("%Y-%m-%d")) in found:
                found[day].append((row["rule"], row["status"], row["limit_high_c"]))
        return {day: sorted(rows) for day, rows in found.items()}


@pytest.fixture(scope="module")
def walk(admin: Person, scene: Scene) -> Walk:
    if not (scene.lake / "tables" / "runs").exists():  # this file alone
        assert scene.ends(scene.triggers()) == "success"
    it = Walk(scene)
    it.before = it.alerts()
    scene.refers("limits", f"{LIMITS}store-1,,{DAYS[2]}T00:00:00Z,0,7\nstore-1,{DAYS[2]}T00:00:00Z,,0,5\nstore-7,,,0,5\n")
    it.said = admin.backfills("rebuild_day", DAYS[0], DAYS[2])
    it.seen = admin.reads_required_action(DAYS[0])
    it.slots = scene.api.call("GET", "/api/v2/pools/lake_writer")["occupied_slots"]
    admin.pictures("comparison", scene.folder / "pictures")
    admin.answers("Approve", "the limit was wrong")
    admin.reads_required_action(DAYS[1])
    it.between = it.alerts()
    admin.answers("Reject", "not that day")
    for day in DAYS:
        run = wait(lambda day=day: run_of(scene, day), f"a run of {day}")
        assert scene.ends(run, "rebuild_day") == "success"
        it.states[day] = scene.tasks(run, "rebuild_day")
    it.after = it.alerts()
    preview = scene.triggers("rebuild_day", day=DAYS[0], dry_run=True)
    scene.ends(preview, "rebuild_day")
    it.preview = scene.tasks(preview, "rebuild_day")
    return it


def run_of(scene: Scene, day: str) -> str:
    runs = scene.api.call("GET", "/api/v2/dags/rebuild_day/dagRuns")["dag_runs"]
    return next((run["dag_run_id"] for run in runs if (run["logical_date"] or "").startswith(day)), "")


def test_each_day_is_shown_before_anything_changes_and_no_writers_slot_is_held_meanwhile(walk: Walk) -> None:
    assert walk.said == "3 runs will be triggered."
    assert f"{DAYS[0]}: a rebuild changes 1 row of published tables" in walk.seen
    assert "status resolved → retracted" in walk.seen and f"{DAYS[0]}T10:00:00Z" in walk.seen
    assert walk.slots == 0


def test_an_approved_day_is_swapped_in_and_then_live_equals_rebuild(walk: Walk) -> None:
    assert walk.states[DAYS[0]] == {"compare_day": "success", "approve_change": "success", "swap_day": "success"}
    assert walk.before[DAYS[0]] == [("too_warm", "resolved", 5.0)]
    assert walk.between[DAYS[0]] == walk.after[DAYS[0]] == [("too_warm", "retracted", 5.0)]
    assert walk.preview == {"compare_day": "success", "approve_change": "skipped", "swap_day": "skipped"}
    (rebuilt,) = [row for row in walk.scene.rows("runs", "run_id", "status", "note") if row["run_id"].startswith("rebuild-")]
    assert rebuilt["note"] == f"{DAYS[0]} rebuilt, approved by admin: the limit was wrong"


def test_a_rejected_day_stays_as_it_was_and_one_without_differences_is_left_alone(walk: Walk) -> None:
    assert walk.states[DAYS[1]] == {"compare_day": "success", "approve_change": "success", "swap_day": "skipped"}
    assert walk.states[DAYS[2]] == {"compare_day": "success", "approve_change": "skipped", "swap_day": "skipped"}
    for day in DAYS[1:]:
        assert walk.after[day] == walk.between[day] == walk.before[day] == [("too_warm", "resolved", 5.0)]


def test_a_backfill_pages_nobody(walk: Walk) -> None:
    events = [row for row in walk.scene.rows("alert_events", "run_id", "change", "is_historic") if row["run_id"].startswith("rebuild-")]
    assert [(row["change"], row["is_historic"]) for row in events] == [("retracted", True)]
