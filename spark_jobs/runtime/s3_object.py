"""A file on an S3 server as a stream that can be read from any position."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.s3_client import answered, bucket_and_key, client, error_code

READ_AGAIN = 5


class S3Object(io.RawIOBase):
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
        try:
            with answered(self._place):
                piece = self._read(len(view))
        except OSError as trouble:
            raise Stop(
                f"{self._place} cannot be read ({type(trouble).__name__}); nothing of its batch was taken. Run the pass again."
            ) from None
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _read(self, size: int) -> bytes:
        for _ in range(READ_AGAIN - 1):
            with suppress(BotoCoreError, HTTPError, OSError):
                return self._read_once(size)
            self._body = None
        return self._read_once(size)

    def _read_once(self, size: int) -> bytes:
        self._body = self._body or self._opened()
        return bytes(self._body.read(size)) if self._body else b""

    def _opened(self) -> Any:
        same = {"IfMatch": self._etag} if self._etag else {}
        try:
            answer = client().get_object(**bucket_and_key(self._place), Range=f"bytes={self._position}-", **same)
        except ClientError as error:
            if error_code(error) in ("InvalidRange", "416"):  # at its end, or an empty file
                return None
            raise
        self._etag = answer["ETag"]
        return answer["Body"]
