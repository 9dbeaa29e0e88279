"""The books: a line in `batches` for each ingest batch, summed up in `runs` and `run_stores` when a run ends (P4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from include.settings import utc
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row, Write

COUNTS = ("readings_new", "duplicates", "quarantined", "late_rows")


@dataclass
class Books:
    """Lines read = readings_new + duplicates + quarantined + blank; each also by store."""

    files: int = 0
    lines_read: int = 0
    blank: int = 0
    late_rows: int = 0
    readings_new: int = 0
    duplicates: int = 0
    quarantined: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    stores: dict[str | None, Counter[str]] = field(default_factory=dict)
    until: int = 0  # the last batch in these books
    refused: int = 0  # quarantined without what replays took out: of summed books only

    def count(self, name: str, store_id: str | None, rows: int) -> None:
        setattr(self, name, getattr(self, name) + rows)
        self.stores.setdefault(store_id, Counter())[name] += rows

    def add(self, other: Books) -> None:
        self.files += other.files
        self.lines_read += other.lines_read
        self.blank += other.blank
        self.reasons.update(other.reasons)
        self.until = max(self.until, other.until)
        self.refused += max(0, other.quarantined)
        for store_id, counts in other.stores.items():
            for name in COUNTS:
                self.count(name, store_id, counts[name])

    @property
    def totals(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("lines_read", "blank", *COUNTS)}

    @property
    def imbalance(self) -> int:
        """Lines that were read and are nowhere to be found; 0 when the books balance."""
        return imbalance(self.totals)

    def by_store(self) -> list[dict[str, Any]]:
        return [{"store_id": store_id, **{name: counts[name] for name in COUNTS}} for store_id, counts in self.stores.items()]


def imbalance(totals: Row) -> int:
    """Also of a run's row."""
    return int(totals["lines_read"] - sum(totals[name] for name in ("readings_new", "duplicates", "quarantined", "blank")))


def write_batch(lake: Lake, run: Run, batch: str, books: Books, write: Write) -> None:
    """The batch's line in the ledger, last of all that the batch writes."""
    record = {
        **books.totals,
        "seq": books.until,
        "batch": batch,
        "run_id": run.run_id,
        "files": books.files,
        "reasons": dict(books.reasons),
        "stores": books.by_store(),
        "written_at": datetime.now(UTC),
    }
    lake.add_rows("batches", [record], write)


def batches_after(lake: Lake, seq: int) -> dict[str, Books]:
    """The batches in the ledger that no run has booked yet, by their id."""
    rows = lake.rows("batches", where=[("seq", ">", seq)])
    return {row["batch"]: _books(row) for row in sorted(rows, key=lambda row: row["seq"])}


def unbooked(lake: Lake, run: Run) -> Books:
    """What the run has to book: all batches since the last one that was booked, whoever wrote them."""
    books = Books(until=run.booked_until)
    if run.is_rebuild:
        return books
    for batch in batches_after(lake, run.booked_until).values():
        books.add(batch)
    return books


def book(lake: Lake, run: Run, books: Books, status: str, versions: dict[str, int], note: str = "") -> None:
    """The run's rows; the one in `runs` comes last and ends it."""
    record = {
        **books.totals,
        "run_id": run.run_id,
        "number": run.number,
        "as_of": utc(run.as_of),
        "status": status,
        "versions": versions,
        "started_at": utc(run.started_at),
        "finished_at": datetime.now(UTC),
        "booked_until": books.until,
        "note": note,
    }
    if books.stores:
        lake.add_rows("run_stores", [{"run_id": run.run_id, **store} for store in books.by_store()], run.write("run_stores"))
    lake.add_rows("runs", [record], run.write("runs"))


def book_dead(lake: Lake, run: Run, note: str) -> None:
    """A run that ended before its row was written. One that died while it was being held has booked its stores: it stays held, and books the rest."""
    if lake.has_taken("run_stores", run.write("run_stores")):
        book(lake, run, unbooked(lake, run), "held", {}, note="it died when it was about to be held: quality_results says why")
    else:
        book(lake, run, Books(), "failed", {}, note)


def _books(row: Row) -> Books:
    books = Books(row["files"], row["lines_read"], row["blank"], reasons=Counter(dict(row["reasons"])), until=row["seq"])
    for store in row["stores"]:
        for name in COUNTS:
            books.count(name, store["store_id"], store[name])
    return books
