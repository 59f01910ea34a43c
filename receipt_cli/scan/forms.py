"""The form of a record of a rule: the words before it, and how each of its numbers ends.

A rule is searched in a line, so it also finds what is quoted there, what another writer printed, and a number of which a
part is missing. Nothing of that shows in the values. It shows in the form, which all records of a layout share: so a rule's
records are kept apart by their form while a log is scanned, and ``scan/settled.py`` judges the forms of the whole log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.grammar.model import Field, Rule
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import head_ends
from receipt_cli.scan.extraction.model import DROPPED, NOWHERE, TIME_BOX_S, Extraction, Span

MARK = "\0"
"""Parts the name of a rule from the form of its records, in the key of their columns."""
MAX_FORMS = 128
"""Forms of one rule that are kept apart: more say that what precedes a record is free text, which tells nothing."""
OTHER = "*"
"""The form of the records beyond that."""
JUDGED = frozenset({"step", "eval"})
"""Kinds of events whose figures become statistics."""
GROUPED, PART, GLUED, UNREAD = "grouped", "part", "glued", "unread"
"""How a number stands in doubt: its commas may part thousands; a comma and digits follow it; other text is glued to it; its
label is printed, and no number was read behind it."""
MAX_LEAD = 60
_WORD = compile_later(rb"[A-Za-z]{2,}")
_BAR = compile_later(rb"[^\r\n]*\d%\|[^\]\r\n]*\]")
"""A frame of a bar up to its end: whatever precedes it is the bar's."""
_TIME_WORDS = frozenset(
    b"it sec secs ms min mins hr hrs day days am pm utc gmt mon tue wed thu fri sat sun"
    b" jan feb mar apr may jun jul aug sep oct nov dec eta".split()
)
"""Words of times and of bars, which come and go from record to record."""
SERVICE = "|"
_SERVICE = compile_later(rb"([A-Za-z][\w.-]*) +\| \Z")
"""What may be the name of a service of compose, and the first word of a row of a table."""
_GROUPS = compile_later(rb"[-+]?\d{1,3}(?:,\d{3})+\Z")
_DECIMAL_COMMA = compile_later(rb",\d++(?!\.\d|,\d)|,\d{3}\.\d")
_BEGUN, _THREE = compile_later(rb"\d,\Z"), compile_later(rb"\d{3}\.\d")
"""What begins before a number, and a number that thousands may precede."""
_TAIL = compile_later(rb"#|\.[A-Za-z#]|[A-Za-z_]\w*")
_HEAD = compile_later(rb"-\d|\[[A-Za-z]")
"""How the head of another record may begin: with a date, of which digits are taken for those of the number, or a bracket."""
_UNIT = compile_later(
    rb"[ \t]?((?:[kKMGT]|[kKMGT]i)?(?:B|[A-Za-z]{1,9}/(?:s|sec|second|min)|FLOPS?)|ns|us|ms|s|secs?|seconds?|min|h)(?![\w/])"
)
_DECIMALS = compile_later(rb"\.(\d*)")
_COMMA = compile_later(rb"(?<![\d,.])(\d{1,18}),(\d++)(?![,.]\d)")
_ABSENT = compile_later(rb"(?i)(?<=[:=\s|(])(?:null|none|n/a|na|[-+]?1\.#\w{1,8}|[*?-]{2,12})(?=[\s,;|)\]}]|\Z)")
_WORDED = compile_later(
    rb"[ \t]*+[:=]?+[ \t]*+([^\s\d,;|(){}\[\]'\":=]{1,12}+)(?=[\s,;|)\]}]|\Z)(?![ \t]*+[:=]?+[ \t]*+[-+]?\.?\d)"
)
"""A cell that is no number, and no name of the number behind it."""
_LABEL = compile_later(rb"[A-Za-z][A-Za-z_]*(?=['\"]?[ \t]*+(?:[:=|]|[^\sA-Za-z]|\Z|[A-Za-z]{1,4}[ \t]*+(?:[,;|)]|\Z)))")
_EVALUATIONS = frozenset(["val", "valid", "validation", "eval", "test", "dev", "cv", "best", "mean", "avg", "average"])
_GAP, MAX_GAP = b" \t:=|'\"(-+", 8
"""What may part a label from its number, and how many bytes of it."""
_BEFORE_COMMA = compile_later(rb"(?<![\d,.])[-+]?\d{1,18},\Z")
_BEHIND_COMMA = compile_later(rb",\d++(?:\.\d++)?(?:[eE][-+]?\d++)?(?![\d,.])")
MAX_WHOLE = 20
"""Bytes before a number in which it may begin."""
_NUMERIC = ("number", "integer")


