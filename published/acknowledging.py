"""How people say that they have seen to an alert (P16). Rows are added and never changed; which episode one is about, even when that has moved: `include/acknowledged.py`.

People are the only writers of this table, and adding a row disturbs nobody: so this needs no lease, and works while a run is under way.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError

from published.refused import Refused
from published.snapshot import opened, published

FEWEST_DIGITS = 6
ATTEMPTS = 5  # where a run changes the table's properties at this very moment
COMPACT_EVERY = 20  # rows: each leaves a file of its own, and a read opens them all
ALERT = ["alert_id", "rule", "sensor_id", "store_id", "started_at", "ended_at", "status", "superseded_by"]
Row = dict[str, Any]


def acknowledge(lake: str, alert_id: str, by: str, why: str) -> Row:
    """The alert that it is about."""
    if not by.strip() or not why.strip():
        raise Refused("say who has seen to the alert and why: make ack alert=… by=… why=…")
    last = published(lake)
    alert = _alert(last.dataset("alerts"), alert_id.strip())
    until = alert["ended_at"] or max(alert["started_at"], last.run["as_of"])
    named = {name: alert[name] for name in ("alert_id", "rule", "sensor_id", "started_at")}
    _add(lake, {**named, "acknowledged_by": by.strip(), "acknowledged_at": datetime.now(UTC), "comment": why.strip(), "seen_until": until})
    return alert


def _add(lake: str, row: Row) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        table = opened(lake, "acknowledgements")
        try:
            write_deltalake(table, pa.Table.from_pylist([row], schema=table.to_pyarrow_dataset().schema), mode="append")
            break
        except CommitFailedError:
            if attempt == ATTEMPTS:
                raise Refused("the table of acknowledgements is being changed at this very moment; try again.") from None
    if table.version() % COMPACT_EVERY == 0:
        with suppress(CommitFailedError):  # the next one does it
            table.optimize.compact()


def _alert(alerts: Any, alert_id: str) -> Row:
    found = []
    if len(alert_id) >= FEWEST_DIGITS:
        found = alerts.to_table(columns=ALERT, filter=pc.starts_with(pc.field("alert_id"), alert_id)).to_pylist()
    if not found:
        raise Refused(
            f"there is no alert {alert_id or '(none given)'}: give its id, or at least its first {FEWEST_DIGITS} digits. Nothing was changed."
        )
    if len(found) > 1:
        raise Refused(f"{len(found)} alerts begin with {alert_id}: give more digits. Nothing was changed.")
    alert: Row = found[0]
    if alert["status"] == "retracted":
        instead = f"; {alert['superseded_by']} took its place" if alert["superseded_by"] else ""
        raise Refused(f"alert {alert['alert_id']} is retracted: the readings do not bear it out any more{instead}. Nothing was changed.")
    return alert
