"""The blocks of a log dealt to several threads; what each makes of its piece is merged to the same stretch as one pass.

Threads and not processes: most of a scan is spent in C code that lets other threads run, and columns need not travel.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from itertools import chain

from receipt_cli.scan import Engine
from receipt_cli.source import Source
from receipt_cli.stretch import Stretch

MIN_PARALLEL = 64 << 20
"""Bytes of text from which on several workers are worth their start."""
AUTO = 0
"""As many workers as pay off: one for the first ``MIN_PARALLEL`` of what may be small, else the number of cores."""
MOST = 8
"""Workers that AUTO takes at most."""
PIECE = 2 << 20
"""Bytes of text that a worker gets at once, and a block more."""


def scan_source(engine: Engine, source: Source, workers: int | None = None) -> Stretch:
    """Scan ``source`` once and return the fold of all of it, as ``scan_blocks``. Raises ``InputError``."""
    try:
        return scan_blocks(engine, source.blocks(), workers, source.plain_size)
    except BaseException:
        source.close()  # whoever catches this may keep the iterator alive, and its threads
        raise


def scan_blocks(engine: Engine, blocks: Iterator[bytes], workers: int | None = None, size: int | None = None) -> Stretch:
    """Scan ``blocks`` and return the fold of them all; the result does not depend on ``workers``, by default 1.

    ``size`` is how many bytes they have, where that is known.
    """
    count = min(MOST, os.cpu_count() or 1) if workers == AUTO else workers or 1
    if count == 1:
        return engine.scan(blocks)
    alone = MIN_PARALLEL if workers == AUTO and (size is None or size < MIN_PARALLEL) else 0
    whole = engine.scan(_first(blocks, alone))
    pieces = _pieces(blocks)
    piece = next(pieces, None)
    return whole if piece is None else _deal(engine, whole, chain([piece], pieces), count)


def _first(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield blocks until they have ``size`` bytes or more."""
    while size > 0 and (block := next(blocks, None)) is not None:
        yield block
        size -= len(block)


def _pieces(blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield neighbouring blocks together, at least ``PIECE`` bytes of them but for the last."""
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


def _deal(engine: Engine, whole: Stretch, pieces: Iterator[list[bytes]], count: int) -> Stretch:
    """Return ``whole`` with the ``pieces`` that follow it merged in, each scanned by one of ``count`` threads."""
    from concurrent.futures import Future, ThreadPoolExecutor

    pending: deque[Future[Stretch]] = deque()
    pool = ThreadPoolExecutor(count, thread_name_prefix="scan")
    try:
        for piece in pieces:
            pending.append(pool.submit(engine.scan, piece))
            if len(pending) >= 2 * count:
                whole = engine.merge(whole, pending.popleft().result())
        while pending:
            whole = engine.merge(whole, pending.popleft().result())
    finally:
        pool.shutdown(cancel_futures=True)
    return whole
