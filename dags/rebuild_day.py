"""
### What
One day of the published tables made anew from the readings, beside the live ones, and compared with them: after a reference file, a rule or a
setting was changed, this carries the change into the past. Few changes are checked and swapped in at once; where it is more than
`COLDSTORE_REBUILD_APPROVAL_ROWS` rows, `approve_change` waits for a person. Nobody is paged: the alert events of a rebuild are history.

### When
- **Backfill** (Trigger → Backfill, a range of days): a run for each day, one at a time. Live runs go on in between.
- **By hand**: name the `day`. With `dry_run` it shows what would change, and changes nothing.
- **Every night**, for the day before, it must find nothing: that proves that live runs and rebuilds agree. Where something differs
  `compare_day` fails and says what.

### Inputs and outputs
In: `readings` as last published, `<lake>/reference/*.csv`. Out: what differs, in the log and the XComs of `approve_change` and as its required action;
a run `rebuild-<number>` in `runs`, whose note says who approved it and why.

### How to recover
Every task may be killed and cleared at any point. Nothing that people read changes before `swap_day`.

- **approve_change waits**: open its *Required Actions*, read what would change, approve or reject. Rejected, everything stays as it was.
- **compare_day failed at night**: the log names the rows. If a reference file, a rule or a setting was changed on purpose, trigger a run for that
  day to swap it in; if not, the pipeline is at fault.
- **swap_day failed, "has changed since it was compared"**: late readings came in between. Clear `compare_day` and all after it, and look again.
- **swap_day is up for retry, "is under way"**: it gives way to a run of the pipeline, which must not be disturbed between two of its tasks. If that run is dead
  and the pipeline is paused, take a pass.
- **"is held"**: see to the held run first, then clear the task.
- **Queued for long**: another writer has the one slot of the pool `lake_writer`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param
from airflow.sdk.exceptions import AirflowFailException

from dags.approval import ApproveChange
from dags.spark_tasks import DEFAULTS, MACROS, spark_task

DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"


def day(params: Any, dag_run: Any) -> str:
    """What a person asked for, else that of the data interval."""
    if asked := params.get("day"):
        return str(asked)
    if dag_run.data_interval_start is None:
        raise AirflowFailException("which day? Trigger a run with one like 2025-11-08, or a backfill over a range. Nothing was started.")
    return str(dag_run.data_interval_start.strftime("%Y-%m-%d"))


def report(run_id: str) -> str:
    """A file's name."""
    return re.sub(r"[^\w.-]", "_", run_id)


with DAG(
    dag_id="rebuild_day",
    description="A day of the published tables anew, beside the live ones: compared, approved, swapped in",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=DEFAULTS,
    user_defined_macros={**MACROS, "day": day, "report": report},
    params={
        "day": Param(
            "",
            type=["string", "null"],
            pattern=f"^({DAY})?$",
            title="Day",
            description="UTC, like 2025-11-08. Empty: the day of the data interval, which a backfill or the timetable gives.",
        ),
        "dry_run": Param(False, type="boolean", title="Preview only", description="Show what would change, and change nothing."),
    },
    tags=["coldstore", "lake"],
) as dag:
    compare = spark_task(
        "compare_day",
        "Makes the day anew beside the published tables and compares the two. At night it fails where they differ.",
        retries=1,
        application_args=[
            "--day={{ day(params, dag_run) }}",
            "--report={{ report(run_id) }}",
            "--must-be-equal={{ 1 if dag_run.run_type == 'scheduled' else 0 }}",
        ],
    )
    approve = ApproveChange(
        task_id="approve_change",
        doc_md="Waits for a person where much would change; the comparison is its *Required Action*.",
        comparison="{{ settings().lake }}/control/comparisons/{{ report(run_id) }}.json",
        dry_run="{{ params.dry_run }}",
        params={"why": Param("", type="string", title="Why", description="For the record: it is kept with the run that swaps the day in.")},
        pool="default_pool",
        retry_delay=timedelta(seconds=5),
        retries=2,  # an answer that comes before Airflow has heard that the asking process ended fails the task: then it asks once more
        execution_timeout=None,
    )
    swap = spark_task(
        "swap_day",
        "Makes the day anew once more, checks it, and swaps in what was compared: no other rows. Tried again while a run of the pipeline is under way.",
        retries=30,
        retry_delay=timedelta(seconds=30),
        retry_exponential_backoff=1,
        application_args=[
            "--day={{ day(params, dag_run) }}",
            "--expect={{ ti.xcom_pull(task_ids='approve_change', key='fingerprint') }}",
            "--note={{ ti.xcom_pull(task_ids='approve_change', key='note') }}",
        ],
    )
    compare >> approve >> swap
