"""Where secrets must not be found: each named, searched for as it is and as it would look in another spelling."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote


def found(secrets: dict[str, str], texts: Iterable[tuple[str, bytes]]) -> list[str]:
    """`where: which secret`, for each that is there; never the secret itself, which would then stand in a test's report."""
    spelled = {
        name: {value.encode(), value.encode().hex().encode(), _base64(value), quote(value).encode()} for name, value in secrets.items()
    }
    return sorted(
        {f"{where}: {name}" for where, text in texts for name, spellings in spelled.items() if any(one in text for one in spellings)}
    )


def files(folder: Path) -> list[tuple[str, bytes]]:
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]


def open_to_others(folder: Path) -> list[tuple[str, bytes]]:
    return [(name, text) for name, text in files(folder) if (folder / name).stat().st_mode & 0o077]


def _base64(value: str) -> bytes:
    return base64.b64encode(value.encode()).rstrip(b"=")[:-1]  # its last digit depends on what follows
