"""The relations: how each rearranges the lines of a log, and what must hold of the receipts of its launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from receipt_cli.events.copies import FEWEST

Document = Mapping[str, Any]
Lines = Sequence[bytes]
STEPS = ("first", "last", "planned", "record_count", "restart_count")
VALUES = ("record_count", "nonfinite_count", "first", "last", "min", "max", "median")
OF_A_CLOCK = ("elapsed_time_s", "wall_time_s")


class Relation(NamedTuple):
    """A rearrangement and what must hold: ``launches`` says how many times those of the log there must be."""

    name: str
    rearrange: Callable[[Lines], Iterator[bytes]]
    launches: int = 1
    at_least: int = 1  # lines: two blocks are a log appended to itself


def _cut(lines: Lines, size: int) -> Iterator[Lines]:
    return (lines[at : at + size] for at in range(0, len(lines), size))


def _blocks(lines: Lines, size: int) -> Iterator[bytes]:
    for block in _cut(lines, size):
        for rank in (0, 1):
            yield from (b"[rank%d]: %s" % (rank, line) for line in block)


def _untagged(lines: Lines, size: int) -> Iterator[bytes]:
    for block in _cut(lines, size):
        yield from (*block, *block)


RELATIONS = (
    Relation("appended to itself", lambda lines: iter([*lines, *lines]), 2),
    Relation("rank head on every line", lambda lines: (b"[rank0]: " + line for line in lines)),
    Relation("two tagged ranks, line by line", lambda lines: _blocks(lines, 1)),
    Relation("two tagged ranks, blocks of 40", lambda lines: _blocks(lines, 40)),
    Relation("every line twice", lambda lines: _untagged(lines, 1), at_least=2),
    Relation("two copies, blocks of 7", lambda lines: _untagged(lines, 7), at_least=29),
    Relation("two copies, blocks of 40", lambda lines: _untagged(lines, 40), at_least=161),
)


def figures(document: Document) -> list[tuple[Any, ...]]:
    """Return the figures of each phase that has any: its steps and what is known of each metric."""
    found: list[tuple[Any, ...]] = []
    for phase in document["phases"] or [document["summary"]]:
        if phase is None:
            continue
        summary = phase.get("summary", phase)
        steps = summary["steps"]
        metrics = summary["metrics"] or {}
        known = {name: value for name, value in metrics.items() if value and name not in OF_A_CLOCK}
        values = {name: tuple(value[key] for key in VALUES) for name, value in known.items()}
        if steps["record_count"] or values:
            found.append((tuple(steps[key] for key in STEPS), values))
    return found


def _other(was: Sequence[Any] | None, became: Sequence[Any] | None) -> bool:
    """Return whether a figure is another one; null says less, and a problem names it."""
    if was is None or became is None:
        return was is not became
    return any(new is not None and new != old for old, new in zip(was, became, strict=True))


def violation(relation: Relation, before: Sequence[Document], after: Sequence[Document]) -> str:
    """Return what does not hold between the receipts of a log and those of the rearranged one; empty where all does.

    A log with few records does not show that it is there twice: it is one launch then, with the records of both.
    """
    records = sum(steps[STEPS.index("record_count")] or 0 for document in before for steps, _ in figures(document))
    if len(after) != relation.launches * len(before):
        return "" if len(after) == len(before) and records < FEWEST else f"{len(before)} launches became {len(after)}"
    for number, document in enumerate(after):
        ours, theirs = figures(before[number % len(before)]), figures(document)
        if len(ours) != len(theirs):
            return f"launch {number + 1}: {len(ours)} phases became {len(theirs)}"
        for (steps, values), (other, others) in zip(ours, theirs, strict=True):
            if _other(steps, other):
                return f"launch {number + 1}: steps {steps} became {other}"
            changed = sorted(name for name in values.keys() | others.keys() if _other(values.get(name), others.get(name)))
            if changed:
                name = changed[0]
                return f"launch {number + 1}: {name} {values.get(name)} became {others.get(name)}"
    return ""
