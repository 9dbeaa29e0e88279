"""The rival's tables of sensors in DuckDB's SQL: `door_sessions`, `outages` with their causes, `heartbeats`.

Readings are put in order once. What that leaves is the few that some table or rule is about; all else works on those.
"""

from __future__ import annotations

# `place` counts all readings of the sensor: of those kept, two with adjacent places had no other reading between them.
# How far a reading is beyond a limit: above 0 it is outside, null where nothing is said. Only what clears an alert is left out.
NOTABLE = """
    CREATE TABLE notable AS
    SELECT readings.*, row_number() OVER in_order AS place, lead(event_ts) OVER in_order AS next_ts,
        coalesce(lag(temperature_mc) OVER in_order - temperature_mc > 5000
            AND event_ts - lag(event_ts) OVER in_order <= INTERVAL 10 MINUTE, false) AS is_drop
    FROM (
        SELECT sensor_id, readings.store_id, event_ts, temperature_mc, door_open, battery_pct, timeout,
            temperature_mc - high_mc AS too_warm_by, low_mc - temperature_mc AS too_cold_by, 20 - battery_pct AS too_low_by
        FROM readings LEFT JOIN sensors USING (sensor_id)
            LEFT JOIN limits ON readings.store_id = limits.store_id AND event_ts >= valid_from AND event_ts < valid_to
    ) AS readings
    WINDOW in_order AS (PARTITION BY sensor_id ORDER BY event_ts)
    QUALIFY is_drop OR next_ts IS NULL OR next_ts - event_ts > coalesce(timeout, INTERVAL 2 MINUTE) OR door_open
        OR (too_warm_by <= -500 AND too_cold_by <= -500 AND too_low_by <= -5) IS NOT TRUE"""

SESSIONS = """
    CREATE TABLE sessions AS
    WITH gaps AS (
        SELECT *, coalesce(event_ts - lag(event_ts) OVER (PARTITION BY sensor_id ORDER BY event_ts) > INTERVAL 2 MINUTE, true) AS is_first
        FROM notable WHERE door_open
    ), numbered AS (
        SELECT *, count_if(is_first) OVER (PARTITION BY sensor_id ORDER BY event_ts) AS session FROM gaps
    )
    SELECT sensor_id, arg_min(store_id, event_ts) AS store_id, min(event_ts) AS started_at, max(event_ts) AS ended_at, count(*) AS readings,
        max(temperature_mc) AS peak_mc, arg_min(temperature_mc, event_ts) AS first_mc, bool_or(next_ts IS NULL) AS is_sensors_last
    FROM numbered GROUP BY sensor_id, session"""

DOOR_SESSIONS = """
    CREATE VIEW door_sessions AS
    SELECT sensor_id, store_id, started_at, ended_at, readings, peak_mc / 1000 AS peak_c, (peak_mc - first_mc) / 1000 AS rise_c FROM sessions"""

# A silence may be judged until heard_until, that of a retired sensor until it retired.
SILENCES = """
    CREATE TABLE silences AS
    SELECT sensor_id, coalesce(home, store_id) AS store_id, event_ts AS started_at,
        coalesce(next_ts, CASE WHEN retired_at <= getvariable('as_of') THEN retired_at END) AS ended_at, store_id AS reading_store_id
    FROM notable LEFT JOIN (SELECT sensor_id, home, retired_at FROM sensors) USING (sensor_id)
    WHERE coalesce(next_ts, least(getvariable('as_of') - INTERVAL 30 SECOND,
        CASE WHEN retired_at <= getvariable('as_of') THEN retired_at END)) - event_ts > coalesce(timeout, INTERVAL 2 MINUTE)"""

# P14 as a sweep over time: where as many are silent as are waited for, it is dark. An open silence reaches to heard_until.
OUTAGES = """
    CREATE TABLE outages AS
    WITH awaited AS (
        SELECT sensor_id, home AS store_id, greatest(active_from, min(first_read_at)) AS since, coalesce(retired_at, 'infinity') AS until
        FROM sensors JOIN first_read USING (sensor_id) WHERE is_due GROUP BY sensor_id, home, active_from, retired_at
        UNION ALL
        SELECT sensor_id, store_id, first_read_at, TIMESTAMP 'infinity' FROM first_read ANTI JOIN sensors USING (sensor_id)
    ), silent AS (
        SELECT awaited.store_id, greatest(since, started_at) AS since,
            least(until, coalesce(ended_at, getvariable('as_of') - INTERVAL 30 SECOND)) AS until
        FROM awaited JOIN silences USING (sensor_id)
    ), steps AS (
        SELECT store_id, unnest([since, until]) AS moment, unnest([1, -1]) AS awaited, 0 AS silent FROM awaited WHERE since < until
        UNION ALL
        SELECT store_id, unnest([since, until]), 0, unnest([1, -1]) FROM silent WHERE since < until
    ), counts AS (
        SELECT store_id, moment, lead(moment) OVER in_order AS until, sum(sum(awaited)) OVER in_order AS awaited, sum(sum(silent)) OVER in_order AS silent
        FROM steps GROUP BY store_id, moment WINDOW in_order AS (PARTITION BY store_id ORDER BY moment)
    ), stores AS (
        SELECT moment, (awaited > 0)::integer AS waits, (awaited > 0 AND silent = awaited)::integer AS is_dark,
            waits - lag(waits, 1, 0) OVER in_order AS more_wait, is_dark - lag(is_dark, 1, 0) OVER in_order AS more_dark
        FROM counts WINDOW in_order AS (PARTITION BY store_id ORDER BY moment)
    ), all_stores AS (
        SELECT moment, lead(moment) OVER in_order AS until, sum(sum(more_wait)) OVER in_order AS waiting, sum(sum(more_dark)) OVER in_order AS dark
        FROM stores GROUP BY moment WINDOW in_order AS (ORDER BY moment)
    ), dark AS (
        SELECT store_id, moment, until FROM counts WHERE awaited >= 2 AND silent = awaited
    ), dark_everywhere AS (
        SELECT moment, until FROM all_stores WHERE waiting >= 2 AND dark = waiting
    )
    SELECT *, CASE
        WHEN EXISTS (FROM dark_everywhere WHERE moment < judged_until AND until > started_at) THEN 'input'
        WHEN EXISTS (FROM dark WHERE dark.store_id = lasting.store_id AND moment < judged_until AND until > started_at) THEN 'store'
        ELSE 'sensor' END AS cause
    FROM (SELECT *, coalesce(ended_at, getvariable('as_of') - INTERVAL 30 SECOND) AS judged_until FROM silences) AS lasting"""

HEARTBEATS = """
    CREATE VIEW heartbeats AS
    SELECT sensor_id, coalesce(home, last.store_id) AS store_id,
        CASE WHEN retired_at <= getvariable('as_of') THEN 'retired' WHEN event_ts IS NULL THEN 'never_reported'
            WHEN started_at IS NOT NULL THEN 'silent' ELSE 'reporting' END AS status,
        event_ts AS last_seen_at, started_at AS silent_since, cause, getvariable('as_of') AS as_of
    FROM (SELECT sensor_id, store_id, event_ts FROM notable WHERE next_ts IS NULL) AS last
        FULL JOIN sensors USING (sensor_id)
        LEFT JOIN (SELECT sensor_id, started_at, cause FROM outages WHERE ended_at IS NULL) USING (sensor_id)"""

STEPS = (NOTABLE, SESSIONS, DOOR_SESSIONS, SILENCES, OUTAGES, HEARTBEATS)
