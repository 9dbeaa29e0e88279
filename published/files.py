"""Small files of a lake, wherever it lies."""

from __future__ import annotations

from pathlib import Path

from include import s3
from include.settings import S3


def read(place: str) -> bytes | None:
    """None where there is no such file."""
    try:
        if not place.startswith(S3):
            return Path(place).read_bytes()
        from pyarrow.fs import S3FileSystem  # takes a second, which a lake on local disks does not need

        with S3FileSystem(**s3.arrow_options()).open_input_stream(place.removeprefix(S3)) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None


def names(folder: str) -> list[str]:
    """Of all files in a folder and below, with their way from there; none where there is no such folder."""
    if not folder.startswith(S3):
        return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())
    from pyarrow.fs import FileSelector, FileType, S3FileSystem

    root = folder.removeprefix(S3)
    found = S3FileSystem(**s3.arrow_options()).get_file_info(FileSelector(root, allow_not_found=True, recursive=True))
    return sorted(info.path.removeprefix(f"{root}/") for info in found if info.type == FileType.File)
