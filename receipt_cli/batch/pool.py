"""Pool of worker processes that survives the death of workers: their current item is retried once, alone, and then given up.

Pools of the standard library end if one of their processes dies. Here each worker has its own pipe, which reports its end.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, islice
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, _children  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, TypeVar

from receipt_cli.batch.model import InTwoParts, Lost
from receipt_cli.errors import ReceiptError
from receipt_cli.io.atomic import open_temporary, written_ahead


class Flusher:
    """Writes and flushes temporary files ahead of need, in a thread; nothing is written ahead before ``start``.

    A flush waits for the disk, and a waiting worker is wasted. So a worker writes the files that it will store, lets the thread
    flush them, and goes on with the next log; later ``io.atomic`` finds each flushed file and renames it.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Start the thread; do without if the system refuses one."""
        thread = ThreadPoolExecutor(1)
        with contextlib.suppress(RuntimeError):
            thread.submit(os.getpid)
            self._thread = thread

    @contextlib.contextmanager
    def written(self, folder: Path, contents: Iterable[bytes]) -> Iterator[None]:
        """Write ahead a temporary file in ``folder`` for each content that the block will store by way of it.

        Files that nobody takes are removed. A failed write is ignored: it is repeated, or reported, when the file is needed.
        """
        files: dict[tuple[str, bytes], tuple[str, Future[None]]] = {}
        if (thread := self._thread) is not None:
            with contextlib.suppress(OSError):
                for data in contents:
                    name, handle = open_temporary(folder, None)
                    files[str(folder), data] = name, thread.submit(_flush, handle, data)
        written_ahead.update({key: partial(_take, *file) for key, file in files.items()})
        try:
            yield
        finally:
            for key, (name, flushed) in files.items():
                if written_ahead.pop(key, None) is not None:
                    flushed.exception()  # wait for its end
                    with contextlib.suppress(OSError):
                        os.unlink(name)


def _flush(handle: int, data: bytes) -> None:
    with os.fdopen(handle, "wb", buffering=0) as file:
        if file.write(data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)


def _take(name: str, flushed: Future[None]) -> str | None:
    """Return the name of the flushed file; None if it could not be written, or was removed."""
    if flushed.exception() is not None:
        Path(name).unlink(missing_ok=True)
    return name if os.path.exists(name) else None


FLUSHER = Flusher()


LEAST = 768 << 20
"""Bytes that a worker may always use: its own before it reads a log, and enough for an ordinary log."""
_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_SHARE = 0.85
"""Share of the machine's memory that all workers together may use."""
_MORE_LIKELY = b"500"


def machine_memory() -> int | None:
    """Return the memory of this machine or container in bytes, None if unknown."""
    sizes: list[int] = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in _CGROUP:
        with contextlib.suppress(OSError, ValueError):  # "max": no limit
            sizes.append(int(Path(name).read_text("ascii")))
    return min(sizes, default=None)


