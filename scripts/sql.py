"""SQL over the published snapshot of all tables, without Spark: python -m scripts.sql "select …" (make sql q="select …"). Nothing can be written.

The reference files are tables, too: `sensors`, `limits`, `suppressions`, as they are now.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from include.reference import FILES
from include.settings import SettingError, Settings, iso
from include.tables import TABLES
from published.refused import Refused
from published.snapshot import Snapshot, published
from spark_jobs.runtime import reference
from spark_jobs.runtime.errors import Stop

MOST_ROWS, WIDEST = 500, 60  # of a table on the screen; csv and json have all of it
KINDS = {"string": pa.string(), "timestamp": pa.timestamp("us", "UTC"), "bigint": pa.int64(), "double": pa.float64()}
HELP = """\
A statement ends with ; and may have several lines. DuckDB's SQL; times are UTC.
  .tables          every table, and what a row of it is
  .columns TABLE   its columns, with their types and meanings
  .quit            or Ctrl-D"""


class Mistake(Exception):
    """What is wrong with what was asked, in one line."""


def connected(snapshot: Snapshot, settings: Settings) -> duckdb.DuckDBPyConnection:
    """Tables are read by delta-rs; the connection itself can reach no file, so that nothing can be written by accident."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in snapshot.tables:
        connection.register(name, snapshot.dataset(name))
    for file, rows in reference.check(settings).items():
        fields = next(each.fields for each in FILES if each.name == file)
        connection.register(file, pa.Table.from_pylist(rows, pa.schema([(field.name, KINDS[field.type]) for field in fields])))
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def answer(connection: duckdb.DuckDBPyConnection, statement: str) -> pa.Table:
    try:
        found = connection.sql(statement)
        return pa.table({}) if found is None else found.to_arrow_table()
    except duckdb.PermissionException:
        raise Mistake("tables can only be read here, and files not at all. To save an answer: make sql q=… as=csv > answer.csv") from None
    except duckdb.Error as error:
        raise Mistake(str(error).strip()) from None


def plain(value: Any) -> Any:
    """As JSON has it."""
    match value:
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case datetime():
            return iso(value)
        case bytes():
            return value.decode(errors="replace")
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches():
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            yield plain(row)


def on_the_screen(rows: pa.Table) -> str:
    shown = [[_cell(value) for value in row.values()] for row in rows_of(rows.slice(0, MOST_ROWS))]
    names = rows.schema.names
    to_the_right = [
        pa.types.is_integer(each.type) or pa.types.is_floating(each.type) or pa.types.is_decimal(each.type) for each in rows.schema
    ]
    widths = [min(WIDEST, max(map(len, column))) for column in zip(names, *shown, strict=True)]

    def drawn(cells: Iterable[str]) -> str:
        return "  ".join(_placed(*cell) for cell in zip(cells, widths, to_the_right, strict=True)).rstrip()

    lines = [drawn(names), "  ".join("-" * width for width in widths), *map(drawn, shown)]
    if len(rows) > MOST_ROWS:
        lines.append(f"… and {len(rows) - MOST_ROWS:,} more rows; as=csv has all of them")
    return "\n".join(lines)


def _placed(text: str, width: int, to_the_right: bool) -> str:
    short = text if len(text) <= width else text[: width - 1] + "…"
    return short.rjust(width) if to_the_right else short.ljust(width)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return _text(value).replace("\n", " ")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else str(value)


def write(rows: pa.Table, form: str) -> None:
    if form == "json":
        for row in rows_of(rows):
            print(json.dumps(row, ensure_ascii=False))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows.schema.names)
        writer.writerows(["" if value is None else _text(value) for value in row.values()] for row in rows_of(rows))
    else:
        print(on_the_screen(rows))


def shell(connection: duckdb.DuckDBPyConnection, snapshot: Snapshot) -> None:
    """Statement by statement, from a person or a pipe."""
    import readline  # noqa: F401 — with it, input() has a history

    print(f"{snapshot}; .help tells what there is", file=sys.stderr)
    text = ""
    while True:
        try:
            line = input("" if not sys.stdin.isatty() else "... " if text else "sql> ")
        except EOFError:
            break
        except KeyboardInterrupt:
            print()
            text = ""
            continue
        if not text and line.startswith("."):
            if line.strip() in (".quit", ".exit"):
                break
            print(told(line))
            continue
        text = f"{text}\n{line}".strip()
        if text.endswith(";"):
            try:
                print(on_the_screen(answer(connection, text)))
            except Mistake as mistake:
                print(mistake, file=sys.stderr)
            text = ""


def told(command: str) -> str:
    word, *rest = command.split()
    if word == ".tables":
        files = {file.name: f"{file.name}.csv as it is now: {', '.join(field.name for field in file.fields)}" for file in FILES}
        return "\n".join(f"{name:<18} {told}" for name, told in ({name: table.meaning for name, table in TABLES.items()} | files).items())
    if word == ".columns" and rest and rest[0] in TABLES:
        return "\n".join(f"{column.name:<22} {column.type.partition('<')[0]:<10} {column.meaning}" for column in TABLES[rest[0]].columns)
    return HELP


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sql", description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("statement", nargs="?", default="", help="without one: a shell")
    parser.add_argument("--at", default="", help="a past run's id: the tables as it published them")
    parser.add_argument("--as", dest="form", default="", help="table (the default), csv or json (a line for each row)")
    given = parser.parse_args()
    try:
        if given.form not in ("", "table", "csv", "json"):
            raise Mistake(f"as={given.form} is not known: table, csv or json")
        settings = Settings.from_env()
        snapshot = published(settings.lake, given.at)
        connection = connected(snapshot, settings)
        if not given.statement.strip():
            shell(connection, snapshot)
            return 0
        rows = answer(connection, given.statement)
        write(rows, given.form)
        print(f"{len(rows):,} row{'s' * (len(rows) != 1)}; {snapshot}", file=sys.stderr)
    except (Mistake, Refused, SettingError, Stop) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
