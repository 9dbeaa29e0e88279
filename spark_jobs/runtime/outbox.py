"""The outbox (P17): which events of published runs still have to go out, in which order, and what became of them.

`alert_events` itself is the outbox. For each way out (webhook, Kafka) `deliveries` says which events are settled, `control/delivered.json` up to
which run all of them are. An event is written down after it was sent: a crash in between sends it again under the same id, and loses nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from include.settings import iso, utc
from spark_jobs.runtime import storage
from spark_jobs.runtime.alert_message import MESSAGE, Sink
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.small_tables import Row, Write
from spark_jobs.transforms.alerts import HISTORIC_AFTER_S
from webhook.sent import Sent

WRITE_EVERY_S = 5.0  # what a crash can send twice; each write leaves a version and a file
CHANGES = ("opened", "resolved", "retracted")  # in this order where a run sees several of one alert
HISTORY = timedelta(seconds=HISTORIC_AFTER_S)
Began = tuple[int, datetime]


@dataclass(frozen=True)
class Outcome:
    delivered: int = 0
    refused: int = 0
    waiting: int = 0
    refusal: str = ""  # the last answer of each kind
    cause: str = ""

    def __str__(self) -> str:
        parts = [f"{self.delivered:,} event{'s' * (self.delivered != 1)} delivered"]
        parts += [f"{self.refused:,} refused ({self.refusal})"] if self.refused else []
        parts += [f"{self.waiting:,} waiting ({self.cause})"] if self.waiting else []
        return ", ".join(parts) if self.delivered or len(parts) > 1 else "no new events"


class Book:
    """What was settled, on its way into `deliveries`."""

    def __init__(self, lake: Lake, sink: str) -> None:
        self._lake, self._sink, self._rows, self._written = lake, sink, list[Row](), time.monotonic()
        self.settled: dict[str, Sent] = {}

    def enter(self, event: Row, sent: Sent) -> None:
        self.settled[event["event_id"]] = sent
        self._rows.append(
            {
                "event_id": event["event_id"],
                "alert_id": event["alert_id"],
                "sink": self._sink,
                "status": sent.outcome,
                "attempts": sent.attempts,
                "delivered_at": datetime.now(UTC),
                "number": event["number"],
                "detail": sent.detail,
            }
        )
        if time.monotonic() - self._written >= WRITE_EVERY_S:
            self.write()

    def write(self) -> None:
        rows, self._rows, self._written = self._rows, [], time.monotonic()
        if rows:
            self._lake.add_rows("deliveries", rows, Write("deliveries", self._lake.version("deliveries") + 1))


def deliver(lake: Lake, sink: Sink) -> Outcome:
    if not lake.exists("deliveries"):
        raise Stop(f"{lake.settings.lake} has no table deliveries yet, so nothing was sent: run a pass first.")
    known = _delivered_until(lake, sink.name)
    published = lake.rows("runs", ["number", "as_of"], [("status", "=", "published"), ("number", ">", known or 0)])
    if not published:
        return Outcome()
    last = max(published, key=lambda run: run["number"])
    began = _began(lake, sink.name) if known is not None else (last["number"], last["as_of"])
    events = _unsettled(lake, sink.name, known or 0, last["number"], began)
    book, cause = Book(lake, sink.name), ""
    try:
        cause = _send(events, sink, book)
    finally:
        book.write()
    waiting = [event for event in events if event["event_id"] not in book.settled]
    _remember(lake, sink.name, min((event["number"] - 1 for event in waiting), default=last["number"]), began if waiting else None)
    refused = [sent for sent in book.settled.values() if sent.outcome == "refused"]
    return Outcome(len(book.settled) - len(refused), len(refused), len(waiting), refused[-1].detail if refused else "", cause)


def _send(events: Sequence[Row], sink: Sink, book: Book) -> str:
    """Why some still wait: the last answer that was no use. An alert whose event could not be sent keeps its later ones back, too."""
    cause, stuck = "the time for one run was over", set()
    for event in events:
        if sink.is_over:
            break
        if event["alert_id"] in stuck:
            continue
        sent = sink.send(event)
        if sent.outcome == "waiting":
            cause = sent.detail
            stuck.add(event["alert_id"])
        else:
            book.enter(event, sent)
    return cause


def _unsettled(lake: Lake, sink: str, after: int, last: int, began: Began | None) -> list[Row]:
    settled = {row["event_id"] for row in lake.rows("deliveries", ["event_id"], [("sink", "=", sink), ("number", ">", after)])}
    events = lake.rows("alert_events", [*MESSAGE, "number"], [("number", ">", after), ("number", "<=", last)])
    events.sort(key=lambda event: (event["number"], CHANGES.index(event["change"]), event["at"], event["event_id"]))
    if began:
        number, as_of = began
        older = without_history([event for event in events if event["number"] <= number], as_of)
        events = older + [event for event in events if event["number"] > number]
    events = [event for event in events if event["event_id"] not in settled]
    told = _told_of(lake, sink) if any(event["is_historic"] and event["change"] != "opened" for event in events) else set()
    return [event for event in events if not event["is_historic"] or event["alert_id"] in told]


def _told_of(lake: Lake, sink: str) -> set[str]:
    """Alerts that the receiver knows of: it hears that they are over even when that is history, or it would wait for ever."""
    return {row["alert_id"] for row in lake.rows("deliveries", ["alert_id"], [("sink", "=", sink), ("status", "=", "delivered")])}


def without_history(events: Sequence[Row], as_of: datetime) -> list[Row]:
    """When delivery is switched on: nobody is paged for alerts that were over a day ago, though they were news when they were written."""
    newest = {event["alert_id"]: event for event in events}
    over = {
        alert_id
        for alert_id, event in newest.items()
        if event["change"] != "opened" and (event["ended_at"] or event["at"]) < as_of - HISTORY
    }
    return [event for event in events if event["alert_id"] not in over]


def _delivered_until(lake: Lake, sink: str) -> int | None:
    """The run up to which every event is settled; None where nothing was ever delivered."""
    return _marks(lake).get(sink)


def _began(lake: Lake, sink: str) -> Began | None:
    """Where the first delivery had to leave something for later: the last run of that time, and its clock. What was history then, stays it."""
    found = _marks(lake).get(f"{sink} began")
    return (int(found[0]), utc(found[1])) if found else None


def _remember(lake: Lake, sink: str, number: int, began: Began | None) -> None:
    marks = {name: mark for name, mark in _marks(lake).items() if name != f"{sink} began"} | {sink: number}
    if began:
        marks[f"{sink} began"] = [began[0], iso(began[1])]
    lake.write_text(json.dumps(marks), "control", "delivered.json")


def _marks(lake: Lake) -> dict[str, Any]:
    return dict(json.loads(storage.read_text(lake.place("control", "delivered.json")) or "{}"))
