"""Find relays: attempts that follow one another with nothing between them, each from a step of the one before.

A log may consist of many short attempts: one run for all of them costs what one run costs. Only attempts stay together of
which no start can be that of another launch, whatever else the log contains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.events.compact.frame import Frame
from receipt_cli.events.rows import TAIL

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Integers, Mask

FEWEST = 128
"""A relay with fewer records is read attempt by attempt."""
LONGEST = 4096
"""A longer attempt is worth a run of its own."""
FRESH = 1.5
"""As many strides from its beginning a run may print its first record (see ``starts.Starts.are_fresh``)."""


def find_relays(frame: Frame, parted: Mask, starts: Integers, pauses: Integers) -> Iterator[tuple[int, int, Integers]]:
    """Yield each relay: its first record, the one behind its last, and the first record of each attempt but its first.

    ``starts`` are the records that do not go on from the one before, of which those in ``parted`` are parted from it by more
    than their step; ``pauses`` those with an evaluation or a checkpoint before them, ascending.
    """
    stops = np.append(starts[1:], len(parted))
    if not frame.prints_steps or len(starts) < 4:  # two attempts, and one on each side that are none of it
        return
    steps, lengths = frame.steps, stops - starts
    assert steps is not None
    first, second = steps[starts], steps[np.minimum(starts + 1, len(steps) - 1)]
    goes_back = ~parted[starts] & (lengths > 1) & (first < steps[starts - 1]) & (first > 1) & (first > (second - first) * FRESH)
    goes_back &= ~np.isin(first, first[~goes_back])  # a copy of the log may begin there, or a loop over runs
    paused = np.searchsorted(pauses, stops, "right") > np.searchsorted(pauses, starts)
    together = goes_back & np.append(goes_back[1:], False) & (lengths <= LONGEST) & ~paused
    edges = np.flatnonzero(np.diff(together, prepend=False, append=False))
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        while begin < end and lengths[begin - 1] < TAIL:
            begin += 1  # what else is printed about a step must be able to find the record before
        if end - begin > 1 and starts[end] - starts[begin] >= FEWEST:
            yield int(starts[begin]), int(starts[end]), starts[begin + 1 : end]
