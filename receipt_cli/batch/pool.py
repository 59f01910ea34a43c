"""Pool of worker processes that survives the death of workers: the item in work is retried once, alone, and then given up.

The pools of the standard library end when one of their processes does. Here each worker has its own pipe, which reports its
end.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, _children  # type: ignore[attr-defined]
from typing import Any, TypeVar

from receipt_cli.batch.memory import limit_memory, share_of
from receipt_cli.batch.model import Lost
from receipt_cli.errors import ReceiptError

CHUNK_ITEMS = 16
CHUNK_BYTES = 1 << 20
"""Most that a worker gets at once, unless one item is larger: enough that it rarely waits, and the others have work, too."""
OUT_OF_MEMORY = 86
"""Exit status of a worker that needed more memory than it may use."""
STARTS = 4
"""Times that the start of a worker is tried."""
PAUSE_S = 0.1
"""Time from one try to the next."""
GRACE_S = 5.0
"""Time that a worker gets to end by itself."""

T = TypeVar("T")
R = TypeVar("R")


class NoWorkers(ReceiptError):
    """The system starts no worker process."""


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    given: deque[int] = field(default_factory=deque)
    """Positions of the items it was given and has not answered, in the order of its work."""


class LocalPool:
    """An ``Engine`` of ``workers`` processes, each of which may use its share of the machine's memory."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        method = "spawn" if sys.platform == "win32" else "forkserver"
        self._context: Any = get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(["receipt_cli.batch.worker"])
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []

    def run(self, work: Callable[[T], R], items: Sequence[T], sizes: Sequence[int]) -> Iterator[tuple[int, R | Lost]]:
        """Yield the position of each item and what ``work`` made of it, as they are done; those retried come last."""
        waiting = deque(range(len(items)))
        suspects: list[int] = []
        while waiting or self._busy:
            while waiting and len(self._busy) < self.workers:
                self._give(work, items, _chunk(waiting, sizes, self.workers), share_of(self.workers))
            for worker in self._ready():
                answer = self._answer(worker)
                if answer is not None:
                    yield answer
                else:
                    suspects.append(worker.given.popleft())  # the one it was working on
                    waiting.extendleft(reversed(worker.given))
                    self._bury(worker)
        for position in suspects:
            yield position, self._alone(work, items, position)

    def close(self) -> None:
        """End all workers at once; their writes are atomic."""
        for worker in [*self._busy, *self._idle]:
            worker.process.terminate()
        for worker in [*self._busy, *self._idle]:
            self._bury(worker)
        self._busy, self._idle = [], []

    def _alone(self, work: Callable[[T], R], items: Sequence[T], position: int) -> R | Lost:
        """Try an item again in a fresh process, with the memory of the machine to itself."""
        while self._idle:
            self._bury(self._idle.pop())
        worker = self._give(work, items, [position], share_of(1))
        answer = self._answer(worker)
        if answer is not None:
            self._bury(self._idle.pop())  # it has the memory limit of a lone worker
            result: R = answer[1]
            return result
        return Lost(_epitaph(self._bury(worker)))

    def _give(self, work: Callable[[T], R], items: Sequence[T], positions: Sequence[int], memory: int | None) -> _Worker:
        worker = self._idle.pop() if self._idle else self._start(memory)
        worker.given.extend(positions)
        self._busy.append(worker)
        try:
            worker.connection.send((work, [(position, items[position]) for position in positions]))
        except OSError:  # it is dead or hangs: it will send no answer
            worker.process.kill()
        return worker

    def _ready(self) -> list[_Worker]:
        ready = wait([worker.connection for worker in self._busy])
        return [worker for worker in self._busy if worker.connection in ready]

    def _answer(self, worker: _Worker) -> tuple[int, Any] | None:
        """Return the next answer of a worker, None where there will be none. Raises what its work raised."""
        try:
            position, result, error = worker.connection.recv()
        except (EOFError, OSError):
            return None
        worker.given.popleft()
        if not worker.given:
            self._busy.remove(worker)
            self._idle.append(worker)
        if error is not None:
            raise error
        return position, result

    def _start(self, memory: int | None) -> _Worker:
        for left in reversed(range(STARTS)):
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=serve, args=(theirs, memory), daemon=True)
            try:
                with _without_interrupts():
                    process.start()
            except (EOFError, ConnectionError) as error:  # the fork server died: another is started
                ours.close()
                if not left:
                    raise NoWorkers("no worker can be started", why=str(error) or type(error).__name__) from error
                time.sleep(PAUSE_S)  # it may still be dying
                continue
            finally:
                theirs.close()  # so that its end is seen here
            return _Worker(process, ours)
        raise AssertionError("unreachable")

    def _bury(self, worker: _Worker) -> int | None:
        """Wait for the end of a worker and return its exit status."""
        if worker in self._busy:
            self._busy.remove(worker)
        worker.connection.close()
        worker.process.join(GRACE_S)
        if worker.process.exitcode is None:
            worker.process.kill()
            worker.process.join(GRACE_S)
        if worker.process.exitcode is None:  # its end is not reported: the interpreter must not wait for it at exit
            _children.discard(worker.process)
        return worker.process.exitcode


def serve(connection: Connection, memory: int | None) -> None:
    """Work on what comes through ``connection``, item by item, until it is closed: the life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    limit_memory(memory)
    settled = False
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        while True:
            work, items = connection.recv()
            for position, item in items:
                answer: tuple[int, Any, Exception | None]
                try:
                    answer = (position, work(item), None)
                except MemoryError:
                    sys.exit(OUT_OF_MEMORY)
                except Exception as error:  # raised again in the parent
                    answer = (position, None, error)
                connection.send(answer)
            if not settled:  # modules and definitions stay: no later collection needs to visit them
                gc.collect()
                gc.freeze()
                settled = True


def _chunk(waiting: deque[int], sizes: Sequence[int], workers: int) -> list[int]:
    """Take the positions that a worker gets at once; fewer towards the end, so that all end together."""
    most = max(1, min(CHUNK_ITEMS, len(waiting) // (2 * workers)))
    taken = [waiting.popleft()]
    total = sizes[taken[0]]
    while waiting and len(taken) < most and total + sizes[waiting[0]] <= CHUNK_BYTES:
        total += sizes[waiting[0]]
        taken.append(waiting.popleft())
    return taken


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: the whole group of the terminal gets it."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # otherwise it is started in between, and lets interrupts through again
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _epitaph(status: int | None) -> str:
    """Return how a worker ended, in words."""
    if status == OUT_OF_MEMORY:
        return "it needs more memory than this machine can give"
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-status).name}, twice"
        return f"the process was ended by signal {-status}, twice"
    return f"the process ended with status {status}, twice"
