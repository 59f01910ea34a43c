"""Seeded logs of any size, written as a stream of blocks; what they say is noted in ``Facts``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.facts import Facts
from benchmarks.generators import bars, between, huggingface, megatron, mllog, ranks, sparse

Generator = Callable[[int, int, Facts | None], Iterator[bytes]]
"""``(size, seed, facts)`` → blocks of whole lines, a little over ``size`` bytes in all. ``facts`` may be None."""

GENERATORS: dict[str, Generator] = {
    "dense": megatron.blocks,
    "sparse": sparse.blocks,
    "hf": huggingface.blocks,
    "bars": bars.blocks,
    "mllog": mllog.blocks,
    "ranks": ranks.blocks,
    "timers": between.timers,
    "evaluations": between.evaluations,
    "fleet": between.fleet,
    "frames": between.frames,
    "tables": between.tables,
    "restarts": between.restarts,
}
