"""Write the rules of learned records: a rule reads the records of its templates and no others, each from end to end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from receipt_cli.definitions.units import DURATION
from receipt_cli.grammar.model import compile_pattern
from receipt_cli.grammar.parse import PARTS
from receipt_cli.learn.counting import EPOCHS, GLOBAL, PER_EPOCH, UNNUMBERED, Counter, counted_unit, glued_bar, passes_of
from receipt_cli.learn.names import LOSS, METRIC, OTHERS, PART, Role, counter_of
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.series import Group
from receipt_cli.learn.shapes import INDENT, MAX_SAMPLES, Column, Shape
from receipt_cli.learn.tokens import BAR, FRACTION, MAX_CORE, NOTHING, NUMBER, ORDINALS, RATE, SCALED, read_token
from receipt_cli.learn.vocabulary import one_of

_POWER = r"(?:[eE][-+]?\d++)?+"
_NUMBER = rf"[-+]?(?:\d++(?:\.\d++|\.(?=[eE]))?+{_POWER}|\.\d++{_POWER}|(?i:nan|inf(?:inity)?))"
NUMBER_TEXT, GROUPED_TEXT = PARTS["number"], PARTS["grouped"]
_WHOLE, _WHOLE_GROUPED = r"\d++", r"(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)"
_BLANKS = r"[ \t]*+"
_GROUPS = r"\d++(?:,\d{3})*+"
_OF = rf"{_BLANKS}(?:[/|]|of |out of ){_BLANKS}"
_MISSING = r"N/A|n/a|None|null|\?{3}|[-+]?[\d.]++,\d++"
UNIT = r"(?:[ \t]?%|[A-Za-z]{1,16}(?:/[A-Za-z]{1,8})?)?+"
_TIME = (
    r"(?:\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d++)?+(?:Z|[+-]\d\d:?\d\d)?+)?+"
    r"|(?:-?\d{1,5} days?, *+)?+\d{1,4}:\d\d(?::\d\d)?+(?:[.,]\d++)?+(?: ?[AP]M)?+"
    rf"|{DURATION})"
)
MIN_GATE = 4
"""Bytes of a literal that make a good gate of a rule."""
MOST_BRANCHES = 64
"""Templates of one rule."""
MOST_BARE = 24
OPEN = b"\0"
"""The last literal of a template behind which anything may stand."""
MOST_SAMPLE = 1500
COUNTERS = ("epoch", "epoch_number", "epoch_step", "step")
"""The fields that say where a record is, the slowest first."""
STRUCTURAL = frozenset({"step", "planned_steps", "epoch_number", "epoch_step", "epoch_steps", "epochs_planned"})
"""Fields of a step record that say where it is."""
Spec = dict[str, str | int]
"""The declaration of a field in a grammar."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How a number is read: its pattern, and the declarations of the fields that it fills."""

    pattern: str
    fields: Mapping[str, Spec]


@dataclass(slots=True)
class Induced:
    """A rule as the grammar format has it, without samples, and the records it was made from."""

    name: str
    body: dict[str, Any]
    pattern: str
    group: Group | None
    samples: list[bytes] = field(default_factory=list)
    count: int = 0
    templates: list[list[bytes]] = field(default_factory=list)
    """The texts between the numbers of the records that it reads, of each template."""
    unread: list[tuple[bytes, list[tuple[float, ...]]]] = field(default_factory=list)
    """Records that begin as those of the rule do and have figures, but are not read: one of a kind, and their ``COUNTERS``."""
    counting: tuple[int, ...] = ()
    """The columns of the ``COUNTERS`` in the records of most."""

    @property
    def records(self) -> int:
        """Records that the rule was made from."""
        return self.group.count if self.group is not None else self.count

    @property
    def fields(self) -> Mapping[str, Any]:
        """The declared fields."""
        found: Mapping[str, Any] = self.body["fields"]
        return found

    def allows(self, found: Any) -> bool:
        """False for a match in which a counter is below the least value that it may have."""
        least = {name: spec["at_least"] for name, spec in self.fields.items() if "at_least" in spec}
        return all(found[name] is None or (read_token(found[name]).value or 0) >= value for name, value in least.items())


