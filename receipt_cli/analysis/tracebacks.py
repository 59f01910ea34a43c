"""Tracebacks that ended nothing: those of exceptions that end no process, and those that only quote a Ctrl-C.

Python prints ``Exception ignored in: ...`` or ``Exception in thread ...`` and a traceback for what a finalizer, an exit handler
or a thread raises; the exit code stays as it was. Extensions that call Python put the traceback of a callback into the
message of an error of their own: where that is of a Ctrl-C, the error says nothing else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from receipt_cli.scan.columns import place
from receipt_cli.scan.segment import Hits

HEAD, FRAME = "traceback_head", "traceback_frame"
UNRAISABLE, CHAINED, INTERRUPTED, KILLED = "unraisable_exception", "chained_exception", "keyboard_interrupt", "external_kill"
RAISED: Final = frozenset((
    "exception", "exception_group", "network_exception", "environment_exception", "missing_module", "optional_tracker_missing",
    "worker_exception", "worker_died", "cuda_fault", "nccl_failure", "nccl_victim",
))  # fmt: skip
"""Markers of the last line of a traceback."""
STOPS: Final = frozenset((
    INTERRUPTED, "cuda_out_of_memory", "gpu_library_alloc_failed", "driver_out_of_memory", "xla_out_of_memory",
    "tensorflow_out_of_memory", "host_allocation_failed", "disk_full",
))  # fmt: skip
"""The same of a stop, or of memory that ran out."""
NEXT = 3
"""Records within which a traceback follows its heading, also over blank lines."""
BLOCK = 12
"""Records that may stand between two parts of one traceback: source lines, carets and blank lines."""
QUOTED = 5_000
"""Records that the traceback in a message may take."""


class _Part(NamedTuple):
    """A hit of a marker: its position, what it is a part of, and the marker."""

    at: int
    kind: str
    marker: str


def excused(markers: Mapping[str, Hits], ordinal: Callable[[int], int]) -> frozenset[int]:
    """Return the positions of hits that ended nothing. ``ordinal`` counts the records before a position."""
    found: set[int] = set()
    first = {name: hits.at[0] for name in (UNRAISABLE, FRAME, INTERRUPTED, KILLED) if (hits := markers.get(name)) and hits.at}
    if UNRAISABLE in first:
        for parts in _by_rank(markers, (HEAD, FRAME, UNRAISABLE, CHAINED), first[UNRAISABLE]):
            found.update(_ignored(parts, ordinal))
    stops = [first[name] for name in (INTERRUPTED, KILLED) if name in first]
    if FRAME in first and stops:
        for parts in _by_rank(markers, (HEAD, FRAME, KILLED), min(stops) - place(QUOTED)):
            found.update(_quoting(parts, ordinal))
    return frozenset(found)


def _by_rank(markers: Mapping[str, Hits], names: Collection[str], since: int) -> Iterator[list[_Part]]:
    """Yield the parts of tracebacks that each rank printed from a position on, ascending."""
    ranks: dict[int, list[_Part]] = {}
    for name in (*names, *sorted(RAISED), *sorted(STOPS)):
        hits = markers.get(name)
        if hits is not None:
            kind = name if name in names else "raised" if name in RAISED else "stop"
            for index in range(bisect_left(hits.at, since), len(hits.at)):
                ranks.setdefault(hits.rank[index], []).append(_Part(hits.at[index], kind, name))
    for parts in ranks.values():
        yield sorted(parts)


def _ignored(parts: list[_Part], ordinal: Callable[[int], int]) -> Iterator[int]:
    """Yield the hits of tracebacks directly behind the heading of an ignored exception, and of those chained to them."""
    expected, last = "", 0  # what the part before lets follow: a traceback, more of one, or one that is chained to it
    for at, kind, _ in parts:
        if kind == UNRAISABLE:
            expected, last = "begin", ordinal(at)
            continue
        if not expected:
            continue
        here = ordinal(at)
        gap, last = here - last, here
        if kind == HEAD and expected in ("begin", "chain") and gap <= NEXT:
            expected = "more"
            yield at
        elif kind == FRAME and expected == "more" and gap <= BLOCK:
            continue
        elif kind == CHAINED and expected in ("end", "more") and gap <= BLOCK:
            expected = "chain"
        elif kind in ("raised", "stop") and (
            (expected == "more" and gap <= BLOCK) or (expected == "begin" and gap == 1) or (expected == "end" and gap == 0)
        ):
            expected = "end"
            yield at
        else:
            expected = ""


def _quoting(parts: list[_Part], ordinal: Callable[[int], int]) -> Iterator[int]:
    """Yield the errors whose message holds a traceback that a Ctrl-C, or an exit on a signal, ended."""
    pending: list[int] = []
    last, inside = 0, False
    for at, kind, name in parts:
        here = ordinal(at)
        gap, last = here - last, here
        if kind == "raised":
            same = pending and not inside and gap == 0
            pending, inside = [*pending, at] if same else [at], False
        elif kind == FRAME and pending and gap <= (BLOCK if inside else 1):
            inside = True
        else:
            if inside and ((name == INTERRUPTED and gap <= BLOCK) or (name == KILLED and gap <= NEXT)):
                yield from pending
            pending, inside = [], False
