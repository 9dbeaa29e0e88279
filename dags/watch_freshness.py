"""
### What
Fails, and so tells somebody, when what people see is older than `COLDSTORE_STALE_AFTER_S` (30 minutes): the pipeline is paused, fails, is held, waits, or its
machine stood still. It looks at the published tables, whatever Airflow thinks of the runs.

### When
Every 5 minutes. It changes nothing and waits for no writer.

### Inputs and outputs
In: `runs`. Out: a failed task with an *Incident*, and one notice (the webhook, or the log) until a run is published again.

### How to recover
Open `coldstore_pipeline`: the *Incident* of its failed task says what to do; a paused DAG is switched on at its page. This DAG turns green by itself at
its next run after a run was published.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.incident import IncidentLink, incident_left
from dags.spark_tasks import DEFAULTS
from include.settings import Settings


class WatchFreshness(BaseOperator):
    operator_extra_links = (IncidentLink(),)
    incident: dict[str, Any] | None = None

    def execute(self, context: Any) -> None:
        with incident_left(self, context):
            self.log.info("%s", looked_at(Settings.from_env(), datetime.now(UTC)))


def looked_at(settings: Settings, now: datetime) -> str:
    from published.freshness import overdue  # here, so that reading the DAG stays cheap
    from published.refused import Refused
    from published.snapshot import published

    try:
        snapshot = published(settings.lake)
    except Refused as nothing_yet:
        raise AirflowSkipException(str(nothing_yet)) from None
    if told := overdue(snapshot, settings.stale_after_s, now):
        raise AirflowFailException(told)
    return f"{snapshot} is fresh"


with DAG(
    dag_id="watch_freshness",
    description="Tells somebody when what people see is older than 30 minutes",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("*/5 * * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args={**DEFAULTS, "pool": "default_pool", "retries": 0, "execution_timeout": timedelta(minutes=5)},
    tags=["coldstore"],
) as dag:
    WatchFreshness(task_id="watch_freshness", doc_md="Reads the last published run's clock.")
