"""Whether a process still runs."""

from __future__ import annotations

import os
import select
import sys


class Process:
    """The process that had this number when we began: where the system lends a handle to it, no later one is taken for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handles: list[int] = []
        """Descriptors that can be read once the process has ended; none where the system has no such thing."""
        if sys.platform == "linux":
            try:
                self.handles = [os.pidfd_open(pid)]
            except OSError:  # gone, or an old kernel
                self.handles = []

    @property
    def ended(self) -> bool:
        """True once it has exited; one that nobody has waited for yet counts as ended where there is a handle."""
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
        """Give the handle back."""
        for handle in self.handles:
            os.close(handle)
        self.handles = []
