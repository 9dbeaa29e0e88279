"""Small files of the lake (control, reference, documents) and the landing folder, wherever they lie."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spark_jobs.runtime.errors import Stop


@dataclass(frozen=True)
class Entry:
    """A file as a listing shows it."""

    path: str
    size: int
    modified_ms: int


def _local(place: str) -> Path:
    if "://" in place and not place.startswith("file://"):
        raise Stop(f"{place}: only local folders are supported yet; set COLDSTORE_LAKE to a folder.")
    return Path(place.removeprefix("file://"))


def exists(place: str) -> bool:
    return _local(place).exists()


def read_text(place: str) -> str | None:
    """The whole file, or None where there is none."""
    try:
        return _local(place).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def read_bytes(place: str) -> bytes:
    return _local(place).read_bytes()


def write_text(place: str, text: str) -> None:
    write_bytes(place, text.encode("utf-8"))


def write_bytes(place: str, content: bytes) -> None:
    """The whole file or nothing: a reader never sees half of it."""
    path = _local(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)


def create(place: str, text: str) -> bool:
    """Make the file; False where it exists already. Of two callers at once, one gets True."""
    path = _local(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        os.link(name, path)  # fails where the name is taken, and shows the whole content at once
    except FileExistsError:
        return False
    finally:
        os.unlink(name)
    return True


def delete(place: str) -> None:
    path = _local(place)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_folder(place: str) -> None:
    _local(place).mkdir(parents=True, exist_ok=True)


def files(place: str) -> Iterator[Entry]:
    """Every file below a folder, but none whose name, or whose folder's name, starts with `.` or `_`."""
    for folder, subfolders, names in os.walk(_local(place)):
        subfolders[:] = [name for name in subfolders if name[0] not in "._"]
        for name in names:
            path = os.path.join(folder, name)
            if name[0] in "._":
                continue
            with contextlib.suppress(FileNotFoundError):  # it may be renamed while we look
                status = os.stat(path)
                yield Entry(path, status.st_size, status.st_mtime_ns // 1_000_000)


def open_file(path: str) -> BinaryIO:
    return _local(path).open("rb")


def move(source: str, target: str) -> None:
    """A file of that name that lies there already keeps its content: it gets its own time into its name."""
    place = _local(target)
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(f"{place}.{place.stat().st_mtime_ns // 1_000_000}")
    shutil.move(_local(source), place)


def names(place: str) -> list[str]:
    """The names of the files in one folder."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(entry.name for entry in os.scandir(_local(place)) if entry.is_file())
    return []
