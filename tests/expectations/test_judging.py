"""What holds a run, what is not judged, what is refused, and how results read."""

import re
from decimal import Decimal

import pytest

from expectations import SUITES, MeasureError, is_held
from include.settings import Settings


def the(results, table, expectation):
    return next(result for result in results if (result.table, result.expectation) == (table, expectation))


def test_a_sound_run_passes_everything_and_tells_every_expectation(counts, verdict):
    results = verdict(counts())
    assert [(result.table, result.expectation) for result in results] == [
        (suite.table, each.name) for suite in SUITES for each in suite.expectations
    ]
    assert all(result.success for result in results)
    assert not is_held(results)


def test_all_warnings_together_do_not_hold_a_run(counts, verdict):
    measures = counts("readings", late_share=1.0, age_s=86_400)
    measures["quarantine"].update(share=0.05)
    measures["store_minutes"].update(completeness=0.0)
    results = verdict(measures)
    assert [result.severity for result in results if not result.success] == ["warning"] * 4
    assert not is_held(results)


def test_one_critical_failure_holds_a_run(counts, verdict):
    assert is_held(verdict(counts("alerts", doubled_keys=1)))


def test_where_there_is_nothing_to_judge_nothing_fails(counts, verdict):
    nothing = {table: dict.fromkeys(measures) for table, measures in counts().items()}
    results = verdict(nothing)
    assert all(result.success for result in results)
    assert {result.observed for result in results} == {"nothing to judge"}


def test_limits_come_from_the_settings(counts, verdict):
    strict = Settings(completeness_warning=0.99, quarantine_critical=0.01, quarantine_critical_lines=10, stale_after_s=5)
    measures = counts("quarantine", share=0.015, lines=10)
    measures["store_minutes"].update(completeness=0.985)
    measures["readings"].update(age_s=6)
    failed = [result for result in verdict(measures, settings=strict) if not result.success]
    assert [(result.observed, result.limit) for result in failed] == [
        ("1.5 % of 10 lines", "at most 1 %, from 10 lines on"),
        ("6 s", "at most 5 s"),
        ("98.5 %", "at least 99 %"),
    ]


READS = [
    ("a count and its limit", "runs", "books balance", {"imbalance": -3}, "-3", "0"),
    (
        "a share with its lines",
        "quarantine",
        "the input can be read",
        {"share": 0.34},
        "34.0 % of 5000 lines",
        "at most 20 %, from 100 lines on",
    ),
    (
        "a share of too few lines",
        "quarantine",
        "the input can be read",
        {"share": 0.5, "lines": 12},
        "50.0 % of 12 lines, too few to judge",
        "at most 20 %, from 100 lines on",
    ),
    (
        "a share just beyond its limit, told apart from it",
        "quarantine",
        "few lines are quarantined",
        {"share": 0.020001},
        "2.000100 %",
        "at most 2 %",
    ),
    ("seconds", "readings", "the newest reading is fresh", {"age_s": 1920}, "1920 s", "at most 1800 s"),
    ("a number as Spark may give it", "readings", "readings arrive in time", {"late_share": Decimal("0.125")}, "12.5 %", "at most 10 %"),
    (
        "the store that reports least",
        "store_minutes",
        "sensors report by their cadence",
        {"completeness": 0.87, "by_store": {"store-1": 0.95, "store-3": 0.412, "store-2": 0.412, "store-4": None}},
        "87.0 %; lowest: store-2 with 41.2 %",
        "at least 90 %",
    ),
    (
        "no store at all",
        "store_minutes",
        "sensors report by their cadence",
        {"completeness": 1.0, "by_store": {"store-4": None}},
        "100.0 %",
        "at least 90 %",
    ),
]


@pytest.mark.parametrize(
    ("table", "expectation", "changed", "observed", "limit"), [case[1:] for case in READS], ids=[case[0] for case in READS]
)
def test_a_result_reads_like_a_sentence(table, expectation, changed, observed, limit, counts, verdict):
    result = the(verdict(counts(table, **changed), only=table), table, expectation)
    assert (result.observed, result.limit) == (observed, limit)


def without(measures, table, name):
    del measures[table][name]
    return measures


REFUSED = [
    (
        "a measure that was forgotten",
        lambda counts: without(counts(), "store_minutes", "unaccounted"),
        "store_minutes: unaccounted was not counted",
    ),
    (
        "a table that was forgotten",
        lambda counts: {k: v for k, v in counts().items() if k != "runs"},
        "runs: imbalance, topic_losses was not counted",
    ),
    ("a measure with a wrong name", lambda counts: counts("alerts", doubled=0), "alerts: no expectation asks for doubled"),
    ("a table without a suite", lambda counts: {**counts(), "minutes": {}}, "No suite judges minutes"),
    ("a share of nothing", lambda counts: counts("readings", late_share=float("nan")), "readings: late_share is nan"),
    ("an infinite share", lambda counts: counts("store_minutes", completeness=float("inf")), "store_minutes: completeness is inf"),
    ("a share without its lines", lambda counts: counts("quarantine", share=0.5, lines=None), "share was counted without lines"),
]


@pytest.mark.parametrize(("measures", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_counts_that_do_not_fit_are_refused(measures, message, counts, verdict):
    with pytest.raises(MeasureError, match=re.escape(message)):
        verdict(measures(counts))


def test_what_great_expectations_cannot_judge_has_failed(counts, verdict, monkeypatch):
    from expectations import judging

    def breaks(*_, **__):
        raise RuntimeError("out of order")

    monkeypatch.setattr(judging.ExpectMeasureToBeBetween, "_validate", breaks)
    results = verdict(counts())
    assert not any(result.success for result in results)
    assert is_held(results)
    assert results[0].observed == "could not be judged: out of order"
