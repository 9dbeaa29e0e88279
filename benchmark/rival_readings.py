"""The rival's `readings` and `quarantine` in DuckDB's SQL: judge every line, take duplicates out.

The rules are those of a pass (P2 and P6), as far as SQL says them sensibly.
"""

from __future__ import annotations

FIELDS = ("sensor_id", "store_id", "temperature", "event_ts", "door_open", "battery_pct", "event_id")
TIME = r"(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)"
PLAIN_TIME = r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z"
SAID = "row(temperature_mc, store_id, door_open, battery_pct)"


def reading_lines(files: list[str]) -> str:
    """Lines as text. What is no UTF-8 or far too long goes to DuckDB's own table of rejects; an empty line is null."""
    return f"""read_csv({files!r}, columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false, delim = '\\x1F',
        quote = '', escape = '', strict_mode = false, max_line_size = 1000000, filename = true, 
        ignore_errors = true, store_rejects = true, rejects_limit = 0)"""


def judged(files: list[str], longest_line: int) -> str:
    """One row for each line that is not blank: the fields of a reading, and its reasons if it is none."""
    paths = [f"$.{name}" for name in FIELDS]
    numbered = ", ".join(f"nullif(said[{place}]::varchar, 'null') AS {name}_json" for place, name in enumerate(FIELDS, 1))
    return f"""
    CREATE TABLE judged AS
    WITH lines AS (
        SELECT CASE WHEN starts_with(line, chr(65279)) THEN substr(line, 2) ELSE line END AS line, file_id, arrived_at
        FROM {reading_lines(files)} JOIN files USING (filename) WHERE line IS NOT NULL
    ), known AS (
        SELECT *, strlen(line) > {longest_line} AS is_too_long,
            json_valid(line) AND NOT contains(line, ',}}') AND NOT contains(line, ',]') AS is_json,
            CASE WHEN starts_with(line, '{{') THEN true ELSE starts_with(ltrim(line, ' ' || chr(9)), '{{') END AS is_object
        FROM lines WHERE CASE WHEN starts_with(line, '{{') THEN true ELSE trim(line, ' ' || chr(9)) <> '' END
    ), parsed AS (
        SELECT *, CASE WHEN is_json AND is_object AND NOT is_too_long THEN line END AS object FROM known
    ), last_said AS (
        SELECT *, CASE WHEN len(json_keys(object)) > list_count(first_said) THEN {_last_of_each_key()} ELSE first_said END AS said
        FROM (SELECT *, json_extract(object, {paths!r}) AS first_said FROM parsed)
    ), fields AS (
        SELECT *, {numbered} FROM last_said
    ), typed AS (
        SELECT line, file_id, arrived_at, is_too_long, is_object, {_typed()},
            is_json AND NOT coalesce(ascii(temperature_json) IN (ascii('N'), ascii('I')) OR starts_with(temperature_json, '-I'), false)
                AS is_json
        FROM fields
    ), timed AS (
        SELECT *, {_event_ts()} AS event_ts, round_even(temperature * 1000, 0) AS thousandths FROM typed
    ), reasoned AS (
        SELECT *, {_reasons()} AS reasons FROM timed
    )
    SELECT CASE WHEN reasons <> [] THEN line END AS line, nullif(reasons, []) AS reasons, file_id, arrived_at,
        sensor_id, store_id, event_ts, CASE WHEN reasons = [] THEN thousandths::integer END AS temperature_mc,
        door_open, battery_pct + 0.0 AS battery_pct, event_id
    FROM reasoned"""


def _last_of_each_key() -> str:
    """Of a repeated key the last counts, DuckDB takes the first; few lines are worth this."""
    place = "len(json_keys(object)) + 1 - list_position(list_reverse(json_keys(object)), name)"
    return f"list_transform({list(FIELDS)!r}, lambda name: json_extract(object, '$.*')[{place}])"


def _typed() -> str:
    """Each field in its type, and the names of those that are missing or of another type."""
    texts = ("sensor_id", "store_id", "event_ts", "event_id")
    right = {name: f"starts_with({name}_json, '\"')" for name in texts}
    right |= {name: f"(ascii({name}_json) BETWEEN 48 AND 57 OR starts_with({name}_json, '-'))" for name in ("temperature", "battery_pct")}
    right["door_open"] = "door_open_json IN ('true', 'false')"
    values = [f"CASE WHEN {right[name]} THEN {_text(name)} END AS {_column(name)}" for name in texts]
    values += [f"CASE WHEN {right[name]} THEN try_cast({name}_json AS double) END AS {name}" for name in ("temperature", "battery_pct")]
    missing = [f"CASE WHEN {name}_json IS NULL{_or_empty(name)} THEN 'missing_{name}' END" for name in FIELDS[:4]]
    wrong = [f"CASE WHEN NOT {right[name]} THEN 'wrong_type_{name}' END" for name in FIELDS]
    return f"{', '.join(values)}, door_open_json = 'true' AS door_open, [{', '.join(missing + wrong)}] AS field_reasons"


