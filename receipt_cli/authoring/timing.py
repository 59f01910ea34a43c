"""Measure the time of the patterns of a rule or a marker for one line, and for ordinary lines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import regex

from receipt_cli.scan.extraction import PatternTimeout

Read: TypeAlias = Callable[[bytes], object]
"""Reads one line. Raises ``TimeoutError`` or ``PatternTimeout`` at its time limit."""

_PACE: Final = regex.compile(rb"b:[^\n]{0,200}?(?:xyz|zyx)")
_PACE_LINE: Final = b"ab: c" * 13_107
PACE_SECONDS: Final = 0.06
"""Seconds of the search for ``_PACE`` in ``_PACE_LINE`` on the machine for which the bounds were set."""
ORDINARY_HELP: Final = "literals that fewer lines contain"
ORDINARY: Final = (
    b"Namespace(%b, on_Error='continue', retry_on=['TimeoutError', 'OSError'])" % b", ".join([b"an_option='its value'"] * 80),
    b"WARNING: 2026-03-01 10:00:00,123 trainer.py:88] RuntimeError in worker 3 was caught, out of memory: 0 times, exit code 0; "
    + b"loss=2.5 lr=1e-4 " * 40,
    b"2026-03-01 10:00:00,123 - trainer - INFO - %b" % (b"step: 1200/50000 | epoch: 3 | loss: 2.5173 | lr: 3.000e-04 | " * 12),
    b"{'loss': 2.5173, 'learning_rate': 0.0003, 'epoch': 3.02%b}" % b"".join(b", 'layers.%d.norm': 1.0" % n for n in range(60)),
    b" 45%|####      | 4500/10000 [1:12:03<1:28:01,  1.04it/s, loss=2.5173, lr=3e-4, grad_norm=0.812, epoch=3]",
    b"[rank3]: validation: accuracy 0.8123, iteration 1200, epoch 3, train loss 2.5, val loss 2.6, samples/sec 812.5" * 8,
    b'config: {%b, "signal": 15, "NCCL": "timeout 600", "Error": null}' % b", ".join([b'"layer": {"dim": 64, "name": "b"}'] * 60),
)
"""Long lines of healthy runs with words of many literals; such lines are frequent in logs, and none proves a failure."""


def seconds_of(read: Read, line: bytes) -> float:
    """Return the CPU seconds to read a line; infinity if it hits its time limit, even because of other processes."""
    started = time.process_time()
    try:
        read(line)
    except (TimeoutError, PatternTimeout):
        return math.inf
    return time.process_time() - started


def pace() -> float:
    """Return this machine's slowdown against the machine for which the bounds were set, at least 1."""
    return max(1.0, min(seconds_of(_PACE.search, _PACE_LINE) for _ in range(3)) / PACE_SECONDS)


def expected_parts(shorter: tuple[int, float], longer: tuple[int, float], size: int) -> tuple[float, float]:
    """Return the expected (linear, quadratic) seconds for a line of ``size`` bytes, from (bytes, seconds) of two shorter lines.

    A time that grows faster than quadratically is extrapolated with its exponent, all of it in the second part.
    """
    (few, less), (many, more) = shorter, longer
    if math.isinf(more):
        return 0.0, math.inf
    square = max(0.0, (more / many - less / few) / (many - few))
    plain = more / many - square * many
    if plain < 0:
        return 0.0, more * float(size / many) ** math.log(max(more, 1e-9) / max(less, 1e-9), many / few)
    return plain * size, square * size * size


def ordinary_excess(literals: Sequence[bytes], read: Read, bound: float) -> float | None:
    """Return the best of three times for ``ORDINARY`` lines with a literal if it exceeds ``bound`` at this pace, else None."""
    lines = [line for line in ORDINARY if any(literal in line for literal in literals)]
    if not lines:
        return None
    best = math.inf
    for _ in range(3):  # another process seldom disturbs three measurements
        best = min(best, sum(seconds_of(read, line) for line in lines))
        if best <= bound:
            return None
    return best if best > bound * pace() else None
