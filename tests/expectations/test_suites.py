"""Every expectation, at its limit and beyond it."""

from typing import Any, NamedTuple

import pytest

from expectations import SUITES, is_held
from published.quality import SHARES


class Case(NamedTuple):
    sentence: str
    table: str
    expectation: str
    severity: str
    at_the_limit: dict[str, Any]
    beyond: dict[str, Any]


def nothing_of(measure: str) -> dict[str, Any]:
    return {"at_the_limit": {measure: 0}, "beyond": {measure: 1}}


KEYS = {
    "readings": "each sensor and time stands once",
    "store_minutes": "each store and minute stands once",
    "heartbeats": "each sensor stands once",
    "outages": "each sensor and start stands once",
    "alerts": "each alert stands once",
    "sensor_stores": "each sensor and store stands once",
    "store_trends": "each store and window stands once",
    "door_sessions": "each sensor and start stands once",
}

CASES = [
    Case("a line that is not in the books", "runs", "books balance", "critical", **nothing_of("imbalance")),
    Case("a line that is in the books twice", "runs", "books balance", "critical", {"imbalance": 0}, {"imbalance": -1}),
    Case("a topic that lost messages", "runs", "the Kafka topic lost no message unread", "warning", **nothing_of("topic_losses")),
    Case(
        "a fifth of the lines in quarantine",
        "quarantine",
        "the input can be read",
        "critical",
        {"share": 0.20, "lines": 100},
        {"share": 0.21, "lines": 100},
    ),
    Case(
        "a fifth of too few lines in quarantine",
        "quarantine",
        "the input can be read",
        "critical",
        {"share": 1.0, "lines": 99},
        {"share": 1.0, "lines": 100},
    ),
    Case("some lines in quarantine", "quarantine", "few lines are quarantined", "warning", {"share": 0.02}, {"share": 0.0201}),
    Case("many late readings", "readings", "readings arrive in time", "warning", {"late_share": 0.10}, {"late_share": 0.1001}),
    Case("no reading for half an hour", "readings", "the newest reading is fresh", "warning", {"age_s": 1800}, {"age_s": 1800.001}),
    Case("a reading in no minute", "store_minutes", "the minutes hold every reading once", "critical", **nothing_of("unaccounted")),
    Case(
        "a reading in two minutes",
        "store_minutes",
        "the minutes hold every reading once",
        "critical",
        {"unaccounted": 0},
        {"unaccounted": -1},
    ),
    Case(
        "sensors that do not report",
        "store_minutes",
        "sensors report by their cadence",
        "warning",
        {"completeness": 0.90},
        {"completeness": 0.8999},
    ),
    *(Case(f"a doubled key in {table}", table, name, "critical", **nothing_of("doubled_keys")) for table, name in KEYS.items()),
    *(
        Case(f"an impossible value in {table}", table, "every value is in its range", "critical", **nothing_of("out_of_range"))
        for table in KEYS
    ),
]

# The lower limit on the same share is missed long before.
MISSED_AS_WELL = {"the input can be read": {("quarantine", "few lines are quarantined")}}


def missed(results):
    return {(result.table, result.expectation) for result in results if not result.success}


def sentences(ending):
    return [f"{case.sentence} {ending}" for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=sentences("is let pass at the limit"))
def test_at_its_limit_an_expectation_holds(case, counts, verdict):
    results = verdict(counts(case.table, **case.at_the_limit), only=case.table)
    assert missed(results) - MISSED_AS_WELL.get(case.expectation, set()) == set()
    assert not is_held(results)


@pytest.mark.parametrize("case", CASES, ids=sentences("is found"))
def test_beyond_its_limit_an_expectation_fails_and_only_this_one(case, counts, verdict):
    results = verdict(counts(case.table, **case.beyond), only=case.table)
    assert missed(results) - MISSED_AS_WELL.get(case.expectation, set()) == {(case.table, case.expectation)}
    assert is_held(results) == (case.severity == "critical")


def test_every_expectation_has_a_case():
    told = {(case.table, case.expectation, case.severity) for case in CASES}
    assert told == {(suite.table, each.name, each.severity) for suite in SUITES for each in suite.expectations}


def test_a_name_stands_once_in_its_table():
    names = [(suite.table, each.name) for suite in SUITES for each in suite.expectations]
    assert len(names) == len(set(names))


def test_the_page_on_quality_names_checks_that_there_are() -> None:
    there = {(suite.table, expectation.name) for suite in SUITES for expectation in suite.expectations}
    assert {(table, expectation) for _, table, expectation in SHARES} <= there
