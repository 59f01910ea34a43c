"""``memory/1``: how memory developed over a phase: allocated against reserved, and the allocator's counts.

Tensors hold allocated memory; the caching allocator holds reserved memory for them. If reserved memory climbs and allocated
memory does not, the allocator cannot reuse its blocks: fragmentation, not a leak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from receipt_cli.analysis.trend import Course, course
from receipt_cli.definitions.units import read_number
from receipt_cli.events.ranks import RankFigures
from receipt_cli.events.table import Series, distinct
from receipt_cli.numeric.statistics import finite
from receipt_cli.patterns import compile_later

Interpretation = Literal["steady", "growth", "fragmentation", "unknown"]

MEMORY_RULE = "memory/1"
CLIMBS = 0.05
"""Climb: the last quarter exceeds the first by this share, and so does a line that explains the values."""
EXPLAINS = 0.5
"""Share of the variance that a line must explain; less is noise (batches of many lengths)."""
STILL = 0.01
"""Memory is still if quarter and line rise by at most this share; values in between are neither."""
PAIRS = (("memory_allocated_bytes", "memory_reserved_bytes"), ("peak_memory_allocated_bytes", "peak_memory_reserved_bytes"))
"""Pairs of allocated and reserved memory: at the record, and the highest so far."""
COUNTS = ("alloc_retry_count", "oom_count")
"""Allocator counts: retries after emptying its cache, and failures of these."""
SINCE_LAST = "since_last_record"
"""Definition of a count that restarts at each record."""
BUCKETS = {"allocated": PAIRS[0][0], "inactive_split": "inactive_split_bytes", "host": "host_memory_bytes"}
"""Kinds of memory that may grow, besides the cache (reserved minus allocated)."""
_SIZE = r"([\d.]+) ([KMGT]?i?B|bytes)"
_OOM = {
    "oom_requested_bytes": compile_later(rf"Tried to allocate {_SIZE}"),
    "oom_allocated_bytes": compile_later(
        rf"(?:Of the allocated memory {_SIZE} is allocated by PyTorch|; {_SIZE} already allocated;)"
    ),
    "oom_reserved_bytes": compile_later(rf"; {_SIZE} reserved in total by PyTorch"),
    "oom_reserved_unallocated_bytes": compile_later(rf" {_SIZE} is reserved by PyTorch but unallocated"),
    "oom_free_bytes": compile_later(rf"(?:of which {_SIZE} is free|; {_SIZE} free;)"),
}
"""Patterns of PyTorch's out-of-memory message (``CUDACachingAllocator.cpp``), in its spellings since 2019."""


class MemoryStory(NamedTuple):
    """The interpretation, its figures (bytes, counts, bytes per step), the bucket that grew most, and why."""

    reading: Interpretation
    figures: dict[str, float]
    growing: str | None
    because: str


class _Rise(NamedTuple):
    """Rise of the last quarter over the first as a share, and whether the course climbs or stays still."""

    share: float
    climbs: bool
    still: bool


class _Finding(NamedTuple):
    reading: Interpretation
    because: str


_RESTARTED = _Finding("unknown", "the run was restarted, and each of its processes began with memory of its own")


def tell(series: Series, ranks: Mapping[int, RankFigures], message: str | None, *, restarted: bool = False) -> MemoryStory | None:
    """Return the memory story of the phase of ``series``.

    ``ranks``: figures of each rank; ``message``: the out-of-memory error, if the run ended with one. A ``restarted`` phase has
    no course, because each process starts empty. None without allocated and reserved memory, allocator counts or error sizes.
    """
    pairs = [(name, course(series, name), course(series, other)) for name, other in PAIRS if name in series and other in series]
    figures: dict[str, float] = {}
    for name, allocated, reserved in pairs:
        figures |= _ends("peak_" * name.startswith("peak_"), allocated, reserved, sloped=not restarted)
    split = course(series, "inactive_split_bytes").values
    if len(split):
        figures["inactive_split_bytes"] = float(split[-1])
    figures |= {name: count for name in COUNTS if name in series and (count := _count(series, name)) is not None}
    oom = _out_of_memory(message)
    if not figures and not _says_enough(oom):
        return None
    peaks = [rank.peak_memory_bytes for rank in ranks.values() if rank.peak_memory_bytes is not None]
    if len(peaks) > 1:
        figures |= {"rank_peak_min_bytes": min(peaks), "rank_peak_max_bytes": max(peaks)}
    figures |= oom
    found = _read([_RESTARTED] if pairs and restarted else [_read_pair(a, r) for _, a, r in pairs], figures)
    return MemoryStory(found.reading, figures, None if restarted else _growing(pairs, series), found.because)


def _ends(prefix: str, allocated: Course, reserved: Course, *, sloped: bool) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind, one in (("allocated", allocated), ("reserved", reserved)):
        if len(one.values):
            name = f"{prefix}{kind}"
            figures |= {
                f"{name}_first_bytes": float(one.values[0]),
                f"{name}_last_bytes": float(one.values[-1]),
                f"{name}_max_bytes": one.largest,
            }
            if sloped and (slope := one.slope) is not None:
                figures[f"{name}_slope_bytes_per_step"] = slope
    return figures


