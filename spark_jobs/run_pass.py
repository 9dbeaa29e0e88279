"""One pass: the DAG's own jobs in its order, in one session, without Airflow. The last line says published, held or failed."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

import expectations
from include.settings import SettingError, Settings
from spark_jobs.check_quality import check_quality
from spark_jobs.deliver_alerts import deliver_alerts
from spark_jobs.derive_tables import derive_tables
from spark_jobs.ingest_readings import ingest_readings
from spark_jobs.publish_tables import publish_tables
from spark_jobs.runtime import summary
from spark_jobs.runtime.beginning import begin_or_resume
from spark_jobs.runtime.errors import Held, Stop
from spark_jobs.runtime.job import FAILED, HELD, explained, opened
from spark_jobs.runtime.lake import Lake

JOBS = (ingest_readings, derive_tables, check_quality, publish_tables)


def run_pass(lake: Lake) -> str:
    """The run's id, once it is published."""
    run = begin_or_resume(lake)
    for job in JOBS:
        run = job(run, lake)
    if lake.settings.alert_sinks:
        print(f"alerts: {said_of_delivery(lake)}", flush=True)
    return run.run_id


def said_of_delivery(lake: Lake) -> str:
    """The run is published, whatever becomes of this; what could not be sent goes out with the next one."""
    try:
        return str(deliver_alerts(lake))
    except (Stop, SettingError) as stop:
        return f"not delivered: {stop}"
    except Exception as error:
        traceback.print_exc()
        return f"not delivered: {type(error).__name__}; the next run tries again"


def main(prepare: Callable[[Lake], str | None] = lambda lake: None, spark: SparkSession | None = None) -> int:
    """`prepare` may do something first, and say as of when the pass is to be."""
    try:
        with opened(Settings.from_env(), "make pass", spark) as lake:
            threading.Thread(target=expectations.warm_up, daemon=True).start()  # its import takes seconds that Spark needs anyway
            as_of = prepare(lake)
            lake.settings = replace(lake.settings, as_of=lake.settings.as_of or as_of or "")
            run_id = run_pass(lake)
    except Held as held:
        print(f"held {held}", flush=True)
        return HELD
    except (Stop, SettingError) as stop:
        print(f"failed {stop}", flush=True)
        return FAILED
    except Exception as error:
        traceback.print_exc()
        message = str(error).strip().splitlines() or ["no message"]
        print(f"failed {explained(error) or f'{type(error).__name__}: {message[0]}'}", flush=True)
        return FAILED
    try:
        print(summary.of_run(lake.settings, run_id))
    except Exception:  # it is published all the same
        traceback.print_exc()
    print(f"published {run_id}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
