"""The form of a generator: seeded, and a little over the bytes that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps

import numpy as np

from benchmarks.facts import Facts

Generator = Callable[[int, int, Facts | None], Iterator[bytes]]
"""``(size, seed, facts)`` → blocks of whole lines, a little over ``size`` bytes in all. ``facts`` may be None."""


def in_blocks(texts: Callable[[np.random.Generator, Facts | None], Iterator[str]]) -> Generator:
    """Make a generator of one whose texts do not end: none is made once there are ``size`` bytes."""

    @wraps(texts)
    def blocks(size: int, seed: int, facts: Facts | None) -> Iterator[bytes]:
        endless = texts(np.random.default_rng(seed), facts)
        made = 0
        while made < size:
            block = next(endless).encode()
            yield block
            made += len(block)

    return blocks
