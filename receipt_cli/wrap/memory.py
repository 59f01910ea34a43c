"""Memory of the running command: resident memory of its processes, and out-of-memory kills."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

FIRST_S = 0.05
LEAST_S = 1.0
"""Seconds between two samples: ``FIRST_S`` at first, doubled each time up to ``LEAST_S``."""
SHARE = 1000
"""Later pauses between samples, as a multiple of the last sample's CPU time: a thousandth of one core."""
RECENT_S = 30.0
"""Seconds before the end of the command within which an out-of-memory kill is attributed to it."""
_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_COUNT = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)


class Memory:
    """Samples a process and all descendants whose parents are alive."""

    def __init__(self, pid: int, kills: KillCounter) -> None:
        self._root = psutil.Process(pid)
        self._kills = kills
        self._pause = FIRST_S
        self.peak_bytes = 0
        """Largest sum of resident memory in bytes; shared pages count once for each process."""
        self.due = 0.0
        """Time of the next sample, in seconds of the monotonic clock."""

    def look(self) -> None:
        """Sample the sum now."""
        began = time.thread_time()
        total = 0
        try:
            for process in [self._root, *self._root.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:  # it has ended, or belongs to another user
                    continue
        except psutil.Error:
            total = 0
        self.peak_bytes = max(self.peak_bytes, total)
        self._kills.look(self._root.pid)
        settled = self._pause >= LEAST_S
        self.due = time.monotonic() + (max(LEAST_S, SHARE * (time.thread_time() - began)) if settled else self._pause)
        self._pause *= 2


@dataclass(frozen=True, slots=True)
class Kills:
    """The number of out-of-memory kills, and their counter: the ``memory cgroup`` or the ``kernel``."""

    count: int
    counted_by: str


class KillCounter:
    """Kernel counts of out-of-memory kills: in our memory cgroup and the command's.

    Without either cgroup, the count is of the whole machine.
    """

    def __init__(self) -> None:
        self._counts: dict[Path, _Count] = {}
        self._add("self")
        if not self._counts:
            machine = _PROC / "vmstat"
            self._counts[machine] = _Count(_read_count(machine) or 0)

    def look(self, pid: int | None = None) -> None:
        """Update the counts; ``pid`` is a process whose cgroup counts from now on."""
        if pid is not None:
            self._add(str(pid))
        for path, count in self._counts.items():
            count.note(_read_count(path))

    def recent(self) -> Kills | None:
        """Return the kills since the start if their count rose within ``RECENT_S``; else None."""
        self.look()
        latest = time.monotonic() - RECENT_S
        risen = [(path, c) for path, c in self._counts.items() if c.risen_at is not None and c.risen_at >= latest]
        if not risen:
            return None
        path, count = risen[-1]
        return Kills(count.last - count.first, "kernel" if path.name == "vmstat" else "memory cgroup")

    def _add(self, process: str) -> None:
        for path in _cgroup_files(process):
            count = _read_count(path)
            if count is not None:
                self._counts.setdefault(path, _Count(count))
                return


class _Count:
    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.risen_at: float | None = None

    def note(self, now: int | None) -> None:
        if now is not None and now > self.last:
            self.last = now
            self.risen_at = time.monotonic()


def _cgroup_files(process: str) -> list[Path]:
    """Return possible counter files of a process's memory cgroup: by its path on the machine and inside a container."""
    try:
        lines = (_PROC / process / "cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        inside = path.strip("/")
        if not controllers:
            found += [_CGROUPS / inside / "memory.events", _CGROUPS / "memory.events"] if inside else [_CGROUPS / "memory.events"]
        elif "memory" in controllers.split(","):
            own = _CGROUPS / "memory"
            found += [own / inside / "memory.oom_control", own / "memory.oom_control"]
    return found


def _read_count(path: Path) -> int | None:
    try:
        match = _COUNT.search(path.read_bytes())
    except OSError:
        return None
    return int(match[1]) if match else None
