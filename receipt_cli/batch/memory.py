"""Memory limits of workers, so that one log cannot bring down the machine or the batch."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LEAST = 768 << 20
"""Bytes that a worker may always use: its own before it reads a log, and enough for an ordinary log."""
_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_SHARE = 0.85
"""Share of the machine's memory that all workers together may use."""
_MORE_LIKELY = b"500"


def machine_memory() -> int | None:
    """Return the memory of this machine or container in bytes, None if unknown."""
    sizes: list[int] = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in _CGROUP:
        with contextlib.suppress(OSError, ValueError):  # "max": no limit
            sizes.append(int(Path(name).read_text("ascii")))
    return min(sizes, default=None)


def share_of(workers: int) -> int | None:
    """Return the bytes of memory for each of ``workers`` processes."""
    memory = machine_memory()
    return None if memory is None else max(LEAST, int(memory * _SHARE) // workers)


def limit_memory(size: int | None) -> None:
    """Limit this process to ``size`` bytes of data, and make it the first victim if the machine runs out of memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_MORE_LIKELY)
    if size is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(OSError, ValueError):  # a lower limit is already set
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (size, hard))
