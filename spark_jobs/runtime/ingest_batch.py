"""Take one batch of lines into the lake: once, whatever died meanwhile (P4, P6, P19).

Every write carries the batch's name, so a second attempt writes only what the first did not. For its books to be the same too,
a second attempt must see the tables as the first found them: rows that carry the batch's own id are left aside, and the lines
that a displaced winner takes along are written down before anything else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from spark_jobs.readers.decoder import BAD, FILE, READING
from spark_jobs.readers.raw_line import with_raw_lines
from spark_jobs.runtime import storage
from spark_jobs.runtime.event_slices import touched_hours, within
from spark_jobs.runtime.lake import Lake, together
from spark_jobs.runtime.ledger import Books, write_batch
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Write
from spark_jobs.transforms import readings as R

BROADCAST_UP_TO_KEYS = 200_000


@dataclass(frozen=True)
class Batch:
    """A portion of lines and its name."""

    origin: str
    number: int
    seq: int
    files: int = 0  # of messages, or lines that are replayed, there are none
    taken_before: list[str] = field(default_factory=list)  # sources that changed: the lines are those that are new in them
    replayed: DataFrame | None = None  # the quarantine rows that these lines come from

    @property
    def id(self) -> str:
        return f"{self.origin}-{self.number}"

    @property
    def write(self) -> Write:
        return Write(f"ingest/{self.origin}", self.number)


def take(lake: Lake, run: Run, batch: Batch, lines: DataFrame) -> Books:
    """Judge, deduplicate and write the lines; the ledger's line comes last."""
    lines = lines.withColumns({"held": F.lit(None).cast("string"), "key": _key()}).persist(StorageLevel.MEMORY_AND_DISK)
    known = F.col("known") if batch.taken_before else F.lit(0).alias("known")
    files = (
        lines.filter(F.col("kind") == FILE).select("source", "arrived_at", "lines", "blank", "sha256", "bytes", "hours", known).collect()
    )
    hours = touched_hours(lines) if batch.replayed is not None else sorted({hour for file in files for hour in file.hours})
    judged, tally = _judged(lake, batch, lines, hours)
    refused = _refused(lake, judged, any(row.outcome == R.CONFLICT for row in tally))
    books = _books(lake, batch, files, tally)
    _write(lake, run, batch, judged, refused, tally, files)
    write_batch(lake, run, batch.id, books, batch.write)
    lake.delete(*_displaced(batch))
    lake.spark.catalog.clearCache()
    return books


def _key() -> Column:
    """A number in place of a reading's key: where two are equal the keys may be, where they differ the keys do."""
    return F.when(F.col("sensor_id").isNotNull(), F.xxhash64(*R.KEY))


# What becomes of each line


def _judged(lake: Lake, batch: Batch, lines: DataFrame, hours: list[int]) -> tuple[DataFrame, list[Row]]:
    """Every line of the batch with its outcome, the rows of the lake whose outcome it changes, and how many of each there are."""
    place = lake.place(*_displaced(batch))
    if not storage.exists(f"{place}/_SUCCESS"):
        judged = _with_outcome(lines, _held_readings(lake, batch, hours))
        tally = _tally(lake, judged)
        if not any(row.held == "readings" for row in tally):
            return judged, tally
        displaced = judged.filter("held = 'readings'").select(*R.LINE, "held")
        keys = displaced.select(*R.KEY).distinct()
        taken_along = (_held_lines(lake, table, hours).join(keys, [*R.KEY], "left_semi") for table in ("duplicates", "quarantine"))
        with lake.lasting("control/displaced"):
            _union(displaced, *taken_along).write.mode("overwrite").parquet(place)
    saved = lake.spark.read.parquet(place)
    others = _held_readings(lake, batch, hours).join(saved.select(*R.KEY).distinct(), [*R.KEY], "left_anti")
    judged = _with_outcome(lines, _union(others, saved))
    return judged, _tally(lake, judged)


