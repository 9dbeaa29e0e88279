"""Send what changed in the published alerts to the webhook and to Kafka; the run is published, whatever becomes of this. Without Spark."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from include.settings import Settings
from spark_jobs.runtime import outbox
from spark_jobs.runtime.alert_message import Sink
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.outbox import Outcome


@dataclass(frozen=True)
class Delivery:
    """What came of it, by the way out."""

    outcomes: Mapping[str, Outcome]

    @property
    def waiting(self) -> int:
        return sum(outcome.waiting for outcome in self.outcomes.values())

    def __str__(self) -> str:
        if len(self.outcomes) == 1:
            return str(*self.outcomes.values())
        return "; ".join(f"{sink}: {outcome}" for sink, outcome in self.outcomes.items())


def deliver_alerts(lake: Lake) -> Delivery:
    """All ways out are made ready first; then none of them waits for another that fails."""
    outcomes: dict[str, Outcome] = {}
    failures: list[Exception] = []
    for sink in [_sink(name, lake.settings) for name in lake.settings.alert_sinks]:
        try:
            outcomes[sink.name] = outbox.deliver(lake, sink)
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
    return Delivery(outcomes)


def _sink(name: str, settings: Settings) -> Sink:
    """Loaded when it is asked for: each has libraries that the other does not need."""
    if name == "kafka":
        from spark_jobs.runtime.alerts_topic import AlertsTopic

        return AlertsTopic(settings)
    from spark_jobs.runtime.alerts_webhook import AlertsWebhook

    return AlertsWebhook(settings)


def main() -> None:
    """Not a step of the run, which has ended: it takes whatever waits, whichever run wrote it."""
    settings = Settings.from_env()
    if not settings.alert_sinks:
        print(
            "alerts: neither a webhook (COLDSTORE_WEBHOOK_URL) nor a topic (COLDSTORE_KAFKA_ALERTS_TOPIC) is set, so none is sent",
            flush=True,
        )
        return
    with opened(settings, "deliver_alerts") as lake:
        delivery = deliver_alerts(lake)
    if delivery.waiting:
        raise Stop(f"alerts: {delivery}. The run is published; what waits goes out with the next one, or with another try.")
    print(f"alerts: {delivery}", flush=True)


if __name__ == "__main__":
    sys.exit(program(main))
