"""What must hold before a run may be seen. Suites are data, one module for each table; Great Expectations judges them."""

from __future__ import annotations

from pathlib import Path

from expectations import measures as counted
from expectations.alerts import ALERTS
from expectations.door_sessions import DOOR_SESSIONS
from expectations.heartbeats import HEARTBEATS
from expectations.import_later import put_off
from expectations.measures import MeasureError, Measures
from expectations.outages import OUTAGES
from expectations.quarantine import QUARANTINE
from expectations.readings import READINGS
from expectations.results import RESULTS, Result, is_held
from expectations.runs import RUNS
from expectations.sensor_stores import SENSOR_STORES
from expectations.store_minutes import STORE_MINUTES
from expectations.store_trends import STORE_TRENDS
from include.settings import Settings

__all__ = ["RESULTS", "SUITES", "MeasureError", "Measures", "Result", "is_held", "judge", "warm_up"]

SUITES = (RUNS, QUARANTINE, READINGS, STORE_MINUTES, STORE_TRENDS, DOOR_SESSIONS, HEARTBEATS, OUTAGES, ALERTS, SENSOR_STORES)


def judge(measures: Measures, settings: Settings, run_id: str, docs_folder: Path) -> list[Result]:
    """Every expectation's result, in the order of the suites; the Data Docs in the folder tell the same."""
    counted.check(measures, SUITES)
    warm_up()
    from expectations import judging

    return judging.judge(SUITES, measures, settings, run_id, docs_folder)


def warm_up() -> None:
    """Load Great Expectations, which takes seconds: call it in a thread while Spark works, after pandas and pyspark are imported."""
    with put_off("altair", "scipy.stats"):  # half of those seconds, for charts and tests of distributions that no suite has
        import great_expectations  # noqa: F401
