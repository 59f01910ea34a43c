"""Rules for records over several lines: an opening line with a counter, then a row for each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.counters import Reading
from receipt_cli.learn.counting import ABSENT, GLOBAL, PER_EPOCH
from receipt_cli.learn.metric_names import LOSS, METRIC, Role
from receipt_cli.learn.patterns import GROUPED_TEXT, NUMBER_TEXT, Spec, chunks, literal
from receipt_cli.learn.rules import MIN_GATE, Induced, counters_of, head
from receipt_cli.learn.vocabulary import Vocabulary

GAP = 64
"""Most records between two rows that are read: the other rows of the block."""
MAX_ROWS = 12


def induce_block(readings: Sequence[Reading], vocabulary: Vocabulary) -> Induced | None:
    """Return the rule of a record over several lines, with a counter in the first and a row for the loss; or None."""
    rows = [r for r in readings if _is_row(r) and _role(r).kind == LOSS and r.shape.count >= vocabulary.min_records]
    for loss in sorted(rows, key=lambda r: (_role(r).rank, -r.shape.count)):
        openings = [r for r in readings if _opens(r, loss, vocabulary)]
        if not openings:
            continue
        opening = max(openings, key=lambda r: (min(r.shape.count, loss.shape.count), -r.shape.first))
        rule = _rule(opening, loss, [r for r in readings if _beside(r, loss, opening)])
        if rule is not None:
            return rule
    return None


def _is_row(reading: Reading) -> bool:
    """True for a line of one name, a separator and one value of training."""
    shape = reading.shape
    last = len(shape.columns) - 1
    if reading.evaluation or set(reading.roles) != {last} or shape.literals[-1].strip() or reading.counter.mode != ABSENT:
        return False
    name = reading.names[last]
    return reading.roles[last].kind in (LOSS, METRIC) and name.sure and not name.bracket and name.glued is None


def _role(reading: Reading) -> Role:
    return next(iter(reading.roles.values()))


def _opens(reading: Reading, loss: Reading, vocabulary: Vocabulary) -> bool:
    """True for a line with a counter alone, as frequent as the loss and before it."""
    shape = reading.shape
    plain = reading.counter.mode in (GLOBAL, PER_EPOCH) and not reading.roles and not reading.evaluation and not reading.bar
    often = shape.count // 2 <= loss.shape.count <= shape.count + 1 and shape.count >= vocabulary.min_records
    return plain and not reading.counter.tentative and often and 0 < loss.shape.first - shape.first <= GAP


def _beside(reading: Reading, loss: Reading, opening: Reading) -> bool:
    often = reading.shape.count * 4 >= loss.shape.count and reading.shape.count <= opening.shape.count + 1
    return _is_row(reading) and _role(reading).kind == METRIC and often and _parts(reading)[1:] == _parts(loss)[1:]


def _parts(reading: Reading) -> tuple[bytes, bytes, bytes]:
    """Return the printed key of a row, the text before it, and the separator."""
    last = len(reading.shape.columns) - 1
    left = reading.shape.literals[last]
    key = reading.names[last].text.encode("utf-8")
    at = left.rfind(key)
    return key, left[:at].strip() if not last else b"", left[at + len(key) :].strip()


def _rule(opening: Reading, loss: Reading, beside: Sequence[Reading]) -> Induced | None:
    places = counters_of(opening)
    first = min(places)
    if any(b"rank" in text.lower() for text in opening.shape.literals[: first + 1]):
        first = 0
    begin, gates = head(opening, first, max(places), places)
    if opening.shape.rank != loss.shape.rank:  # its rows print no rank: neither may the opening line have one
        begin = r"^[^\n]{0,300}?" + begin
    rows, metrics = [loss], {"loss"}
    for reading in sorted(beside, key=lambda r: (-r.shape.count, r.shape.first)):
        role = _role(reading)
        if role.metric is not None and role.metric not in metrics and role.unit in (None, "si") and len(rows) < MAX_ROWS:
            metrics.add(role.metric)
            rows.append(reading)
    keys: dict[str, str] = {}
    fields: dict[str, Spec] = {}
    for _, found_fields in places.values():
        fields.update(found_fields)
    for reading in rows:
        key, before, separator = _parts(reading)
        gate = max(chunks(key + separator), key=len)
        metric = _role(reading).metric
        if len(gate) < MIN_GATE or metric is None:
            continue
        keys[key.decode("utf-8", "surrogateescape")] = metric
        fields[metric] = {"type": "number"} if _role(reading).unit is None else {"type": "number", "printed_in": "si"}
        gates = [*gates, gate]
    if "loss" not in fields or not all(len(g) >= MIN_GATE for g in gates):
        return None
    _, before, separator = _parts(loss)
    grouped = any(r.shape.columns[-1].grouped for r in rows)
    number = (GROUPED_TEXT if grouped else NUMBER_TEXT) + "[KkMGBT]?+"
    names = "|".join(literal(key.encode("utf-8")) for key in keys)
    lead = literal(before) + r"[ \t]*+" if before else ""
    begins = r"^[ \t]*+" if len(loss.shape.columns) == 1 else r"(?<![\w/.-])"
    row = rf"{begins}{lead}(?P<key>{names}){literal(separator)}[ \t]*+(?P<value>{number})[ \t]*+$"
    needs = {"requires": ["loss"]} if opening.shape.count <= loss.shape.count + 1 else {}  # else it opens empty ones, too
    body: dict[str, Any] = {
        "event": "step",
        **({"epochs_from": 0} if opening.counter.mode == PER_EPOCH and not opening.counter.epochs_from else {}),
        "literal": list(dict.fromkeys(g.decode("utf-8", "surrogateescape") for g in gates)),
        "block": {"open": begin, "row": row, "gap": GAP, **needs, "keys": keys, "unknown": "ignore"},
        "fields": fields,
    }
    compiled = compile_pattern(begin), compile_pattern(row)
    lines = [opening.shape.samples[0], *(r.shape.samples[0] for r in rows if _role(r).metric in keys.values())]
    found = [compiled[0].search(lines[0]), *(compiled[1].search(line) for line in lines[1:])]
    if any(hit is None for hit in found):
        return None
    text = b"\n".join(hit.group() for hit in found if hit is not None)
    return Induced("train_step", body, begin, None, [text], opening.shape.count)
