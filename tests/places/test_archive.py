"""Taken files move to the archive, on local disks and on S3, unless they have changed meanwhile."""

from __future__ import annotations

from spark_jobs.runtime import storage
from tests.places.places import Place


def test_a_file_that_changed_since_it_was_listed_is_not_moved(reached: Place) -> None:
    landing, archive = f"{reached.root}/moved/landing", f"{reached.root}/moved/archive"
    for name in ("same.jsonl", "grown.jsonl", "gone.jsonl"):
        reached.keep(f"{landing}/{name}", b"line\n", None)
    reached.keep(f"{archive}/same.jsonl", b"an older one\n", None)
    listed = list(storage.files(landing))
    reached.keep(f"{landing}/grown.jsonl", b"line\nline\n", None)
    storage.delete(f"{landing}/gone.jsonl")
    for file in listed:
        storage.move(file, f"{archive}/{file.path.rpartition('/')[2]}")
    assert list(storage.names(landing)) == ["grown.jsonl"]
    moved, older = storage.names(archive)
    assert moved == "same.jsonl" and storage.read(f"{archive}/{moved}") == b"line\n"
    assert older.startswith("same.jsonl.") and storage.read(f"{archive}/{older}") == b"an older one\n"
