"""How people say that they have seen to an alert (P16): append-only. Which episode it is about, even when that has moved: `include/acknowledged.py`."""

from __future__ import annotations

from datetime import UTC, datetime

from include.settings import utc
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import history
from spark_jobs.runtime.small_tables import Row, Write

FEWEST_DIGITS = 6
ALERT = ["alert_id", "rule", "sensor_id", "store_id", "started_at", "ended_at", "status", "superseded_by"]


def acknowledge(lake: Lake, alert_id: str, by: str, why: str) -> Row:
    """The alert that it is about."""
    if not by.strip() or not why.strip():
        raise Stop("say who has seen to the alert and why: make ack alert=… by=… why=…")
    published = history(lake).published if lake.exists("runs") else None
    if published is None:
        raise Stop(f"{lake.settings.lake} has no published alerts yet: run a pass first.")
    alert = _alert(lake, alert_id.strip())
    until = alert["ended_at"] or max(alert["started_at"], utc(published.as_of))
    named = {name: alert[name] for name in ("alert_id", "rule", "sensor_id", "started_at")}
    row = {**named, "acknowledged_by": by.strip(), "acknowledged_at": datetime.now(UTC), "comment": why.strip(), "seen_until": until}
    lake.add_rows("acknowledgements", [row], Write("acknowledge", lake.version("acknowledgements") + 1))
    return alert


def _alert(lake: Lake, alert_id: str) -> Row:
    found = [row for row in lake.rows("alerts", ALERT) if len(alert_id) >= FEWEST_DIGITS and row["alert_id"].startswith(alert_id)]
    if not found:
        raise Stop(
            f"there is no alert {alert_id or '(none given)'}: give its id, or at least its first {FEWEST_DIGITS} digits. Nothing was changed."
        )
    if len(found) > 1:
        raise Stop(f"{len(found)} alerts begin with {alert_id}: give more digits. Nothing was changed.")
    if found[0]["status"] == "retracted":
        instead = f"; {found[0]['superseded_by']} took its place" if found[0]["superseded_by"] else ""
        raise Stop(f"alert {found[0]['alert_id']} is retracted: the readings do not bear it out any more{instead}. Nothing was changed.")
    return found[0]
