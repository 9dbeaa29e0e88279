"""Small files of the lake (control, reference, documents) and the landing folder, wherever they lie: on local disks or on an S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from pyarrow.fs import FileSystem

from include.settings import S3
from spark_jobs.runtime import local_files
from spark_jobs.runtime.entry import Entry, Seen


class Files(Protocol):
    """What each kind of place can do. A place is a path, or a URI like s3a://bucket/folder/file."""

    def check(self, place: str) -> None:
        """Stop with one clear line where the place cannot be used."""

    def blamed(self, place: str, error: str) -> str | None:
        """What to say of an error that came from there by way of a library; None where it did not."""

    def exists(self, place: str) -> bool: ...
    def read(self, place: str) -> bytes | None: ...
    def read_seen(self, place: str) -> Seen | None: ...
    def write(self, place: str, content: bytes) -> None: ...
    def write_if(self, place: str, content: bytes, seen: Seen | None) -> Seen | None: ...
    def delete(self, place: str) -> None: ...
    def delete_files(self, folder: str, names: list[str]) -> None: ...
    def make_folder(self, place: str) -> None: ...
    def files(self, place: str) -> Iterator[Entry]: ...
    def open_file(self, place: str) -> BinaryIO: ...
    def move(self, source: Entry, target: str) -> None: ...
    def names(self, place: str, after: str = "") -> Iterator[str]: ...
    def folders(self, place: str) -> list[str]: ...
    def arrow_files(self, place: str) -> FileSystem: ...
    def delta_options(self, place: str) -> dict[str, str]: ...


def _files(place: str) -> Files:
    if place.startswith(S3):
        from spark_jobs.runtime import s3_files  # its libraries take half a second, which a lake on local disks does not need

        return s3_files
    return local_files


def check(place: str) -> None:
    """Stop with one clear line where the place cannot be used."""
    _files(place).check(place)


def blamed(place: str, error: str) -> str | None:
    """What to say of an error that came from there by way of a library; None where it did not."""
    return _files(place).blamed(place, error)


def exists(place: str) -> bool:
    """A file or a folder with something in it."""
    return _files(place).exists(place)


def read_text(place: str) -> str | None:
    """The whole file, or None where there is none."""
    content = read(place)
    return None if content is None else content.decode("utf-8")


def read(place: str) -> bytes | None:
    return _files(place).read(place)


def read_seen(place: str) -> Seen | None:
    return _files(place).read_seen(place)


def write_text(place: str, text: str) -> None:
    write(place, text.encode("utf-8"))


def write(place: str, content: bytes) -> None:
    """The whole file or nothing: a reader never sees half of it."""
    _files(place).write(place, content)


def write_if(place: str, content: bytes, seen: Seen | None) -> Seen | None:
    """Only where the file is as it was seen (None: not there). Of two callers at once one gets what is there now, the other None."""
    return _files(place).write_if(place, content, seen)


def delete(place: str) -> None:
    """A file, or a folder with all that is in it; where there is none, nothing."""
    _files(place).delete(place)


def delete_files(folder: str, names: list[str]) -> None:
    """Some files below a folder: in one go where the place can do that."""
    _files(folder).delete_files(folder, names)


def make_folder(place: str) -> None:
    _files(place).make_folder(place)


def files(place: str) -> Iterator[Entry]:
    """Every file below a folder, but none whose name, or whose folder's name, starts with `.` or `_`."""
    return _files(place).files(place)


def open_file(place: str) -> BinaryIO:
    return _files(place).open_file(place)


def move(source: Entry, target: str) -> None:
    """Only what is still as it was listed. A file of that name that lies there already keeps its content: it gets its own time into its name."""
    _files(target).move(source, target)


def names(place: str, after: str = "") -> Iterator[str]:
    """The names of the files in one folder, in order; of a long one only what is asked for, as each thousand is a request to an S3 server."""
    return _files(place).names(place, after)


def folders(place: str) -> list[str]:
    """The names of the folders in one folder."""
    return _files(place).folders(place)


def arrow_files(place: str) -> FileSystem:
    """The folder, as Arrow reads it."""
    return _files(place).arrow_files(place)


def delta_options(place: str) -> dict[str, str]:
    """What delta-rs must know to reach it."""
    return _files(place).delta_options(place)
