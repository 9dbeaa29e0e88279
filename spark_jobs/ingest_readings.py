"""Take every new line once: readings, quarantine, duplicates and the books of each batch."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from spark_jobs.readers import landing_files, quarantined_lines
from spark_jobs.readers.landing_files import Landing
from spark_jobs.readers.raw_line import archive_place
from spark_jobs.runtime import requests, storage
from spark_jobs.runtime.checkpoint import Checkpoint
from spark_jobs.runtime.entry import Entry
from spark_jobs.runtime.ingest_batch import Batch, take
from spark_jobs.runtime.job import job
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.ledger import batches_after
from spark_jobs.runtime.requests import Request
from spark_jobs.runtime.run import Run


@job
def ingest_readings(run: Run, lake: Lake) -> None:
    Ingest(run, lake).all()


class Ingest:
    """One run's intake. Batches are numbered as they are written, whatever they come from."""

    def __init__(self, run: Run, lake: Lake) -> None:
        self.run, self.lake = run, lake
        self.written = batches_after(lake, run.booked_until)  # by a run that died before it was booked, perhaps
        self.seq = max((books.until for books in self.written.values()), default=run.booked_until)

    def all(self) -> None:
        settings = self.lake.settings
        storage.make_folder(settings.landing)
        for request in requests.pending(self.lake):
            self._serve(request)
        landing = self._landing()
        if landing.ignored:
            endings = ", ".join(landing_files.ENDINGS)
            print(f"{landing.ignored} files in {settings.landing} have another ending than {endings}: they are not taken.")
        if empty := [file for file in landing.new if file.size == 0]:  # Spark does not show those
            self.lake.add_rows("raw_files", [self._empty_file(file) for file in empty], self.run.write("ingest/empty"))
        if changed := landing.changed:
            for file in changed:
                print(f"{file.path} changed after it was taken: what is new in it is taken now.")
            self._serve(requests.ask_for_changed_files(self.lake.place(), changed))
        if len(landing.new) > len(empty) or not self._checkpoint.is_whole:
            self._stream()
        if settings.archive:
            self._archive()
        if settings.kafka_servers:
            from spark_jobs.runtime.message_intake import MessageIntake  # its libraries are of no use where there is no Kafka

            MessageIntake(self.run, self.lake, self._take, lambda: self.seq + 1).all()

    def _landing(self) -> Landing:
        return landing_files.landing(self.lake.settings, self.lake.rows("raw_files", ["source", "bytes", "arrived_at", "seq"]))

    def _empty_file(self, file: Entry) -> dict[str, Any]:
        counts = {"bytes": 0, "lines": 0, "blank": 0, "seq": self.seq, "is_change": False, "sha256": hashlib.sha256().hexdigest()}
        return {
            "source": file.path,
            "arrived_at": datetime.fromtimestamp(file.modified_ms / 1000, UTC),
            "run_id": self.run.run_id,
            **counts,
        }

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.lake.place("checkpoints", "ingest_readings"))

    def _stream(self) -> None:
        writer = landing_files.stream(self.lake.spark, self.lake.settings).writeStream.option("checkpointLocation", self._checkpoint.place)
        query = writer.trigger(availableNow=True).foreachBatch(self._take_files).start()
        query.awaitTermination()

    def _take_files(self, names: DataFrame, number: int) -> None:
        settings = self.lake.settings
        files = [landing_files.entry(row) for row in names.collect()]
        files = [file for file in files if not landing_files.is_hidden(file.path, settings)]
        self.lake.expect_rows(sum(file.size for file in files) // 100)  # a line is about that long
        lines = landing_files.decoded(self.lake.spark, landing_files.slices(files, settings), settings)
        self._take(Batch(self._checkpoint.id, number, self.seq + 1, len(files)), lines)

    def _take(self, batch: Batch, lines: DataFrame) -> None:
        if batch.id in self.written:
            return
        books = take(self.lake, self.run, batch, lines)
        self.written[batch.id], self.seq = books, batch.seq
        counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in books.totals.items() if count)
        print(f"batch {batch.id}: {counts or 'nothing'}", flush=True)

    def _serve(self, request: Request) -> None:
        if request.kind == "changed":
            self._take_changed(request)
        else:
            self._replay(request)
        requests.done(self.lake, request)

    def _take_changed(self, request: Request) -> None:
        lake, entries = self.lake, request.entries
        lines = landing_files.decoded(lake.spark, landing_files.slices(entries, lake.settings), lake.settings)
        self._take(
            Batch(requests.ORIGIN, request.number, self.seq + 1, len(entries), taken_before=[entry.path for entry in entries]), lines
        )

    def _replay(self, request: Request) -> None:
        """Which rows are replayed is written down first: a second attempt must not judge what the first has taken out."""
        place = self.lake.place("control", "replays", str(request.number))
        if not storage.exists(f"{place}/_SUCCESS"):
            valid = quarantined_lines.now_valid(self.lake.read("quarantine"), request.reason, self.lake.settings)
            valid.write.mode("overwrite").parquet(place)
        rows = self.lake.spark.read.parquet(place)
        self._take(Batch(requests.ORIGIN, request.number, self.seq + 1, replayed=rows), quarantined_lines.as_lines(rows))

    def _archive(self) -> None:
        """Move what was taken, and not changed since, out of the landing folder."""
        landing = self._landing()
        stays = {file.path for file in (*landing.new, *landing.changed)}
        for file in landing.files:
            if file.path not in stays:
                storage.move(file.path, archive_place(file.path, self.lake.settings))


if __name__ == "__main__":
    ingest_readings()