class Form(NamedTuple):
    """What a form says: the words before the record, the doubts about numbers, their units, and the one that ends the line.

    ``doubts`` are pairs of a column and ``GROUPED``, ``PART`` or ``GLUED``; ``units`` pairs of a column and a unit as printed;
    ``last`` is the column of the number at the end of the line and its number of decimals.
    """

    lead: str = ""
    doubts: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, str], ...] = ()
    last: tuple[str, int] | None = None

    def text(self) -> str:
        """Return the form as the key of columns has it; empty for a form that says nothing."""
        if self == Form():
            return ""
        parts = [self.lead, *(f"?{name}={kind}" for name, kind in self.doubts), *(f"%{name}={unit}" for name, unit in self.units)]
        return MARK + "\t".join([*parts, *([f"${self.last[0]}={self.last[1]}"] if self.last is not None else [])])


@lru_cache(4096)
def read_form(text: str) -> Form:
    """Return the form that is written as ``text``."""
    lead, *parts = text.removeprefix(MARK).split("\t")
    pairs = [(part[0], *part[1:].rpartition("=")[::2]) for part in parts]
    last = next(((name, int(value)) for sign, name, value in pairs if sign == "$"), None)
    doubts, units = (tuple((name, value) for sign, name, value in pairs if sign == kind) for kind in "?%")
    return Form(lead, doubts, units, last)


def note_forms(record: bytes, read: Iterable[tuple[Rule, Sequence[Extraction]]]) -> None:
    """Note the form of each event of steps and evaluations that the rules of one grammar read of ``record``."""
    found = [(rule, event) for rule, events in read for event in events]
    ends = sorted({event.end for _, event in found})
    length = len(record.rstrip())
    for rule, event in found:
        if rule.event in JUDGED and rule.table is None and rule.block is None:
            begin = max((end for end in ends if end <= event.start), default=0)
            _read_whole(record, rule, event)
            event.form = Form(_lead(record, begin, event.start), *_numbers(record, rule, event, length)).text()


def readable(record: bytes) -> bytes:
    """Return ``record``, of the same length, with numbers in the place of what nobody can read as one.

    A decimal comma becomes a point, and a mark of absence zeros: a rule finds such a record then, and its other numbers.
    """
    return _ABSENT.sub(lambda found: b"0" * len(found[0]), _COMMA.sub(rb"\1.\2", record))


def without_words(record: bytes) -> bytes:
    """Return ``record``, of the same length, with zeros in the place of what a label of a metric has instead of a number."""
    spelled = bytearray(record)
    for label in _LABEL.finditer(record):
        cell = _WORDED.match(record, label.end())
        if cell is not None and label[0].decode("ascii").lower() in load_registry().by_alias:
            spelled[slice(*cell.span(1))] = b"0" * len(cell[1])
    return bytes(spelled)


def _read_whole(record: bytes, rule: Rule, event: Extraction) -> None:
    """Take what a comma parts from a number into its text: a pattern may read one side of the comma."""
    for name, (start, end) in [*event.spans.items()]:
        spec = rule.fields[name]
        if (
            (start, end) == NOWHERE
            or spec.type != "number"
            or spec.value is not None
            or not record[start:end].strip(b"+-").isdigit()
        ):
            continue
        before, behind = _BEFORE_COMMA.search(record, max(0, start - MAX_WHOLE), start), _BEHIND_COMMA.match(record, end)
        if before is not None or behind is not None:
            span = start if before is None else before.start(), end if behind is None else behind.end()
            event.spans[name], event.texts[name] = span, record[slice(*span)].decode("ascii")
            event.end = max(event.end, span[1])


def _lead(record: bytes, begin: int, start: int) -> str:
    """Return the words between the envelope, or the record before it on the line, and a record."""
    ends = [begin, *(end for end in head_ends(record) if begin < end <= start)]
    text = record[ends[-1] : start]
    bar = _BAR.match(text) if b"%|" in text else None
    if bar is not None:
        text = text[bar.end() :]
        text = text[max(head_ends(text), default=0) :]
    words = [word for word in _WORD.findall(text) if word.lower() not in _TIME_WORDS]
    quoted = text.count(b'"') % 2 or text.count(b"'") % 2
    if (
        not words
        and (service := next((found for end in ends if (found := _SERVICE.search(record, begin, end))), None)) is not None
    ):
        return service[1].decode("ascii")[: MAX_LEAD - 1] + SERVICE
    return (" ".join(word.decode("ascii") for word in words) + ('"' if quoted and words else ""))[:MAX_LEAD]


