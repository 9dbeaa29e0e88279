"""Write docs/tables.md, the data dictionary for people, from include/tables.py: python3 -m scripts.write_tables_doc"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from include.rules import RULES
from include.tables import PUBLISHED, TABLES, Table

PLACE = Path(__file__).resolve().parent.parent / "docs" / "tables.md"
HEAD = """\
# Tables

Every table of the lake: a Delta table in `<lake>/tables/<name>`. This page is written from `include/tables.py`; change the meaning of a column
there, then run `python3 -m scripts.write_tables_doc`. How to read the tables: [analysts.md](analysts.md).

All times are UTC. A table that is seen *after the checks* changes only when a run is published; one that is seen *at once* grows while a run
takes lines in, and shows them even when that run is held.
"""


def text() -> str:
    parts = [HEAD, "\n".join(overview()) + "\n", *("\n".join(section(table)) + "\n" for table in TABLES.values())]
    parts += ["\n".join(rules()) + "\n"]
    return "\n".join(parts)


def overview() -> Iterator[str]:
    yield "| table | a row | seen |"
    yield "|---|---|---|"
    for table in TABLES.values():
        yield f"| [{table.name}](#{table.name}) | {cell(table.meaning)} | {seen(table)} |"


def rules() -> Iterator[str]:
    yield "## The alert rules"
    yield ""
    yield "From `include/rules.py`. Exactly at a limit is inside; bounds of time and of °C include equality unless they say more or below."
    yield ""
    yield "| rule | severity | opens | ends | do first |"
    yield "|---|---|---|---|---|"
    for rule in RULES:
        yield f"| {rule.name} | {rule.severity} | {cell(rule.when.opens)} | {cell(rule.when.ends)} | {cell(rule.advice)} |"
        for store, kind in sorted(rule.at_store.items()):
            opens, ends = (cell(kind.opens), cell(kind.ends)) if kind else ("never", "–")
            yield f"| {rule.name} at {store} | {rule.severity} | {opens} | {ends} | {cell(rule.advice)} |"


def seen(table: Table) -> str:
    return "after the checks" if table.name in PUBLISHED else "at once"


def section(table: Table) -> Iterator[str]:
    yield f"## {table.name}"
    yield ""
    yield table.meaning
    yield ""
    yield " · ".join(facts(table))
    yield ""
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for column in table.columns:
        yield f"| {column.name} | `{column.type}` | {cell(column.meaning)} |"


def facts(table: Table) -> Iterator[str]:
    yield f"Key: {', '.join(table.key)}"
    if table.partitioned_by:
        yield f"partitioned by {', '.join(table.partitioned_by)}"
    if table.skipping_on:
        yield f"filters that pass files over: {', '.join(table.skipping_on)}"
    if table.has_change_feed:
        yield "with a change data feed"


def cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
    print(f"{PLACE.name}: {len(TABLES)} tables")