def literal(text: bytes) -> str:
    """Return the ASCII pattern of ``text``: a run of blanks matches any run of them, outer ones also none."""
    words = [escaped(word) for word in text.split()]
    before = _BLANKS if text[:1].isspace() or not words else ""
    return before + r"[ \t]++".join(words) + (_BLANKS if words and text[-1:].isspace() else "")


def escaped(word: bytes) -> str:
    """Return the ASCII pattern of ``word``."""
    return "".join(re.escape(chr(b)) if b < 128 else f"\\x{b:02x}" for b in word)


def chunks(text: bytes) -> list[bytes]:
    """Return the runs of visible bytes of a literal, which every record contains; of one that is no UTF-8 the rest of it."""
    return [part for word in text.split() for part in ([word] if word.isascii() else _decodable(word))]


def _decodable(word: bytes) -> list[bytes]:
    parts = word.decode("utf-8", "replace").split("\N{REPLACEMENT CHARACTER}")
    return [part.encode("utf-8") for part in parts if part] or [b""]


def field_name(text: str, taken: Iterable[str]) -> str:
    """Return a name for the field of a printed name that the registry does not know; one that is not ``taken``."""
    base = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] or "value"
    base = base if base[0].isalpha() else f"value_{base}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name


def filler(column: Column) -> str:
    """Return the pattern of a token that is not read: later ones may be of another kind than the first."""
    kinds = {token.kind for token in column.values} | {column.kind}
    plain = rf"{_TIME}|{GROUPED_TEXT if column.grouped else _NUMBER}{UNIT}|{_MISSING}"
    patterns = {
        BAR: r"\|[^|,\n]{0,400}+\|?+|\[[^\]\n]{0,400}\]|[^ \t\n]{0,400}",
        RATE: r"\[[^\[\],\n]{0,80},[^\],\n]{0,40}",
        FRACTION: rf"{_GROUPS}(?:\.\d{{1,2}})?+{_OF}{_GROUPS}",
    }
    found = [pattern for kind, pattern in patterns.items() if kind in kinds] + [plain] * bool(kinds - {*patterns})
    return f"(?:{'|'.join(found)})"


def counter_cell(column: Column, number: str, total: str | None, *, done: bool = False, lags: bool = False) -> Cell:
    """Return how a counter is read: as ``number``, and its total, where it prints one, as ``total``.

    ``done``: at 0 nothing is done yet; but if it ``lags``, 0 is the first step, and what it shows at the end is no other.
    """
    whole = _WHOLE_GROUPED if column.grouped else _WHOLE
    fields: dict[str, Spec] = {number: {"type": "integer", "at_least": 1} if done and not lags else {"type": "integer"}}
    if column.kind != FRACTION:
        suffix = rf"(?:{'|'.join(ORDINALS)})\b" if column.ordinal else counted_unit(column)
        return Cell(rf"(?P<{number}>{whole}){suffix}(?!\.?\d)", fields)
    scaled = r"(?:\.0{1,2}+)?+" if any(token.unit == SCALED for token in column.values) else ""
    if total is None:
        return Cell(rf"(?P<{number}>{whole}){scaled}{_OF}{whole}(?!\.?\d)", fields)
    fields[total] = {"type": "integer"}
    unfinished = rf"(?!(?P={number})(?!\d))" if lags else ""
    return Cell(rf"(?P<{number}>{whole}){scaled}{_OF}{unfinished}(?P<{total}>{whole})(?!\.?\d)", fields)


def full_counter(column: Column) -> Cell:
    """Return how ``14/14`` is read: a bar of an epoch that is full; of two passes in turn, that of the first."""
    passes = passes_of(column)
    whole = str(passes) if passes is not None else _WHOLE_GROUPED if column.grouped else _WHOLE
    pattern = rf"(?P<epoch_step>{whole})[ \t]*+/{_BLANKS}(?P<epoch_steps>(?P=epoch_step))(?!\.?\d)"
    return Cell(pattern, {"epoch_step": {"type": "integer"}, "epoch_steps": {"type": "integer"}})


