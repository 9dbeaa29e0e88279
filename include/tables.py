"""The data dictionary: every table of the lake, its columns with types and meaning, its key and its partitions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...] = ()
    skipping_on: tuple[str, ...] = ()  # columns with statistics per file, so that a read may pass files over
    has_change_feed: bool = False
    is_small: bool = False  # few rows a run: handled as plain rows, and replaced or appended as a whole

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def content(self) -> tuple[Column, ...]:
        """Without the day by which it is partitioned, which follows from its time."""
        return tuple(column for column in self.columns if column.name not in self.partitioned_by)

    @property
    def schema(self) -> str:
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    @property
    def schema_with_meanings(self) -> str:
        quoted = ((column, column.meaning.replace("'", "\\'")) for column in self.columns)
        return ", ".join(f"`{column.name}` {column.type} COMMENT '{meaning}'" for column, meaning in quoted)


def columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


EVIDENCE_READING = "struct<event_ts: timestamp, temperature_c: double, door_open: boolean, battery_pct: double>"

READINGS = Table(
    "readings",
    "One row for each distinct reading: the first to arrive of those with the same sensor and time.",
    columns(
        ("sensor_id", "string", "who measured"),
        ("store_id", "string", "the store the reading names"),
        ("event_ts", "timestamp", "when it was measured, UTC, whole milliseconds"),
        ("temperature_c", "double", "°C, to the thousandth"),
        ("door_open", "boolean", "null: the reading does not say"),
        ("battery_pct", "double", "0 to 100; null: the reading does not say"),
        ("event_id", "string", "the sender's own id, if it gave one"),
        ("arrived_at", "timestamp", "when its file (or message) arrived"),
        ("lateness_s", "double", "arrived_at − event_ts in seconds"),
        ("is_late", "boolean", "it arrived 2 min 30 s or more after its minute's end"),
        ("source", "string", "the landing file it stands in, or topic and partition"),
        ("position", "bigint", "byte offset of its line in the unpacked file, or the message's offset"),
        ("temperature_mc", "int", "thousandths of a degree: what sums and comparisons use"),
        ("batch", "string", "the ingest batch that brought it"),
        ("event_date", "date", "UTC day of event_ts (partition)"),
    ),
    key=("sensor_id", "event_ts"),
    partitioned_by=("event_date",),
    skipping_on=("event_ts", "sensor_id", "store_id", "batch"),
    has_change_feed=True,
)

QUARANTINE = Table(
    "quarantine",
    "One row for each line that is no reading, with all its reasons.",
    columns(
        ("line", "binary", "the raw line, of an over-long one its first 64 KiB"),
        ("reasons", "array<string>", "why it is here"),
        ("source", "string", "the landing file it stands in, or topic and partition"),
        ("position", "bigint", "byte offset of the line in the unpacked file, or the message's offset"),
        ("arrived_at", "timestamp", "when its file (or message) arrived"),
        ("run_id", "string", "the run that put it here"),
        ("replayed_at", "timestamp", "when a replay took it out of quarantine; null: it is still in"),
        ("sensor_id", "string", "of a conflicting duplicate"),
        ("store_id", "string", "where it can be read"),
        ("event_ts", "timestamp", "of a conflicting duplicate"),
        ("temperature_mc", "int", "of a conflicting duplicate"),
        ("door_open", "boolean", "of a conflicting duplicate"),
        ("battery_pct", "double", "of a conflicting duplicate"),
        ("event_id", "string", "of a conflicting duplicate"),
        ("batch", "string", "the ingest batch that put it here"),
    ),
    key=("source", "position", "arrived_at", "batch"),
    skipping_on=("event_ts", "batch", "source"),
)

DUPLICATES = Table(
    "duplicates",
    "One row for each line that says again what a reading says; kept so that it can be judged anew if an earlier arrival turns up.",
    columns(
        ("sensor_id", "string", "who measured"),
        ("store_id", "string", "the store the line names"),
        ("event_ts", "timestamp", "when it was measured"),
        ("temperature_mc", "int", "thousandths of a degree"),
        ("door_open", "boolean", "as in readings"),
        ("battery_pct", "double", "as in readings"),
        ("event_id", "string", "as in readings"),
        ("arrived_at", "timestamp", "when its file (or message) arrived"),
        ("source", "string", "the landing file it stands in, or topic and partition"),
        ("position", "bigint", "byte offset of its line in the unpacked file, or the message's offset"),
        ("batch", "string", "the ingest batch that brought it"),
    ),
    key=("source", "position", "arrived_at"),
    skipping_on=("event_ts", "batch"),
)

RAW_FILES = Table(
    "raw_files",
    "One row for each landing file that was taken; another one when its content changed afterwards.",
    columns(
        ("source", "string", "the file"),
        ("bytes", "bigint", "its size as it lies there"),
        ("sha256", "string", "checksum of those bytes"),
        ("lines", "bigint", "lines in it, blank ones too"),
        ("arrived_at", "timestamp", "its modification time"),
        ("run_id", "string", "the run that took it"),
        ("blank", "bigint", "blank lines in it"),
        ("is_change", "boolean", "it had been taken before and was changed since"),
        ("seq", "bigint", "number of the ingest batch: of several rows of a file the last one counts"),
        ("batch", "string", "the ingest batch that took it"),
    ),
    key=("source", "arrived_at"),
    skipping_on=("batch",),
    is_small=True,
)

RAW_MESSAGES = Table(
    "raw_messages",
    "One row for each Kafka message, whole: the raw line behind a row whose source is a topic. Empty as long as only files are read.",
    columns(
        ("source", "string", "topic and partition, like coldstore_sensors-0; with @2 behind it when the topic was made anew"),
        ("position", "bigint", "offset"),
        ("key", "binary", "the record's key"),
        ("value", "binary", "the record's value; null: a tombstone"),
        ("headers", "array<struct<key: string, value: binary>>", "the record's headers"),
        ("arrived_at", "timestamp", "the record's timestamp"),
        ("run_id", "string", "the run that took it"),
        ("batch", "string", "the ingest batch that took it"),
    ),
    key=("source", "position"),
    skipping_on=("source", "position", "batch"),
)

BATCHES = Table(
    "batches",
    "The ledger: one row for each ingest batch, written last. `runs` and `run_stores` are sums of it.",
    columns(
        ("seq", "bigint", "batches are numbered as they are written"),
        ("batch", "string", "the batch's id: its origin and number"),
        ("run_id", "string", "the run that wrote it"),
        ("files", "bigint", "landing files in it"),
        ("lines_read", "bigint", "lines booked"),
        ("readings_new", "bigint", "of them new readings"),
        ("duplicates", "bigint", "of them duplicates"),
        ("quarantined", "bigint", "of them quarantined; negative where a replay took lines out"),
        ("blank", "bigint", "of them blank"),
        ("late_rows", "bigint", "late ones among the new readings"),
        ("reasons", "map<string, bigint>", "quarantined lines by reason"),
        (
            "stores",
            "array<struct<store_id: string, readings_new: bigint, duplicates: bigint, quarantined: bigint, late_rows: bigint>>",
            "the same by store; a null store: not readable",
        ),
        ("written_at", "timestamp", "when"),
    ),
    key=("batch",),
    skipping_on=("seq",),
    is_small=True,
)

SENSOR_STORES = Table(
    "sensor_stores",
    "Which sensor has spoken from which store, and from when to when.",
    columns(
        ("sensor_id", "string", "the sensor"),
        ("store_id", "string", "the store its readings name"),
        ("first_seen_at", "timestamp", "its first reading there"),
        ("last_seen_at", "timestamp", "its last reading there"),
    ),
    key=("sensor_id", "store_id"),
    is_small=True,
)

STORE_MINUTES = Table(
    "store_minutes",
    "What a store reported in one minute of event time; a silent minute is a row too.",
    columns(
        ("store_id", "string", "the store"),
        ("window_start", "timestamp", "start of the minute, inside it"),
        ("window_end", "timestamp", "end of the minute, outside it"),
        ("readings", "bigint", "readings in it"),
        ("sensors_reporting", "bigint", "sensors that sent at least one of them"),
        ("sensors_expected", "bigint", "sensors due in it: active in the inventory, or unknown to it and seen before"),
        ("completeness", "double", "share of the expected sensors that reported; null: none is expected"),
        ("temperature_avg_c", "double", "average of the readings"),
        ("temperature_min_c", "double", "lowest"),
        ("temperature_max_c", "double", "highest"),
        ("door_open_share", "double", "open among the readings that say; null: none says"),
        ("late_rows", "bigint", "readings that arrived late"),
        ("is_final", "boolean", "the store's frontier has passed it"),
        ("revision", "bigint", "how often it changed after it was final"),
        ("last_reading_at", "timestamp", "the last reading in it"),
        ("sum_mc", "bigint", "sum of the temperatures in thousandths; with those below store_trends is made of it"),
        ("sum_ms", "bigint", "sum of the readings' times since the minute's start in milliseconds"),
        ("sum_ms_ms", "bigint", "sum of their squares"),
        ("sum_ms_mc", "bigint", "sum of time × temperature"),
        ("door_open", "bigint", "readings that say the door is open"),
        ("door_said", "bigint", "readings that say whether it is"),
        ("window_date", "date", "UTC day of window_start (partition)"),
    ),
    key=("store_id", "window_start"),
    partitioned_by=("window_date",),
    skipping_on=("store_id", "window_start"),
)

STORE_TRENDS = Table(
    "store_trends",
    "Sliding windows of 10 min every 5 min of a store, where it said something.",
    columns(
        ("store_id", "string", "the store"),
        ("window_start", "timestamp", "start, inside"),
        ("window_end", "timestamp", "end, outside"),
        ("readings", "bigint", "readings in it"),
        ("temperature_avg_c", "double", "average"),
        ("temperature_min_c", "double", "lowest"),
        ("temperature_max_c", "double", "highest"),
        ("door_open_share", "double", "open among the readings that say"),
        ("slope_c_per_hour", "double", "least-squares slope through all its readings; null: they are of one moment"),
        ("is_final", "boolean", "the store's frontier has passed it"),
        ("revision", "bigint", "how often it changed after it was final"),
        ("window_date", "date", "UTC day of window_start (partition)"),
    ),
    key=("store_id", "window_start"),
    partitioned_by=("window_date",),
    skipping_on=("store_id", "window_start"),
)

DOOR_SESSIONS = Table(
    "door_sessions",
    "The door-open readings of a sensor, joined while the gap between them is at most 2 min.",
    columns(
        ("sensor_id", "string", "the sensor"),
        ("store_id", "string", "the first reading's store"),
        ("started_at", "timestamp", "first open reading"),
        ("ended_at", "timestamp", "last open reading"),
        ("readings", "bigint", "open readings"),
        ("peak_c", "double", "highest temperature"),
        ("rise_c", "double", "peak − first"),
        ("started_date", "date", "UTC day of started_at (partition)"),
    ),
    key=("sensor_id", "started_at"),
    partitioned_by=("started_date",),
    skipping_on=("sensor_id", "started_at", "ended_at"),
)

HEARTBEATS = Table(
    "heartbeats",
    "One row for each sensor in the inventory or ever seen: does it report?",
    columns(
        ("sensor_id", "string", "the sensor"),
        ("store_id", "string", "the inventory's, else its last reading's"),
        ("status", "string", "reporting, silent, never_reported or retired"),
        ("last_seen_at", "timestamp", "its last reading"),
        ("silent_since", "timestamp", "start of its open outage"),
        ("cause", "string", "cause of its open outage: sensor, store or input"),
        ("as_of", "timestamp", "the clock of the run that says so"),
        ("first_seen_at", "timestamp", "its first reading"),
        ("last_store_id", "string", "the store of its last reading"),
        ("last_temperature_c", "double", "the last reading's"),
        ("last_door_open", "boolean", "the last reading's"),
        ("last_battery_pct", "double", "the last reading's"),
        ("silent_after_s", "bigint", "the silence that makes an outage of it"),
        ("is_silent", "boolean", "its last silence is an outage, perhaps one that its retirement ended"),
        ("silence_ended_at", "timestamp", "its retirement, where that ended its last silence"),
    ),
    key=("sensor_id",),
    is_small=True,
)

OUTAGES = Table(
    "outages",
    "Every silence of a sensor longer than its timeout.",
    columns(
        ("sensor_id", "string", "the sensor"),
        ("store_id", "string", "the inventory's, else that of the last reading before the silence"),
        ("started_at", "timestamp", "the last reading before it"),
        ("ended_at", "timestamp", "the first reading after it; null: still silent"),
        ("cause", "string", "sensor, store (all of the store at once) or input (all of all stores at once)"),
        ("started_date", "date", "UTC day of started_at (partition)"),
    ),
    key=("sensor_id", "started_at"),
    partitioned_by=("started_date",),
    skipping_on=("sensor_id", "started_at", "ended_at"),
)

ALERTS = Table(
    "alerts",
    "Episodes per rule and sensor that someone should look at.",
    columns(
        ("alert_id", "string", "first 32 hex digits of SHA-256 of rule|sensor_id|started_at"),
        ("rule", "string", "which rule"),
        ("severity", "string", "info, warning or critical"),
        ("sensor_id", "string", "the sensor"),
        ("store_id", "string", "the first reading's store"),
        ("started_at", "timestamp", "the reading that begins it"),
        ("ended_at", "timestamp", "null: still open"),
        ("peak", "double", "the measure that tells how bad it is; null where the rule has none"),
        (
            "evidence",
            f"struct<first: {EVIDENCE_READING}, worst: {EVIDENCE_READING}, last: {EVIDENCE_READING}, before: {EVIDENCE_READING}>",
            "the first, the worst and the last reading, and the one before the first where the rule looks at it",
        ),
        ("limit_low_c", "double", "the store's limit at the first reading; null: none in force"),
        ("limit_high_c", "double", "the store's limit at the first reading; null: none in force"),
        ("status", "string", "open, resolved or retracted"),
        ("suppressed_by", "string", "reason of the suppression window it starts in"),
        ("superseded_by", "string", "of a retracted one: the alert that took its place"),
        ("revision", "bigint", "how often it changed after it was first published"),
        ("run_id", "string", "the run that wrote this state"),
        ("started_date", "date", "UTC day of started_at (partition)"),
    ),
    key=("alert_id",),
    partitioned_by=("started_date",),
    skipping_on=("sensor_id", "started_at", "ended_at"),
)

ACKNOWLEDGEMENTS = Table(
    "acknowledgements",
    "What people said about alerts: who, when, why. Append-only, never worked out anew.",
    columns(
        ("alert_id", "string", "the alert"),
        ("rule", "string", "its rule"),
        ("sensor_id", "string", "its sensor"),
        ("started_at", "timestamp", "its start"),
        ("acknowledged_by", "string", "who"),
        ("acknowledged_at", "timestamp", "when"),
        ("comment", "string", "why"),
        ("seen_until", "timestamp", "the episode's end as it was then, or the clock of the last run: it holds for what overlaps"),
    ),
    key=("alert_id", "acknowledged_at"),
    is_small=True,
)

ALERT_EVENTS = Table(
    "alert_events",
    "Changes of alerts, each once: what a receiver is told.",
    columns(
        ("event_id", "string", "the same on every retry"),
        ("alert_id", "string", "the alert"),
        ("change", "string", "opened, resolved or retracted"),
        ("at", "timestamp", "when"),
        ("is_historic", "boolean", "it ended more than 24 h before as_of: nobody is paged"),
        ("run_id", "string", "the run that saw it"),
        ("rule", "string", "the alert's, as are the following, at that change"),
        ("severity", "string", "info, warning or critical"),
        ("sensor_id", "string", "the sensor"),
        ("store_id", "string", "the first reading's store"),
        ("started_at", "timestamp", "the reading that begins the alert"),
        ("ended_at", "timestamp", "null: still open"),
        ("peak", "double", "the measure that tells how bad it is; null where the rule has none"),
        ("suppressed_by", "string", "reason of the suppression window it starts in"),
        ("superseded_by", "string", "of a retracted one: the alert that took its place"),
        ("number", "bigint", "number of the run that wrote it"),
    ),
    key=("event_id",),
    skipping_on=("number",),
)

DELIVERIES = Table(
    "deliveries",
    "What became of an alert event that was sent: one row when a receiver took or refused it. An event without a row waits, or is historic.",
    columns(
        ("event_id", "string", "the event"),
        ("alert_id", "string", "the alert it is about"),
        ("sink", "string", "where it was sent: webhook or kafka"),
        ("status", "string", "delivered, or refused: it is not sent again"),
        ("attempts", "bigint", "attempts it took, in the run that settled it"),
        ("delivered_at", "timestamp", "when the receiver said so"),
        ("number", "bigint", "number of the run that wrote the event"),
        ("detail", "string", "the answer"),
    ),
    key=("event_id", "sink"),
    skipping_on=("number",),
    is_small=True,
)

RUNS = Table(
    "runs",
    "One row for each run; a `published` row is the moment of publication.",
    columns(
        ("run_id", "string", "the run"),
        ("as_of", "timestamp", "its clock"),
        ("status", "string", "published, held or failed"),
        ("lines_read", "bigint", "lines booked: new + duplicates + quarantined + blank"),
        ("readings_new", "bigint", "new readings"),
        ("duplicates", "bigint", "lines that say again what a reading says"),
        ("quarantined", "bigint", "lines in quarantine; negative where a replay took them out"),
        ("blank", "bigint", "blank lines"),
        ("late_rows", "bigint", "late ones among the new readings"),
        ("versions", "map<string, bigint>", "the version of each table that was published"),
        ("started_at", "timestamp", "when it started"),
        ("finished_at", "timestamp", "when it was published, held or found dead"),
        ("number", "bigint", "runs are numbered from 1"),
        ("booked_until", "bigint", "the last ingest batch it booked"),
        ("note", "string", "why it was held or failed, who accepted it, what the Kafka topic lost"),
    ),
    key=("run_id",),
    skipping_on=("number",),
    is_small=True,
)

RUN_STORES = Table(
    "run_stores",
    "The books of a run by store.",
    columns(
        ("run_id", "string", "the run"),
        ("store_id", "string", "null: not readable"),
        ("readings_new", "bigint", "new readings"),
        ("duplicates", "bigint", "duplicates"),
        ("quarantined", "bigint", "lines in quarantine"),
        ("late_rows", "bigint", "late ones among the new readings"),
    ),
    key=("run_id", "store_id"),
    is_small=True,
)

QUALITY_RESULTS = Table(
    "quality_results",
    "One row for each expectation of each run.",
    columns(
        ("run_id", "string", "the run"),
        ("table", "string", "the table it is about"),
        ("expectation", "string", "what was expected"),
        ("severity", "string", "critical holds the run, warning is shown"),
        ("success", "boolean", "whether it held"),
        ("observed", "string", "what was seen"),
        ("limit", "string", "what was allowed"),
    ),
    key=("run_id", "table", "expectation"),
    is_small=True,
)

TABLES = {
    table.name: table
    for table in (
        RAW_FILES,
        RAW_MESSAGES,
        READINGS,
        QUARANTINE,
        DUPLICATES,
        BATCHES,
        SENSOR_STORES,
        STORE_MINUTES,
        STORE_TRENDS,
        DOOR_SESSIONS,
        HEARTBEATS,
        OUTAGES,
        ALERTS,
        ACKNOWLEDGEMENTS,
        ALERT_EVENTS,
        DELIVERIES,
        RUNS,
        RUN_STORES,
        QUALITY_RESULTS,
    )
}

# Goes up when a table gets other columns or partitions: a lake of another format is not touched.
FORMAT = 3

# What moves only when the checks passed: the tables that analysts read at their plain paths.
PUBLISHED = ("sensor_stores", "store_minutes", "store_trends", "door_sessions", "heartbeats", "outages", "alerts", "alert_events")
