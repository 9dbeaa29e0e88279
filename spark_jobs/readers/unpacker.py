"""Unpack .gz and .zst as a stream, giving every byte that can be had before saying that the rest cannot.

`read` raises Broken where a file stops before its end or is no packed one, and only after all that came before.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import zstandard

GZ_PIECE, ZST_PIECE = 1 << 16, 1 << 12  # a zst piece may unpack to 30,000 times its size: keep it small
MOST_KEPT = 64 << 20  # of a damaged member beyond this, the piece with the damage is lost whole
DAMAGE = (zlib.error, zstandard.ZstdError)


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
        self._taken = _Taken()
        self._broken: Broken | None = None

    def read(self, size: int = -1) -> bytes:
        while self._broken is None:
            piece = self._next_piece()
            if not piece:
                if self._member is None:
                    return b""
                self._broken = Broken("the packed data stop before their end")
            elif out := self._unpack(piece):
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
        self._member, self._taken = self._new_member(), _Taken()
        return rest

    def _unpack(self, piece: bytes) -> bytes:
        out = []
        while piece:
            try:
                out.append(self._member.decompress(piece))
            except DAMAGE as damage:
                self._broken = Broken(f"the packed data are broken: {damage}")
                out.append(self._before_damage(piece))
                break
            if not self._member.eof:
                self._taken.add(piece)
                break
            rest = self._member.unused_data
            self._member = None
            piece = self._after_member(rest) if rest else b""
        return b"".join(out)

    def _before_damage(self, piece: bytes) -> bytes:
        """A library that meets damage keeps what the piece gave before it: the member is unpacked anew, and its last piece byte by byte."""
        if self._taken.is_too_much:
            return b""
        member, out = self._new_member(), []
        for earlier in self._taken.pieces:
            member.decompress(earlier)
        with contextlib.suppress(*DAMAGE):
            for i in range(len(piece)):
                out.append(member.decompress(piece[i : i + 1]))
        return b"".join(out)


class _Taken:
    """The packed bytes of the member at hand, as long as they are few enough to be kept."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._bytes = 0

    def add(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self.is_too_much:
            self.pieces.clear()
        else:
            self.pieces.append(piece)

    @property
    def is_too_much(self) -> bool:
        return self._bytes > MOST_KEPT