def metric_cell(reading: Reading, at: int, role: Role, taken: Iterable[str], called: str = "") -> Cell | None:
    """Return how the metric of a column is read, or None where its unit changes from record to record.

    ``called``: the name of its field; else the metric, or a name like the printed one.
    """
    column, name, times = reading.shape.columns[at], reading.names[at], reading.vocabulary.times
    units = {token.unit for token in column.values if token.kind == NUMBER}
    number = GROUPED_TEXT if column.grouped else _NUMBER
    called = called or role.metric or field_name(name.text or name.behind or name.before, taken)
    spec: Spec = {"type": "number", "metric": "other"} if role.kind in OTHERS else {"type": "number"}
    missing = any(token.kind == NOTHING for token in column.values)
    if role.unit == "si":
        pattern, spec = rf"(?P<{called}>{number}[KkMGBT]?+){UNIT}", {**spec, "printed_in": "si"}
    elif len(units) > 1:
        if role.unit not in times.values() or not units <= {*times} - {"ns"}:
            return None
        pattern, spec = rf"(?P<{called}>{number}[ \t]?{one_of(units)})", {**spec, "printed_in": "suffix"}
    else:
        glued = next(iter(units), "")
        if glued and name.follows is not None and not name.follows.startswith(glued.lower()):
            return None
        spec |= {"printed_in": role.unit} if role.unit is not None else {}
        end = r"(?![\w%])" if reading.shape.header else r"(?![\w%]|,\d)"  # between cells a comma parts no digits
        pattern = rf"(?P<{called}>{number})" + (r"[ \t]?" + re.escape(glued) if glued else end)
    return Cell(rf"(?:{pattern}|{_MISSING})" if missing else pattern, {called: spec})


def counters_of(reading: Reading, counter: Counter, idle: bool = False) -> dict[int, Cell]:
    """Return how the counters are read, by their places. ``idle``: at 0 nothing is done yet."""
    columns, mode, step, epoch = reading.shape.columns, counter.mode, counter.step, counter.epoch
    found: dict[int, Cell] = {}
    bar = partial(counter_cell, done=reading.bar or (idle and mode == GLOBAL), lags=reading.lags)
    numbered = step is not None and columns[step].kind == NUMBER  # without a total, the pair of them orders the records
    if mode == GLOBAL and step is not None:
        found[step] = bar(columns[step], "step", None if counter.of_epoch else "planned_steps")
    elif mode == PER_EPOCH and step is not None:
        found[step] = bar(columns[step], "epoch_step", "epoch_steps")
    elif mode == EPOCHS and step is not None:
        found[step] = full_counter(columns[step])
    elif mode == UNNUMBERED and epoch is not None and numbered and step is not None:
        found[step] = counter_cell(columns[step], "epoch_step", None)
    if epoch is not None:
        number = mode == PER_EPOCH or (mode == EPOCHS and step is None) or (mode == UNNUMBERED and numbered)
        if number or mode in (GLOBAL, UNNUMBERED):
            found[epoch] = counter_cell(columns[epoch], *(("epoch_number", "epochs_planned") if number else ("epoch", None)))
    return found


def line(shape: Shape, cells: Mapping[int, Cell], until: int | None = None) -> str:
    """Return the pattern of a whole record of ``shape``; ``until`` the column of this place, if one is given."""
    begin = glued_bar(shape) + 1  # the same record is printed without the bar
    begin = 0 if begin == len(shape.columns) or any(at < begin for at in cells) else begin
    pattern = r"(?:^|(?<=\]))" if begin else "^"
    pattern += rf"[ \t]{{{INDENT},}}+" if shape.indented else rf"[ \t]{{0,{INDENT - 1}}}+(?:\|[ \t]++)?"  # a mark is noise
    for at in range(begin, len(shape.columns)):
        words = shape.literals[at] if at > begin else shape.literals[at].lstrip(b"] \t" if begin else None)
        pattern += (literal(words) if words.strip() or at > begin else "") + _BLANKS
        pattern += cells[at].pattern if at in cells else filler(shape.columns[at])
        if at == until:
            return pattern
    cut = any(len(core) >= MAX_CORE - 1 for core in shape.samples)
    return pattern + (r"[^\n]*+" if cut or shape.literals[-1] == OPEN else literal(shape.literals[-1].rstrip()) + r"[ \t]*+$")


