"""Seeded logs of any size, written as a stream of blocks; what they say is noted in ``Facts``."""

from __future__ import annotations

from benchmarks.generators import bars, between, huggingface, megatron, mllog, ranks, sparse
from benchmarks.generators.stream import Generator

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
