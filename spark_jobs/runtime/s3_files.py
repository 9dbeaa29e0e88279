"""Small files of the lake and the landing folder, on an S3 server.

Where it is and who we are stands in the environment, under the names that boto3, Spark's S3A, Arrow and delta-rs all read: AWS_ENDPOINT_URL,
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION. Nothing of it is ever printed but the endpoint.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pyarrow.fs import FileSystem, S3FileSystem, SubTreeFileSystem
from urllib3.exceptions import HTTPError

from include.settings import S3
from spark_jobs.runtime.entry import Entry, Seen
from spark_jobs.runtime.errors import Stop

# What is no secret of it, and is handed on to executors.
WHERE = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_EC2_METADATA_DISABLED")
ATTEMPTS = 6  # of one request, with growing pauses: some 20 s, enough for a server that starts again
ABSENT = ("NoSuchKey", "404", "NotFound")
NOT_AS_SEEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
READ_AGAIN = 5
MOST_AT_ONCE = 1000  # keys that one request may delete
REFUSED = {
    "InvalidAccessKeyId": "it does not know the key in AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "the secret in AWS_SECRET_ACCESS_KEY is not the one of that key",
    "AccessDenied": "the key in AWS_ACCESS_KEY_ID may not do that",
    "403": "the key in AWS_ACCESS_KEY_ID is unknown, or may not do that",
    "NoSuchBucket": "it has no such bucket",
}


def endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


@cache
def _client() -> Any:
    return boto3.session.Session().client(
        "s3",
        region_name=region(),
        endpoint_url=endpoint() or None,
        config=Config(
            connect_timeout=5,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            s3={"addressing_style": "path" if endpoint() else "auto"},
            request_checksum_calculation="when_required",  # servers other than Amazon's do not know the newer ones
            response_checksum_validation="when_required",
            max_pool_connections=20,
        ),
    )


def _bucket_and_key(place: str) -> dict[str, str]:
    bucket, _, key = place.removeprefix(S3).partition("/")
    return {"Bucket": bucket, "Key": key}


def _prefix(place: str) -> dict[str, str]:
    named = _bucket_and_key(place)
    return {"Bucket": named["Bucket"], "Prefix": f"{named['Key']}/" if named["Key"] else ""}


@contextmanager
def _answered(place: str) -> Iterator[None]:
    """What the server, or the way to it, has against a request, in one line."""
    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code in ABSENT:
            raise FileNotFoundError(place) from None
        raise Stop(_refusal(place, REFUSED.get(code, f"it answers {code}"))) from None
    except (BotoCoreError, HTTPError, ConnectionError, TimeoutError) as error:
        raise Stop(_refusal(place, _trouble(error))) from None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "an error without a code"))


def _trouble(error: Exception) -> str:
    name = type(error).__name__
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set"
    return f"it does not answer ({name})"


def _refusal(place: str, why: str) -> str:
    return (
        f"{place}: the S3 server {endpoint() or 'of Amazon'} cannot be used: {why}. What is done so far is kept; put that right and run the "
        "pass again."
    )


def check(place: str) -> None:
    """One request tells whether server, key and bucket are right; the answers to a HEAD have no text, so it is a listing."""
    with _answered(place):
        _client().list_objects_v2(**_prefix(place), MaxKeys=1)


def blamed(place: str, error: str) -> str | None:
    """A request that broke off once too often; by now the server may answer again."""
    found = re.search(r".*(?:S3 error|AWS Error|s3a:|S3AFileSystem|amazonaws|awssdk).*", error)
    return _refusal(place, f"a request broke off ({found[0].strip()[:200]})") if found else None


def exists(place: str) -> bool:
    with _answered(place):
        try:
            _client().head_object(**_bucket_and_key(place))
            return True
        except ClientError as error:
            if _code(error) not in ABSENT:
                raise
        return bool(_client().list_objects_v2(**_prefix(place), MaxKeys=1).get("KeyCount"))


def read(place: str) -> bytes | None:
    seen = read_seen(place)
    return None if seen is None else seen.content


def read_seen(place: str) -> Seen | None:
    try:
        with _answered(place):
            answer = _client().get_object(**_bucket_and_key(place))
            return Seen(answer["Body"].read(), answer["ETag"])
    except FileNotFoundError:
        return None


def write(place: str, content: bytes) -> None:
    with _answered(place):
        _client().put_object(**_bucket_and_key(place), Body=content)


def write_if(place: str, content: bytes, seen: Seen | None) -> Seen | None:
    condition = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": str(seen.mark)}
    with _answered(place):
        try:
            answer = _client().put_object(**_bucket_and_key(place), Body=content, **condition)
            return Seen(content, answer["ETag"])
        except ClientError as error:
            if _code(error) not in (*NOT_AS_SEEN, *ABSENT):
                raise
    # It may be our own put that is in the way: the first try was done, and its answer was lost.
    there = read_seen(place)
    return there if there is not None and there.content == content else None


def delete(place: str) -> None:
    """The file of that name, and whatever lies in the folder of that name."""
    with _answered(place):
        named = _bucket_and_key(place)
        _client().delete_object(**named)
        for page in _pages(place):
            _delete_keys(named["Bucket"], [item["Key"] for item in page.get("Contents", ())])


def delete_files(folder: str, names: list[str]) -> None:
    with _answered(folder):
        start = _prefix(folder)
        for first in range(0, len(names), MOST_AT_ONCE):
            _delete_keys(start["Bucket"], [start["Prefix"] + name for name in names[first : first + MOST_AT_ONCE]])


def _delete_keys(bucket: str, keys: list[str]) -> None:
    if keys:
        _client().delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True})


def make_folder(place: str) -> None:
    """S3 has no folders: S3A wants to see one before it lists it, so an empty landing folder gets a mark."""
    with _answered(place):
        if not _client().list_objects_v2(**_prefix(place), MaxKeys=1).get("KeyCount"):
            _client().put_object(**_bucket_and_key(f"{place}/"), Body=b"")


def files(place: str) -> Iterator[Entry]:
    start = _prefix(place)
    with _answered(place):
        for page in _pages(place):
            for item in page.get("Contents", ()):
                inside = item["Key"].removeprefix(start["Prefix"])
                if inside and not inside.endswith("/") and all(part[:1] not in (".", "_") for part in inside.split("/")):
                    yield Entry(f"{S3}{start['Bucket']}/{item['Key']}", item["Size"], _milliseconds(item["LastModified"]))


def names(place: str) -> list[str]:
    start = _prefix(place)
    with _answered(place):
        found = (item["Key"].removeprefix(start["Prefix"]) for page in _pages(place, Delimiter="/") for item in page.get("Contents", ()))
        return sorted(name for name in found if name)


def folders(place: str) -> list[str]:
    start = _prefix(place)["Prefix"]
    with _answered(place):
        found = (item["Prefix"] for page in _pages(place, Delimiter="/") for item in page.get("CommonPrefixes", ()))
        return sorted(name.removeprefix(start).rstrip("/") for name in found)


def _pages(place: str, **more: str) -> Iterator[dict[str, Any]]:
    yield from _client().get_paginator("list_objects_v2").paginate(**_prefix(place), **more)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def move(source: str, target: str) -> None:
    """S3 has no rename: copied, then deleted, so that a crash in between leaves both."""
    there = next((entry for entry in _at(target)), None)
    with _answered(target):
        for old, new in ([(target, f"{target}.{there.modified_ms}")] if there else []) + [(source, target)]:
            _client().copy(_bucket_and_key(old), **_bucket_and_key(new))
        _client().delete_object(**_bucket_and_key(source))


def _at(place: str) -> Iterator[Entry]:
    with _answered(place):
        try:
            found = _client().head_object(**_bucket_and_key(place))
        except ClientError as error:
            if _code(error) in ABSENT:
                return
            raise
        yield Entry(place, found["ContentLength"], _milliseconds(found["LastModified"]))


def open_file(place: str) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Object(place), 1 << 20))


class _Object(io.RawIOBase):
    """A file read from where `seek` says, in one request; one that breaks off is taken up again where it was.

    Trouble on the way is a Stop, never an OSError: that would look like a packed file that is broken itself.
    """

    def __init__(self, place: str) -> None:
        self._place, self._position, self._body = place, 0, None
        self._etag = ""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only from the start")
        if offset != self._position:
            self._position, self._body = offset, None
        return offset

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        with _answered(self._place):
            for attempt in range(READ_AGAIN):
                try:
                    self._body = self._body or self._opened()
                    piece = self._body.read(len(view)) if self._body else b""
                    break
                except (BotoCoreError, HTTPError, OSError) as trouble:
                    self._body = None
                    if attempt == READ_AGAIN - 1 or isinstance(trouble, FileNotFoundError):
                        raise
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _opened(self) -> Any:
        same = {"IfMatch": self._etag} if self._etag else {}
        try:
            answer = _client().get_object(**_bucket_and_key(self._place), Range=f"bytes={self._position}-", **same)
        except ClientError as error:
            if _code(error) in ("InvalidRange", "416"):  # at its end, or an empty file
                return None
            raise
        self._etag = answer["ETag"]
        return answer["Body"]


def arrow_files(place: str) -> FileSystem:
    return SubTreeFileSystem(place.removeprefix(S3), _arrow())


@cache
def _arrow() -> S3FileSystem:
    if not endpoint():
        return S3FileSystem(region=region())
    address = urlsplit(endpoint())
    return S3FileSystem(region=region(), endpoint_override=address.netloc, scheme=address.scheme, connect_timeout=5, request_timeout=30)


def delta_options(place: str) -> dict[str, str]:
    """It reads the rest from the environment, as all others do. A commit is a conditional put: of two writers at once one fails."""
    return {"aws_region": region(), "aws_conditional_put": "etag"} | (
        {"aws_endpoint": endpoint(), "aws_allow_http": str(endpoint().startswith("http://")).lower()} if endpoint() else {}
    )
