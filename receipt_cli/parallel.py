"""One plain file on several cores: byte ranges folded apart, merged to the same stretch as one pass."""

from __future__ import annotations

import os
from collections.abc import Iterator

from receipt_cli.grammar import Grammar
from receipt_cli.markers import load_catalogue
from receipt_cli.scan import Engine
from receipt_cli.source import BLOCK, Source
from receipt_cli.stretch import Stretch

MIN_PARALLEL = 64 * 1024 * 1024
"""Plain files from this size on use all cores unless told otherwise."""


def default_workers(size: int | None) -> int:
    """Return 1 for what is small or cannot be read in ranges, else the number of cores, at most 8."""
    return min(8, os.cpu_count() or 1) if size is not None and size >= MIN_PARALLEL else 1


def scan_source(engine: Engine, source: Source, workers: int | None = None) -> Stretch:
    """Scan ``source`` once and return the fold of all of it; the result does not depend on ``workers``."""
    size = source.plain_size
    count = workers or default_workers(size)
    if count == 1 or size is None or size < count:
        return engine.scan(source.blocks())
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    bounds = [size * i // count for i in range(count + 1)]
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        parts = [pool.submit(_scan_range, source.path, bounds[i], bounds[i + 1], engine.grammars) for i in range(count)]
        for _ in source.blocks():
            pass  # the digest, beside the scan
        whole = parts[0].result()
        for part in parts[1:]:
            whole = engine.merge(whole, part.result())
    return whole


def _scan_range(path: str, start: int, end: int, grammars: tuple[Grammar, ...]) -> Stretch:
    return Engine(grammars, load_catalogue()).scan(_range_blocks(path, start, end))


def _range_blocks(path: str, start: int, end: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            start += len(block)
            yield block
