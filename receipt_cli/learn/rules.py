"""Build the rule of a group of readings, checked against every kept sample of its records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.counters import Group, counts_to_another, total_of
from receipt_cli.learn.counting import DRAWN_BAR, EPOCHS, GLOBAL, PER_EPOCH, UNNUMBERED, drawn_steps, ends_bar, passes_of
from receipt_cli.learn.names import LOSS, METRIC, OTHERS, VALIDATION_LOSS, Name, Role
from receipt_cli.learn.patterns import (
    EVALUATION,
    REACH,
    WHOLE,
    Spec,
    bare_figures,
    beginning_of,
    chunks,
    context,
    counter_value,
    filler,
    first_counter,
    full_counter,
    literal,
    metric_value,
    one_of,
)
from receipt_cli.learn.proofs import (
    ANCHOR,
    STRUCTURAL,
    Induced,
    before_training,
    reads,
    reads_column,
    reads_whole,
    samples_of,
    twin_words,
    words_between,
    wrong_fields,
)
from receipt_cli.learn.readings import INDENT, Reading
from receipt_cli.learn.tokens import NUMBER, split
from receipt_cli.learn.vocabulary import Vocabulary

MIN_GATE = 4
"""Bytes of a literal that may gate a rule."""


@dataclass(slots=True)
class _Piece:
    """A field that may come anywhere behind the head: its pattern, its fields, the literal that it needs."""

    pattern: str
    fields: dict[str, Spec]
    gate: bytes
    place: int
    required: bool = False
    proves: bool = False


def induce(
    group: Group, name: str, others: Sequence[Reading], vocabulary: Vocabulary, rivals: Sequence[Reading] = ()
) -> Induced | None:
    """Return the rule of ``group``, or None when no rule reads its samples as they were understood.

    ``others`` are readings of other records, which the rule must leave alone where they speak of an evaluation;
    ``rivals`` those that are read by a rule of their own.
    """
    dropped: set[str] = set()
    guards: set[str] = set()
    only: int | None = None
    for _ in range(24):
        rule = _build(group, name, dropped, guards, only, vocabulary)
        if rule is None:
            return None
        compiled = compile_pattern(rule.pattern)
        wrong = wrong_fields(group, rule, compiled)
        if wrong is None:
            return None
        twins = {word for r in others if r.evaluation for word in twin_words(r, rule, compiled, vocabulary)}
        twins |= {word for r in others if not r.evaluation for word in words_between(r, group, rule, compiled, vocabulary)}
        twins |= {r.told_by for r in others if r.told_by and reads(r, rule, compiled)}
        apart = [*rivals, *(r for r in others if r.indented and not group.main.indented)]
        if any(reads(r, rule, compiled) for r in apart):
            twins.add(ANCHOR)
        if only is None and any(counts_to_another(group, r) and reads_whole(r, rule, compiled) for r in others):
            only = total_of(group.main)
            continue
        if not wrong and twins <= guards:
            rule.samples = samples_of(group, rule, compiled)
            return rule if rule.samples else None
        if not wrong and ANCHOR in twins:
            return None  # nothing on the line parts them
        dropped |= wrong
        guards |= twins - {ANCHOR}
    return None


def _build(
    group: Group, name: str, dropped: set[str], guards: set[str], only: int | None, vocabulary: Vocabulary
) -> Induced | None:
    """Return a rule; ``only``: the total of the records that it reads, where others have another."""
    main = group.main
    counters = counters_of(main, before_training(group), only)
    pieces = _pieces(group, dropped, vocabulary)
    first_metric = min((p.place for p in pieces), default=1 << 30)
    early = [at for at in sorted(counters) if at < first_metric]
    fields: dict[str, Spec] = {}
    gates: list[bytes]
    if early or not counters:
        if not early:
            headed = _under_heading if main.counter.heading is not None and not counters else _headed
            return None if not pieces else headed(group, name, pieces, counters, guards)
        begin, gates = head(main, early[0], early[-1], counters, group)
        for at in early:
            fields.update(counters[at][1])
        late = [at for at in counters if at > early[-1]]
        extra = [_counter_piece(main, at, counters[at]) for at in late]
        if any(piece is None for piece in extra):
            return None
        rest = [*(p for p in extra if p is not None), *pieces]
        rule = _finish(group, name, begin, gates, fields, rest, guards)
        if rule is not None and not late:
            rule.head = begin
        return rule
    return _headed(group, name, pieces, counters, guards)


def _headed(
    group: Group,
    name: str,
    pieces: list[_Piece],
    counters: dict[int, tuple[str, dict[str, Spec]]],
    guards: set[str],
) -> Induced | None:
    """Return a rule that begins with a metric, without a counter before it."""
    main = group.main
    own = [p for p in pieces if p.place in main.roles]
    if not own:
        return None
    first = min(own, key=lambda p: p.place)
    extra = [_counter_piece(main, at, counters[at]) for at in counters]
    if any(piece is None for piece in extra) or not first.gate:
        return None
    rest = [*(p for p in extra if p is not None), *(p for p in pieces if p is not first)]
    alone = first.proves and (bool(counters) or not any(p.proves for p in rest))
    begin = _beginnings_of_metric(group, first.place) + first.pattern
    return _finish(group, name, begin, [first.gate], dict(first.fields), rest, guards, proven=alone)


def _under_heading(
    group: Group,
    name: str,
    pieces: list[_Piece],
    counters: dict[int, tuple[str, dict[str, Spec]]],
    guards: set[str],
) -> Induced | None:
    """Return a rule that begins with the line: what counts stands on another, and words before a metric say of what it is."""
    main = group.main
    first = min((p for p in pieces if p.place in main.roles), key=lambda p: p.place, default=None)
    if first is None or counters:
        return None
    value = metric_value(main.shape, first.place, main.names[first.place], main.roles[first.place], set())
    if value is None or list(first.fields) != [value.field]:
        return None
    begin, gates = head(main, 0, first.place, {first.place: (value.pattern, None)})
    rest = [p for p in pieces if p is not first]
    return _finish(group, name, begin, gates or [first.gate], dict(first.fields), rest, guards, proven=first.proves)


def _finish(
    group: Group,
    name: str,
    begin: str,
    gates: list[bytes],
    fields: dict[str, Spec],
    pieces: list[_Piece],
    guards: set[str],
    proven: bool = False,
) -> Induced | None:
    reach = rf"[^\n]{{0,{REACH}}}?"
    main = group.main
    pattern = begin
    if main.indented and not pattern.startswith("^"):
        pattern = rf"(?<=[ \t]{{{INDENT}}}){pattern}"
    for word in sorted(guards):
        pattern += rf"(?!{reach}(?<![A-Za-z])(?i:{word})(?![a-z]))"
    proofs: list[str] = []
    headed = any(len(gate) >= MIN_GATE for gate in gates)
    if not headed and not any(p.proves and len(p.gate) >= MIN_GATE for p in pieces):
        gates = [*gates, *_shared_gate(group)]  # all names are short
        headed = any(len(gate) >= MIN_GATE for gate in gates)
    for piece in pieces:
        if set(piece.fields) & set(fields):
            continue
        fields.update(piece.fields)
        first = rf"(?>{reach}{piece.pattern})"
        if piece.pattern.endswith(WHOLE):  # the number behind the first label, or none: a later label may be another record's
            first = rf"(?>{reach}{piece.pattern.removesuffix(WHOLE)}){WHOLE}"
        pattern += rf"(?={first})" if piece.required else rf"(?:(?={first})|)"
        if piece.required:
            continue
        if piece.proves and (headed or len(piece.gate) >= MIN_GATE):
            proofs.append(next(iter(piece.fields)))
            gates = gates if headed else [*gates, piece.gate]
    usable = [g for g in gates if len(g) >= MIN_GATE]
    if not usable or not (proofs or proven) or not any(s.get("metric") or n not in STRUCTURAL for n, s in fields.items()):
        return None
    if not proven:
        condition = r"[^\n]*+(*SKIP)(*FAIL)"
        for proof in reversed(proofs):
            condition = f"(?({proof})|{condition})"
        pattern += condition
    pattern += r"[^\n]*+"
    body: dict[str, Any] = {"event": "step"}
    if main.counter.mode == EPOCHS and main.counter.heading is not None:
        body["counts"] = "epoch"
    elif main.bar:
        body["redraw"] = True
    starts = [r.counter.epochs_from for r in group.readings if r.counter.mode == main.counter.mode]
    if main.counter.mode in (PER_EPOCH, EPOCHS) and min(starts) == 0:
        body["epochs_from"] = 0
    texts = sorted({g.decode("utf-8") for g in usable})
    body["literal"] = texts[0] if len(texts) == 1 else texts
    body["pattern"] = pattern
    body["fields"] = fields
    return Induced(name, body, pattern, group)


def counters_of(main: Reading, idle: bool = False, only: int | None = None) -> dict[int, tuple[str, dict[str, Spec]]]:
    """Return the places of the counters with their patterns and fields.

    ``idle``: at 0 nothing is done yet; ``only``: the total of the steps.
    """
    counter, columns = main.counter, main.shape.columns
    found: dict[int, tuple[str, dict[str, Spec]]] = {}
    if counter.mode == GLOBAL and counter.step is not None:
        column, done = columns[counter.step], main.bar or idle
        found[counter.step] = counter_value(column, "step", "planned_steps", done=done, lags=main.lags, only=only)
        if counter.epoch is not None:
            found[counter.epoch] = counter_value(columns[counter.epoch], "epoch", None)
    elif counter.mode == PER_EPOCH and counter.step is not None:
        found[counter.step] = counter_value(columns[counter.step], "epoch_step", "epoch_steps", done=main.bar, lags=main.lags)
        if counter.epoch is not None:
            found[counter.epoch] = counter_value(columns[counter.epoch], "epoch_number", "epochs_planned")
    elif counter.mode == EPOCHS and counter.step is not None:
        found[counter.step] = full_counter(columns[counter.step], passes_of(columns[counter.step]))
    elif counter.mode == EPOCHS and counter.epoch is not None:
        found[counter.epoch] = counter_value(columns[counter.epoch], "epoch_number", "epochs_planned")
    elif counter.mode == UNNUMBERED and counter.epoch is not None and counter.step is not None and _alone(main):
        found[counter.step] = counter_value(columns[counter.step], "epoch_step", None)
        found[counter.epoch] = counter_value(columns[counter.epoch], "epoch_number", "epochs_planned")
    elif counter.mode == UNNUMBERED:
        if counter.epoch is not None:
            found[counter.epoch] = counter_value(columns[counter.epoch], "epoch", None)
        if counter.step is not None:  # it tells a step record from the summary of an epoch
            found[counter.step] = (filler(columns[counter.step]), {})
    return found


def _alone(main: Reading) -> bool:
    """True for a step without a total beside an epoch: the pair of them orders the records."""
    step = main.counter.step
    return step is not None and main.shape.columns[step].kind == NUMBER


def _counter_piece(main: Reading, at: int, counter: tuple[str, dict[str, Spec]]) -> _Piece | None:
    name = main.names[at]
    drawn = at in drawn_steps(main.shape)
    if not name.text and not drawn and main.counter.mode != UNNUMBERED:
        return None
    before = context(main.shape, at, name) if name.text else literal(main.shape.literals[at]) + r"[ \t]*+"
    if drawn and ends_bar(main.shape, at):
        return _Piece(rf"(?<=[ \t)|]){counter[0]}(?=[ \t]*+$)", counter[1], b"", at, required=True)
    if drawn:
        before = DRAWN_BAR
    return _Piece(before + counter[0], counter[1], b"", at, required=True)


def _pieces(group: Group, dropped: set[str], vocabulary: Vocabulary) -> list[_Piece]:
    """Return the metrics of all readings of the group, those of most records first."""
    pieces: list[_Piece] = []
    known: set[str] = set()
    main = group.main
    for reading in sorted(group.readings, key=lambda r: (r is not main, -r.shape.count, r.shape.first)):
        for at, role in reading.roles.items():
            name = reading.names[at]
            key = role.metric or name.words
            if key in known or (reading is not main and role.kind in OTHERS):
                continue
            piece = _piece(reading, at, name, role, {f for p in pieces for f in p.fields})
            if piece is None or set(piece.fields) & dropped:
                continue
            known.add(key)
            pieces.append(piece if reading is main else _moved(piece))
    for at, role in bare_figures(main, vocabulary).items():
        piece = _piece(main, at, main.names[at], role, {f for p in pieces for f in p.fields})
        if piece is None or set(piece.fields) & dropped:
            continue
        if reads_column(main, at, piece.pattern, next(iter(piece.fields))):
            piece.proves = False
            pieces.append(_moved(piece))
    return pieces


def _moved(piece: _Piece) -> _Piece:
    """Return a piece of another shape, whose position does not apply to the main one."""
    piece.place = 1 << 20
    return piece


_SPOKEN = re.compile(rf"(?i)(?<![a-z]){EVALUATION}(?![a-z])")
_SECTION = re.compile(_SPOKEN.pattern.encode() + rb"[^A-Za-z\d]{1,8}[A-Za-z_ ]{1,24}[:= ]{1,4}\Z")
"""What begins the figures of an evaluation, before the first of them: ``Val: loss=``."""


def _piece(reading: Reading, at: int, name: Name, role: Role, taken: set[str]) -> _Piece | None:
    value = metric_value(reading.shape, at, name, role, taken)
    if value is None:
        return None
    proves = role.kind in (LOSS, METRIC, *OTHERS)
    if name.before:
        joint = literal(reading.shape.literals[at]) + r"[ \t]*+"
        return _Piece(joint + value.pattern, {value.field: value.spec}, b"", at, proves=proves)
    if not name.text:
        if name.follows is None and not name.behind:
            return None
        gate = max(chunks(name.behind.encode()), key=len, default=b"")
        return _Piece(r"(?<![\w.,])" + value.pattern, {value.field: value.spec}, gate, at, proves=proves and bool(name.behind))
    left = reading.shape.literals[at]
    gate = max(chunks(left[left.rfind(name.text.encode("utf-8")) :]), key=len)
    section = _SECTION.search(left) if role.kind == VALIDATION_LOSS and not _SPOKEN.search(name.text) else None
    if section is not None:
        return _Piece(literal(left[section.start() :]) + r"[ \t]*+" + value.pattern, {value.field: value.spec}, gate, at)
    return _Piece(context(reading.shape, at, name) + value.pattern, {value.field: value.spec}, gate, at, proves=proves)


def head(
    main: Reading, first: int, last: int, counters: Mapping[int, tuple[str, object]], group: Group | None = None
) -> tuple[str, list[bytes]]:
    """Return the pattern from the beginning of the line, as the records of ``group`` have it, to the last counter; its gates."""
    shape = main.shape
    begin = max(first, main.glued + 1) if main.glued < last else first
    pattern, gates = _beginnings(main, begin, group)
    for at in range(begin, last + 1):
        if at > begin:
            gates += chunks(shape.literals[at])
            pattern += literal(shape.literals[at]) + r"[ \t]*+"
        pattern += counters[at][0] if at in counters else filler(shape.columns[at], shape.literals[at + 1])
    if begin == 0 and not any(chr(b).isalpha() for b in shape.literals[0]):
        pattern += _what_follows(shape.samples[0], last)
    best = max(gates, key=lambda g: (any(chr(b).isalpha() for b in g), len(g)), default=b"")
    return pattern, [best] if len(best) >= MIN_GATE else []


def _beginnings(main: Reading, first: int, group: Group | None) -> tuple[str, list[bytes]]:
    """Return the pattern of how the records of ``group`` begin, up to the ``first`` counter of ``main``; texts of all of them."""
    begun: dict[str, set[bytes]] = {}
    for reading in (main, *(group.readings if group is not None else ())):
        place = first if reading is main else first_counter(reading)
        if place is not None and reading.indented is main.indented:
            pattern, texts = beginning_of(reading, place, reading.shape.literals[place])
            begun.setdefault(pattern, set(texts))
    return one_of(list(begun)), sorted(set.intersection(*begun.values()))


def _beginnings_of_metric(group: Group, first: int) -> str:
    """Return the pattern of how the records of ``group`` begin, up to the name of the metric that is ``first`` in most."""
    role = group.main.roles[first]
    begun: dict[str, None] = {}
    for reading in (group.main, *group.readings):
        alike = (at for at, r in reading.roles.items() if (r.kind, r.metric) == (role.kind, role.metric))
        at = first if reading is group.main else next(alike, None)
        if at is None or reading.indented is not group.main.indented:
            continue
        left, name = reading.shape.literals[at], reading.names[at]
        before = b"" if name.before else left[: left.rfind(name.text.encode())] if name.text else left
        words = re.sub(rb"[^\w)\x80-\xff]+\Z", b"", before)
        begun.setdefault(beginning_of(reading, at, words)[0] + (r"[^\w\n]{0,24}?" if name.text else ""))
    return one_of(list(begun))


def _what_follows(core: bytes, at: int) -> str:
    """Return the required text behind a counter without words before it, which excludes the first number of a date."""
    parts = split(core)
    behind = parts[2 * at + 2] + (b" " if 2 * at + 3 < len(parts) and parts[2 * at + 3][:1].isspace() else b"")
    words = behind.split()
    if not words or behind[:1].isspace():
        return r"(?=[ \t])"
    return rf"(?={literal(words[0])}{'[ ]' if len(behind) > len(words[0]) else ''})".replace("[ ]", r"[ \t]")


def _shared_gate(group: Group) -> list[bytes]:
    """Return the longest text between numbers that every kept record of the group has, if it is long enough."""
    records = [core for r in group.readings for core in r.shape.samples]
    texts = {chunk for left in group.main.shape.literals for chunk in chunks(left) if len(chunk) >= MIN_GATE}
    shared = [text for text in texts if all(text in core for core in records)]
    return [max(shared, key=lambda text: (len(text), text))] if shared else []
