"""Record in the file of times beside a log when what a follower reads of it came."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence

from receipt_cli.errors import OutputError
from receipt_cli.io.compression import times_name
from receipt_cli.io.times_file import TimesWriter


class Recorder:
    """Writes the times of a log's growth; what the log had before gets none."""

    def __init__(self, log: int, times: str, pause_s: float) -> None:
        """Begin with the present end of the open file ``log``. Raises ``OutputError``."""
        self._times = times
        self._writer = TimesWriter(
            times, log, append=True, pause_s=pause_s, now=time.monotonic(), wall=time.time(), followed=True
        )
        self._skipped = self._writer.log_bytes

    def add(self, blocks: Sequence[bytes], now: float) -> None:
        """Note that these bytes of the log, read from its beginning on, were read at ``now``."""
        for block in blocks:
            old = min(self._skipped, len(block))
            self._skipped -= old
            self._writer.add(memoryview(block)[old:], now)
        self._writer.tick(now)

    def close(self, now: float) -> None:
        """End the file."""
        self._writer.close(now, ended=False)

    def abandon(self) -> None:
        """Delete the file: the log is another one now."""
        self._writer.close(time.monotonic(), ended=False)
        with contextlib.suppress(OSError):
            os.unlink(self._times)


def begin_recording(path: str, pause_s: float) -> Recorder | None:
    """Return what records the growth of the log at ``path``, read every ``pause_s``; None if it cannot, or need not."""
    times = os.path.join(os.path.dirname(path), times_name(os.path.basename(path)))
    if times == f"{path}.times" and not os.path.lexists(times):
        with contextlib.suppress(OSError, OutputError), open(path, "rb") as log:
            return Recorder(log.fileno(), times, pause_s)
    return None
