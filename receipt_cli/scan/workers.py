"""Scan a log in pieces by several processes, and merge their segments to the one of a single pass.

Processes and not threads: a scan is many short calls, and threads that take the interpreter from one another for each of
them are slower together than one alone. The log is read once, by the caller, whose threads decompress it and take its
digest meanwhile. Where a process can be copied, text goes to the workers and columns come back through memory that all
of them see.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from mmap import mmap
from typing import TYPE_CHECKING

from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.errors import InputError
from receipt_cli.grammar.model import Grammar
from receipt_cli.io.source import BLOCK, Source
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import Segment

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from pickle import PickleBuffer

MIN_PARALLEL = 64 << 20
"""Bytes of a log from which on several workers are worth their start."""
PACKED = 4
"""A compressed log is taken to hold so many times its size."""
AUTO = 0
"""As many workers as pay off: one for what is small or of unknown size, else the number of cores."""
MOST = 8
"""Workers that AUTO takes at most."""
PIECE = 8 << 20
"""Bytes that a worker gets at once; one more block may come with them."""
ROOM = 3 * PIECE
"""Bytes of shared memory for a piece: the text, then the columns, which take more than it where records are short. They
are taken as they are touched."""
ALIGNED = 64
"""Bytes of a line of the cache."""
WAITING = 2
"""Pieces in work or done, beyond those that are scanned: the caller may be a little late."""

_engine: Engine | None = None
"""The engine of a worker."""
_kept: Engine | None = None
"""The engine of ``kept_engine``."""
_shared: mmap | None = None
"""The memory that the caller and its workers share, ``ROOM`` bytes for each piece in work."""

Packed = tuple[bytes, tuple[int, ...]]
"""A segment without its columns; where they begin in its shared memory, and how many bytes each takes there in turn."""


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
    """Return the fold of all pieces, each scanned by one of ``count`` processes; the log is read here."""
    from concurrent.futures.process import BrokenProcessPool

    begun = _workers(engine, count)
    if begun is None:
        return engine.scan(source.blocks(), whole=True)
    pool, shared = begun
    places = deque(range(count + WAITING))
    whole = Segment()
    pieces: deque[tuple[int, Future[Packed]]] = deque()

    def merge() -> None:
        place, piece = pieces.popleft()
        engine.merge(whole, _unpacked(*piece.result(), shared, place * ROOM))
        places.append(place)

    try:
        for text in _gathered(source.blocks()):
            while not places or (pieces and pieces[0][1].done()):
                merge()
            place, length = places.popleft(), sum(map(len, text))
            if shared is None or length > ROOM:
                piece = pool.submit(_scan_piece, text, place)
            else:
                at = place * ROOM
                for block in text:
                    shared[at : at + len(block)] = block
                    at += len(block)
                piece = pool.submit(_scan_piece, length, place)
            pieces.append((place, piece))
        while pieces:
            merge()
    except BrokenProcessPool as error:
        raise InputError("a worker was killed", where=source.name, try_="--workers 1") from error
    finally:
        pool.shutdown(cancel_futures=True)
    return whole


def _workers(engine: Engine, count: int) -> tuple[ProcessPoolExecutor, mmap | None] | None:
    """Return ``count`` processes and the memory that they share, None where the system does not let us have them."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    copied = sys.platform == "linux"  # where a process can be copied, a worker has all that was loaded, and at once
    before = set(active_children())
    try:
        shared = mmap(-1, (count + WAITING) * ROOM) if copied else None
        begin = (engine, shared) if copied else ((engine.grammars, engine.catalogue, engine.by_layout), None)
        pool = ProcessPoolExecutor(count, get_context("fork" if copied else "spawn"), _begin, begin)
        pool.submit(os.getpid)  # all workers begin now: once threads read ahead, no process should be copied
    except (OSError, RuntimeError):  # no process, no thread, no memory or no semaphore more: one process makes the same
        for process in set(active_children()) - before:
            process.terminate()
            process.join()
        return None
    return pool, shared


def _gathered(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the blocks in pieces of ``PIECE`` bytes or somewhat more."""
    piece: list[bytes] = []
    size = 0
    for block in blocks:
        piece.append(block)
        size += len(block)
        if size >= PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _begin(engine: Engine | tuple[tuple[Grammar, ...], Catalogue, bool], shared: mmap | None) -> None:
    """Take over the engine that this process was copied with, or make that of a new worker."""
    import signal

    global _engine, _shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us ends us
    if not isinstance(engine, Engine):
        grammars, catalogue, by_layout = engine
        engine = Engine(grammars, catalogue, by_layout=by_layout)
    _engine, _shared = engine, shared


def _scan_piece(text: list[bytes] | int, place: int) -> Packed:
    """Return the fold of a piece: its blocks, or how many bytes of the shared memory it is.

    Its columns go to the shared memory behind the text, if they fit.
    """
    import pickle

    assert _engine is not None
    at = place * ROOM
    if isinstance(text, int):
        segment = _engine.scan(_blocks(at, at + text))
        at += -(-text // ALIGNED) * ALIGNED
    else:
        segment = _engine.scan(text)
    if _shared is None:
        return pickle.dumps(segment), ()
    columns: list[PickleBuffer] = []
    rest = pickle.dumps(segment, protocol=5, buffer_callback=columns.append)
    sizes = tuple(column.raw().nbytes for column in columns)
    if at + sum(sizes) > (place + 1) * ROOM:
        return pickle.dumps(segment), ()
    start = at
    for column, length in zip(columns, sizes, strict=True):
        _shared[at : at + length] = column.raw()
        at += length
    return rest, (start - place * ROOM, *sizes)


def _unpacked(rest: bytes, sizes: tuple[int, ...], shared: mmap | None, at: int) -> Segment:
    """Return the segment that a worker packed. Its columns are in the shared memory, valid until that is used again."""
    import pickle

    columns: list[memoryview] = []
    for length in sizes[1:]:
        assert shared is not None
        if not columns:
            at += sizes[0]
        columns.append(memoryview(shared)[at : at + length])
        at += length
    segment: Segment = pickle.loads(rest, buffers=columns)
    return segment


def _blocks(start: int, end: int) -> Iterator[bytes]:
    assert _shared is not None
    for begin in range(start, end, BLOCK):
        yield _shared[begin : min(begin + BLOCK, end)]
