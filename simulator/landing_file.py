"""One landing file: written under a name nobody takes, stamped with its arrival, then renamed, never over another."""

import filecmp
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from simulator.packing import ENDINGS, PACKERS


class LandingFile:
    """`with LandingFile(...) as file: file.write(...)`; afterwards `file.path` is where it landed."""

    def __init__(self, folder: Path, stem: str, form: str, arrived_ms: int) -> None:
        self._packer = PACKERS[form]()
        self._ending = ".jsonl" + ENDINGS[form]
        self._arrived_ms = arrived_ms
        self._broken_off = False
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (stem + self._ending)
        self._unfinished = folder / f".{stem}{self._ending}.part"
        self._stem = stem

    def __enter__(self) -> Self:
        self._file = self._unfinished.open("wb")
        return self

    def write(self, data: bytes) -> None:
        self._file.write(self._packer.pack(data))

    def break_off(self) -> None:
        self._broken_off = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._file.write(self._packer.break_off() if self._broken_off else self._packer.finish())
        self._file.close()
        if error is not None:
            self._unfinished.unlink()
            return
        os.utime(self._unfinished, ns=(self._arrived_ms * 1_000_000,) * 2)
        self._land()

    def _land(self) -> None:
        """A call that died is simply repeated: what it had already written is the same and stays as it is."""
        number = 1
        while self.path.exists():
            if filecmp.cmp(self._unfinished, self.path, shallow=False) and self.path.stat().st_mtime_ns == self._arrived_ms * 1_000_000:
                self._unfinished.unlink()
                return
            number += 1
            self.path = self.path.with_name(f"{self._stem}-{number}{self._ending}")
        self._unfinished.rename(self.path)
