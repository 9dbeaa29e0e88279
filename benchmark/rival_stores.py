"""The rival's tables of stores in DuckDB's SQL: `store_minutes` and `store_trends`, both from one pass over the readings.

A minute keeps exact sums: a window of ten minutes is made from those, not from the readings again.
"""

from __future__ import annotations

# x is the time within the minute in ms, y the temperature in thousandths: what a least-squares slope needs.
MEASURED = """
    CREATE TABLE measured AS
    SELECT store_id, date_trunc('minute', event_ts) AS window_start, count(*) AS readings, count(DISTINCT sensor_id) AS sensors_reporting,
        min(temperature_mc) AS min_mc, max(temperature_mc) AS max_mc, count_if(door_open)::bigint AS doors_open, count(door_open) AS doors,
        count_if(is_late)::bigint AS late_rows, max(event_ts) AS last_reading_at, sum(x)::bigint AS sum_x, sum(temperature_mc)::bigint AS sum_y,
        sum(x * x)::bigint AS sum_xx, sum(x * temperature_mc)::bigint AS sum_xy
    FROM (SELECT *, epoch_ms(event_ts) % 60000 AS x FROM readings) GROUP BY ALL"""

FRONTIERS = """
    CREATE TABLE frontiers AS
    SELECT store_id, greatest(max(last_reading_at) - INTERVAL 30 SECOND, getvariable('as_of') - INTERVAL 10 MINUTE) - INTERVAL 2 MINUTE
        AS final_until
    FROM measured GROUP BY ALL"""

FIRST_READ = """
    CREATE TABLE first_read AS SELECT sensor_id, store_id, min(event_ts) AS first_read_at FROM readings GROUP BY ALL"""

# From when on a store expects how many sensors: those of the inventory while they are active, others from their first reading there on.
EXPECTED = """
    CREATE TABLE expected AS
    WITH expectations AS (
        SELECT home AS store_id, active_from AS since, retired_at AS until FROM sensors WHERE is_due
        UNION ALL
        SELECT store_id, first_read_at, NULL FROM first_read ANTI JOIN sensors USING (sensor_id)
    ), steps AS (
        SELECT store_id, coalesce(date_trunc('minute', since), '-infinity') AS since, 1 AS step FROM expectations
        UNION ALL
        SELECT store_id, date_trunc('minute', until - INTERVAL 1 MICROSECOND) + INTERVAL 1 MINUTE, -1 FROM expectations WHERE until IS NOT NULL
    )
    SELECT store_id, since, sum(sum(step)) OVER (PARTITION BY store_id ORDER BY since) AS sensors_expected FROM steps GROUP BY store_id, since"""

# Who reports without being expected is rare: only these are counted one by one.
STRANGERS = """
    CREATE TABLE strangers AS
    SELECT store_id, window_start, count(DISTINCT sensor_id) AS sensors_unexpected
    FROM (SELECT *, date_trunc('minute', event_ts) AS window_start FROM readings) JOIN sensors USING (sensor_id)
    WHERE store_id <> home OR NOT is_due OR active_from >= window_start + INTERVAL 1 MINUTE OR retired_at <= window_start
    GROUP BY ALL"""

MINUTES = """
    CREATE VIEW store_minutes AS
    WITH gaps AS (
        SELECT store_id, window_start + INTERVAL 1 MINUTE AS since, least(
            lead(window_start) OVER (PARTITION BY store_id ORDER BY window_start), date_trunc('minute', final_until),
            date_trunc('minute', last_reading_at + INTERVAL 24 HOUR - INTERVAL 1 MICROSECOND) + INTERVAL 1 MINUTE) AS until
        FROM measured JOIN frontiers USING (store_id)
    ), silent AS (
        SELECT store_id, unnest(range(since, until, INTERVAL 1 MINUTE)) AS window_start, 0 AS readings, 0 AS sensors_reporting,
            0 AS late_rows
        FROM gaps WHERE since < until
    ), minutes AS (
        SELECT * FROM measured UNION ALL BY NAME SELECT * FROM silent
    )
    SELECT store_id, window_start, window_start + INTERVAL 1 MINUTE AS window_end, readings, sensors_reporting,
        coalesce(sensors_expected, 0)::bigint AS sensors_expected,
        (sensors_reporting - coalesce(sensors_unexpected, 0)) / nullif(coalesce(sensors_expected, 0)::bigint, 0) AS completeness,
        (sum_y / readings) / 1000 AS temperature_avg_c, min_mc / 1000 AS temperature_min_c, max_mc / 1000 AS temperature_max_c,
        doors_open / nullif(doors, 0) AS door_open_share, late_rows, window_end <= final_until AS is_final, window_start::date AS window_date
    FROM minutes JOIN frontiers USING (store_id) LEFT JOIN strangers USING (store_id, window_start)
        ASOF LEFT JOIN expected ON minutes.store_id = expected.store_id AND window_start >= since"""

# Each minute belongs to two windows; x moves by the minute's place in the window, and the sums stay whole numbers.
TRENDS = """
    CREATE VIEW store_trends AS
    WITH placed AS (
        SELECT *, unnest([time_bucket(INTERVAL 5 MINUTE, window_start), time_bucket(INTERVAL 5 MINUTE, window_start) - INTERVAL 5 MINUTE])
            AS trend_start, epoch_ms(window_start) - epoch_ms(trend_start) AS moved
        FROM measured
    ), summed AS (
        SELECT store_id, trend_start AS window_start, sum(readings) AS n, min(min_mc) AS min_mc, max(max_mc) AS max_mc,
            sum(doors_open) AS doors_open, sum(doors) AS doors, sum(sum_y) AS y, sum(sum_x + moved * readings) AS x,
            sum(sum_xx + 2 * moved * sum_x + moved * moved * readings) AS xx, sum(sum_xy + moved * sum_y) AS xy
        FROM placed GROUP BY ALL
    )
    SELECT store_id, window_start, window_start + INTERVAL 10 MINUTE AS window_end, n::bigint AS readings,
        (y::bigint / n::bigint) / 1000 AS temperature_avg_c, min_mc / 1000 AS temperature_min_c, max_mc / 1000 AS temperature_max_c,
        doors_open / nullif(doors, 0) AS door_open_share, 3600 * (n * xy - x * y) / nullif(n * xx - x * x, 0) AS slope_c_per_hour,
        window_end <= final_until AS is_final, window_start::date AS window_date
    FROM summed JOIN frontiers USING (store_id)"""

STEPS = (MEASURED, FRONTIERS, FIRST_READ, EXPECTED, STRANGERS, MINUTES, TRENDS)
