"""The most main memory that this process has held."""

from __future__ import annotations

import contextlib
import sys

STATUS = "/proc/self/status"


def peak_memory(status: str = STATUS) -> dict[str, int | str] | None:
    """Return ``peak_memory_bytes`` and its ``source``: ``VmHWM`` of ``status``, else ``getrusage``; None without either."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(status, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return {"peak_memory_bytes": int(line.split()[1]) * 1024, "source": "vm_hwm"}
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, "source": "getrusage"}
