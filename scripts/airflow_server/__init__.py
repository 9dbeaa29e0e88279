"""Start Airflow (`up`), end it (`down`), or take one pass of the pipeline through it (`run`).

`up` starts the real thing: the DAG is not paused, so a pass runs every 10 minutes as of the end of its interval. (A paused DAG would be of
little use: in Airflow 3 a run triggered by hand waits, too, until the DAG is unpaused.) If someone pauses it in the UI, it stays paused
after the next `up`.

`run` starts the same servers on a free port with the timetable switched off (`use_job_schedule`), so that its own run, with its own as_of,
is the only one; it ends them when the run has ended. Where `up` is running, `run` triggers its run there.

`prepare` makes what servers need that somebody else starts, in containers for example, and starts nothing.

Everything lives in `.local/airflow_home`, or in the folder that COLDSTORE_AIRFLOW_HOME names: the metadata (SQLite, which LocalExecutor may
use since Airflow 3, unless Airflow's own setting names a Postgres), logs, and the secrets, made at random on the first start and readable by
nobody else. All servers listen on 127.0.0.1 only; the scheduler's log server, which would
listen everywhere, is left out (the UI reads the log files themselves), and so is the triggerer: no task defers.
"""
