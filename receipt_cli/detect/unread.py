"""Find unread records after the last step that count and vary like training records."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.detect.generic import load_generic
from receipt_cli.grammar.model import Grammar
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Problem, pointer
from receipt_cli.records.envelope import behind_heads, plain
from receipt_cli.records.heuristics import STEP_LINE
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.forms import MARK
from receipt_cli.scan.last_record import shape_of

FEWEST = 3
"""Fewest records of one form that count as training; fewer may be a summary."""
_NUMBER = compile_later(rb"\d+(?:\.\d+)?")
_WORDS = compile_later(rb"[a-z]+")
_DRAWN = compile_later(rb"(?i)\d/\d+ \[[^\]\r\n]{0,200}?loss[ :=]{1,3}[-+]?[\d(n]")
"""A progress bar that shows a loss."""


def training_unread(
    engine: Engine, grammars: Sequence[Grammar], lines: Sequence[tuple[int, bytes]], behind: int | None
) -> list[Problem]:
    """Return a problem if unread records of a training are among the ``behind`` last records, which end in ``lines``.

    Then it is unknown whether the run completed and, after a bar, which step was the last. ``behind`` counts the records after
    the last step record; None without one.
    """
    records = [(n, record) for n, line in lines[-behind:] for record in line.removesuffix(b"\r").split(b"\r")] if behind else []
    forms: dict[bytes, list[tuple[int, bytes]]] = {}
    for number, record in records[-(behind or 0) :]:
        text = plain(record + b"\n")[:-1]
        if STEP_LINE.search(text) is not None or _DRAWN.search(text) is not None:
            forms.setdefault(shape_of(behind_heads(text)), []).append((number, text))
    for found in forms.values():
        if len(found) >= FEWEST and _counts([text for _, text in found]) and not _reads(engine, grammars, found[0][1]):
            detail = f"{len(found)} records after the last step look like training records, but no rule reads them"
            excerpt = found[0][1].decode("utf-8", "replace")
            first = tuple(dict.fromkeys(number for number, _ in found))
            drawn = _DRAWN.search(found[0][1]) is not None
            fields = ("/checks/completed", *([pointer("summary", "steps", "last")] if drawn else []))
            return [Problem("training_unread", first[0], detail, excerpt, first[:2], fields=fields)]
    return []


def _counts(records: Sequence[bytes]) -> bool:
    """Return whether a whole number rises from record to record and another number varies, without evaluation words.

    A bar may show a step twice.
    """
    spoken = set(_WORDS.findall(records[0].lower()))
    if not spoken.isdisjoint(word.encode() for word in load_generic().evaluation):
        return False
    again = _DRAWN.search(records[0]) is not None
    columns = list(zip(*(_NUMBER.findall(record) for record in records), strict=False))
    rising = [n for n, column in enumerate(columns) if all(t.isdigit() for t in column) and _rises([*map(int, column)], again)]
    return any(len(set(column)) > 1 for n, column in enumerate(columns) if n not in rising[:1]) and bool(rising)


def _rises(values: Sequence[int], again: bool) -> bool:
    distinct = sorted(set(values))
    return (sorted(values) == list(values) and len(distinct) > 1) if again else distinct == list(values)


def _reads(engine: Engine, grammars: Sequence[Grammar], line: bytes) -> bool:
    body = engine.read_alone(line)
    names = {grammar.id for grammar in grammars}
    read = {engine.shared.get((g.ref, r.name)) for g in grammars for r in g.rules}
    rules = {(ref, name.partition(MARK)[0]) for ref, name in body.rules}
    return not names.isdisjoint(body.ignored) or not read.isdisjoint(rules)
