"""P13, P15, P16, P17: an alert's life under late data: who is told what, once; and what people said stays on it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from include.acknowledged import said_of
from include.tables import PUBLISHED
from published.acknowledging import acknowledge
from published.refused import Refused
from tests.lakes import TestLake, a_reading, every, moment

LIMITS = ("store_id,valid_from,valid_to,low_c,high_c", "store-1,,,-1,5")


def warm(lake: TestLake) -> list[dict[str, Any]]:
    return [row for row in lake.rows("alerts", "started_at") if row["rule"] == "too_warm"]


def told(lake: TestLake) -> Counter[tuple[str, str]]:
    """What a receiver heard of the alerts too_warm, by start."""
    return Counter(
        (row["change"], row["started_at"].strftime("%H:%M:%S")) for row in lake.rows("alert_events") if row["rule"] == "too_warm"
    )


def test_an_alert_opens_splits_moves_and_is_retracted_and_the_acknowledgement_stays_on_it(lake: TestLake) -> None:
    lake.knows("limits", *LIMITS)
    lake.knows(
        "suppressions", "store_id,sensor_id,rule,from,to,reason", "store-1,,too_warm,2025-11-08T10:04:30Z,2025-11-08T10:06:00Z,defrost"
    )
    lake.receives(*every(60, "10:05", "10:20", temperature=9.0), arrived="10:20")
    lake.passes(as_of="10:21")
    (opened,) = warm(lake)
    assert (opened["status"], opened["severity"], opened["peak"], opened["suppressed_by"]) == ("open", "critical", 9.0, "defrost")
    assert (opened["started_at"], opened["ended_at"], opened["limit_high_c"], opened["revision"]) == (moment("10:05"), None, 5.0, 0)
    assert told(lake) == {("opened", "10:05:00"): 1}
    acknowledge(lake.settings.lake, opened["alert_id"][:8], "Ada", "the door was open")
    for wrong, said in (("ffffffff", "there is no alert"), ("", "there is no alert"), (opened["alert_id"][:3], "at least its first 6")):
        with pytest.raises(Refused, match=said):
            acknowledge(lake.settings.lake, wrong, "Ada", "?")

    lake.receives(a_reading(clock="10:12:30", temperature=4.5), arrived="10:22")  # inside by 0.5: it had cleared in between
    second = lake.passes(as_of="10:23")
    first_part, second_part = warm(lake)
    assert (first_part["alert_id"], first_part["status"], first_part["ended_at"]) == (opened["alert_id"], "resolved", moment("10:12:30"))
    assert (second_part["started_at"], second_part["status"], second_part["run_id"]) == (moment("10:13"), "open", second)
    assert told(lake) == {("opened", "10:05:00"): 1, ("resolved", "10:05:00"): 1, ("opened", "10:13:00"): 1}

    lake.receives(a_reading(clock="10:04", temperature=7.0), a_reading(clock="10:13:30", temperature=3.0), arrived="10:24")
    third = lake.passes(as_of="10:25")
    was, moved, gone, later = sorted(
        warm(lake), key=lambda row: (row["started_at"] > moment("10:10"), row["status"] != "retracted", row["started_at"])
    )
    assert (was["alert_id"], was["status"], was["superseded_by"], was["run_id"]) == (
        opened["alert_id"],
        "retracted",
        moved["alert_id"],
        third,
    )
    assert (moved["started_at"], moved["ended_at"], moved["suppressed_by"]) == (moment("10:04"), moment("10:12:30"), None)
    assert (gone["status"], gone["superseded_by"], later["started_at"]) == ("retracted", later["alert_id"], moment("10:14"))
    assert told(lake) == {
        ("opened", "10:05:00"): 1, ("resolved", "10:05:00"): 1, ("retracted", "10:05:00"): 1,
        ("opened", "10:04:00"): 1, ("resolved", "10:04:00"): 1,
        ("opened", "10:13:00"): 1, ("retracted", "10:13:00"): 1, ("opened", "10:14:00"): 1,
    }  # fmt: skip
    said = lake.rows("acknowledgements")
    assert [(row["acknowledged_by"], row["comment"], row["alert_id"]) for row in said] == [("Ada", "the door was open", opened["alert_id"])]
    assert [row["acknowledged_by"] for row in said_of(moved, said)] == ["Ada"]
    with pytest.raises(Refused, match=f"{moved['alert_id']} took its place"):
        acknowledge(lake.settings.lake, opened["alert_id"], "Ada", "?")

    versions, events = {table: lake.version(table) for table in PUBLISHED}, lake.rows("alert_events", "event_id")
    lake.passes(as_of="10:25")
    assert {table: lake.version(table) for table in PUBLISHED} == versions and lake.rows("alert_events", "event_id") == events
    assert len({event["event_id"] for event in events}) == len(events)


def test_what_ended_a_day_ago_pages_nobody(lake: TestLake) -> None:
    lake.receives(a_reading(clock="10:00"), a_reading(clock="10:05"), a_reading(clock="10:09"), arrived="10:10")
    lake.passes(as_of="2025-11-09T10:06:00Z")
    events = sorted((row["change"], row["started_at"].strftime("%H:%M"), row["is_historic"]) for row in lake.rows("alert_events"))
    assert events == [
        ("opened", "10:00", True), ("opened", "10:05", False), ("opened", "10:09", False), ("resolved", "10:00", True), ("resolved", "10:05", False),
    ]  # fmt: skip


def test_an_alert_that_was_over_before_a_silence_is_told_once(lake: TestLake) -> None:
    lake.knows("limits", *LIMITS)
    lake.receives(
        *every(60, "10:00", "10:02"), *every(60, "10:02", "10:10", temperature=6.0), *every(60, "10:10", "10:17"), arrived="10:17"
    )
    lake.passes(as_of="10:17")
    for start, end in (("10:26", "10:31"), ("10:31", "10:36"), ("10:36", "10:41")):
        lake.receives(*every(60, start, end), arrived=end)
        lake.passes(as_of=end)
    assert told(lake) == {("opened", "10:02:00"): 1, ("resolved", "10:02:00"): 1}
    assert [(row["started_at"], row["ended_at"], row["revision"]) for row in warm(lake)] == [(moment("10:02"), moment("10:10"), 0)]


def test_what_was_sent_while_the_gateway_was_cut_off_takes_the_place_of_the_alert_that_began_after_it(lake: TestLake) -> None:
    lake.knows("limits", *LIMITS)
    lake.receives(a_reading(clock="09:59", battery_pct=10), *every(60, "10:00", "10:10"), arrived="10:10")
    lake.receives(*every(60, "12:00", "12:22", temperature=9.0), arrived="12:22")
    lake.passes(as_of="12:23")
    lake.receives(*every(60, "10:10", "11:31", temperature=9.0), arrived="12:23")
    lake.passes(as_of="12:23")
    whole, swallowed = warm(lake)
    assert (whole["started_at"], whole["status"], whole["ended_at"]) == (moment("10:10"), "open", None)
    assert (swallowed["started_at"], swallowed["status"], swallowed["superseded_by"]) == (moment("12:00"), "retracted", whole["alert_id"])
