"""Labelled numbers of a record that no rule field reads: kept by label, or counted as dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.units import DURATION
from receipt_cli.grammar.model import Rule
from receipt_cli.patterns import compile_later, regex_later
from receipt_cli.scan.extraction.model import DROPPED, MAX_KEY, TIME_BOX_S, Extraction, Span, read_unregistered

if TYPE_CHECKING:
    import regex

_KEEPING = ("step", "eval")
MAX_LABELLED = 64
"""Most labelled numbers kept from one record."""
_LABELLED = regex_later(
    rb"(?<![\w./%@#-])(?P<key>[A-Za-z_][\w./@%#-]*+(?: [A-Za-z_][\w./@%#-]*+){0,3}(?: \([\w%/]++\))?+)"
    rb"[\"']?[ \t]?[=:][ \t]{0,16}"
    rb"(?P<number>(?>" + DURATION.encode() + rb"|"
    rb"[-+]?(?:\d++(?:,\d{3})*+(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+|(?i:[-+]?(?:nan|inf))(?!\w)))"
    rb"(?P<unit>(?: ?[KMGTP]i?B|[A-Za-z%][A-Za-z/%]{0,11})?+)(?<!%(?=\|))(?=[\s,;|)\]}\"'<]|\Z)"
)
"""A label of up to four words, a colon or equals sign, a number and an attached unit; not a percentage before a bar."""
_LABEL_END = compile_later(rb"[=:][ \t]{0,16}[-+]?(?:\.?\d|[nNiI])")
_FEW = 6
"""Most label ends that are searched one by one."""
_OTHERS = bytes(byte if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_./@%#-() ") else 0 for byte in range(256))
"""Translation table: zero for bytes that labels never contain."""
_SECTION = regex_later(
    rb"(?:(?<![\w./%@#-])(?P<name>[A-Za-z][A-Za-z_-]{0,19}+) ?:|[\[(](?P<name>[A-Za-z][A-Za-z_-]{0,19}+)[\])]:?+)"
    rb"[ \t]++(?=[A-Za-z_])|(?<![\w./%@#-])(?P<name>[A-Za-z][A-Za-z_-]{0,19}+)[\[{(](?=[A-Za-z_][\w./%@#-]*+ ?[=:])"
)
"""A heading of labelled numbers in a line, without digits: ``Train: loss=1.2 acc=0.3 | Val: loss=1.4 acc=0.2``,
``loss[ctc=1.2], tot_loss[ctc=1.4]``."""
_OF_TRAINING = regex_later(r"(?<![A-Za-z])(?i:train(?:ing)?|trn)(?![a-z])")
"""A training label in an evaluation line, such as the epoch's mean training loss."""
_SOURCE = regex_later(rb"\.(?:py|c|cc|cpp|cu|h|hpp|go|rs|java|lua|jl)\Z")
"""A source file name; a line number follows its colon."""
_BEHIND_BAR = regex_later(rb"(?:it/s|s/it)(?:, [^\[\]\r\n]*+)?+\](?=[A-Za-z])")
"""The end of a bar that another writer's text follows at once."""
_DEVICES = frozenset([b"cuda", b"xpu", b"npu", b"hpu", b"mps", b"musa"])
"""Device names that a colon joins to an index."""


class Cell(NamedTuple):
    """A labelled number: its key and its text, each with its span."""

    key: str
    key_span: Span
    text: str
    span: Span


def keep_labelled(record: bytes, read: Sequence[tuple[Rule, Sequence[Extraction]]]) -> None:
    """Add the labelled numbers that no rule of a grammar reads to the event before them, as unregistered numbers.

    ``read`` are all rules of the grammar that read the record, with their events. Only step and evaluation events keep numbers;
    evaluations keep them under ``eval/KEY``, except training labels. Text right behind a bar is another writer's. A label printed
    twice is kept as ``HEADING/LABEL``. Without a heading it is ambiguous, and a mapping keeps only the keys its rule allows
    (of an evaluation all but the ignored ones, if it lists these): such cells are dropped and counted (see ``DROPPED``). Raises
    ``TimeoutError``.
    """
    keeping = [(r, e) for r, found in read if r.event in _KEEPING and r.table is None and r.block is None for e in found]
    if not keeping:
        return
    keeping.sort(key=lambda entry: entry[1].start)
    cells = _labelled(record, keeping[0][1].start)
    if not cells:
        return
    taken = {span for rule, events in read for event in events for span in _read_spans(rule, event)}
    labels = Counter(cell.key for cell in cells)
    below: Set[str] = frozenset()
    if len(labels) < len(cells):
        headed = [_with_heading(record, cell) if labels[cell.key] > 1 else cell for cell in cells]
        kept = Counter(cell.key for cell in headed)
        cells = [one if kept[one.key] == 1 else cell for one, cell in zip(headed, cells, strict=True)]
        below = kept.keys() - labels.keys()
        labels |= kept
    bars = [bar.end() for bar in _BEHIND_BAR.finditer(record, keeping[0][1].start, timeout=TIME_BOX_S)]
    for cell in cells:
        begin, end = cell.span
        if cell.span in taken or any(start < end and begin < stop for start, stop in taken):
            continue
        rule, event = next((r, e) for r, e in reversed(keeping) if e.start <= cell.key_span[0] or e is keeping[0][1])
        if any(event.start < bar <= cell.key_span[0] for bar in bars):
            continue
        plain = rule.event == "step" or cell.key in below or _OF_TRAINING.search(cell.key) is not None
        key = cell.key if plain else f"eval/{cell.key}"
        closed = rule.mapping is not None and not rule.mapping.other and (rule.event == "step" or not rule.mapping.ignore)
        if closed or labels[cell.key] > 1 or key in event.unregistered:
            key = f"{DROPPED}{cell.span[0] - event.start}{DROPPED}{cell.key}"
        event.keys.append(cell.key_span)
        name = _as_field(rule, event, cell.key) if plain and labels[cell.key] == 1 else None
        if name is not None:
            event.texts[name], event.spans[name] = cell.text, cell.span
            continue
        number = read_unregistered(cell.text)
        if number is None:
            event.unread.append(cell.span)
        else:
            event.unregistered[key] = number
            event.unregistered_spans[key] = cell.span


