"""An iterator that runs ahead of its user, in a thread of its own and a bounded number of items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from threading import Condition, Thread
from typing import Generic, TypeVar

DEPTH = 2
"""Items that wait for their user at most; one more is being made."""

T = TypeVar("T")


class Ahead(Iterator[T], Generic[T]):
    """What ``items`` gives, in order, taken before it is asked for; what it raises is raised after what it gave.

    ``close`` ends the thread. ``interrupt`` is called by it, and must end a wait that ``items`` may be in.
    """

    def __init__(
        self, items: Generator[T, None, None], *, depth: int = DEPTH, interrupt: Callable[[], None] | None = None
    ) -> None:
        """Start the thread."""
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
        """Return the next item, as soon as there is one."""
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
        """End the thread and forget what waits. May be called from any thread but the iterator's own, and twice."""
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
        except BaseException as error:  # whatever it is, it belongs to the user
            self._error = error
        finally:
            self._items.close()
            with self._change:
                self._done = True
                self._change.notify_all()

    def _put(self, item: T) -> bool:
        """Hand over ``item``; return False when nobody wants any more."""
        with self._change:
            while len(self._waiting) >= self._depth and not self._closed:
                self._change.wait()
            if self._closed:
                return False
            self._waiting.append(item)
            self._change.notify()
            return True
