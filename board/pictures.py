"""Drawings, as SVG: plain functions from rows to text. Colours and strokes are the style sheet's (`templates/style.css`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from itertools import pairwise
from typing import Any

from published.board import Point, Sensor, Span, StorePage
from published.quality import Mark, Trend

LEFT, RIGHT, WIDTH = 46.0, 12.0, 1000.0  # of the time axis
LANE, TALL = 54.0, 190.0  # a sensor's lane, the store's own
Row = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """Where times and temperatures lie in a drawing."""

    span: Span
    left: float
    width: float
    top: float
    height: float
    low: float
    high: float

    def x(self, at: datetime) -> float:
        share = (at - self.span.starts) / (self.span.ends - self.span.starts)
        return round(self.left + min(max(share, 0.0), 1.0) * self.width, 1)

    def y(self, degrees: float) -> float:
        share = (degrees - self.low) / (self.high - self.low)
        return round(self.top + self.height * (1 - min(max(share, 0.0), 1.0)), 1)


def spark(points: Sequence[Point], span: Span) -> str:
    """A day of a store, small: the range of its temperatures, and their average."""
    if not points:
        return '<svg class="spark" viewBox="0 0 240 40" role="img" aria-label="no readings"><text x="120" y="25" class="none">no readings</text></svg>'
    low, high = _range([(point.low, point.high) for point in points])
    scale = Scale(span, 0, 240, 2, 36, low, high)
    label = f"{min(point.low for point in points):.1f} to {max(point.high for point in points):.1f} °C in 24 hours"
    return (
        f'<svg class="spark" viewBox="0 0 240 40" preserveAspectRatio="none" role="img" aria-label="{label}"><title>{label}</title>'
        f"{_curve(points, scale)}</svg>"
    )


def time_axis(page: StorePage) -> str:
    """A store and its sensors, lane under lane on one time axis."""
    lanes = [_store_lane(page, 24.0)]
    top = 24.0 + TALL + 14
    for sensor in page.sensors:
        lanes.append(_sensor_lane(page, sensor, top))
        top += LANE
    return (
        f'<svg class="axis" viewBox="0 0 {WIDTH:.0f} {top + 8:.0f}" role="img" '
        f'aria-label="temperatures, alerts, outages and open doors of {escape(page.store.store_id)}">'
        f"{_hours(page.span, top)}{''.join(lanes)}</svg>"
    )


def trend(of: Trend) -> str:
    """A share over the runs, one step each, and what was allowed."""
    seen = [mark.percent for mark in of.marks if mark.percent is not None]
    if not seen:
        return '<p class="quiet">Nothing was judged yet.</p>'
    width, top, height = WIDTH - LEFT - RIGHT, 8.0, 96.0
    low, high = _range([(value, value) for value in (*seen, *(mark.allowed for mark in of.marks if mark.allowed is not None))])
    low, high = max(low, 0.0), min(high, 100.0) if max(seen) <= 100 else high
    step = width / max(len(of.marks), 1)

    def y(percent: float) -> float:
        return round(top + height * (1 - (percent - low) / (high - low)), 1)

    parts = []
    for percent in (low, (low + high) / 2, high):
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(percent)}" y2="{y(percent)}"/>')
        parts.append(f'<text class="degrees" x="{LEFT - 5}" y="{y(percent) + 4}">{percent:.1f}%</text>')
    for number, mark in enumerate(of.marks):
        x = round(LEFT + number * step, 1)
        if mark.allowed is not None:
            parts.append(f'<line class="limit" x1="{x}" x2="{round(x + step, 1)}" y1="{y(mark.allowed)}" y2="{y(mark.allowed)}"/>')
        if mark.percent is not None:
            parts.append(_mark(mark, round(x + step / 2, 1), y(mark.percent), max(min(step / 3, 4.0), 1.5)))
    return f'<svg class="axis" viewBox="0 0 {WIDTH:.0f} {top + height + 10:.0f}" role="img" aria-label="{escape(of.name)} over the last runs">{"".join(parts)}</svg>'


def _mark(mark: Mark, x: float, y: float, radius: float) -> str:
    kind = "ok" if mark.success else "missed"
    told = f"{mark.run_id} ({mark.status}), as of {mark.as_of:%Y-%m-%d %H:%M}: {mark.observed}, allowed {mark.limit}"
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius:.1f}"><title>{escape(told)}</title></circle>'


def _store_lane(page: StorePage, top: float) -> str:
    points, limits = page.store.temperatures, page.limits
    marks = [(point.low, point.high) for point in points]
    marks += [(value, value) for row in limits for value in (row["low_c"], row["high_c"]) if value is not None]
    low, high = _range(marks)
    scale = Scale(page.span, LEFT, WIDTH - LEFT - RIGHT, top, TALL, low, high)
    parts = [_degrees(scale), _curve(points, scale)]
    for row in limits:
        for name in ("low_c", "high_c"):
            if row[name] is not None:
                y = scale.y(row[name])
                starts, ends = scale.x(row["valid_from"] or page.span.starts), scale.x(row["valid_to"] or page.span.ends)
                parts.append(
                    f'<line class="limit" x1="{starts}" x2="{ends}" y1="{y}" y2="{y}"><title>limit {row[name]:g} °C</title></line>'
                )
    for at in page.repairs:
        x = scale.x(at)
        parts.append(
            f'<path class="repair" d="M{x} {top + TALL} l-4 7 h8 z"><title>late readings changed the minute {at:%Y-%m-%d %H:%M}</title></path>'
        )
    return "".join(parts)


def _sensor_lane(page: StorePage, sensor: Sensor, top: float) -> str:
    low, high = _range([(point.low, point.high) for point in sensor.temperatures])
    scale = Scale(page.span, LEFT, WIDTH - LEFT - RIGHT, top + 14, LANE - 24, low, high)
    name = escape(sensor.sensor_id)
    parts = [
        f'<line class="rule" x1="0" x2="{WIDTH:.0f}" y1="{top}" y2="{top}"/>',
        f'<text class="name" x="4" y="{top + 11}">{name} <tspan class="{escape(sensor.status)}">{escape(sensor.status.replace("_", " "))}</tspan></text>',
    ]
    for row in sensor.outages:
        told = f"silent {_when(row)}; cause: {row['cause']}"
        parts.append(_bar("outage", row, scale, top + 14, LANE - 24, told))
    parts.append(_curve(sensor.temperatures, scale))
    for row in sensor.door_sessions:
        parts.append(_bar("door", row, scale, top + LANE - 9, 4, f"door open {_when(row)}; up to {row['peak_c']:.1f} °C"))
    for row in sensor.alerts:
        told = f"{row['rule']} ({row['severity']}, {row['status']}) {_when(row)}"
        parts.append(_bar(row["severity"], row, scale, top + LANE - 4, 4, told))
    return "".join(parts)


def _bar(kind: str, row: Row, scale: Scale, top: float, height: float, told: str) -> str:
    starts, ends = scale.x(row["started_at"]), scale.x(row["ended_at"] or scale.span.ends)
    return (
        f'<rect class="{escape(kind)}" x="{starts}" y="{top}" width="{max(ends - starts, 2):.1f}" height="{height}">'
        f"<title>{escape(told)}</title></rect>"
    )


def _curve(points: Sequence[Point], scale: Scale) -> str:
    """In pieces: where nothing was measured nothing is drawn."""
    parts = []
    for piece in _pieces(points):
        there = " ".join(f"{scale.x(point.at)},{scale.y(point.high)}" for point in piece)
        back = " ".join(f"{scale.x(point.at)},{scale.y(point.low)}" for point in reversed(piece))
        line = " ".join(f"{scale.x(point.at)},{scale.y(point.average)}" for point in piece)
        parts.append(f'<polygon class="range" points="{there} {back}"/><polyline class="average" points="{line}"/>')
    return "".join(parts)


def _pieces(points: Sequence[Point]) -> Iterable[Sequence[Point]]:
    if len(points) < 2:
        return [points] if points else []
    step = min(later.at - earlier.at for earlier, later in pairwise(points))
    cuts = [number for number in range(1, len(points)) if points[number].at - points[number - 1].at > step]
    return [points[start:end] for start, end in zip([0, *cuts], [*cuts, len(points)], strict=True)]


def _hours(span: Span, bottom: float) -> str:
    """Lines at whole hours, as many as can be read."""
    length = span.ends - span.starts
    step = next(hours for hours in (1, 3, 6, 12, 24, 48) if length <= timedelta(hours=hours * 13))
    at = span.starts.replace(minute=0, second=0, microsecond=0)
    parts, scale = [], Scale(span, LEFT, WIDTH - LEFT - RIGHT, 0, 1, 0, 1)
    while at <= span.ends:
        if at >= span.starts and at.hour % min(step, 24) == 0:
            x, told = scale.x(at), f"{at:%H:%M}" if at.hour else f"{at:%d %b}"
            parts.append(f'<line class="hour" x1="{x}" x2="{x}" y1="18" y2="{bottom}"/><text class="hour" x="{x}" y="12">{told}</text>')
        at += timedelta(hours=1)
    return "".join(parts)


def _degrees(scale: Scale) -> str:
    parts = []
    for share in (0.0, 0.5, 1.0):
        degrees = scale.low + share * (scale.high - scale.low)
        y = scale.y(degrees)
        parts.append(
            f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/><text class="degrees" x="{LEFT - 5}" y="{y + 4}">{degrees:.1f}°</text>'
        )
    return "".join(parts)


def _range(marks: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """With some room around it."""
    low, high = min((low for low, _ in marks), default=0.0), max((high for _, high in marks), default=1.0)
    room = max((high - low) * 0.08, 0.25)
    return low - room, high + room


def _when(row: Row) -> str:
    ends = f"to {row['ended_at']:%d %b %H:%M}" if row["ended_at"] else "and still"
    return f"from {row['started_at']:%d %b %H:%M} {ends}"
