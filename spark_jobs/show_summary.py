"""Print what the last run did, and what to try next."""

from __future__ import annotations

from include.settings import Settings
from spark_jobs.runtime import summary

NEXT = """
Next: make run          goes on with the next hours of the sample
      make up           Airflow with its UI, in the background
      make line source=… position=…    the raw line behind a row"""

if __name__ == "__main__":
    print(summary.of_run(Settings.from_env()) + "\n" + NEXT)
