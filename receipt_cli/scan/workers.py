"""Scan a log in pieces by several processes, and merge their segments to that of a single pass.

Used only without the kernel. Processes and not threads: a scan is many short calls, and threads that hand over the interpreter
lock at each are slower than one alone. The calling process reads the log once; its threads decompress and hash it meanwhile.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.errors import InputError
from receipt_cli.grammar.model import Grammar
from receipt_cli.io.source import Source
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import Segment

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

MIN_PARALLEL = 64 << 20
"""Bytes of a log from which on several workers pay off."""
PACKED = 4
"""Assumed compression ratio."""
AUTO = 0
"""Choose the number of workers: one for small logs or unknown sizes, else the number of cores."""
MOST = 8
"""Most workers that AUTO starts."""
WAITING = 2
"""Blocks queued beyond those being scanned, so that a late caller does not stall the workers."""

_kept: Engine | None = None
"""The engine of ``kept_engine``."""


def kept_engine(grammars: Sequence[Grammar], catalogue: Catalogue) -> Engine:
    """Return the engine this process reuses for logs with these grammars; it keeps its learned layouts."""
    global _kept
    if _kept is None or _kept.grammars != tuple(grammars) or _kept.catalogue is not catalogue:
        _kept = Engine(grammars, catalogue)
    return _kept


def scan_source(engine: Engine, source: Source, workers: int | None = None) -> Segment:
    """Scan ``source``; the result does not depend on ``workers`` (default 1).

    With the kernel there is one worker, whose threads read, hash and decompress meanwhile.

    Raises ``InputError``.
    """
    size = source.plain_size or (source.stored_size or 0) * PACKED
    most = min(MOST, os.cpu_count() or 1) if size >= MIN_PARALLEL else 1
    count = most if workers == AUTO else workers or 1
    source.native = engine.native
    try:
        if engine.native is not None or source.stored_size is None or source.stored_size < count:
            count = 1  # the kernel costs less than processes; a forked process would hold the other end of a pipe open
        return engine.scan(source.blocks(), whole=True) if count == 1 else _in_pieces(engine, source, count)
    except BaseException:
        source.close()  # a caller may keep the iterator, and so its threads, alive
        raise


def _in_pieces(engine: Engine, source: Source, count: int) -> Segment:
    """Return the fold of all blocks, which this process reads and ``count`` processes scan."""
    from concurrent.futures.process import BrokenProcessPool

    pool = _workers(engine, count)
    if pool is None:
        return engine.scan(source.blocks(), whole=True)
    whole = Segment()
    pieces: deque[Future[Segment]] = deque()
    try:
        for block in source.blocks():
            if len(pieces) == count + WAITING:
                engine.merge(whole, pieces.popleft().result())
            pieces.append(pool.submit(_scan_block, block))
        while pieces:
            engine.merge(whole, pieces.popleft().result())
    except BrokenProcessPool as error:
        raise InputError("a worker was killed", where=source.name, try_="--workers 1") from error
    finally:
        pool.shutdown(cancel_futures=True)
    return whole


def _workers(engine: Engine, count: int) -> ProcessPoolExecutor | None:
    """Start ``count`` processes; None if the system does not allow it."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    before = set(active_children())
    context = get_context("fork" if sys.platform == "linux" else "spawn")  # a fork shares all loaded data
    try:
        pool = ProcessPoolExecutor(count, context, _begin, (engine.grammars, engine.catalogue))
        pool.submit(os.getpid)  # start all workers now: no process may fork after threads read ahead
    except (OSError, RuntimeError):  # out of processes, threads or semaphores: use one process
        for process in set(active_children()) - before:
            process.terminate()
            process.join()
        return None
    return pool


def _begin(grammars: Sequence[Grammar], catalogue: Catalogue) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops its workers
    kept_engine(grammars, catalogue)


def _scan_block(block: bytes) -> Segment:
    """Scan a block."""
    assert _kept is not None
    return _kept.scan([block])
