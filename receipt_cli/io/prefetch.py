"""An iterator that runs ahead of its consumer, in its own thread, by a bounded number of items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from threading import Condition, Thread
from typing import Generic, TypeVar

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
        """Return the next item; wait until there is one."""
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
