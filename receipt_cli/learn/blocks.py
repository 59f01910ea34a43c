"""Rules for records over several lines: an opening line with a counter, then a row for each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.counting import ABSENT, AGREE, FEW, GLOBAL, PER_EPOCH
from receipt_cli.learn.emit import (
    GROUPED_TEXT,
    MIN_GATE,
    NUMBER_TEXT,
    Induced,
    Spec,
    chunks,
    counters_of,
    field_name,
    gates,
    induce,
    line,
    literal,
    rule,
)
from receipt_cli.learn.headings import in_turn
from receipt_cli.learn.names import LOSS, METRIC, SCORE, VALIDATION_LOSS, Role
from receipt_cli.learn.progress import heading_rule
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.series import Group
from receipt_cli.learn.vocabulary import Vocabulary

GAP = 64
"""Most records between two rows that are read: the other rows of the block."""
MAX_ROWS = 12


def induce_block(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Induced]:
    """Return the rule of a record over several lines that begins with a counter and has a row for the loss, or for a score.

    Before it stands that of the line which announces its epochs, where one does.
    """
    rows = [r for r in readings if _is_row(r) and _role(r).kind == LOSS and r.shape.count >= vocabulary.min_records]
    rows = rows or [r for r in readings if _is_row(r) and _role(r).kind == SCORE and r.shape.count >= FEW]
    for loss in sorted(rows, key=lambda r: (_role(r).rank, -r.shape.count)):
        openings = [r for r in readings if _opens(r, loss, vocabulary)]
        if not openings:
            continue
        opening = max(openings, key=lambda r: (min(r.shape.count, loss.shape.count), -r.shape.first))
        rule = _rule(opening, loss, [r for r in readings if _beside(r, loss, opening)])
        announced = opening.counter.heading
        heading = heading_rule(announced) if announced is not None else None
        if rule is not None and (announced is None or heading is not None):
            return [rule] if heading is None else [heading, rule]
    return []


def induce_values(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Induced]:
    """Return the rules of a line that counts and of the line of values below each: ``batch 3, len 12``, ``kl:0.1,loss:2.5``."""
    below = [r for r in readings if r.loss is not None and r.counter.mode == ABSENT and not r.evaluation and not r.bar]
    for values in sorted(below, key=lambda r: -r.shape.count):
        openings = [r for r in readings if r is not values and _counts(r) and in_turn(r.shape, values.shape)]
        if len(openings) != 1 or values.shape.count < vocabulary.min_records:
            continue
        companion = induce(Group([values]), "train_values", ())
        opening = openings[0]
        opened = rule("train_step", "step", [(opening.shape, counters_of(opening, opening.counter))])
        if companion is not None and opened is not None:
            companion.body["companion"] = True
            return [opened, companion]
    return []


def _counts(reading: Reading) -> bool:
    """True for a line with a counter of the whole run and no loss."""
    kinds = {role.kind for role in reading.roles.values()}
    plain = reading.counter.mode == GLOBAL and not reading.evaluation and not reading.bar and not reading.counter.tentative
    return plain and kinds.isdisjoint((LOSS, VALIDATION_LOSS))


def _is_row(reading: Reading) -> bool:
    """True for a line of one name, a separator and one value of training."""
    shape = reading.shape
    last = len(shape.columns) - 1
    if reading.evaluation or set(reading.roles) != {last} or shape.literals[-1].strip() or reading.counter.mode != ABSENT:
        return False
    name = reading.names[last]
    return reading.roles[last].kind in (LOSS, METRIC, SCORE) and name.sure and not name.bracket and name.glued in (None, "%")


def _role(reading: Reading) -> Role:
    return next(iter(reading.roles.values()))


def _metric(reading: Reading) -> str:
    """Return the name of the field that a row fills: a metric of the registry, or the printed name of another."""
    role = _role(reading)
    return role.metric if role.metric is not None else field_name(reading.names[-1].text, set())


def _opens(reading: Reading, loss: Reading, vocabulary: Vocabulary) -> bool:
    """True for a line with a counter alone, as frequent as the loss and before it."""
    shape = reading.shape
    plain = reading.counter.mode in (GLOBAL, PER_EPOCH) and not reading.roles and not reading.evaluation and not reading.bar
    often = shape.count // 2 <= loss.shape.count <= shape.count + 1 and shape.count >= vocabulary.min_records
    return plain and not reading.counter.tentative and often and 0 < loss.shape.first - shape.first <= GAP


def _beside(reading: Reading, loss: Reading, opening: Reading) -> bool:
    often = reading.shape.count * 4 >= loss.shape.count and reading.shape.count <= opening.shape.count + 1
    return _is_row(reading) and _role(reading).kind in (METRIC, SCORE) and often and _parts(reading)[1:] == _parts(loss)[1:]


def _parts(reading: Reading) -> tuple[bytes, bytes, bytes]:
    """Return the printed key of a row, the text before it, and the separator."""
    last = len(reading.shape.columns) - 1
    left = reading.shape.literals[last]
    key = reading.names[last].text.encode("utf-8")
    at = left.rfind(key)
    return key, left[:at].strip() if not last else b"", left[at + len(key) :]


def _rule(opening: Reading, loss: Reading, beside: Sequence[Reading]) -> Induced | None:
    cells = counters_of(opening, opening.counter)
    begin, begun = line(opening.shape, cells, max(cells)), gates([opening.shape])
    if opening.shape.rank != loss.shape.rank:  # its rows print no rank: neither may the opening line have one
        begin = r"^[^\n]{0,300}?" + begin.removeprefix("^")
    rows, metrics = [loss], {_metric(loss)}
    for reading in sorted(beside, key=lambda r: (-r.shape.count, r.shape.first)):
        role = _role(reading)
        if _metric(reading) not in metrics and role.unit in (None, "si", "percent") and len(rows) < MAX_ROWS:
            metrics.add(_metric(reading))
            rows.append(reading)
    keys: dict[str, str] = {}
    fields: dict[str, Spec] = {}
    for cell in cells.values():
        fields.update(cell.fields)
    texts = [text.encode() for text in begun]
    for reading in rows:
        key, before, separator = _parts(reading)
        gate = max(chunks(key + separator), key=len)
        metric, unit = _metric(reading), _role(reading).unit
        if len(gate) < MIN_GATE or chunks(key) != key.split():
            continue  # the key is no text
        if len({token.unit == "%" for token in reading.shape.columns[-1].values}) > 1:
            continue
        keys[key.decode("utf-8")] = metric
        fields[metric] = {"type": "number"} if unit is None else {"type": "number", "printed_in": unit}
        if _role(reading).metric is None:
            fields[metric]["metric"] = "other"
        texts.append(gate)
    if _metric(loss) not in fields or not all(len(text) >= MIN_GATE for text in texts):
        return None
    _, before, separator = _parts(loss)
    grouped = any(r.shape.columns[-1].grouped for r in rows)
    number = (GROUPED_TEXT if grouped else NUMBER_TEXT) + "[KkMGBT]?+"
    names = "|".join(literal(key.encode("utf-8")) for key in keys)
    lead = literal(before) + r"[ \t]*+" if before else ""
    begins = r"^[ \t]*+" if len(loss.shape.columns) == 1 else r"(?<![\w/.-])"
    percent = r"(?:[ \t]?%)?+" if any(_role(r).unit == "percent" for r in rows) else ""
    row = rf"{begins}{lead}(?P<key>{names}){literal(separator)}[ \t]*+(?P<value>{number}){percent}[ \t]*+$"
    rare = AGREE * opening.shape.count > loss.shape.count + 1  # it opens empty ones, too
    needs = {} if rare else {"requires": [_metric(loss)]}
    body: dict[str, Any] = {
        "event": "step",
        **({"epochs_from": 0} if opening.counter.mode == PER_EPOCH and not opening.counter.epochs_from else {}),
        "literal": list(dict.fromkeys(text.decode("utf-8") for text in texts)),
        "block": {"open": begin, "row": row, "gap": GAP, **needs, "keys": keys, "unknown": "ignore"},
        "fields": fields,
    }
    compiled = compile_pattern(begin), compile_pattern(row)
    lines = [opening.shape.samples[0], *(r.shape.samples[0] for r in rows if _metric(r) in keys.values())]
    found = [compiled[0].search(lines[0]), *(compiled[1].search(line) for line in lines[1:])]
    if any(hit is None for hit in found):
        return None
    cut = [hit.group() for hit in found if hit is not None]
    opened = cut[0] if compiled[0].search(cut[0]) else lines[0].strip()  # what follows may be asked for
    text = b"\n".join([opened, *cut[1:]])
    return Induced("train_step", body, begin, None, [text], opening.shape.count)