def gates(shapes: Sequence[Shape], early: int = 0) -> list[str]:
    """Return the texts of which each record of ``shapes`` has one: one that all have, if it is long enough.

    If the first ``early`` texts of a record have one, it is among them: records that only begin so are noticed.
    """
    texts = [{chunk for text in shape.literals for chunk in chunks(text) if chunk} for shape in shapes]
    shared = set.intersection(*texts)
    begun = shared.intersection(*({c for text in shape.literals[:early] for c in chunks(text)} for shape in shapes))

    def best(found: Iterable[bytes]) -> bytes:
        return max(found, key=lambda text: (any(chr(b).isalpha() for b in text), len(text), text), default=b"")

    if len(best(begun)) >= MIN_GATE:
        return [best(begun).decode("utf-8")]
    if len(best(shared)) >= MIN_GATE:
        return [best(shared).decode("utf-8")]
    return sorted({best(each).decode("utf-8") for each in texts})


def rule(
    name: str,
    event: str,
    members: Iterable[tuple[Shape, Mapping[int, Cell]]],
    group: Group | None = None,
    *,
    blank: bool = False,
    **keys: Any,
) -> Induced | None:
    """Return the rule of the records of ``members``, each with the cells that are read; None where it reads no sample.

    ``blank``: where records have no text in common, a blank in each of them is their literal.
    """
    members = [*members]
    branches = dict.fromkeys(line(shape, cells) for shape, cells in members)
    if len(branches) > MOST_BRANCHES:  # words of each record's own are behind what is read
        branches = dict.fromkeys(line(shape, cells, max(cells)) + r"[^\n]*+" for shape, cells in members)
    counting = [at for at, cell in members[0][1].items() if STRUCTURAL & {*cell.fields}] if members else []
    texts = gates([shape for shape, _ in members], max(counting, default=-1) + 1) if members else []
    fields = {name: spec for _, cells in members for cell in cells.values() for name, spec in cell.fields.items()}
    samples = [sample for shape, _ in members for sample in shape.samples]
    if blank and not all(texts):
        texts = next(([mark] for mark in (" ", "\t") if all(mark.encode() in sample for sample in samples)), texts)
    if not texts or not all(texts) or len(branches) > MOST_BRANCHES:
        return None
    pattern = next(iter(branches)) if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    literals = texts[0] if len(texts) == 1 else texts
    made = Induced(name, {"event": event, **keys, "literal": literals, "pattern": pattern, "fields": fields}, pattern, group)
    made.count = sum(shape.count for shape, _ in members)
    made.samples = samples_of([shape for shape, _ in members], made)
    made.templates = [shape.literals for shape, _ in members]
    return made if made.samples else None


