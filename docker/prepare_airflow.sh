#!/usr/bin/env bash
# Once, before Airflow's servers start: its home with secrets made at random, its tables in Postgres, and the pool that keeps writers apart.
set -euo pipefail
.local/airflow/bin/python -m scripts.airflow_server prepare
.local/airflow/bin/airflow pools set lake_writer 1 "One writer of the lake at a time."
