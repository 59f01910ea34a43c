"""One plain file on several cores: byte ranges folded apart, merged to the same stretch as one pass."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from receipt_cli.grammar import Grammar
from receipt_cli.markers import load_catalogue
from receipt_cli.scan import Engine
from receipt_cli.source import BLOCK, Source
from receipt_cli.stretch import Stretch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

MIN_PARALLEL = 64 * 1024 * 1024
"""Plain files from this size on are worth the start of more processes."""
AUTO = 0
"""As many workers as pay off: see ``default_workers``."""
_NEWS = 4 * 1024 * 1024


def default_workers(size: int | None) -> int:
    """Return 1 for what is small or cannot be read in ranges, else the number of cores, at most 8."""
    return min(8, os.cpu_count() or 1) if size is not None and size >= MIN_PARALLEL else 1


def scan_source(engine: Engine, source: Source, workers: int | None = None) -> Stretch:
    """Scan ``source`` once and return the fold of all of it; the result does not depend on ``workers``.

    One process by default: a worker starts by importing the main module of the program, which only a program can
    allow that guards its entry point. Raises ``InputError``.
    """
    size = source.plain_size
    count = default_workers(size) if workers == AUTO else workers or 1
    if count == 1 or size is None or size < count:
        return engine.scan(source.blocks())
    try:
        whole = _in_ranges(engine, source, [size * i // count for i in range(count + 1)])
        # A worker that died, or a file that changed between two looks at it: only one pass sees one text.
        return engine.scan(source.again()) if whole is None else whole
    finally:
        source.close()


def _in_ranges(engine: Engine, source: Source, bounds: Sequence[int]) -> Stretch | None:
    """Return the fold of all ranges, or None when the workers did not see the bytes whose digest was taken."""
    from multiprocessing import get_context
    from multiprocessing.connection import wait

    context = get_context("spawn")
    processes: list[SpawnProcess] = []
    pipes: dict[Connection, int] = {}
    done = [0] * (len(bounds) - 1)
    parts: list[tuple[Stretch, int] | None] = [None] * len(done)

    def listen(timeout: float | None) -> None:
        ready = wait(list(pipes), timeout)
        for pipe in [p for p in pipes if p in ready]:
            try:
                news = pipe.recv()
            except EOFError:
                del pipes[pipe]
                continue
            if isinstance(news, int):
                done[pipes[pipe]] = news
            else:
                parts[pipes[pipe]] = news
            if source.progress is not None:
                source.progress(sum(done), bounds[-1])

    try:
        for number, (start, end) in enumerate(pairwise(bounds)):
            pipe, far = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(far, source.path, start, end, engine.grammars), daemon=True)
            process.start()
            far.close()
            processes.append(process)
            pipes[pipe] = number
        sums = [0] * len(done)
        for number, block in _cut(source.blocks(keep_open=True), bounds):
            sums[number] = zlib.crc32(block, sums[number])
            if pipes:
                listen(0)
        while pipes:
            listen(None)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
        for pipe in pipes:
            pipe.close()
    whole: Stretch | None = None
    for part, wanted in zip(parts, sums, strict=True):
        if part is None or part[1] != wanted:
            return None
        whole = part[0] if whole is None else engine.merge(whole, part[0])
    return whole


def _cut(blocks: Iterator[bytes], bounds: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield ``blocks`` cut at ``bounds``, each piece with the number of its range."""
    at = number = 0
    for block in blocks:
        start = 0
        while start < len(block):
            while at >= bounds[number + 1]:
                number += 1
            piece = block[start : start + bounds[number + 1] - at]
            yield number, piece
            start += len(piece)
            at += len(piece)


def _work(pipe: Connection, path: str, start: int, end: int, grammars: tuple[Grammar, ...]) -> None:
    """Send how many bytes were read, now and then, and at last the fold of the range and the checksum of its bytes."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us ends us
    check = told = done = 0

    def watched() -> Iterator[bytes]:
        nonlocal check, told, done
        for block in _range_blocks(path, start, end):
            yield block
            check = zlib.crc32(block, check)
            done += len(block)
            if done - told >= _NEWS:
                told = done
                pipe.send(done)

    with contextlib.suppress(OSError):  # the file is gone, or nobody listens
        stretch = Engine(grammars, load_catalogue()).scan(watched())
        pipe.send(done)
        pipe.send((stretch, check))


def _range_blocks(path: str, start: int, end: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            start += len(block)
            yield block
