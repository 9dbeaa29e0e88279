"""One builder for Spark tasks: a job of `spark_jobs/` as a task of the same name, in the one writer's slot, with the run's id and clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.lake_job import LakeJob
from dags.notices import tell
from include.settings import PROJECT, SettingError, Settings, iso, utc

POOL = "lake_writer"  # one slot: backfills and other DAGs do not heed a DAG's own max_active_runs
CONNECTION = "coldstore_spark"  # says where Spark runs: local[*], spark://…, k8s://… or yarn
SPARK = PROJECT / ".local" / "spark"
DEFAULTS: dict[str, Any] = {
    "owner": "coldstore",
    "pool": POOL,
    "retries": 2,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2,  # 30 s, then a minute: together longer than the lease of a driver that died elsewhere
    "max_retry_delay": timedelta(minutes=5),
    "execution_timeout": timedelta(hours=1),
    "on_failure_callback": tell,
}


def as_of(params: Any, dag_run: Any) -> str:
    """The run's clock: what a person asked for, else the end of the data interval, else (a manual run has none) when it was due."""
    asked = params.get("as_of")
    if not asked:
        return iso(dag_run.data_interval_end or dag_run.run_after)
    try:
        return iso(utc(asked))
    except SettingError as error:
        raise AirflowFailException(f"as_of: {error} Nothing was started; trigger a new run.") from None


MACROS: dict[str, Any] = {"as_of": as_of, "settings": Settings.from_env}
ENVIRONMENT = {
    "PYTHONPATH": str(PROJECT),
    "PYSPARK_PYTHON": str(SPARK / "bin" / "python"),
    "PYSPARK_DRIVER_PYTHON": str(SPARK / "bin" / "python"),
    "SPARK_HOME": str(SPARK / "lib" / "python3.11" / "site-packages" / "pyspark"),
    "COLDSTORE_LAKE": "{{ settings().lake }}",
    "COLDSTORE_LANDING": "{{ settings().landing }}",
    "COLDSTORE_RUN_ID": "{{ run_id }}",
    "COLDSTORE_AS_OF": "{{ as_of(params, dag_run) }}",
}


def require_connection(context: Any) -> None:
    """The operator takes a missing connection for `yarn`, without a word: this fails instead, and names the connection.

    The driver runs here, whatever the cluster: ending the task ends it. So it finds its environment here, too; where executors are pods
    the operator would give it to a driver in a pod of its own.
    """
    connection = BaseHook.get_connection(CONNECTION)
    if connection.extra_dejson.get("deploy-mode", "client") != "client":
        raise AirflowFailException(
            f"the connection {CONNECTION} asks for another deploy-mode than client: take that out, the driver runs here."
        )
    if "task" in context:
        os.environ.update(context["task"].env_vars)


def require_receiver(context: Any) -> None:
    """Where alerts go nowhere the task is skipped, and says so, before anything is started for it."""
    if not Settings.from_env().alert_sinks:
        raise AirflowSkipException(
            "neither a webhook (COLDSTORE_WEBHOOK_URL) nor a topic (COLDSTORE_KAFKA_ALERTS_TOPIC) is set: what changed in the alerts is in "
            "the table alert_events."
        )
    require_connection(context)


def spark_task(
    job: str, doc: str, requires: Callable[[Any], None] = require_connection, operator: type[LakeJob] = LakeJob, **settings: Any
) -> LakeJob:
    """The task that submits `spark_jobs/<job>.py`."""
    return operator(
        task_id=job,
        doc_md=doc,
        name=job,
        conn_id=CONNECTION,
        application=str(PROJECT / "spark_jobs" / f"{job}.py"),
        properties_file=str(PROJECT / ".local" / "spark-defaults.conf"),
        env_vars=ENVIRONMENT,
        pre_execute=requires,
        **settings,
    )
