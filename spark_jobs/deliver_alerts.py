"""Send what changed in the published alerts to the webhook; the run is published, whatever becomes of this. Without Spark."""

from __future__ import annotations

import sys

from include.settings import Settings
from spark_jobs.runtime import outbox
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.outbox import Outcome
from spark_jobs.runtime.webhook import Webhook


def deliver_alerts(lake: Lake) -> Outcome:
    return outbox.deliver(lake, Webhook(lake.settings))


def main() -> None:
    """Not a step of the run, which has ended: it takes whatever waits, whichever run wrote it."""
    settings = Settings.from_env()
    if not settings.webhook_url:
        print("alerts: no webhook is set (COLDSTORE_WEBHOOK_URL), so none is sent", flush=True)
        return
    with opened(settings, "deliver_alerts") as lake:
        outcome = deliver_alerts(lake)
    if outcome.waiting:
        raise Stop(f"alerts: {outcome}. The run is published; what waits goes out with the next one, or with another try.")
    print(f"alerts: {outcome}", flush=True)


if __name__ == "__main__":
    sys.exit(program(main))
