"""Somebody is told of a task that failed, a run that is held, data that are old: by the webhook of the alerts, where one is set, and in the log.

The same trouble is told once, until a run is published again: not for every run that meets it, and not for a task that was cleared in vain.
"""

from __future__ import annotations

import hashlib
import json
import logging
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Variable
from airflow.sdk.configuration import conf

from dags.incident import page
from include.settings import Settings, iso

TOLD = "coldstore_notices"  # a variable of Airflow's: what was told already. Not in the lake, which may be what cannot be reached.
KEPT = 500
log = logging.getLogger(__name__)


def tell(context: Any) -> None:
    """What Airflow calls when a task has failed for good, also when its process was killed."""
    try:
        message = notice(context)
        told = Variable.get(TOLD, default=[], deserialize_json=True)
        if message["notice_id"] in told:
            return
        send(message)
        Variable.set(TOLD, [*told, message["notice_id"]][-KEPT:], serialize_json=True)
    except Exception:
        log.exception("nobody could be told")


def notice(context: Any) -> dict[str, str]:
    from published.incident import of_failure, of_silence  # here, so that reading the DAG stays cheap

    ti = context["ti"]
    found = getattr(context.get("task"), "incident", None) or (
        of_failure(str(said)) if (said := context.get("exception")) else of_silence()
    )
    named = {"dag_id": ti.dag_id, "task_id": ti.task_id, "kind": found["kind"]}
    since = found.get("published", "")
    return {
        "notice_id": hashlib.sha256(json.dumps([*named.values(), since]).encode()).hexdigest()[:24],
        **named,
        "run_id": ti.run_id,
        "at": iso(datetime.now(UTC)),
        "cause": found["cause"],
        "advice": found["advice"][0],
        "incident": f"{conf.get('api', 'base_url', fallback='').rstrip('/')}{page(ti)}",
    }


def send(message: dict[str, str]) -> None:
    settings = Settings.from_env()
    log.warning("NOTICE %s: %s %s", message["kind"], message["cause"], message["incident"])
    if not settings.webhook_url:
        return
    from webhook.posting import Webhook

    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    sent = Webhook(settings).post(message["notice_id"], body)
    if sent.outcome != "delivered":
        raise RuntimeError(f"the notice was not taken: {sent.detail}")
