"""Unpack .gz and .zst as a stream, giving every byte that can be had before saying that the rest cannot.

`read` raises Broken where a file stops before its end or is no packed one, and only after all that came before.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Protocol

import zstandard

GZ_PIECE, ZST_PIECE = 1 << 16, 1 << 12  # a zst piece may unpack to 30,000 times its size: keep it small


class Broken(Exception):
    """The fault of the file itself: reading it again gives the same."""


class Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


def unpacked(source: str, stream: Readable) -> Readable:
    if source.endswith(".gz"):
        return _Unpacking(stream, lambda: zlib.decompressobj(wbits=31), GZ_PIECE, padding=b"\0")
    if source.endswith(".zst"):
        return _Unpacking(stream, lambda: zstandard.ZstdDecompressor().decompressobj(), ZST_PIECE)
    return stream


class _Unpacking:
    """Members (gz) or frames (zst) one after the other; a file may end only after a whole one."""

    def __init__(self, packed: Readable, new_member: Callable[[], Any], piece: int, padding: bytes = b"") -> None:
        self._packed, self._new_member, self._piece, self._padding = packed, new_member, piece, padding
        self._member: Any = new_member()
        self._broken: Broken | None = None

    def read(self, size: int = -1) -> bytes:
        while self._broken is None:
            piece = self._next_piece()
            if not piece:
                if self._member is None:
                    return b""
                self._broken = Broken("the packed data stop before their end")
                break
            try:
                out = self._unpack(piece)
            except (zlib.error, zstandard.ZstdError) as broken:
                self._broken = Broken(f"the packed data are broken: {broken}")
                break
            if out:
                return out
        raise self._broken

    def _next_piece(self) -> bytes:
        """What comes next of the packed bytes; between two members, padding is passed over."""
        if self._member is None:
            return self._after_member(b"")
        return self._packed.read(self._piece)

    def _after_member(self, rest: bytes) -> bytes:
        rest = rest.lstrip(self._padding) if self._padding else rest
        while not rest:
            rest = self._packed.read(self._piece)
            if not rest:
                return b""
            rest = rest.lstrip(self._padding) if self._padding else rest
        self._member = self._new_member()
        return rest

    def _unpack(self, piece: bytes) -> bytes:
        out = []
        while piece:
            try:
                out.append(self._member.decompress(piece))
            except (zlib.error, zstandard.ZstdError):
                if out:  # what whole members before it gave is given first
                    self._broken = Broken("the packed data are broken")
                    return b"".join(out)
                raise
            if not self._member.eof:
                break
            rest = self._member.unused_data
            self._member = None
            piece = self._after_member(rest) if rest else b""
        return b"".join(out)
