"""Find records behind the last step of a log that count and vary like those of a training, and that nothing reads."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.grammar.model import Grammar
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Problem
from receipt_cli.records.envelope import MASK, behind_heads, plain
from receipt_cli.records.heuristics import STEP_LINE, count_step_lines
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.forms import MARK

FEWEST = 3
"""Records of one form that are a training's: fewer may be a summary."""
_NUMBER = compile_later(rb"\d+(?:\.\d+)?")
_WORDS = compile_later(rb"[a-z]+")


def training_unread(
    engine: Engine, grammars: Sequence[Grammar], lines: Sequence[tuple[int, bytes]], last: int | None
) -> list[Problem]:
    """Return the problem of a log whose last ``lines`` have unread records of a training behind line ``last``.

    Whether the run completed is then unknown. ``last`` is the line of the last step record, None without one.
    """
    behind = [(number, plain(line + b"\n")[:-1]) for number, line in lines if last is not None and number > last]
    if last is None or count_step_lines(b"\n".join(line for _, line in behind) + b"\n", FEWEST) < FEWEST:
        return []
    forms: dict[bytes, list[tuple[int, bytes]]] = {}
    for number, line in behind:
        if STEP_LINE.search(line) is not None:
            forms.setdefault(_NUMBER.sub(b"0", behind_heads(line)).translate(MASK), []).append((number, line))
    for found in forms.values():
        if len(found) >= FEWEST and _counts([line for _, line in found]) and not _reads(engine, grammars, found[0][1]):
            detail = f"{len(found)} records behind the last step look like those of a training, and no rule reads them"
            excerpt = found[0][1].decode("utf-8", "replace")
            first = tuple(number for number, _ in found)
            return [Problem("training_unread", first[0], detail, excerpt, first[:2], fields=("/checks/completed",))]
    return []


def _counts(lines: Sequence[bytes]) -> bool:
    """Return whether a whole number rises from line to line, and another one moves, in lines that tell of no evaluation."""
    from receipt_cli.detect.generic import load_generic

    spoken = set(_WORDS.findall(lines[0].lower()))
    if not spoken.isdisjoint(word.encode() for word in load_generic().evaluation):
        return False
    columns = list(zip(*(_NUMBER.findall(line) for line in lines), strict=False))
    rising = [n for n, c in enumerate(columns) if all(t.isdigit() for t in c) and sorted(set(map(int, c))) == [int(t) for t in c]]
    return any(len(set(column)) > 1 for n, column in enumerate(columns) if n not in rising[:1]) and bool(rising)


def _reads(engine: Engine, grammars: Sequence[Grammar], line: bytes) -> bool:
    body = engine.read_alone(line)
    names = {grammar.id for grammar in grammars}
    read = {engine.shared.get((g.ref, r.name)) for g in grammars for r in g.rules}
    rules = {(ref, name.partition(MARK)[0]) for ref, name in body.rules}
    return not names.isdisjoint(body.ignored) or not read.isdisjoint(rules)
