"""Runs as Airflow hands them to templates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk.api.datamodels._generated import DagRun


def a_run(**changes: Any) -> DagRun:
    """A run triggered by hand, which has neither logical date nor data interval."""
    moment = datetime(2025, 11, 8, 16, 3, 12, 345678, tzinfo=UTC)
    values: dict[str, Any] = {
        "dag_id": "coldstore_pipeline",
        "run_id": "manual__2025-11-08T16:03:12",
        "logical_date": None,
        "data_interval_start": None,
        "data_interval_end": None,
        "partition_key": None,
        "run_after": moment,
        "start_date": moment,
        "end_date": None,
        "clear_number": 0,
        "run_type": "manual",
        "state": "running",
        "conf": None,
        "consumed_asset_events": [],
        "triggering_user_name": None,
    }
    return DagRun(**(values | changes))


SCHEDULED = {
    "run_id": "scheduled__2025-11-08T16:00:00",
    "run_type": "scheduled",
    "logical_date": datetime(2025, 11, 8, 15, 50, tzinfo=UTC),
    "data_interval_start": datetime(2025, 11, 8, 15, 50, tzinfo=UTC),
    "data_interval_end": datetime(2025, 11, 8, 16, 0, tzinfo=UTC),
}
