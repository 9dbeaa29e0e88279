"""What every job needs around it: settings, session, lease, lake, the run, and one clear line when it cannot go on."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import update_wrapper

from pyspark.sql import SparkSession

from include.settings import SettingError, Settings
from spark_jobs.runtime import beginning, storage
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.errors import Held, Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.lease import lease
from spark_jobs.runtime.run import Run

FAILED, HELD = 1, 3
Work = Callable[[Run, Lake], Run]  # what it gives back is the run as it leaves it


class Job:
    """A step of a run: called with a run and a lake it does its work, called with nothing it is a program of its own."""

    def __init__(self, work: Work) -> None:
        self.work, self.name = work, work.__name__
        update_wrapper(self, work)

    def __call__(self, run: Run | None = None, lake: Lake | None = None) -> Run:
        if run is None or lake is None:
            sys.exit(program(self._alone))
        return self.work(run, lake)

    def _alone(self) -> None:
        settings = Settings.from_env()
        with opened(settings, f"{self.name} of {settings.run_id}") as lake:
            if self.name == "ingest_readings":
                self.work(beginning.begin_or_resume(lake), lake)
            elif run := runs.continued(lake):
                self.work(run, lake)


def job(work: Work) -> Job:
    return Job(work)


@contextmanager
def opened(settings: Settings, holder: str, spark: SparkSession | None = None) -> Iterator[Lake]:
    """The lake, with a lease on it for as long as it is open. A session that is given stays."""
    for place in settings.places:
        storage.check(place)
    with lease(settings, holder) as mine, closing(Lake(spark, settings, mine.still_mine)) as lake:
        if mine.after_a_crash:
            lake.shut_out(mine.epoch)
            mine.after_a_crash = False
        yield lake


def explained(error: Exception) -> str | None:
    """What lies behind an error that came by way of Spark, in one line for the person who reads it: what one of our own steps said on an
    executor, or the place that cannot be used (any more). None where nobody knows."""
    if told := re.search(rf"{Stop.__module__}\.{Stop.__name__}: (.+)", str(error)):
        return told[1]
    settings = Settings.from_env()
    for place in settings.places:
        try:
            storage.check(place)
        except Stop as stop:
            return str(stop)
        if blamed := storage.blamed(place, str(error)):
            return blamed
    return None


def program(work: Callable[[], None]) -> int:
    """Run it as a program: its exit code, and for a failure one line on standard error that says what to do."""
    try:
        work()
        return 0
    except Held as held:
        print(held, file=sys.stderr, flush=True)
        return HELD
    except (Stop, SettingError) as stop:
        print(stop, file=sys.stderr, flush=True)
    except Exception as error:
        traceback.print_exc()
        if cause := explained(error):
            print(cause, file=sys.stderr, flush=True)
    return FAILED
