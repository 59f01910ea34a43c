"""A log that no grammar reads → the same bytes once more, read by what their own lines tell: the ``generic`` grammar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from receipt_cli.catalog import INDUCED, definition
from receipt_cli.detect import Candidate, Chosen, Detection
from receipt_cli.epochs import count_epochs
from receipt_cli.errors import InputError
from receipt_cli.gather import Gathered, gather
from receipt_cli.grammar import Grammar
from receipt_cli.grammar_file import build_grammar
from receipt_cli.learn.learned import Learned, learn
from receipt_cli.learn.vocabulary import Vocabulary, load_vocabulary
from receipt_cli.markers import load_catalogue
from receipt_cli.model import Problem
from receipt_cli.numbering import number_steps
from receipt_cli.registry import load_registry
from receipt_cli.scan import Engine
from receipt_cli.source import Source, Stream
from receipt_cli.timeline import read_events

WHERE = f"grammars/{INDUCED}/v1.yaml"
GENERIC = f"{INDUCED}@v1"


def is_generic(name: str | None) -> bool:
    """True when ``name`` asks for generic reading."""
    return name in (INDUCED, GENERIC)


@dataclass(frozen=True)
class Fallback:
    """What generic reading gave: ``grammar`` holds the induced rules, and those of the grammar that knows the rest."""

    engine: Engine
    gathered: Gathered
    detection: Detection
    grammar: Grammar


@cache
def load_generic() -> Vocabulary:
    """Return the vocabulary that ships. Raises ``DataError``."""
    return load_vocabulary(definition(INDUCED), WHERE, load_registry())


def learn_streams(streams: Sequence[Stream], vocabulary: Vocabulary) -> tuple[Learned | None, bool]:
    """Return what was learned of ``streams``, which were read before, and whether the bytes are still the same.

    Raises ``InputError``.
    """
    best: Learned | None = None
    for stream in streams:  # each for itself: what counts starts again in each
        again = _reopened([stream])
        if again is None:
            return None, False
        learned = learn(_blocks(again[0]), vocabulary)
        if not _same([stream], again):
            return None, False
        best = learned if best is None else best
        if learned is not None and learned.sure:
            return learned, True
    return best, True


def wanted(detection: Detection) -> bool:
    """True when nobody that we know printed a step of this log; a benchmark's harness knows less than its trainer."""
    if detection.tie:
        return False
    known = {c.id: c for c in detection.candidates}
    return not any(c.grammar.layer != "benchmark" and known[c.grammar.id].step_records for c in detection.chosen)


def read_generically(
    streams: Sequence[Stream], gathered: Gathered, detection: Detection, workers: int | None = None
) -> Fallback | None:
    """Return the second reading of a log, or None where it shows no training that we can be sure of.

    ``streams`` were read before; a log that cannot be read again, or that has changed since, has no second reading.
    """
    try:
        learned, same = learn_streams(streams, load_generic())
        again = _reopened(streams) if learned is not None and same else None
    except InputError:  # gone since it was read
        return None
    if learned is None or again is None:
        return None
    base = [chosen.grammar for chosen in detection.chosen]
    if any(grammar.layer != "benchmark" for grammar in base) and not learned.sure:
        return None
    grammar = _grammar(learned, base)
    engine = Engine([grammar], load_catalogue())
    once_more = gather(engine, again, workers)
    if not _same(streams, again):
        return None
    events, _ = read_events(engine, once_more.body, [grammar])
    steps = [event.step for event in number_steps(count_epochs(events)) if event.rule.event == "step"]
    if not steps or (learned.needs_steps and None in steps):
        return None
    once_more.body.near.clear()  # that a line almost matches a rule made of this very log says nothing
    once_more.problems = [*gathered.problems, _problem(learned)]
    once_more.changed = gathered.changed
    chosen = (Chosen(grammar, "only_version"), *detection.chosen)
    read = [engine.columns(once_more.body, grammar, rule) for rule in grammar.rules if rule.event == "step"]
    count = sum(len(columns) for columns in read if columns is not None)
    candidate = Candidate(INDUCED, INDUCED, count, count, count, count, len(learned.rules))
    found = Detection(chosen, (candidate, *detection.candidates))
    return Fallback(engine, once_more, found, grammar)


def _grammar(learned: Learned, base: Sequence[Grammar]) -> Grammar:
    """Return the induced grammar with all rules of ``base`` but those of steps: one reading of one log."""
    vocabulary = load_generic()
    made = build_grammar(learned.definition(INDUCED, vocabulary.version, vocabulary.title), WHERE, vocabulary.sha256)
    kept = [replace(r, name=f"{g.id}.{r.name}") for g in base for r in g.rules if r.event != "step"]
    return replace(
        made,
        trainer=base[0].trainer if base else "",
        completion=base[0].completion if base else "none",
        rules=(*made.rules, *kept),
        ignore=tuple(r for g in base for r in g.ignore),
    )


def _problem(learned: Learned) -> Problem:
    read = sorted({name for rule in learned.rules for name in rule.fields})
    return Problem(
        "generic_reading",
        None,
        f"no grammar knows this trainer: read by the words beside its numbers ({', '.join(read)})",
        "",
    )


def _reopened(streams: Sequence[Stream]) -> list[Stream] | None:
    again: list[Stream] = []
    for stream in streams:
        parts = [part.reopen() for part in stream.parts]
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts):
            return None
        again.append(replace(stream, parts=known))
    return again


def _blocks(stream: Stream) -> Iterator[bytes]:
    for part in stream.parts:
        yield from part.blocks()


def _same(streams: Sequence[Stream], again: Sequence[Stream]) -> bool:
    pairs: list[tuple[Source, Source]] = [
        (part, other)
        for left, right in zip(streams, again, strict=True)
        for part, other in zip(left.parts, right.parts, strict=True)
    ]
    return all(part.sha256 == other.sha256 for part, other in pairs)
