"""Scan a log in pieces by several processes, and merge their segments to the one of a single pass.

That is for where the kernel is not. Processes and not threads: a scan is many short calls, and threads that take the
interpreter from one another for each of them are slower together than one alone. The log is read once, by the caller, whose
threads decompress it and take its digest meanwhile.
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
"""Bytes of a log from which on several workers are worth their start."""
PACKED = 4
"""A compressed log is taken to hold so many times its size."""
AUTO = 0
"""As many workers as pay off: one for what is small or of unknown size, else the number of cores."""
MOST = 8
"""Workers that AUTO takes at most."""
WAITING = 2
"""Blocks in work or done, beyond those that are scanned: the caller may be a little late."""

_kept: Engine | None = None
"""The engine of ``kept_engine``."""


def kept_engine(grammars: Sequence[Grammar], catalogue: Catalogue) -> Engine:
    """Return the engine with which this process reads logs one after the other: it has the layouts that it learned before."""
    global _kept
    if _kept is None or _kept.grammars != tuple(grammars) or _kept.catalogue is not catalogue:
        _kept = Engine(grammars, catalogue)
    return _kept


def scan_source(engine: Engine, source: Source, workers: int | None = None) -> Segment:
    """Scan ``source`` and return the fold of all of it, which does not depend on ``workers``, by default 1.

    Where the kernel is there is one worker, whose threads read, take the digest and unpack meanwhile.

    Raises ``InputError``.
    """
    count = _auto(source) if workers == AUTO else workers or 1
    source.native = engine.native
    try:
        if engine.native is not None or source.stored_size is None or source.stored_size < count:
            count = 1  # the kernel costs less than processes do; of a pipe a copied process would hold the other end open
        return engine.scan(source.blocks(), whole=True) if count == 1 else _in_pieces(engine, source, count)
    except BaseException:
        source.close()  # whoever catches this may keep the iterator alive, and its threads
        raise


def _auto(source: Source) -> int:
    size = source.plain_size or (source.stored_size or 0) * PACKED
    return min(MOST, os.cpu_count() or 1) if size >= MIN_PARALLEL else 1


def _in_pieces(engine: Engine, source: Source, count: int) -> Segment:
    """Return the fold of all blocks, each scanned by one of ``count`` processes; the log is read here."""
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
    """Return ``count`` processes, None where the system does not let us have them."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    before = set(active_children())
    context = get_context("fork" if sys.platform == "linux" else "spawn")  # a copied process has all that was loaded, at once
    try:
        pool = ProcessPoolExecutor(count, context, _begin, (engine.grammars, engine.catalogue))
        pool.submit(os.getpid)  # all workers begin now: once threads read ahead, no process should be copied
    except (OSError, RuntimeError):  # no process, no thread or no semaphore more: one process makes the same
        for process in set(active_children()) - before:
            process.terminate()
            process.join()
        return None
    return pool


def _begin(grammars: Sequence[Grammar], catalogue: Catalogue) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us ends us
    kept_engine(grammars, catalogue)


def _scan_block(block: bytes) -> Segment:
    """Return the fold of a block."""
    assert _kept is not None
    return _kept.scan([block])
