"""What the crash tests found, written into docs/reliability.md where COLDSTORE_CRASHES=all asks for all of them."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from include.settings import PROJECT

PAGE = PROJECT / "docs" / "reliability.md"
START, END = "<!-- crash matrix, written by make crash -->", "<!-- end of the crash matrix -->"
places: list[tuple[str, int, int, bool, float]] = []  # name, passes, lines, equal to the oracle, seconds
crashes: dict[tuple[str, str], str] = {}
kills: dict[str, int] = {}
requests: dict[int, list[int]] = {}  # of passes in a row with nothing new, by the number of passes before them


def note_crash(point: str, place: str, difference: str) -> None:
    crashes[point, place] = difference


def note_kills(place: str, count: int) -> None:
    kills[place] = count


def table_of_places() -> list[str]:
    head = f"{'place':<24} {'passes':>6} {'lines':>6}  {'equal to the oracle':<19} {'seconds':>7}"
    return [head] + [
        f"{name:<24} {passes:>6} {lines:>6}  {'yes' if equal else 'NO':<19} {seconds:>7.0f}"
        for name, passes, lines, equal, seconds in places
    ]


def write() -> None:
    if os.environ.get("COLDSTORE_CRASHES") != "all" or not (crashes and kills):
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{_matrix()}\n{END}{after}", encoding="utf-8")


def _matrix() -> str:
    places, points = sorted({place for _, place in crashes}), dict.fromkeys(point for point, _ in crashes)
    rows = [[point, *(_said(crashes.get((point, place))) for place in places)] for point in points]
    survived = sum(not difference for difference in crashes.values())
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in [["killed", *places], ["---"] * (len(places) + 1), *rows])
    random = ", ".join(f"{count} on {place}" for place, count in kills.items())
    told = [f"{datetime.now(UTC):%Y-%m-%d}: {survived} of {len(crashes)} survived.", table]
    if len(crashes) < len(points) * len(places):
        told += ["–: there the point came right after another one, and nothing is written between the two."]
    told += [f"Kills at random moments in a row, on one lake, with the oracle's tables at the end: {random}."]
    if requests:
        counted = "; ".join(f"after {passes} passes {', '.join(map(str, counts))}" for passes, counts in requests.items())
        why = "They rise and fall: a table's log is read from its last checkpoint on, and with every fourth pass the books are compacted."
        told += [f"Requests to the S3 server of passes in a row with nothing new: {counted}. {why}"]
    return "\n\n".join(told)


def _said(difference: str | None) -> str:
    if difference is None:
        return "–"
    return "survived; nothing lost, nothing doubled" if not difference else f"**not survived**: {difference.splitlines()[0]}"
