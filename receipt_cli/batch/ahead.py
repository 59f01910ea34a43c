"""Temporary files that are written and flushed before they are needed, beside other work.

A flush waits for the disk, and a worker that waits is of no use. So it writes what it is about to store, lets a thread flush
it, and goes on with the next log; then ``io.atomic`` finds the flushed file and gives it its name, as it would its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread

from receipt_cli.io.atomic import open_temporary, written_ahead


class FlushedFile:
    """One temporary file that is flushed by another thread."""

    def __init__(self, name: str, handle: int) -> None:
        self.name = name
        self._handle = handle
        self._error: OSError | None = None
        self._flushing = Lock()
        self._flushing.acquire()

    def flush(self) -> None:
        """Flush the file to disk, and let whoever waits for that go on."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            self._error = error
        finally:
            self._flushing.release()

    def take(self) -> str | None:
        """Return the name of the flushed file; None where somebody has removed it. Raises what the flush raised."""
        with self._flushing:
            os.close(self._handle)
        if self._error is not None:
            self._remove()
            raise self._error
        return self.name if os.path.exists(self.name) else None

    def drop(self) -> None:
        """Remove the file, which nobody takes."""
        with self._flushing:
            os.close(self._handle)
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.name)


class Flusher:
    """The thread that flushes the files of this process, once it is started; without it nothing is written ahead."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[FlushedFile] = SimpleQueue()
        self._runs = False

    def start(self) -> None:
        """Start the thread, which ends with the process; where the system gives none, it is done without."""
        with contextlib.suppress(RuntimeError):
            Thread(target=self._flush, daemon=True).start()
            self._runs = True

    @contextlib.contextmanager
    def written(self, folder: Path, contents: Iterable[bytes]) -> Iterator[None]:
        """Write a temporary file for the next file of each content that is written by way of ``folder`` in the block.

        Those that nobody takes are removed. What cannot be written now is written, or reported, when it is needed.
        """
        files = {(str(folder), data): self._write(folder, data) for data in contents} if self._runs else {}
        known = {key: ahead for key, ahead in files.items() if ahead is not None and key not in written_ahead}
        written_ahead.update({key: ahead.take for key, ahead in known.items()})
        try:
            yield
        finally:
            for key, ahead in known.items():
                if written_ahead.pop(key, None) is not None:
                    ahead.drop()

    def _write(self, folder: Path, data: bytes) -> FlushedFile | None:
        try:
            name, handle = open_temporary(folder, None)
        except OSError:
            return None
        ahead = FlushedFile(name, handle)
        try:
            whole = os.write(handle, data) == len(data)
        except OSError:
            whole = False
        self._waiting.put(ahead)
        if not whole:
            ahead.drop()
            return None
        return ahead

    def _flush(self) -> None:
        while True:
            self._waiting.get().flush()


FLUSHER = Flusher()
