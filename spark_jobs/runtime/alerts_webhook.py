"""Alert events by webhook."""

from __future__ import annotations

from spark_jobs.runtime.alert_message import message
from spark_jobs.runtime.small_tables import Row
from webhook.posting import Webhook
from webhook.sent import Sent


class AlertsWebhook(Webhook):
    name = "webhook"

    def send(self, event: Row) -> Sent:
        return self.post(event["event_id"], message(event))