def _with_outcome(lines: DataFrame, held: DataFrame) -> DataFrame:
    """Most keys stand in one line only, and that line is new. The few that are contested are compared, line by line."""
    held = held.withColumn("key", _key())
    keys = lines.filter("key is not null").select("key").unionAll(held.select("key"))
    contested = keys.groupBy("key").count().filter("count > 1").select("key").persist(StorageLevel.MEMORY_AND_DISK)
    count = contested.count()
    outcome = F.when(F.col("kind") == READING, R.NEW)
    if count == 0:
        return lines.withColumn("outcome", outcome)
    contested = F.broadcast(contested) if count <= BROADCAST_UP_TO_KEYS else contested
    alone = lines.join(contested, "key", "left_anti").withColumn("outcome", outcome)
    rivals = _union(lines.join(contested, "key", "left_semi"), held.join(contested, "key", "left_semi"))
    compared = _without_unchanged(R.with_outcome(rivals)).persist(StorageLevel.MEMORY_AND_DISK)
    return _union(alone, compared.coalesce(1) if count <= BROADCAST_UP_TO_KEYS else compared)


def _without_unchanged(compared: DataFrame) -> DataFrame:
    """Rows of the lake that stay what they are drop out."""
    stays = F.col("held").isNotNull() & (
        (F.col("outcome") == R.STAYS)
        | ((F.col("held") == "duplicates") & (F.col("outcome") == R.DUPLICATE))
        | ((F.col("held") == "quarantine") & (F.col("outcome") == R.CONFLICT))
    )
    return compared.filter(~stays).drop("winner")


def _held_readings(lake: Lake, batch: Batch, hours: list[int]) -> DataFrame:
    others = lake.read("readings").filter(within(hours)).filter(F.col("batch") != batch.id)
    return others.select(*R.LINE, F.lit("readings").alias("held"))


def _held_lines(lake: Lake, table: str, hours: list[int]) -> DataFrame:
    rows = lake.read(table).filter(within(hours, date=None))
    if table == "quarantine":
        rows = rows.filter(F.array_contains("reasons", "conflicting_duplicate") & F.col("replayed_at").isNull())
    return rows.select(*R.LINE, F.lit(table).alias("held"))


def _displaced(batch: Batch) -> tuple[str, ...]:
    return "control", "displaced", batch.id


def _refused(lake: Lake, judged: DataFrame, has_conflicts: bool) -> DataFrame:
    """What goes to quarantine: bad lines, and lines that contradict the reading they duplicate."""
    refused = judged.filter(F.col("kind") == BAD)
    if has_conflicts:
        conflicts = with_raw_lines(judged.filter(F.col("outcome") == R.CONFLICT), lake.settings)
        refused = _union(refused, conflicts.withColumn("reasons", F.array(F.lit("conflicting_duplicate"))))
    return refused


# The books


def _tally(lake: Lake, judged: DataFrame) -> list[Row]:
    """How many rows of each kind there are, by all that the books ask about."""
    lines = judged.filter(~F.col("kind").eqNullSafe(FILE))
    groups = lines.groupBy("kind", "held", "outcome", "store_id", R.is_late(lake.settings).alias("is_late"), "reasons")
    return groups.agg(F.count("*").alias("rows")).collect()


def _is_refused(row: Row) -> bool:
    return bool(row.kind == BAD or row.outcome == R.CONFLICT)


def _books(lake: Lake, batch: Batch, files: list[Row], tally: list[Row]) -> Books:
    books = Books(files=batch.files, until=batch.seq)
    books.lines_read, books.blank = sum(file.lines for file in files), sum(file.blank for file in files)
    for row in tally:
        if row.held is not None:  # what a table held until now leaves it
            _count(books, row, {"readings": R.NEW, "duplicates": R.DUPLICATE, "quarantine": R.CONFLICT}[row.held], -row.rows)
        _count(books, row, row.outcome, row.rows)
    if batch.replayed is not None:
        for row in batch.replayed.groupBy("booked_store_id", "reasons").count().collect():
            books.count("quarantined", row.booked_store_id, -row["count"])
            books.reasons.subtract(dict.fromkeys(row.reasons, row["count"]))
    known_blank = _known_blank(lake, batch, files)
    books.blank -= known_blank
    books.lines_read -= known_blank + sum(file.known for file in files)
    return books


