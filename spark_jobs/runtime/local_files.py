"""Small files of the lake and the landing folder, on this machine's disks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from spark_jobs.runtime.entry import Entry, Seen, is_hidden
from spark_jobs.runtime.errors import Stop

LEAST_FREE_BYTES = 64 << 20


def _local(place: str) -> Path:
    return Path(place.removeprefix("file://"))


def check(place: str) -> None:
    """A folder is made when it is first written to; a full disk is told before the work of a run is thrown away."""
    there = next(folder for folder in (_local(place), *_local(place).parents) if folder.exists())
    if shutil.disk_usage(there).free < LEAST_FREE_BYTES:
        raise Stop(_full(place))


def blamed(place: str, error: str) -> str | None:
    """A disk that was full, and may have got some space meanwhile."""
    return _full(place) if "No space left on device" in error else None


def _full(place: str) -> str:
    least = LEAST_FREE_BYTES >> 20
    return f"the disk of {place} has less than {least} MB left. What is done so far is kept; free some space and run the pass again."


def exists(place: str) -> bool:
    return _local(place).exists()


def read(place: str) -> bytes | None:
    """The whole file, or None where there is none."""
    try:
        return _local(place).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_seen(place: str) -> Seen | None:
    content = read(place)
    return None if content is None else Seen(content, mark=content)


def write(place: str, content: bytes) -> None:
    """The whole file or nothing: a reader never sees half of it."""
    path = _local(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:  # a full disk: not filled further
        os.unlink(name)
        raise


def write_if(place: str, content: bytes, seen: Seen | None) -> Seen | None:
    path = _local(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed, also by a process that dies
        if read(place) != (seen.mark if seen else None):
            return None
        write(place, content)
    return Seen(content, mark=content)


def delete(place: str) -> None:
    path = _local(place)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def delete_files(folder: str, names: list[str]) -> None:
    for name in names:
        _local(folder).joinpath(name).unlink(missing_ok=True)


def make_folder(place: str) -> None:
    _local(place).mkdir(parents=True, exist_ok=True)


def files(place: str) -> Iterator[Entry]:
    """Every file below a folder, but none whose name, or whose folder's name, starts with `.` or `_`."""
    for folder, subfolders, names in os.walk(_local(place), onerror=_unreadable, followlinks=True):  # as Spark does
        subfolders[:] = [name for name in subfolders if not is_hidden(name)]
        for name in names:
            if not is_hidden(name) and (found := _at(os.path.join(folder, name))):
                yield found


def _unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # it may be renamed while we look
        raise Stop(
            f"the folder {error.filename} cannot be read ({error.strerror}), so what is new in it cannot be told. Put that right and run the pass again."
        )


def open_file(path: str) -> BinaryIO:
    return _local(path).open("rb")


def move(source: Entry, target: str) -> None:
    place = _local(target)
    if _at(source.path) != source:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(f"{place}.{place.stat().st_mtime_ns // 1_000_000}")
    shutil.move(_local(source.path), place)


def _at(path: str) -> Entry | None:
    with contextlib.suppress(FileNotFoundError):  # it may be renamed while we look
        status = os.stat(path)
        return Entry(path, status.st_size, status.st_mtime_ns // 1_000_000)
    return None


def names(place: str, after: str = "") -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError):
        yield from sorted(entry.name for entry in os.scandir(_local(place)) if entry.is_file() and entry.name > after)


def folders(place: str) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(entry.name for entry in os.scandir(_local(place)) if entry.is_dir())
    return []


def arrow_files(place: str) -> FileSystem:
    """With delta-rs's own file system, threads of Arrow may still call Python when the process ends, and abort it."""
    return SubTreeFileSystem(str(_local(place)), LocalFileSystem())


def delta_options(place: str) -> dict[str, str]:
    return {}