def share_of(workers: int) -> int | None:
    """Return the bytes of memory for each of ``workers`` processes."""
    memory = machine_memory()
    return None if memory is None else max(LEAST, int(memory * _SHARE) // workers)


def limit_memory(size: int | None) -> None:
    """Limit this process to ``size`` bytes of data, and make it the first victim if the machine runs out of memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_MORE_LIKELY)
    if size is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(OSError, ValueError):  # a lower limit is already set
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (size, hard))


CHUNK_ITEMS = 16
CHUNK_BYTES = 1 << 20
"""Most items and bytes sent to a worker at once, unless one item is larger: it rarely waits, and others have work too."""
NEAR_ITEMS = 256
"""Queue look-ahead for items of a worker's kinds; bounds how far results are reordered."""
MOST_KINDS = 1 << 16
"""Most kinds whose worker is remembered; beyond it, all are forgotten."""
YOUNG_OBJECTS = 10_000
"""New objects before the garbage collector runs: fewer than a small log creates."""
ROUNDS_KEPT = 256
"""Rounds of work between full garbage collections, which take as long as ten logs and free little."""
OUT_OF_MEMORY = 86
"""Exit status of a worker that exceeded its memory limit."""
STARTS = 4
"""Attempts to start a worker."""
PAUSE_S = 0.1
"""Seconds between two attempts."""
GRACE_S = 5.0
"""Seconds for a worker to end by itself."""

T = TypeVar("T")
R = TypeVar("R")


class NoWorkers(ReceiptError):
    """The system cannot start worker processes."""


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    given: deque[int] = field(default_factory=deque)
    """Positions of items given and not yet answered, in order of work."""


class LocalPool:
    """An ``Engine`` of ``workers`` processes, each limited to its share of the machine's memory."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        method = "spawn" if sys.platform == "win32" else "forkserver"
        self._context: Any = get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(["receipt_cli.batch.worker"])
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._homes: dict[int, _Worker] = {}

    def run(
        self, work: Callable[[T], R], items: Sequence[T], sizes: Sequence[int], kinds: Sequence[int] = ()
    ) -> Iterator[tuple[int, R | Lost]]:
        """Yield (position, result) of each item as it is done; retried items come last."""
        waiting = deque(range(len(items)))
        suspects: list[int] = []
        while waiting or self._busy:
            while waiting and len(self._busy) < self.workers:
                worker = self._free(share_of(self.workers))
                self._give(worker, work, items, self._chunk(worker, waiting, sizes, kinds))
            ready = wait([worker.connection for worker in self._busy])
            for worker in [worker for worker in self._busy if worker.connection in ready]:
                answer = self._answer(worker)
                if answer is not None:
                    yield answer
                else:
                    suspects.append(worker.given.popleft())  # the item it was working on
                    waiting.extendleft(reversed(worker.given))
                    self._bury(worker)
        for position in suspects:
            yield position, self._alone(work, items, position)

    def close(self) -> None:
        """Kill all workers at once; their writes are atomic."""
        for worker in [*self._busy, *self._idle]:
            worker.process.terminate()
        for worker in [*self._busy, *self._idle]:
            self._bury(worker)
        self._busy, self._idle = [], []

    def _alone(self, work: Callable[[T], R], items: Sequence[T], position: int) -> R | Lost:
        """Retry an item in a fresh process that has the machine's memory to itself."""
        while self._idle:
            self._bury(self._idle.pop())
        worker = self._free(share_of(1))
        self._give(worker, work, items, [position])
        answer = self._answer(worker)
        if answer is not None:
            self._bury(self._idle.pop())  # it has the memory limit of a lone worker
            result: R = answer[1]
            return result
        return Lost(_epitaph(self._bury(worker)))

    def _free(self, memory: int | None) -> _Worker:
        return self._idle.pop() if self._idle else self._start(memory)

    def _chunk(self, worker: _Worker, waiting: deque[int], sizes: Sequence[int], kinds: Sequence[int]) -> list[int]:
        """Take the next positions for a worker; fewer towards the end, so that all workers end together.

        First items of its own kinds, which it has caches for, then items of kinds without a worker, kind by kind; without
        either, any items.
        """
        near = list(islice(waiting, NEAR_ITEMS if kinds else CHUNK_ITEMS))
        most = max(1, min(CHUNK_ITEMS, len(waiting) // (2 * self.workers)))
        taken = _fitting(self._suitable(worker, near, kinds) if kinds else near, sizes, most)
        for _ in near:
            waiting.popleft()
        for at in taken if kinds else ():
            self._homes.setdefault(kinds[at], worker)
        left = set(taken)
        waiting.extendleft(at for at in reversed(near) if at not in left)
        return taken

    def _suitable(self, worker: _Worker, near: Sequence[int], kinds: Sequence[int]) -> Sequence[int]:
        """Return the positions that suit a worker best: its own kinds, then new ones; all if there are neither."""
        if len(self._homes) > MOST_KINDS:
            self._homes.clear()
        own = [at for at in near if self._homes.get(kinds[at]) is worker]
        new: dict[int, list[int]] = {}
        for at in near:
            if kinds[at] not in self._homes:
                new.setdefault(kinds[at], []).append(at)
        return [*own, *chain.from_iterable(new.values())] or near

    def _give(self, worker: _Worker, work: Callable[[T], R], items: Sequence[T], positions: Sequence[int]) -> None:
        worker.given.extend(positions)
        self._busy.append(worker)
        try:
            worker.connection.send((work, [(position, items[position]) for position in positions]))
        except OSError:  # it is dead or hangs, and will send no answer
            worker.process.kill()

    def _answer(self, worker: _Worker) -> tuple[int, Any] | None:
        """Return the next answer of a worker, None if it died. Raises the exception of its work."""
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
                time.sleep(PAUSE_S)  # the fork server may still be dying
                continue
            finally:
                theirs.close()  # so that the worker's end closes the pipe
            return _Worker(process, ours)
        raise AssertionError("unreachable")

    def _bury(self, worker: _Worker) -> int | None:
        """Wait for a worker to end and return its exit status."""
        if worker in self._busy:
            self._busy.remove(worker)
        self._homes = {kind: home for kind, home in self._homes.items() if home is not worker}
        worker.connection.close()
        worker.process.join(GRACE_S)
        if worker.process.exitcode is None:
            worker.process.kill()
            worker.process.join(GRACE_S)
        if worker.process.exitcode is None:  # it cannot be killed: do not wait for it at exit
            _children.discard(worker.process)
        return worker.process.exitcode


def serve(connection: Connection, memory: int | None) -> None:
    """Main loop of a worker: process items from ``connection`` until it is closed.

    Work in two parts ends after the next item has begun, which gives its wait time to finish.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops its workers
    limit_memory(memory)
    gc.set_threshold(YOUNG_OBJECTS)
    FLUSHER.start()
    with contextlib.suppress(EOFError, OSError):  # the parent has ended
        for done in count(1):
            work, items = connection.recv()
            begun: list[tuple[int, Callable[[], Any]]] = []
            for position, item in items:
                begun.append((position, _begin(work, item) if isinstance(work, InTwoParts) else partial(work, item)))
                if len(begun) > 1 or not isinstance(work, InTwoParts):
                    connection.send(_answer_of(*begun.pop(0)))
            if done % ROUNDS_KEPT == 0:
                gc.unfreeze()
            gc.collect()
            gc.freeze()  # definitions and caches: later collections leave them out
            for each in begun:
                connection.send(_answer_of(*each))


def _begin(work: InTwoParts[Any, Any], item: Any) -> Callable[[], Any]:
    """Run the first part for an item; return a function for the second, or one that raises the first part's exception."""
    try:
        return work.begin(item)
    except Exception as error:
        return partial(_raise, error)


def _raise(error: Exception) -> None:
    raise error


def _answer_of(position: int, work: Callable[[], Any]) -> tuple[int, Any, Exception | None]:
    try:
        return position, work(), None
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)
    except Exception as error:  # raised again in the parent
        return position, None, error


def _fitting(positions: Iterable[int], sizes: Sequence[int], most: int) -> list[int]:
    """Return the first positions, 1 to ``most``, whose sizes together fit into ``CHUNK_BYTES``."""
    taken: list[int] = []
    total = 0
    for at in positions:
        total += sizes[at]
        if taken and (len(taken) >= most or total > CHUNK_BYTES):
            break
        taken.append(at)
    return taken


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, although a terminal sends it to the whole group."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # otherwise it would be started in the block, and unblock interrupts
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _epitaph(status: int | None) -> str:
    if status == OUT_OF_MEMORY:
        return "it needs more memory than this machine can give"
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-status).name}, twice"
        return f"the process was ended by signal {-status}, twice"
    return f"the process ended with status {status}, twice"