def samples_of(shapes: Sequence[Shape], made: Induced) -> list[bytes]:
    """Return up to four records, of different shapes first."""
    compiled, picked = compile_pattern(made.pattern), list[bytes]()
    for turn in range(MAX_SAMPLES):
        for shape in sorted(shapes, key=lambda shape: (-shape.count, shape.first)):
            found = compiled.search(shape.samples[(turn + 1) // 2 * (-1) ** turn % len(shape.samples)])
            text = found.group().rstrip() if found is not None and made.allows(found) else b""
            if text and text not in picked and len(text) <= MOST_SAMPLE:
                picked.append(text)
    return picked[:4]


def before_training(group: Group) -> bool:
    """True where step 0 of a counter by tens has only a learning rate: a setting from before training."""
    main = group.main
    step = main.counter.step
    rates = {role.metric for role in main.roles.values() if role.metric is not None}
    others = [c for at, c in enumerate(main.shape.columns) if at not in main.roles and c.kind == NUMBER and not c.integer]
    if step is None or rates != {"learning_rate"} or len(main.roles) > 1 or any(column.varies for column in others):
        return False
    firsts = [r.shape.columns[r.counter.step].first for r in group.readings if r.counter.step is not None]
    return 0 in firsts and (main.shape.columns[step].stride or 1) > 1


def induce(group: Group, name: str, others: Sequence[Reading]) -> Induced | None:
    """Return the rule that reads a group, and those ``others`` that begin alike and add figures; None if none fits."""
    main = group.main
    members = [main, *(r for r in sorted(group.readings, key=lambda r: (-r.shape.count, r.shape.first)) if r is not main)]
    if any(_torn(main.shape, other.shape) for other in others):
        return None  # lines are cut at the width of a screen
    alike = [r for r in (kin(main, other) for other in others) if r is not None]
    if not all(_fits(main, other) for other in alike):
        return None  # nothing on the line parts them
    members += alike
    known: dict[str, tuple[str, Spec]] = {}
    found: list[tuple[Reading, Mapping[int, Cell]]] = []
    idle = before_training(group)
    for reading in members:
        counter = replace(main.counter, step=reading.counter.step, epoch=reading.counter.epoch)
        if (counter.step is None, counter.epoch is None) != (main.counter.step is None, main.counter.epoch is None):
            counter = reading.counter
        cells = counters_of(reading, counter, idle)
        taken = {name for cell in cells.values() for name in cell.fields}
        for at, role in {**reading.roles, **(bare_figures(reading) if reading is main else {})}.items():
            key = role.metric or reading.names[at].words
            if at in cells or (reading is not main and key not in known and role.kind in OTHERS):
                continue
            cell = metric_cell(reading, at, role, taken, known[key][0] if key in known else "")
            if cell is None or taken & {*cell.fields}:
                continue
            ((called, spec),) = cell.fields.items()
            if known.setdefault(key, (called, spec)) != (called, spec):
                continue
            cells[at], taken = cell, taken | {called}
        told = [(role.kind, reading.names[at].words) for at, role in reading.roles.items() if at in cells]
        if any(kind in (LOSS, PART) or (kind in (METRIC, *OTHERS) and words) for kind, words in told):
            found.append((reading, cells))
    if not found or found[0][0] is not main:
        return None
    found = _read_throughout(found)
    keys: dict[str, Any] = {}
    if main.counter.mode == EPOCHS and main.counter.heading is not None:
        keys["counts"] = "epoch"
    elif main.bar:
        keys["redraw"] = True
    starts = [r.counter.epochs_from for r in group.readings if r.counter.mode == main.counter.mode]
    if main.counter.mode in (PER_EPOCH, EPOCHS) and min(starts) == 0:
        keys["epochs_from"] = 0
    keyed = {"blank": bool(main.shape.header), **keys}
    made = rule(name, "step", [(reading.shape, cells) for reading, cells in found], group, **keyed)
    if made is not None:
        read = {id(reading.shape) for reading, _ in found}
        left = (r for r in others if id(r.shape) not in read and not (r.evaluation or r.apart))
        made.unread = _unread(main, found[0][1], left)
        made.counting = _counting(found[0][1])
    return made


def _read_throughout(members: Sequence[tuple[Reading, Mapping[int, Cell]]]) -> list[tuple[Reading, Mapping[int, Cell]]]:
    """Return the members without the metrics that are printed in records of one of them, but not read there.

    Their least or last value may be one of those: ``throughput: 990 tokens/s``, ``throughput: 1.03 ktokens/s``.
    """
    named = {field: reading.names[at].words for reading, cells in members for at, cell in cells.items() for field in cell.fields}
    left_out: set[str] = set()
    for reading, cells in members:
        own = {field for cell in cells.values() for field in cell.fields}
        printed = {name.words for name, column in zip(reading.names, reading.shape.columns, strict=True) if column.kind == NUMBER}
        left_out |= {field for field, words in named.items() if field not in own and words in printed - {""}}
    left_out -= {*STRUCTURAL, "loss"}
    return [(r, {at: c for at, c in cells.items() if left_out.isdisjoint(c.fields)}) for r, cells in members]


def _counting(cells: Mapping[int, Cell]) -> tuple[int, ...]:
    """Return the columns of the ``COUNTERS`` that the cells read."""
    named = {name: at for at, cell in cells.items() for name in cell.fields}
    return tuple(named[name] for name in COUNTERS if name in named)


def _unread(main: Reading, cells: Mapping[int, Cell], others: Iterable[Reading]) -> list[tuple[bytes, list[tuple[float, ...]]]]:
    """Return the records of ``others`` that begin as those of ``main`` do, up to the last counter, and have figures."""
    counting = _counting(cells)
    last = max(counting, default=-1)
    if last <= main.glued or any(at < last for at in main.roles):
        return []
    begun = _beginning(main.shape, last)
    least = min(int(spec.get("at_least", 0)) for cell in cells.values() for spec in cell.fields.values())
    found = []
    worded = any(re.search(rb"[A-Za-z]{2}", text) for text in begun or ())
    for other in others:
        figures = (other.roles and worded) or any("loss" in name.spelled for name in other.names[last + 1 :])
        figures = figures or _is_cut(main.shape, other.shape)
        if figures and _beginning(other.shape, last) == begun and _one_total(main, other, last):
            columns = [other.shape.columns[at] for at in counting]
            rows = list(zip(*(column.numbers for column in columns), strict=True))
            if main.counter.mode == EPOCHS and main.counter.step is not None:  # of these bars only full ones are read
                rows = [row for row, token in zip(rows, columns[0].values, strict=True) if token.value == token.total]
            places = [tuple(v for v in row if v is not None) for row in rows if all(v is not None and v >= least for v in row)]
            found.append((other.shape.samples[0], places))
    return found


def _torn(shape: Shape, other: Shape) -> bool:
    """Return whether records of one shape are those of the other without the first letters of a word."""
    before = shape.words_before(other) or other.words_before(shape) or b""
    begun = min((each.literals[0].strip() for each in (shape, other)), key=len)
    return before[-1:].isalpha() and begun[:1].isalpha()


def _is_cut(shape: Shape, other: Shape) -> bool:
    """Return whether records of ``other`` are those of ``shape``, cut at a place before their end."""
    end = len(other.columns)
    whole, part = shape.texts(), other.texts()
    return end < len(shape.columns) and whole[:end] == part[:end] and whole[end].startswith(part[end])


def _one_total(main: Reading, other: Reading, last: int) -> bool:
    """Return whether the counters of both kinds of records may be one: those of another bar, or launch, have another total."""
    if last < 0:
        return True
    totals = [reading.shape.columns[last].totals for reading in (main, other)]
    bar = main.counter.mode == EPOCHS and main.counter.step is not None
    return not (bar or main.counter.mode == GLOBAL) or totals[0] == totals[1]


def _beginning(shape: Shape, last: int) -> list[bytes] | None:
    """Return the texts of a record up to its column ``last``, without a bar before it; None if it has fewer columns."""
    begin = glued_bar(shape) + 1
    begin = begin if begin <= last else 0
    texts = shape.texts(last + 1)[begin:]
    return [texts[0].lstrip(b"] \t" if begin else None), *texts[1:]] if last < len(shape.columns) else None


def kin(main: Reading, other: Reading) -> Reading | None:
    """Return ``other`` read as ``main`` is, if its records begin as those do, with the same counters, and have their figures."""
    counting = main.counter.places
    last = max(counting, default=main.loss if main.loss is not None else -1)
    if main.bar and (behind := _behind_bar(main, other)) is not None:
        return behind
    begun = last >= 0 and main.shape.texts(last + 1) == other.shape.texts(last + 1)
    if not begun or len(other.shape.columns) <= last or other.shape.indented != main.shape.indented:
        return None
    if "first_batches" in other.doubts or other.apart or not _one_total(main, other, last):
        return None
    own = {word for text in main.shape.literals for word in re.findall(rb"[a-z]+", text.lower())}
    new = {word.decode() for text in other.shape.literals for word in re.findall(rb"[a-z]+", text.lower()) if word not in own}
    known = {main.names[at].words: role for at, role in main.roles.items()}
    first = last + 1 if counting else last
    roles = {at: known[name.words] for at, name in enumerate(other.names) if at >= first and name.words in known}
    if _is_cut(main.shape, other.shape):
        roles.pop(len(other.shape.columns) - 1, None)  # its last number may go on
    if new & main.vocabulary.evaluation or not roles:
        return None
    return replace(other, counter=main.counter, roles=roles)


def _behind_bar(main: Reading, other: Reading) -> Reading | None:
    """Return the part of ``other`` that is the bar of ``main``, if another record stands behind it on the line."""
    one, two, end = main.shape, other.shape, len(main.shape.columns)
    if (
        one.texts(end) != two.texts(end)
        or len(two.columns) <= end
        or not two.literals[end].startswith(one.literals[end].rstrip() or b"\0")
    ):
        return None
    shape = replace(two, columns=two.columns[:end], literals=[*two.literals[:end], OPEN])
    return replace(other, shape=shape, names=other.names[:end], counter=main.counter, roles=main.roles, glued=-1)


def _fits(main: Reading, other: Reading) -> bool:
    """Return whether records of ``other`` may be of the series of ``main``: few of its positions are taken."""
    places = main.counter.places
    rows = [set(zip(*(r.shape.columns[at].numbers for at in places), strict=True)) for r in (main, other)]
    return not other.evaluation or rows[0].isdisjoint(rows[1])


def bare_figures(main: Reading) -> dict[int, Role]:
    """Return the figures of unknown names that no separator parts from them, by their places: ``| sep -2.72 | rms 1.06``.

    Behind a separator each is kept under its label; those of a table have none.
    """
    found: dict[int, Role] = {}
    vocabulary = main.vocabulary
    for at, (name, column) in enumerate(zip(main.names, main.shape.columns, strict=True)):
        words = name.spelled
        free = bool(main.shape.header) or not (name.sure or name.evaluation)
        plain = column.kind == NUMBER and not column.integer and name.text and free and name.unit in (None, "%")
        apart = at in main.roles or name.several or name.bracket or at <= main.glued
        spoken = 0 < len(words) <= 3 and vocabulary.foreign.isdisjoint(words) and name.text[:1].isalpha()
        moves = column.distinct > 1
        if plain and spoken and moves and not apart and counter_of(words, vocabulary) is None and len(found) < MOST_BARE:
            found[at] = Role(PART, unit="percent" if name.unit == "%" else None)
    return found


class Foreign(NamedTuple):
    """Records with other words before them than those of a rule, which are not read: one of them, and how many there are.

    ``places``: the ``COUNTERS`` of the first.
    """

    rule: str
    sample: bytes
    records: int
    places: list[tuple[float, ...]]


def foreign(rule: Induced, others: Iterable[Reading]) -> list[Foreign]:
    """Return the records of ``others`` that are those of the ``rule`` with other words before them.

    Not of records that count nothing: they are another kind of line of the same program.
    """
    readings = rule.group.readings if rule.group is not None else []
    found: list[Foreign] = []
    for reading in others:
        shape = reading.shape
        moving = shape.count <= 2 or any(c.rises or c.drops for c in shape.columns if c.integer)
        if moving and not reading.evaluation and any(shape.words_before(r.shape) is not None for r in readings):
            rows = zip(*(shape.columns[at].numbers for at in rule.counting), strict=True)
            places = [tuple(value for value in row if value is not None) for row in rows]
            found.append(Foreign(rule.name, shape.samples[0], shape.count, places))
    return found


def siblings(rule: Induced, others: Iterable[Reading]) -> list[tuple[bytes, int]]:
    """Return unread records that differ from those of ``rule`` only in a name before the counter: sample and count of each kind.

    The names differ in their digits (``T0 epoch 3``, ``T1 epoch 3``) or are the first word of each line; of the latter there are
    several, and a tenth of the records of the rule at least.
    """
    readings, found = rule.group.readings if rule.group is not None else [], list[tuple[bytes, int]]()
    named = list[tuple[bytes, int]]()
    for reading in others:
        told = {_difference(plain, reading.shape) for plain in readings} - {""}
        if told and not (reading.evaluation or "quoted" in reading.against):
            (found if "digits" in told else named).append((reading.shape.samples[0], reading.shape.count))
    count = sum(n for _, n in named)
    return [*found, *(named if count > 1 and count * FEWER >= rule.records else [])]


FEWER = 10
"""Records with other names count if they are at least 1 / ``FEWER`` of the rule's records."""


def _difference(plain: Reading, shape: Shape) -> str:
    """Return the only difference of two kinds of records: "digits" of a name, the first "word" before the counter, or "".

    One of the kinds may have one cell more at its end.
    """
    last, end = max(plain.counter.places or [*plain.roles][:1]), min(len(plain.shape.columns), len(shape.columns))
    one, two = plain.shape.texts(), shape.texts()
    whole = one[end] == two[end] if len(one) == len(two) else min(one, two, key=len)[end] == b""
    if abs(len(one) - len(two)) > 1 or last >= end or one[last + 1 : end] != two[last + 1 : end] or not whole:
        return ""
    if not re.search(rb"[A-Za-z]", b"".join(one[last + 1 :])):
        return ""  # the figure is named before the counter
    begun = [b"\0".join(texts[: last + 1]) for texts in (one, two)]
    masked = [re.sub(rb"\d+", b"0", text) for text in begun]
    if masked[0] == masked[1]:
        return "digits" if begun[0] != begun[1] else ""
    rests = [re.sub(rb"\A[^\W\d_]{2,} ", b"", text) for text in begun]
    return "word" if rests[0] == rests[1] and begun[0] != rests[0] and begun[1] != rests[1] else ""