def _count(series: Series, name: str) -> float | None:
    """Return an allocator count over the whole phase, for the rank with the highest."""
    by_rank: dict[int, float] = {}
    for source, rows, _ in series.table.parts:
        column, ranks = series.table.chosen(rows).metric(name), series.table.chosen(rows).rank
        added = source.meanings.get(name, (None, None))[1] == SINCE_LAST
        for rank in distinct(ranks[column.rows]):
            counts, known = finite(column.within(ranks == rank).values).tolist(), by_rank.get(rank, 0.0)
            by_rank[rank] = math.fsum([known, *counts]) if added else max([known, *counts])
    return max(by_rank.values(), default=None)


def _out_of_memory(message: str | None) -> dict[str, float]:
    """Return the sizes in PyTorch's out-of-memory message, in bytes."""
    figures: dict[str, float] = {}
    for name, pattern in _OOM.items() if message else ():
        found = pattern.search(message or "")
        sizes = [part for part in found.groups() if part is not None] if found is not None else []
        size = read_number(" ".join(sizes), "suffix") if len(sizes) == 2 else None
        if size is not None and math.isfinite(size):
            figures[name] = size
    if {"oom_reserved_bytes", "oom_allocated_bytes"} <= figures.keys():
        figures.setdefault("oom_reserved_unallocated_bytes", figures["oom_reserved_bytes"] - figures["oom_allocated_bytes"])
    return figures


def _says_enough(oom: Mapping[str, float]) -> bool:
    return {"oom_requested_bytes", "oom_allocated_bytes", "oom_reserved_unallocated_bytes"} <= oom.keys()


def _read(findings: Sequence[_Finding], figures: Mapping[str, float]) -> _Finding:
    """Return the first of ``findings`` that is known, or what ``figures``, of the message at the end, say."""
    course_says = next((one for one in findings if one.reading != "unknown"), findings[0] if findings else None)
    if _says_enough(figures):
        at_end = _read_end(figures)
        if at_end.reading == "fragmentation" and (course_says is None or course_says.reading != "growth"):
            return at_end
        if course_says is None or course_says.reading == "unknown":
            return at_end
        return _Finding(course_says.reading, f"{course_says.because}; {at_end.because}")
    if course_says is None:
        return _Finding("unknown", "only counts of the allocator were printed, and no course of allocated and reserved memory")
    return course_says


def _read_pair(allocated: Course, reserved: Course) -> _Finding:
    rises = [_rise(one) for one in (allocated, reserved)]
    if rises[0] is None or rises[1] is None:
        counts = f"{len(allocated.values)} of allocated and {len(reserved.values)} of reserved memory"
        return _Finding("unknown", f"values after warm-up: {counts}, too few to tell a course")
    tensors, cache = rises[0], rises[1]
    says = f"allocated memory changes by {_p(tensors.share)} between its first and last quarter, reserved by {_p(cache.share)}"
    if tensors.climbs:
        return _Finding("growth", says)
    if tensors.still and cache.climbs:
        return _Finding("fragmentation", f"{says}: the cache grows, what tensors hold does not")
    if tensors.still and cache.still:
        return _Finding("steady", says)
    return _Finding("unknown", f"{says}: neither still nor a climb")


def _read_end(figures: Mapping[str, float]) -> _Finding:
    requested, idle = figures["oom_requested_bytes"], figures["oom_reserved_unallocated_bytes"]
    says = f"at the end {_gib(requested)} were asked for, and {_gib(idle)} were reserved and unallocated"
    if idle >= requested:
        return _Finding("fragmentation", f"{says}: enough, but in no piece that was large enough")
    return _Finding("unknown", f"{says}: too little, wherever it lay")


def _rise(one: Course) -> _Rise | None:
    """Return how far a course rises; None if it has too few values."""
    if one.quarters is None or one.quarters[0] <= 0:
        return None
    first, last = one.quarters
    share = (last - first) / first
    if one.line is None:  # all values are equal
        return _Rise(share, climbs=False, still=True)
    line = one.line.rise / first
    climbs = share >= CLIMBS and line >= CLIMBS and one.line.explained >= EXPLAINS
    return _Rise(share, climbs, still=share <= STILL and line <= STILL)


def _growing(pairs: Sequence[tuple[str, Course, Course]], series: Series) -> str | None:
    """Return the climbing kind of memory that grew most in bytes; None if none climbs."""
    kinds = {kind: course(series, name) for kind, name in BUCKETS.items() if name in series}
    now = next(((a, r) for name, a, r in pairs if name == PAIRS[0][0] and len(a.values) == len(r.values)), None)
    if now is not None:
        kinds["cache"] = Course(now[1].steps, now[1].values - now[0].values)
    grown: dict[str, float] = {}
    for kind, one in kinds.items():
        rise, quarters = _rise(one), one.quarters
        if rise is not None and quarters is not None and rise.climbs:
            grown[kind] = quarters[1] - quarters[0]
    return min(grown, key=lambda kind: (-grown[kind], kind), default=None)


def _p(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _gib(size: float) -> str:
    return f"{size / 2**30:.2f} GiB"