def _text(name: str) -> str:
    return f"CASE WHEN contains({name}_json, '\\') THEN json_extract_string({name}_json, '$') ELSE {name}_json[2:-2] END"


def _column(name: str) -> str:
    return "event_text" if name == "event_ts" else name


def _or_empty(name: str) -> str:
    return f" OR {name}_json = '\"\"'" if name in ("sensor_id", "store_id") else ""


def _event_ts() -> str:
    """UTC, cut to the millisecond; null when it is no time."""
    part = f"regexp_extract(event_text, '^{TIME}$', ['day', 'hour', 'minute', 'second', 'fraction', 'zone'])"
    digits = f"rpad(replace(({part}).zone[2:], ':', ''), 4, '0')"
    minutes = f"(({digits})[:2]::integer * 60 + ({digits})[3:]::integer) * CASE WHEN ({part}).zone[1] = '-' THEN -1 ELSE 1 END"
    clock = f"({part}).hour || ':' || ({part}).minute || ':' || lpad(({part}).second, 2, '0') || '.' || rpad(({part}).fraction[:3], 3, '0')"
    local = f"try_cast(({part}).day || ' ' || {clock} AS timestamp)"
    east = f"CASE WHEN ({part}).zone = 'Z' THEN 0 ELSE {minutes} END"
    return f"""CASE WHEN regexp_full_match(event_text, '{PLAIN_TIME}') THEN try_cast(event_text[:-2] AS timestamp)
        WHEN regexp_full_match(event_text, '{TIME}') THEN {local} - to_minutes({east}) END"""


def _reasons() -> str:
    return """CASE WHEN is_too_long THEN ['line_too_long'] WHEN NOT is_json THEN ['malformed_json']
        WHEN NOT is_object THEN ['not_an_object']
        ELSE list_filter(field_reasons || [
            CASE WHEN event_text IS NOT NULL AND coalesce(event_ts < TIMESTAMP '2000-01-01', true) THEN 'bad_event_ts'
                 WHEN event_ts > arrived_at + INTERVAL 5 MINUTE THEN 'event_ts_in_future' END,
            CASE WHEN NOT (isfinite(thousandths) AND thousandths BETWEEN -90000 AND 60000) THEN 'temperature_out_of_range' END,
            CASE WHEN NOT battery_pct BETWEEN 0 AND 100 THEN 'battery_out_of_range' END
        ], lambda reason: reason IS NOT NULL) END"""


# Only keys that occur twice are put in order: a window over all lines would cost more than the rest of this step.
REPEATED = f"""
    CREATE TABLE repeated AS
    WITH twice AS (SELECT sensor_id, event_ts FROM judged WHERE reasons IS NULL GROUP BY ALL HAVING count(*) > 1)
    SELECT judged.rowid AS line_id, row_number() OVER in_order > 1 AS is_again,
        {SAID} IS DISTINCT FROM first({SAID}) OVER in_order AS differs
    FROM judged SEMI JOIN twice USING (sensor_id, event_ts) WHERE reasons IS NULL
    WINDOW in_order AS (PARTITION BY sensor_id, event_ts ORDER BY arrived_at, temperature_mc, store_id NULLS FIRST, door_open NULLS FIRST,
        battery_pct NULLS FIRST, event_id NULLS FIRST)"""

QUARANTINE = """
    CREATE TABLE quarantine AS
    SELECT encode(line) AS line, reasons, filename AS source, arrived_at
    FROM judged JOIN files USING (file_id, arrived_at) WHERE reasons IS NOT NULL
    UNION ALL
    SELECT encode(to_json(struct_pack(sensor_id, store_id, temperature := temperature_mc / 1000, event_ts, door_open, battery_pct,
        event_id))::varchar), ['conflicting_duplicate'], filename, arrived_at
    FROM judged JOIN repeated ON judged.rowid = line_id JOIN files USING (file_id, arrived_at) WHERE is_again AND differs
    UNION ALL
    SELECT encode(csv_line), [CASE error_type WHEN 'LINE SIZE OVER MAXIMUM' THEN 'line_too_long' ELSE 'invalid_utf8' END],
        files.filename, arrived_at
    FROM reject_errors JOIN reject_scans USING (scan_id, file_id) JOIN files ON files.filename = reject_scans.file_path"""

ONLY_READINGS = "DELETE FROM judged WHERE reasons IS NOT NULL OR rowid IN (SELECT line_id FROM repeated WHERE is_again)"

IS_LATE = """
    CREATE VIEW readings AS
    SELECT *, arrived_at >= date_trunc('minute', event_ts) + INTERVAL '3 minutes 30 seconds' AS is_late FROM judged"""

# What is written of them.
READINGS = """
    SELECT sensor_id, store_id, event_ts, temperature_mc / 1000 AS temperature_c, door_open, battery_pct, event_id, arrived_at,
        (epoch_ms(arrived_at) - epoch_ms(event_ts)) / 1000 AS lateness_s, is_late, filename AS source, temperature_mc,
        event_ts::date AS event_date
    FROM readings JOIN files USING (file_id, arrived_at)"""

STEPS = (REPEATED, QUARANTINE, ONLY_READINGS, IS_LATE)
