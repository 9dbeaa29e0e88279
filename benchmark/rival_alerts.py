"""The rival's alerts in DuckDB's SQL: seven rules over the notable readings, the door sessions and the outages."""

from __future__ import annotations

# One shape serves three rules. Readings that do not clear (or say nothing) and follow each other are an island; the reading after it clears.
# In an island, the first run of readings outside that lasts long enough opens the alert; a reading inside ends a run, not the island.
EPISODES = """
    CREATE TABLE episodes AS
    WITH uncleared AS (
        SELECT 'too_warm' AS rule, sensor_id, store_id, event_ts, place, next_ts, too_warm_by AS beyond, temperature_mc / 1000 AS value,
            INTERVAL 5 MINUTE AS opens_after
        FROM notable WHERE (too_warm_by <= -500) IS NOT TRUE
        UNION ALL
        SELECT 'too_cold', sensor_id, store_id, event_ts, place, next_ts, too_cold_by, temperature_mc / 1000, INTERVAL 5 MINUTE
        FROM notable WHERE (too_cold_by <= -500) IS NOT TRUE
        UNION ALL
        SELECT 'low_battery', sensor_id, store_id, event_ts, place, next_ts, too_low_by, battery_pct, INTERVAL 0 MINUTE
        FROM notable WHERE (too_low_by <= -5) IS NOT TRUE
    ), islands AS (
        SELECT *, place - row_number() OVER (PARTITION BY rule, sensor_id ORDER BY place) AS island FROM uncleared
    ), runs AS (
        SELECT *, count_if(beyond <= 0) OVER (PARTITION BY rule, sensor_id, island ORDER BY place) AS run FROM islands
    ), long_runs AS (
        SELECT rule, sensor_id, island, min(event_ts) AS started_at FROM runs WHERE beyond > 0
        GROUP BY rule, sensor_id, island, run, opens_after HAVING max(event_ts) - min(event_ts) >= opens_after
    ), opened AS (
        SELECT rule, sensor_id, island, min(started_at) AS started_at FROM long_runs GROUP BY ALL
    )
    SELECT rule, sensor_id, arg_min(store_id, event_ts) AS store_id, started_at,
        CASE WHEN count(next_ts) = count(*) THEN max(next_ts) END AS ended_at,
        CASE rule WHEN 'too_warm' THEN max(value) FILTER (beyond IS NOT NULL) ELSE min(value) FILTER (beyond IS NOT NULL) END AS peak
    FROM islands JOIN opened USING (rule, sensor_id, island) WHERE event_ts >= started_at
    GROUP BY rule, sensor_id, started_at"""

# A reading in the ten minutes after a session's start lies in that ten minutes of the clock or in the next: two lookups, not a search.
RISES = """
    CREATE TABLE rises AS
    WITH starts AS (
        SELECT *, unnest([epoch_ms(started_at) // 600000, epoch_ms(started_at) // 600000 + 1]) AS ten_minutes FROM sessions
    )
    SELECT sensor_id, starts.store_id, started_at, min(event_ts) AS ended_at, arg_min(temperature_mc, event_ts) AS peak_mc
    FROM readings JOIN starts USING (sensor_id)
    WHERE epoch_ms(event_ts) // 600000 = ten_minutes AND event_ts > started_at AND event_ts <= started_at + INTERVAL 10 MINUTE
        AND temperature_mc - first_mc >= 2000
    GROUP BY ALL"""

# Every rule shows the limits at its first reading; of several suppressions the first in the file counts.
ALERTS = """
    CREATE VIEW alerts AS
    WITH found AS (
        SELECT 'sudden_drop' AS rule, sensor_id, store_id, event_ts AS started_at, event_ts AS ended_at, temperature_mc / 1000 AS peak
        FROM notable WHERE is_drop
        UNION ALL
        FROM episodes
        UNION ALL
        SELECT 'door_then_rise', sensor_id, store_id, started_at, ended_at, peak_mc / 1000 FROM rises
        UNION ALL
        SELECT 'door_left_open', sensor_id, store_id, started_at,
            CASE WHEN is_sensors_last AND getvariable('as_of') - INTERVAL 30 SECOND - ended_at <= INTERVAL 2 MINUTE THEN NULL ELSE ended_at END,
            peak_mc / 1000
        FROM sessions WHERE ended_at - started_at >= INTERVAL 5 MINUTE
        UNION ALL
        SELECT 'missed_heartbeat', sensor_id, reading_store_id, started_at, ended_at, NULL FROM outages
    ), limited AS (
        SELECT found.*, low_mc / 1000 AS limit_low_c, high_mc / 1000 AS limit_high_c
        FROM found LEFT JOIN limits ON found.store_id = limits.store_id AND started_at >= valid_from AND started_at < valid_to
    ), suppressed AS (
        SELECT limited.*, arg_min(reason, line) AS suppressed_by
        FROM limited LEFT JOIN suppressions ON limited.store_id = suppressions.store_id AND started_at >= since AND started_at < until
            AND limited.sensor_id = coalesce(suppressions.sensor_id, limited.sensor_id)
            AND limited.rule = coalesce(suppressions.rule, limited.rule)
        GROUP BY ALL
    )
    SELECT sha256(concat_ws('|', rule, sensor_id, strftime(started_at, '%Y-%m-%dT%H:%M:%S.%gZ')))[:32] AS alert_id,
        CASE WHEN rule IN ('too_warm', 'too_cold') THEN 'critical' WHEN rule = 'low_battery' THEN 'info' ELSE 'warning' END AS severity,
        *, CASE WHEN ended_at IS NULL THEN 'open' ELSE 'resolved' END AS status
    FROM suppressed"""

STEPS = (EPISODES, RISES, ALERTS)
