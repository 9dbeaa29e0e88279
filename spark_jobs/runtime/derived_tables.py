"""All derived tables in turn, staged, and measured for the checks; one way for a run and for a rebuild."""

from __future__ import annotations

from spark_jobs.runtime import measures, staging
from spark_jobs.runtime.caused_outages import CausedOutages
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.episode_tables import EpisodeTables
from spark_jobs.runtime.lake import together
from spark_jobs.runtime.window_tables import WindowTables


def stage(derived: Derivation) -> None:
    """Into the attempt that the run has started."""
    lake, run = derived.lake, derived.run
    windows, episodes = WindowTables(derived), EpisodeTables(derived)
    if lake.expects_many_rows:  # each fills the machine by itself
        windows.stage()
        episodes.stage()
    else:
        together(windows.stage, episodes.stage)
    small = {"heartbeats": derived.heartbeats(CausedOutages(derived, episodes.format).stage()), "sensor_stores": derived.sensor_stores()}
    for table, rows in small.items():
        staging.stage_rows(lake, run, table, rows)
    notes = {**measures.take(derived, episodes.doubled_keys, small), "versions": {"readings": derived.changes.version}}
    staging.write_notes(lake, run, "measures", notes)
