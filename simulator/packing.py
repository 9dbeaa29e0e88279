"""Bytes on their way into a plain, gz or zst file, whole or cut off in the middle."""

import zlib
from typing import Protocol

import zstandard

ENDINGS = {"plain": "", "gz": ".gz", "zst": ".zst"}
_GZIP_HEADER = 31  # with no time in it: the same lines give the same bytes


class Packer(Protocol):
    def pack(self, data: bytes) -> bytes: ...
    def finish(self) -> bytes: ...
    def break_off(self) -> bytes:
        """Bring out all that was packed so far, and no end: what an upload that died leaves behind."""
        ...


class Plain:
    def pack(self, data: bytes) -> bytes:
        return data

    def finish(self) -> bytes:
        return b""

    break_off = finish


class Gz:
    def __init__(self) -> None:
        self._stream = zlib.compressobj(level=1, wbits=_GZIP_HEADER)

    def pack(self, data: bytes) -> bytes:
        return self._stream.compress(data)

    def finish(self) -> bytes:
        return self._stream.flush()

    def break_off(self) -> bytes:
        return self._stream.flush(zlib.Z_SYNC_FLUSH)


class Zst:
    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor(level=1).compressobj()

    def pack(self, data: bytes) -> bytes:
        return self._stream.compress(data)

    def finish(self) -> bytes:
        return self._stream.flush()

    def break_off(self) -> bytes:
        return self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


PACKERS: dict[str, type[Packer]] = {"plain": Plain, "gz": Gz, "zst": Zst}
