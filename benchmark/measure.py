"""What a command costs: seconds, CPU seconds and peak memory of the whole tree of processes it starts."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

EVERY_S = 0.2
ORPHANS_WAIT_S = 60
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu_seconds: float
    peak_mb: float
    exit_code: int
    output: str


class _Height(NamedTuple):
    rss: int
    pss: int  # shared pages count once


NOTHING = _Height(0, 0)


@dataclass
class _Tree:
    """The processes of a command, as seen so far.

    PSS is slow to ask for, so only a new height of RSS is a reason to. A height counts when the next look still sees it: while a process is
    being spawned it has its parent's memory, whole, and for some milliseconds a JVM would seem to be two.
    """

    strangers: frozenset[psutil.Process]  # what ran below us before
    cpu_of: dict[psutil.Process, float] = field(default_factory=dict)
    highest: _Height = NOTHING
    unconfirmed: _Height | None = None

    def look(self) -> None:
        rss, seen = 0, []
        for process in self._processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                self.cpu_of[process] = times.user + times.system
                rss += process.memory_info().rss
                seen.append(process)
        is_new_height = rss > self.highest.rss * 1.01
        height = _Height(rss, sum(map(_own_bytes, seen))) if is_new_height else None
        if height and self.unconfirmed:
            self.highest = _Height(*(max(known, min(pair)) for known, *pair in zip(self.highest, height, self.unconfirmed, strict=True)))
        self.unconfirmed = height

    @property
    def peak_bytes(self) -> int:
        """A command that ended before a second look has only what the first one saw."""
        return self.highest.pss or (self.unconfirmed or NOTHING).pss

    def _processes(self) -> list[psutil.Process]:
        """Also those whose parent has ended meanwhile: they are below us then."""
        for process in _below_us() - self.strangers:
            self.cpu_of.setdefault(process, 0.0)
        return [process for process in self.cpu_of if process.is_running()]


def cost_of(command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Cost:
    """Run it to its end. What it leaves running is waited for (not timed): its CPU belongs to the command too."""
    before, strangers = _cpu_of_children(), _below_us()
    with _orphans_are_ours(), tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        child = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        tree = _Tree(strangers)
        exit_code = _watch(child, tree)
        seconds = time.perf_counter() - started
        peak_mb = tree.peak_bytes / 1e6
        _wait_for_orphans(tree)
        output.seek(0)
        said = output.read().decode(errors="replace")
    # Both are lower bounds: the kernel's sum lacks what nobody waited for, the samples lack what is younger than the last look.
    cpu_seconds = max(_cpu_of_children() - before, sum(tree.cpu_of.values()))
    return Cost(seconds, cpu_seconds, max(peak_mb, tree.peak_bytes / 1e6), exit_code, said)


@contextmanager
def _orphans_are_ours() -> Iterator[None]:
    """A process whose parent ends becomes our child meanwhile, so that its CPU time is booked here."""
    process_control = ctypes.CDLL(None).prctl
    process_control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        process_control(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _watch(child: subprocess.Popen[bytes], tree: _Tree) -> int:
    """The command's exit code, noticed at once and not only at the next look."""
    while True:
        tree.look()
        with suppress(subprocess.TimeoutExpired):
            return child.wait(EVERY_S)


def _wait_for_orphans(tree: _Tree) -> None:
    until = time.monotonic() + ORPHANS_WAIT_S
    while time.monotonic() < until:
        tree.look()
        if not [process for process in tree.cpu_of if not _is_gone(process)]:
            return
        time.sleep(EVERY_S / 4)


def _below_us() -> frozenset[psutil.Process]:
    return frozenset(psutil.Process().children(recursive=True))


def _is_gone(process: psutil.Process) -> bool:
    with suppress(ChildProcessError):  # another process's child is no business of ours
        os.waitpid(process.pid, os.WNOHANG)
    return not process.is_running()


def _own_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, AttributeError):
        with suppress(psutil.Error):
            return int(process.memory_info().rss)
    return 0


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
