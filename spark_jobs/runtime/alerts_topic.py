"""Alert events to a Kafka topic: one message per event, with the alert's id as its key, so that those of one alert stay in order.

The broker has an event when all its replicas have it. One that was not confirmed is sent again by the next run, under the same id.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from include.settings import Settings
from spark_jobs.runtime import broker
from spark_jobs.runtime.alert_message import message
from spark_jobs.runtime.small_tables import Row
from webhook.sent import Sent

# They speak of the event, not of the broker: it would not be taken later either.
REFUSALS = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD)


class AlertsTopic:
    name = "kafka"

    def __init__(self, settings: Settings) -> None:
        broker.check(settings)
        self._topic, self._timeout_s, self._complaint = settings.kafka_alerts_topic, settings.kafka_timeout_s, ""
        patience_ms = round(self._timeout_s * 1000)
        options = {"acks": "all", "enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": patience_ms}
        options["topic.metadata.propagation.max.ms"] = patience_ms // 3  # so that a topic that is not there is named as the cause
        self._producer = Producer({**broker.client_options(settings), **options, "error_cb": self._complains})
        self.is_over = False  # nothing more is sent in this run

    def send(self, event: Row) -> Sent:
        """A broker that did not take one event is not asked again in this run: the others would wait as long, each."""
        answers: list[tuple[KafkaError | None, Any]] = []
        try:
            self._producer.produce(
                self._topic,
                message(event),
                key=event["alert_id"],
                headers=[("event_id", event["event_id"])],
                on_delivery=lambda error, sent: answers.append((error, sent)),
            )
            self._producer.flush(self._timeout_s + 1)
        except KafkaException as failure:
            answers.append((failure.args[0], None))
        error, sent = answers[0] if answers else (None, None)
        if sent is not None and error is None:
            return Sent("delivered", 1, f"{self._topic}-{sent.partition()} at {sent.offset()}")
        detail = f"Kafka did not take it: {self._complaint or (error.str() if error is not None else 'no answer')}"
        if error is not None and error.code() in REFUSALS:
            return Sent("refused", 1, detail)
        self.is_over = True
        return Sent("waiting", 1, detail)

    def _complains(self, error: KafkaError) -> None:
        """What lies behind a message that was not taken in time, like a wrong password."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._complaint = error.str()
