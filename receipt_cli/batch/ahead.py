"""Write and flush temporary files ahead of need, beside other work.

A flush waits for the disk, and a waiting worker is wasted. So a worker writes the files that it will store, lets a thread flush
them, and goes on with the next log; later ``io.atomic`` finds each flushed file and renames it.
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
    """One temporary file, flushed by another thread."""

    def __init__(self, name: str, handle: int) -> None:
        self.name = name
        self._handle = handle
        self._error: OSError | None = None
        self._flushing = Lock()
        self._flushing.acquire()

    def flush(self) -> None:
        """Flush the file to disk, and release those who wait for it."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            self._error = error
        finally:
            self._flushing.release()

    def take(self) -> str | None:
        """Return the name of the flushed file; None if it was removed. Raises the error of the flush."""
        with self._flushing:
            os.close(self._handle)
        if self._error is not None:
            self._remove()
            raise self._error
        return self.name if os.path.exists(self.name) else None

    def drop(self) -> None:
        """Remove the file if nobody takes it."""
        with self._flushing:
            os.close(self._handle)
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.name)


class Flusher:
    """The thread that flushes the files of this process; nothing is written ahead before ``start``."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[FlushedFile] = SimpleQueue()
        self._runs = False

    def start(self) -> None:
        """Start the thread, which ends with the process; do without if the system refuses one."""
        with contextlib.suppress(RuntimeError):
            Thread(target=self._flush, daemon=True).start()
            self._runs = True

    @contextlib.contextmanager
    def written(self, folder: Path, contents: Iterable[bytes]) -> Iterator[None]:
        """Write ahead a temporary file in ``folder`` for each content that the block will store by way of it.

        Files that nobody takes are removed. A failed write is ignored: it is repeated, or reported, when the file is needed.
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
