"""Record in the file of times beside a log when what a follower reads of it came."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import IO

from receipt_cli.errors import OutputError
from receipt_cli.io.compression import times_name
from receipt_cli.io.times_file import TimesWriter


class Recorder:
    """Writes the times of a log's growth, from its first growth on; what the log had before gets none."""

    def __init__(self, log: IO[bytes], times: str, pause_s: float) -> None:
        """Begin with the present end of the open file ``log``, which is looked at every ``pause_s``."""
        self._log, self._times, self._pause_s = log, times, pause_s
        self._old = self._skipped = os.fstat(log.fileno()).st_size
        self._writer: TimesWriter | None = None
        self._failed = False

    def add(self, blocks: Sequence[bytes], now: float) -> None:
        """Note that these bytes of the log, read from its beginning on, were read at ``now``."""
        for block in blocks:
            old = min(self._skipped, len(block))
            self._skipped -= old
            if len(block) > old:
                self._begin(now)
            if self._writer is not None:
                self._writer.add(memoryview(block)[old:], now)
        if self._writer is not None:
            self._writer.tick(now)

    def _begin(self, now: float) -> None:
        """Begin the file with what was read just before ``now``; do without one if it cannot be written."""
        if self._writer is None and not self._failed:
            self._failed = os.path.lexists(self._times)  # meanwhile the job's own wrapper writes it
        if self._writer is None and not self._failed:
            try:
                self._writer = TimesWriter(
                    self._times,
                    self._log.fileno(),
                    append=True,
                    pause_s=self._pause_s,
                    now=now,
                    wall=time.time(),
                    known=self._old,
                )
            except OutputError:
                self._failed = True

    def close(self, now: float) -> None:
        """End the file, and close the log."""
        if self._writer is not None:
            self._writer.close(now, ended=False)
        self._log.close()

    def abandon(self) -> None:
        """Delete the file: the log is another one now."""
        self.close(time.monotonic())
        if self._writer is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._times)


def begin_recording(path: str, pause_s: float) -> Recorder | None:
    """Return what records the growth of the log at ``path``, looked at every ``pause_s``; None if it cannot, or need not."""
    times = os.path.join(os.path.dirname(path), times_name(os.path.basename(path)))
    if os.name != "nt" and times == f"{path}.times" and not os.path.lexists(times):
        with contextlib.suppress(OSError):
            return Recorder(open(path, "rb"), times, pause_s)  # closed by close()
    return None