def _numbers(
    record: bytes, rule: Rule, event: Extraction, length: int
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], tuple[str, int] | None]:
    doubts, units, last = [], [], None
    for name, span in _cells(record, rule, event):
        spec = rule.fields.get(name)
        doubt = _doubt(record, spec, event, span)
        if doubt is not None:
            doubts.append((name, doubt))
        unit = _UNIT.match(record, span[1]) if spec is not None and _is_measured(spec) else None
        if unit is not None:
            units.append((name, unit[1].decode("ascii")))
        if span[1] == length or record[span[1] : length] == b".":
            found = _DECIMALS.search(record, *span)
            last = name, 0 if found is None else len(found[1])
    doubts += [(name, UNREAD) for name in _labelled_only(record, rule, event)]
    return tuple(sorted(doubts)), tuple(sorted(units)), last


def _labelled_only(record: bytes, rule: Rule, event: Extraction) -> Iterator[str]:
    """Yield the fields whose label a record prints, and of which it has no value (law 9)."""
    missing = {
        s.target[1]: n for n, s in rule.fields.items() if s.target[0] == "metric" and n not in event.texts and s.type in _NUMERIC
    }
    if not missing:
        return
    read = {start for start, _ in (*event.spans.values(), *event.unregistered_spans.values(), *event.unread, *event.declared)}
    alias, before, end = load_registry().by_alias, "", -1
    for label in _LABEL.finditer(record, event.start):
        word = label[0].decode("ascii").lower()
        before = before if label.start() == end + 1 and record[end : end + 1] == b" " else ""
        target = alias.get(f"{before} {word}") or (None if before in _EVALUATIONS else alias.get(word))
        before, end = word, label.end()
        followed = any(end <= start <= end + MAX_GAP and not record[end:start].strip(_GAP) for start in read)
        if target in missing and not followed:
            yield missing.pop(target)


def _cells(record: bytes, rule: Rule, event: Extraction) -> Iterator[tuple[str, Span]]:
    """Yield the columns of the numbers of an event, each with its place; those that are only counted are left out."""
    for name, (start, end) in event.spans.items():
        spec = rule.fields[name]
        if (start, end) == NOWHERE or spec.type not in _NUMERIC:
            continue
        text = record[start:end].decode("ascii", "replace")
        found = spec.value.search(text, timeout=TIME_BOX_S) if spec.value is not None else None
        if spec.value is None:
            yield name, (start, end)
        elif found is not None and found.group(1) is not None and text.isascii():
            yield name, (start + found.start(1), start + found.end(1))
    for key, span in event.unregistered_spans.items():
        if span != NOWHERE and not key.startswith(DROPPED) and "\t" not in key:
            yield key, span


def _doubt(record: bytes, spec: Field | None, event: Extraction, span: Span) -> str | None:
    """Return why the number at ``span`` may not be whole, or not be what it seems; None if nothing says so."""
    text, end = record[slice(*span)], span[1]
    if b"," in text:
        return GROUPED if spec is not None and spec.type == "number" and _GROUPS.match(text) else None
    if record[end : end + 1] == b"," and b"." not in text and text[-1:].isdigit() and _DECIMAL_COMMA.match(record, end):
        return PART
    if _BEGUN.match(record[max(0, span[0] - 2) : span[0]]) and (b"." not in text or _THREE.match(text)):
        return PART
    open_end = event.end == end and text[-1:] in b"0123456789."
    if record[end : end + 1] == b"#" or _HEAD.match(record, end) or (open_end and _TAIL.match(record, end)):
        return None if _UNIT.match(record, end) or record[end : end + 1] in b"eExX%" else GLUED
    return None


def is_curve(spec: Field) -> bool:
    """True for a field of a curve such as a loss, whose thousands nobody parts with commas."""
    metric = load_registry().by_name.get(spec.target[1])
    return metric is not None and metric.klass == "curve"


@lru_cache(1024)
def _measured(target: str) -> bool:
    return target.endswith(("_s", "_bytes", "_per_device"))


def _is_measured(spec: Field) -> bool:
    """True for a field that has a unit: a time, a rate, or bytes."""
    return _measured(spec.target[1])
