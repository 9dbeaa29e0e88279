"""Take every new line once: readings, quarantine, duplicates and the books of each batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from spark_jobs.readers import landing_files, quarantined_lines
from spark_jobs.readers.landing_files import Landing
from spark_jobs.readers.raw_line import archive_place
from spark_jobs.runtime import begun_batch, changed_files, requests, storage, stream
from spark_jobs.runtime.begun_batch import BegunBatch
from spark_jobs.runtime.checkpoint import Checkpoint
from spark_jobs.runtime.entry import Entry
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.ingest_batch import Batch, take
from spark_jobs.runtime.job import job
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.ledger import batches_after
from spark_jobs.runtime.requests import Request
from spark_jobs.runtime.run import Run

if TYPE_CHECKING:
    from spark_jobs.runtime.message_intake import MessageIntake


@job
def ingest_readings(run: Run, lake: Lake) -> Run:
    Ingest(run, lake).all()
    return run


class Ingest:
    """One run's intake. Batches are numbered as they are written, whatever they come from."""

    def __init__(self, run: Run, lake: Lake) -> None:
        self.run, self.lake = run, lake
        self.checkpoint = Checkpoint(lake.place("checkpoints", "ingest_readings"))
        self.written = batches_after(lake, run.booked_until)  # by a run that died before it was booked, perhaps
        self.seq = max((books.until for books in self.written.values()), default=run.booked_until)
        self.taken: set[str] = set()  # files, by this run

    def all(self) -> None:
        settings = self.lake.settings
        storage.make_folder(settings.landing)
        if left := begun_batch.left(self.lake):
            self._finish(left)
        for request in requests.pending(self.lake):
            self._serve(request)
        landing = self._landing()
        if landing.ignored:
            endings = ", ".join(landing_files.ENDINGS)
            print(f"{landing.ignored} files in {settings.landing} have another ending than {endings}: they are not taken.")
        for name in landing.misnamed:
            print(f"{name} has a name that is not UTF-8, so it is not taken: rename it, and the next pass takes it.")
        if empty := [file for file in landing.new if _is_empty(file)]:
            self.lake.add_rows("raw_files", [self._empty_file(file) for file in empty], self.run.write("ingest/empty"))
        if changed := landing.changed:
            for file in changed:
                print(f"{file.path} changed after it was taken: what is new in it is taken now.")
            self._serve(requests.ask_for_changed_files(self.lake.place(), changed))
        if len(landing.new) > len(empty) or not self.checkpoint.is_whole:
            self._stream(landing)
            self._take_unseen(landing)
        if settings.archive:
            self._archive()
        if settings.kafka_servers:
            self._messages().all()

    def _finish(self, left: BegunBatch) -> None:
        """What a driver that died had begun: batches that come after it must find it done."""
        if left.topic:
            self._messages().finish(left)
            return
        batch = Batch(left.origin, left.number, 0)
        if batch.id not in self.written and self._can_be_read(left.files, batch):
            self._take_files(left)
        else:
            begun_batch.done(self.lake)  # it is in the ledger, or the stream shows again what is there of it

    def _can_be_read(self, files: list[Entry], batch: Batch) -> bool:
        """A file that is gone is missed by nobody, unless some of its lines are in the lake already: then the rest is wanted, too."""
        gone = [file.path for file in files if not storage.exists(file.path)]
        if gone and any(self.lake.has_taken(table, batch.write) for table in ("raw_files", "readings", "duplicates", "quarantine")):
            raise Stop(
                f"{gone[0]} is gone, and a run that died had taken a part of it: put it back, with the same content, and run the pass again."
            )
        for path in gone:
            print(f"{path} is gone, and nothing of it was taken.", flush=True)
        return not gone

    def _messages(self) -> MessageIntake:
        from spark_jobs.runtime.message_intake import MessageIntake  # its libraries are of no use where there is no Kafka

        return MessageIntake(self.run, self.lake, self._take, lambda: self.seq + 1)

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

    def _stream(self, landing: Landing) -> None:
        """A new checkpoint shows files again that were taken by an older one: what `raw_files` knows is passed over."""

        def take(names: DataFrame, number: int) -> None:
            files = landing_files.named([row.path for row in names.collect()], landing, self.lake.settings)
            new = [file for file in files if file.path not in landing.taken]
            batch = BegunBatch(self.checkpoint.id, number, new)
            if new and f"{batch.origin}-{number}" not in self.written:
                begun_batch.begin(self.lake, batch)
                self._take_files(batch)

        stream.run(landing_files.stream(self.lake.spark, self.lake.settings), self.checkpoint, take)

    def _take_unseen(self, landing: Landing) -> None:
        """New files that Spark did not show: they have no bytes, or it saw them once, when they were empty or about to vanish, and passes them over ever since."""
        unseen = [file for file in landing.new if not _is_empty(file) and file.path not in self.taken and storage.exists(file.path)]
        if unseen:
            batch = BegunBatch("unseen", self.seq + 1, unseen)
            begun_batch.begin(self.lake, batch)
            self._take_files(batch)

    def _take_files(self, batch: BegunBatch) -> None:
        self.taken.update(file.path for file in batch.files)
        self._take(Batch(batch.origin, batch.number, self.seq + 1, len(batch.files)), self._lines(batch.files))
        begun_batch.done(self.lake)

    def _lines(self, files: list[Entry]) -> DataFrame:
        self.lake.expect_rows(sum(file.size for file in files) // 100)  # a line is about that long
        return landing_files.decoded(self.lake.spark, landing_files.slices(files, self.lake.settings), self.lake.settings)

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
        entries = request.entries
        batch = Batch(request.origin, 1, self.seq + 1, len(entries), taken_before=[entry.path for entry in entries])
        if batch.id in self.written or not self._can_be_read(entries, batch):
            return
        lines = self._lines(entries)
        self._take(batch, self._written_down(request, lambda: changed_files.new_lines(self.lake, lines, batch.taken_before)))

    def _replay(self, request: Request) -> None:
        rows = self._written_down(
            request, lambda: quarantined_lines.now_valid(self.lake.read("quarantine"), request.reason, self.lake.settings)
        )
        self._take(Batch(request.origin, 1, self.seq + 1, replayed=rows), quarantined_lines.as_lines(rows))

    def _written_down(self, request: Request, rows: Callable[[], DataFrame]) -> DataFrame:
        """What a request takes is written down first: a second attempt must not judge it by what the first has taken in or out."""
        place = self.lake.place("control", "replays", str(request.number))
        if not storage.exists(f"{place}/_SUCCESS"):
            made = rows()
            with self.lake.lasting("control/replays"):
                made.write.mode("overwrite").parquet(place)
        return self.lake.spark.read.parquet(place)

    def _archive(self) -> None:
        """Move what was taken, and not changed since, out of the landing folder."""
        landing = self._landing()
        stays = {file.path for file in (*landing.new, *landing.changed)}
        for file in landing.files:
            if file.path not in stays:
                storage.move(file, archive_place(file.path, self.lake.settings))


def _is_empty(file: Entry) -> bool:
    """A packed file without a byte is a broken one."""
    return file.size == 0 and file.path.endswith(".jsonl")


if __name__ == "__main__":
    ingest_readings()
