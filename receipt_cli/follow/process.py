"""Check whether a process is still running."""

from __future__ import annotations

import os
import select
import sys


class Process:
    """The process with this id now; a system handle protects against a later process with the same id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handles: list[int] = []
        """Descriptors that become readable after the process has ended; empty if the system lacks them."""
        if sys.platform == "linux":
            try:
                self.handles = [os.pidfd_open(pid)]
            except OSError:  # ended, or an old kernel
                self.handles = []

    @property
    def ended(self) -> bool:
        """Whether it has exited; with a handle, a zombie counts as exited."""
        if self.handles:
            return bool(select.select(self.handles, [], [], 0)[0])
        try:
            os.kill(self.pid, 0)
        except PermissionError:  # another user's
            return False
        except (ProcessLookupError, OverflowError):
            return True
        return False

    def close(self) -> None:
        """Close the handle."""
        for handle in self.handles:
            os.close(handle)
        self.handles = []
