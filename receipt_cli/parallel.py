"""A plain file in pieces, read by several processes; what each makes of its piece is merged to the same stretch as one pass.

Processes and not threads: a scan is many short calls, and threads that take the interpreter from one another for each of
them are slower together than one alone. Whatever is no plain file is scanned by one, beside the thread that decompresses
it and the one that takes its digest.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from receipt_cli.errors import InputError
from receipt_cli.grammar import Grammar
from receipt_cli.markers import load_catalogue
from receipt_cli.scan import Engine
from receipt_cli.source import BLOCK, Source
from receipt_cli.stretch import Stretch

if TYPE_CHECKING:
    from concurrent.futures import Future

MIN_PARALLEL = 64 << 20
"""Bytes of a plain file from which on several workers are worth their start."""
AUTO = 0
"""As many workers as pay off: one for what is small or no plain file, else the number of cores."""
MOST = 8
"""Workers that AUTO takes at most."""
PIECE = 16 << 20
"""Bytes that a worker gets at once."""

_engine: Engine | None = None
"""The engine of a worker."""


def scan_source(engine: Engine, source: Source, workers: int | None = None) -> tuple[Stretch, Source]:
    """Scan ``source`` and return the fold of all of it, and the source that gave these bytes.

    The result does not depend on ``workers``, by default 1. The source is another one where several workers read a file
    that was written to meanwhile: it was read once more. Raises ``InputError``.
    """
    size = source.plain_size
    count = _auto(size) if workers == AUTO else workers or 1
    try:
        if size is not None:
            engine.expect(size)
        if count == 1 or size is None or size < count:
            return engine.scan(source.blocks()), source
        whole = _in_pieces(engine, source, size, count)
        again = source.reopen() if source.changed else None
        if again is None:
            return whole, source
        # Its workers and its digest may have seen different bytes: only one pass sees one text.
        return engine.scan(again.blocks()), again
    except BaseException:
        source.close()  # whoever catches this may keep the iterator alive, and its threads
        raise


def _auto(size: int | None) -> int:
    return min(MOST, os.cpu_count() or 1) if size is not None and size >= MIN_PARALLEL else 1


def _in_pieces(engine: Engine, source: Source, size: int, count: int) -> Stretch:
    """Return the fold of all pieces, each scanned by one of ``count`` processes; the digest is taken here meanwhile."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    length = min(PIECE, -(-size // count))
    # Where a process can be copied, a worker has all that was loaded, and at once.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(engine.grammars, engine.by_layout))
    try:
        pieces: deque[Future[Stretch]] = deque()
        for start in range(0, size, length):
            pieces.append(pool.submit(_scan_piece, source.path, start, min(start + length, size)))
        whole: Stretch | None = None
        for _ in source.blocks():
            while pieces and pieces[0].done():
                whole = _merged(engine, whole, pieces.popleft())
        while pieces:
            whole = _merged(engine, whole, pieces.popleft())
    except BrokenProcessPool as error:
        raise InputError("a worker was killed", where=source.name, try_="--workers 1") from error
    except OSError as error:
        raise InputError("cannot read the log", where=source.name, why=error.strerror or str(error)) from error
    finally:
        pool.shutdown(cancel_futures=True)
    assert whole is not None
    return whole


def _merged(engine: Engine, whole: Stretch | None, piece: Future[Stretch]) -> Stretch:
    return piece.result() if whole is None else engine.merge(whole, piece.result())


def _begin(grammars: tuple[Grammar, ...], by_layout: bool) -> None:
    """Make the engine of a worker."""
    global _engine
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us ends us
    _engine = Engine(grammars, load_catalogue(), by_layout=by_layout)
    _engine.expect(MIN_PARALLEL)


def _scan_piece(path: str, start: int, end: int) -> Stretch:
    """Return the fold of one piece of a file."""
    assert _engine is not None
    return _engine.scan(_blocks(path, start, end))


def _blocks(path: str, start: int, end: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            start += len(block)
            yield block