def _as_field(rule: Rule, event: Extraction, key: str) -> str | None:
    """Return the field of the event's rule that the label names and the event lacks; a marker may precede its label."""
    target = load_registry().by_alias.get(key.lower())
    if target is None or rule.event not in _KEEPING:
        return None
    fields = (
        n
        for n, s in rule.fields.items()
        if s.target == ("metric", target) and (s.type, s.unit, s.value) == ("number", None, None)
    )
    name = next(fields, None)
    return None if name in event.texts else name


def _with_heading(record: bytes, cell: Cell) -> Cell:
    """Return the cell with the heading before it added to its key, if there is one."""
    found = _SECTION.finditer(record, 0, cell.span[0], timeout=TIME_BOX_S)  # the label follows a bracket directly
    headings = [heading for heading in found if heading.end() <= cell.key_span[0]]
    if not headings:
        return cell
    key = f"{headings[-1]['name'].decode('ascii')}/{cell.key}"
    return cell._replace(key=key) if len(key) <= MAX_KEY else cell


def _read_spans(rule: Rule, event: Extraction) -> Iterator[Span]:
    """Yield the spans of an event's values; for a field that picks a part of its text, the span of that part."""
    yield from event.unregistered_spans.values()
    yield from event.declared
    for name, (start, end) in event.spans.items():
        pick = rule.fields[name].value
        found = pick.search(event.texts[name], timeout=TIME_BOX_S) if pick is not None else None
        yield (start, end) if found is None or found.group(1) is None else (start + found.start(1), start + found.end(1))


@lru_cache(8)
def _labelled(record: bytes, start: int) -> list[Cell]:
    """Return the labelled numbers of a record from ``start`` on; a known unit converts, another one joins the key.

    Cached, because the rules of several grammars read one record.
    """
    cells: list[Cell] = []
    for found in islice(_find_labelled(record, start), MAX_LABELLED):
        raw, number, unit = found.group("key", "number", "unit")
        if b"." in raw and _SOURCE.search(raw):
            continue
        if raw in _DEVICES and record[found.end("key") : found.start("number")] == b":":
            continue  # ``device='cuda:0'``
        if record[found.end() :].startswith((b" day,", b" days,")):
            continue  # ``eta: 1 day, 5:23:56``
        begin, end = found.span("key")
        first, _, others = raw.partition(b" ")
        if b"/" in first and record[begin - 1 : begin] == b" " and record[begin - 2 : begin - 1].isdigit():
            begin, raw = end - len(others), others  # ``23.6 samples/s events=0``
        key, text, span = raw.decode("ascii", "replace"), number.decode("ascii"), found.span("number")
        if unit and _is_unit(unit):
            text, span = text + unit.decode("ascii"), (span[0], found.end("unit"))
        elif unit:
            key = f"{key} ({unit.decode('ascii').strip()})"
        if 0 < len(key) <= MAX_KEY:
            cells.append(Cell(key, (begin, end), text, span))
    return cells


def _find_labelled(record: bytes, start: int) -> Iterator[regex.Match[bytes]]:
    """Yield the same matches as ``finditer`` but faster: search only before label ends, if there are few."""
    ends = [end.start() for end in _LABEL_END.finditer(record, start)]
    if len(ends) > _FEW:
        yield from _LABELLED.finditer(record, start, timeout=TIME_BOX_S)
        return
    others = record.translate(_OTHERS)
    for end in ends:
        if end >= start:
            end -= record[end - 1 : end] in (b" ", b"\t")
            end -= record[end - 1 : end] in (b"'", b'"')
            found = _LABELLED.search(record, max(start, others.rfind(b"\0", start, end) + 1), timeout=TIME_BOX_S)
            if found is None:
                return
            yield found
            start = found.end()


@lru_cache(256)
def _is_unit(unit: bytes) -> bool:
    return read_unregistered(f"1{unit.decode('ascii')}") is not None
