"""Tracebacks that ended no process: of ignored exceptions, and of a quoted Ctrl-C.

Python prints ``Exception ignored in: ...`` or ``Exception in thread ...`` and a traceback for exceptions in a finalizer, an
exit handler or a thread; the exit code does not change. A thread that collects the batches of a data loader prints the error of
a worker, for which the run waits: that one counts. Extensions that call Python quote the traceback of a callback in their
own error message: if it quotes a Ctrl-C, the error has no other cause.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from receipt_cli.patterns import compile_later
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
"""Markers of a stop or of exhausted memory, which may end a traceback too."""
NEXT = 3
"""Most records between a heading and its traceback, blank lines included."""
BLOCK = 12
"""Most records between two parts of one traceback: source lines, carets and blank lines."""
QUOTED = 5_000
"""Most records of a quoted traceback."""


_OF_WORKER = compile_later(r"\bDataLoader worker ?\(\d+\) caught \w|\bCaught \w+ in DataLoader worker\b")
"""Errors of a data loader's worker, whichever thread prints them."""


class _Part(NamedTuple):
    """A marker hit: its position, its kind of part, and the marker."""

    at: int
    kind: str
    marker: str


def excused(markers: Mapping[str, Hits], ordinal: Callable[[int], int]) -> frozenset[int]:
    """Return the positions of hits that ended no process. ``ordinal`` counts the records before a position."""
    found: set[int] = set()
    first = {name: hits.at[0] for name in (UNRAISABLE, FRAME, INTERRUPTED, KILLED) if (hits := markers.get(name)) and hits.at}
    if UNRAISABLE in first:
        for parts in _by_rank(markers, (HEAD, FRAME, UNRAISABLE, CHAINED), first[UNRAISABLE]):
            found.update(_ignored(parts, ordinal))
        found.difference_update(
            at for name in RAISED if name in markers for at, text, _ in markers[name].texts if _OF_WORKER.search(text)
        )
    stops = [first[name] for name in (INTERRUPTED, KILLED) if name in first]
    if FRAME in first and stops:
        for parts in _by_rank(markers, (HEAD, FRAME, KILLED), min(stops) - place(QUOTED)):
            found.update(_quoting(parts, ordinal))
    return frozenset(found)


def _by_rank(markers: Mapping[str, Hits], names: Collection[str], since: int) -> Iterator[list[_Part]]:
    """Yield the parts of each rank's tracebacks from position ``since`` on, ascending."""
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
    """Yield the hits in tracebacks directly after an ignored exception's heading, and in tracebacks chained to them."""
    expected, last = "", 0  # what may follow: a traceback, more of it, its end, or a chained one
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
    """Yield the errors whose message quotes a traceback that ended with a Ctrl-C, or an exit on a signal."""
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
