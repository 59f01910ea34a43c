"""Read input while its consumer works: a pipe whose wait another thread can end, and an iterator that runs ahead."""

from __future__ import annotations

import contextlib
import os
import select
from collections import deque
from collections.abc import Callable, Generator, Iterator
from io import BufferedReader, FileIO
from threading import Condition, Thread
from typing import IO, Generic, TypeVar

_CAPACITY = 1 << 20
"""Requested size of a pipe's buffer in bytes; the default of 64 KiB takes sixteen times as many reads."""


class Pipe:
    """Bytes of ``file`` from its current position. Nobody else may read from it."""

    def __init__(self, file: BufferedReader, raw: FileIO) -> None:
        """Take over ``file``, a buffer of ``raw``; its owner closes it."""
        self._file = file
        self._raw = raw
        self._fresh = True
        self._room = bytearray()
        self._wake, self._waker = os.pipe()
        widen(raw.fileno())

    @staticmethod
    def of(file: IO[bytes]) -> Pipe | None:
        """Return a pipe for ``file``, or None if a wait for it could not be ended."""
        if os.name == "nt" or not isinstance(file, BufferedReader) or not isinstance(file.raw, FileIO):
            return None
        return Pipe(file, file.raw)

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end or after ``stop``. Waits without polling."""
        if len(self._room) < size:
            self._room = bytearray(size)
        with memoryview(self._room) as room:
            filled = 0
            while filled < size:
                count = self._fill(room[filled:size])
                if count is None:
                    continue
                if not count:
                    break
                filled += count
            return bytes(room[:filled])

    def _fill(self, room: memoryview) -> int | None:
        """Wait, then read the available bytes; return their number, or None if another reader took them."""
        if self._fresh:  # an earlier peek may have buffered the first bytes
            buffered = len(self._file.peek(1))
            self._fresh = buffered > len(room)
            if buffered:
                return self._file.readinto(room[:buffered])
        ready, _, _ = select.select([self._raw.fileno(), self._wake], [], [])
        return 0 if self._wake in ready else self._raw.readinto(room)

    def stop(self) -> None:
        """End the wait of another thread, permanently."""
        with contextlib.suppress(OSError):  # already closed
            os.write(self._waker, b"x")

    def close(self) -> None:
        """Close the wake-up pipe; nobody may be waiting."""
        if self._wake >= 0:
            os.close(self._wake)
            os.close(self._waker)
            self._wake = self._waker = -1


def widen(descriptor: int) -> None:
    """Enlarge the buffer of a pipe, if the system allows it."""
    try:
        from fcntl import F_SETPIPE_SZ, fcntl  # type: ignore[attr-defined, unused-ignore]  # Linux only
    except ImportError:
        return
    with contextlib.suppress(OSError):
        fcntl(descriptor, F_SETPIPE_SZ, _CAPACITY)


DEPTH = 2
"""Most finished items that wait for the consumer; one more is being made."""

T = TypeVar("T")


class Ahead(Iterator[T], Generic[T]):
    """The items of ``items``, in order, fetched ahead; an exception is raised after the items before it.

    ``close`` ends the thread. It calls ``interrupt``, which must end any wait inside ``items``.
    """

    def __init__(
        self, items: Generator[T, None, None], *, depth: int = DEPTH, interrupt: Callable[[], None] | None = None
    ) -> None:
        self._items = items
        self._depth = depth
        self._interrupt = interrupt
        self._waiting: deque[T] = deque()
        self._change = Condition()
        self._closed = self._done = False
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="ahead", daemon=True)
        self._thread.start()

    def __next__(self) -> T:
        with self._change:
            while not (self._waiting or self._done or self._closed):
                self._change.wait()
            if self._waiting:
                self._change.notify()
                return self._waiting.popleft()
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        """End the thread and drop waiting items. May be called twice, and from any thread but the iterator's own."""
        with self._change:
            self._closed = True
            self._waiting.clear()
            self._change.notify_all()
        if self._interrupt is not None:
            self._interrupt()
        self._thread.join()

    def _run(self) -> None:
        try:
            for item in self._items:
                if not self._put(item):
                    break
        except BaseException as error:  # raised again in the consumer's thread
            self._error = error
        finally:
            self._items.close()
            with self._change:
                self._done = True
                self._change.notify_all()

    def _put(self, item: T) -> bool:
        """Queue ``item`` for the consumer; return False if the iterator was closed."""
        with self._change:
            while len(self._waiting) >= self._depth and not self._closed:
                self._change.wait()
            if self._closed:
                return False
            self._waiting.append(item)
            self._change.notify()
            return True