def _known_blank(lake: Lake, batch: Batch, files: list[Row]) -> int:
    """Blank lines of changed files that were booked before: as many as a file ever had, and still has."""
    if not batch.taken_before:
        return 0
    now: Counter[str] = Counter()
    for file in files:
        now[file.source] += file.blank
    known: Counter[str] = Counter()
    for row in lake.rows("raw_files", ["source", "blank", "batch"], [("source", "in", batch.taken_before)]):
        if row["batch"] != batch.id:
            known[row["source"]] = max(known[row["source"]], row["blank"])
    return (now & known).total()


def _count(books: Books, row: Row, outcome: str | None, rows: int) -> None:
    if outcome in (R.NEW, R.REPLACES):
        books.count("readings_new", row.store_id, rows)
        books.count("late_rows", row.store_id, rows if row.is_late else 0)
    elif outcome == R.DUPLICATE:
        books.count("duplicates", row.store_id, rows)
    else:
        books.count("quarantined", row.store_id, rows)
        books.reasons.update(dict.fromkeys(row.reasons or ["conflicting_duplicate"], rows))


# The writes


def _write(lake: Lake, run: Run, batch: Batch, judged: DataFrame, refused: DataFrame, tally: list[Row], files: list[Row]) -> None:
    """Only what there is to write is written: most batches replace nothing, many refuse nothing."""
    there = {(row.held, row.outcome) for row in tally}
    judged = judged.withColumn("batch", F.lit(batch.id)).withColumn("run_id", F.lit(run.run_id))
    fresh = R.with_measures(judged.filter(F.col("outcome") == R.NEW), lake.settings)
    steps = [lambda: lake.add_rows("raw_files", _taken_files(run, batch, files), batch.write)] if batch.files else []
    if (None, R.NEW) in there:
        steps.append(lambda: lake.append("readings", fresh.sortWithinPartitions("event_date", "event_ts"), batch.write))
    if any(outcome == R.DUPLICATE for _, outcome in there):
        duplicates = judged.filter(F.col("outcome") == R.DUPLICATE)
        steps.append(lambda: lake.append("duplicates", duplicates, batch.write))
    if any(_is_refused(row) for row in tally):
        rows = refused.withColumn("batch", F.lit(batch.id)).withColumn("run_id", F.lit(run.run_id))
        rows = rows.withColumn("replayed_at", F.lit(None).cast("timestamp"))
        steps.append(lambda: lake.append("quarantine", rows, batch.write))
    together(*steps)
    _write_displaced(lake, batch, judged, there)
    if batch.replayed is not None:
        out = batch.replayed.withColumn("replayed_at", F.lit(datetime.now(UTC)))
        lake.update("quarantine", out, batch.write.named("replayed"))


def _taken_files(run: Run, batch: Batch, slices: list[Row]) -> list[dict[str, Any]]:
    """One row for each file; a large one was read in slices, and the first of them knows its size and checksum."""
    taken: dict[str, dict[str, Any]] = {}
    for part in slices:
        names = {
            "source": part.source,
            "arrived_at": part.arrived_at.replace(tzinfo=UTC),
            "batch": batch.id,
            "run_id": run.run_id,
            "seq": batch.seq,
        }
        file = taken.setdefault(part.source, {**names, "is_change": part.source in batch.taken_before, "lines": 0, "blank": 0})
        file["lines"] += part.lines
        file["blank"] += part.blank
        if part.sha256 is not None:
            file.update(sha256=part.sha256, bytes=part.bytes)
    return list(taken.values())


def _write_displaced(lake: Lake, batch: Batch, judged: DataFrame, there: set[tuple[str | None, str | None]]) -> None:
    """The few rows that change place because a line turned up that had arrived earlier."""
    if (None, R.REPLACES) in there:
        winners = R.with_measures(judged.filter(F.col("outcome") == R.REPLACES), lake.settings)
        lake.update("readings", winners, batch.write.named("replace"))
    for table, outcome in (("duplicates", R.CONFLICT), ("quarantine", R.DUPLICATE)):
        if (table, outcome) in there:
            moved = judged.filter((F.col("held") == table) & (F.col("outcome") == outcome))
            others = f"target.batch <> '{batch.id}'"
            lake.remove(table, moved, batch.write.named("remove"), by=("source", "position", "arrived_at"), narrowed_by=others)


def _union(first: DataFrame, *others: DataFrame) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), others, first)
