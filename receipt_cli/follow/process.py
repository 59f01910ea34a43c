"""Whether a process still runs."""

from __future__ import annotations

import os
import select
import sys


class Process:
    """The process that has this number now; with a handle of the system, no later process is mistaken for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handles: list[int] = []
        """Descriptors that become readable once the process has ended; none where the system lacks them."""
        if sys.platform == "linux":
            try:
                self.handles = [os.pidfd_open(pid)]
            except OSError:  # gone, or an old kernel
                self.handles = []

    @property
    def ended(self) -> bool:
        """True once it has exited; with a handle, a zombie counts as exited."""
        if self.handles:
            return bool(select.select(self.handles, [], [], 0)[0])
        try:
            os.kill(self.pid, 0)
        except PermissionError:  # somebody else's
            return False
        except (ProcessLookupError, OverflowError):
            return True
        return False

    def close(self) -> None:
        """Close the handle."""
        for handle in self.handles:
            os.close(handle)
        self.handles = []
