"""Small files of the lake and the landing folder, on an S3 server."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, BinaryIO, cast

from botocore.exceptions import ClientError
from pyarrow.fs import FileSystem, S3FileSystem, SubTreeFileSystem

from include import s3
from include.settings import S3
from spark_jobs.runtime.entry import Entry, Seen, is_hidden
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.s3_client import ABSENT, answered, bucket_and_key, client, error_code, refusal
from spark_jobs.runtime.s3_object import S3Object

NOT_AS_SEEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
MOST_AT_ONCE = 1000  # keys that one request may delete


def check(place: str) -> None:
    """One request tells whether server, key and bucket are right; the answers to a HEAD have no text, so it is a listing."""
    with answered(place):
        client().list_objects_v2(**_prefix(place), MaxKeys=1)


def blamed(place: str, error: str) -> str | None:
    """A request that broke off once too often; by now the server may answer again."""
    found = re.search(r".*(?:S3 error|AWS Error|s3a:|S3AFileSystem|amazonaws|awssdk).*", error)
    return refusal(place, f"a request broke off ({found[0].strip()[:200]})") if found else None


def _prefix(place: str) -> dict[str, str]:
    named = bucket_and_key(place)
    return {"Bucket": named["Bucket"], "Prefix": f"{named['Key']}/" if named["Key"] else ""}


def exists(place: str) -> bool:
    if _at(place) is not None:
        return True
    with answered(place):
        return bool(client().list_objects_v2(**_prefix(place), MaxKeys=1).get("KeyCount"))


def read(place: str) -> bytes | None:
    seen = read_seen(place)
    return None if seen is None else seen.content


def read_seen(place: str) -> Seen | None:
    try:
        with answered(place):
            answer = client().get_object(**bucket_and_key(place))
            return Seen(answer["Body"].read(), answer["ETag"])
    except FileNotFoundError:
        return None


def write(place: str, content: bytes) -> None:
    with answered(place):
        client().put_object(**bucket_and_key(place), Body=content)


def write_if(place: str, content: bytes, seen: Seen | None) -> Seen | None:
    condition = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": str(seen.mark)}
    with answered(place):
        try:
            answer = client().put_object(**bucket_and_key(place), Body=content, **condition)
            return Seen(content, answer["ETag"])
        except ClientError as error:
            if error_code(error) not in (*NOT_AS_SEEN, *ABSENT):
                raise
    # It may be our own put that is in the way: the first try was done, and its answer was lost.
    there = read_seen(place)
    return there if there is not None and there.content == content else None


def delete(place: str) -> None:
    """The file of that name, and whatever lies in the folder of that name."""
    with answered(place):
        named = bucket_and_key(place)
        client().delete_object(**named)
        for page in _pages(place):
            _delete_keys(named["Bucket"], [item["Key"] for item in page.get("Contents", ())])


def delete_files(folder: str, names: list[str]) -> None:
    with answered(folder):
        start = _prefix(folder)
        for first in range(0, len(names), MOST_AT_ONCE):
            _delete_keys(start["Bucket"], [start["Prefix"] + name for name in names[first : first + MOST_AT_ONCE]])


def _delete_keys(bucket: str, keys: list[str]) -> None:
    if keys:
        answer = client().delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True})
        if failed := answer.get("Errors"):
            raise Stop(refusal(f"{S3}{bucket}/{failed[0].get('Key')}", f"it cannot be deleted ({failed[0].get('Code')})"))


def make_folder(place: str) -> None:
    """S3 has no folders: S3A wants to see one before it lists it, so an empty landing folder gets a mark."""
    with answered(place):
        if not client().list_objects_v2(**_prefix(place), MaxKeys=1).get("KeyCount"):
            client().put_object(**bucket_and_key(f"{place}/"), Body=b"")


def files(place: str) -> Iterator[Entry]:
    start = _prefix(place)
    with answered(place):
        for page in _pages(place):
            for item in page.get("Contents", ()):
                inside = item["Key"].removeprefix(start["Prefix"])
                if inside and not inside.endswith("/") and not any(map(is_hidden, inside.split("/"))):
                    yield Entry(f"{S3}{start['Bucket']}/{item['Key']}", item["Size"], _milliseconds(item["LastModified"]))


def names(place: str, after: str = "") -> Iterator[str]:
    start = _prefix(place)["Prefix"]
    with answered(place):
        for page in _pages(place, Delimiter="/", StartAfter=start + after):
            yield from (item["Key"].removeprefix(start) for item in page.get("Contents", ()))


def folders(place: str) -> list[str]:
    start = _prefix(place)["Prefix"]
    with answered(place):
        found = (item["Prefix"] for page in _pages(place, Delimiter="/") for item in page.get("CommonPrefixes", ()))
        return sorted(name.removeprefix(start).rstrip("/") for name in found)


def _pages(place: str, **more: str) -> Iterator[dict[str, Any]]:
    yield from client().get_paginator("list_objects_v2").paginate(**_prefix(place), **more)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def move(source: Entry, target: str) -> None:
    """S3 has no rename: copied, then deleted, so that a crash in between leaves both."""
    now, there = _at(source.path), _at(target)
    # Asked for one file some servers tell its time to the second.
    if now is None or (now.size, now.modified_ms // 1000) != (source.size, source.modified_ms // 1000):
        return
    with answered(target):
        for old, new in ([(target, f"{target}.{there.modified_ms}")] if there else []) + [(source.path, target)]:
            client().copy(bucket_and_key(old), **bucket_and_key(new))
        client().delete_object(**bucket_and_key(source.path))


def _at(place: str) -> Entry | None:
    try:
        with answered(place):
            found = client().head_object(**bucket_and_key(place))
    except FileNotFoundError:
        return None
    return Entry(place, found["ContentLength"], _milliseconds(found["LastModified"]))


def open_file(place: str) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(S3Object(place), 1 << 20))


def arrow_files(place: str) -> FileSystem:
    return SubTreeFileSystem(place.removeprefix(S3), _arrow())


@cache
def _arrow() -> S3FileSystem:
    return S3FileSystem(**s3.arrow_options())


def delta_options(place: str) -> dict[str, str]:
    return s3.delta_options()
