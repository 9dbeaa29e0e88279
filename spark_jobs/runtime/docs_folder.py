"""The folder of the Data Docs, as Great Expectations can write it: on local disks itself; else a copy, brought back afterwards.

Of the pages that are on the server the copy has empty ones, which are never opened, only counted; and all results lie there in one file: a run costs as
many requests as it has pages of its own, whatever came before it.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from expectations import RESULTS
from include.settings import S3
from spark_jobs.runtime import storage

PACKED = f"{RESULTS}.zip"


@contextmanager
def opened(place: str) -> Iterator[Path]:
    if not place.startswith(S3):
        yield Path(place)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = {entry.path.removeprefix(f"{place}/"): entry.size for entry in storage.files(place)}
        _lay_out(folder, place, known)
        yield folder
        _bring_back(folder, place, known)


def _lay_out(folder: Path, place: str, known: dict[str, int]) -> None:
    for page in known:
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).touch()
    if results := storage.read(f"{place}/{PACKED}"):
        with zipfile.ZipFile(io.BytesIO(results)) as packed:
            packed.extractall(folder / RESULTS)


def _bring_back(folder: Path, place: str, known: dict[str, int]) -> None:
    """Pages first: a result whose page is not there yet gets one the next time, and a page without a result goes."""
    (folder / PACKED).unlink(missing_ok=True)
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    results = {name: path for name, path in files.items() if name.startswith(f"{RESULTS}/")}
    pages = {name: path for name, path in files.items() if name not in results}
    written = [
        name for name, path in pages.items() if (size := path.stat().st_size) and (name.endswith(".html") or known.get(name) != size)
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: storage.write(f"{place}/{name}", pages[name].read_bytes()), written))
    storage.delete_files(place, sorted(known.keys() - pages.keys() - {PACKED}))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in sorted(results.items()):
            packed.write(path, name.removeprefix(f"{RESULTS}/"))
    storage.write(f"{place}/{PACKED}", content.getvalue())
