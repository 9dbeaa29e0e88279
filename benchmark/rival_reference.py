"""The rival's reference tables: the three files as they are, an absent cell filled with what it stands for. Times are in UTC."""

from __future__ import annotations

from pathlib import Path


def steps(folder: Path) -> tuple[str, str, str]:
    return (
        f"""
        CREATE TABLE sensors AS
        SELECT sensor_id, store_id AS home, active_from::timestamp AS active_from, retired_at::timestamp AS retired_at,
            to_seconds(coalesce(silent_after_s::integer, 120)) AS timeout,
            coalesce(expected_every_s::integer, 60) <= 60 AND coalesce(active_from::timestamp < retired_at::timestamp, true) AS is_due
        FROM {_rows(folder / "sensors.csv")}""",
        f"""
        CREATE TABLE limits AS
        SELECT store_id, coalesce(valid_from::timestamp, '-infinity') AS valid_from, coalesce(valid_to::timestamp, 'infinity') AS valid_to,
            round_even(low_c::double * 1000, 0)::integer AS low_mc, round_even(high_c::double * 1000, 0)::integer AS high_mc
        FROM {_rows(folder / "limits.csv")}""",
        f"""
        CREATE TABLE suppressions AS
        SELECT row_number() OVER () AS line, store_id, sensor_id, rule, coalesce("from"::timestamp, '-infinity') AS since,
            coalesce("to"::timestamp, 'infinity') AS until, reason
        FROM {_rows(folder / "suppressions.csv")}""",
    )


def _rows(path: Path) -> str:
    return f"read_csv('{path}', header = true, delim = ',', all_varchar = true, nullstr = '')"
