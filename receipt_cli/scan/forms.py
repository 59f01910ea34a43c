"""The form of a record: the words before it, and how each of its numbers ends.

A rule may also match quoted records, those of other writers, and numbers of which a part is missing. Values do not show that,
but the form does, which all records of a layout share. So records are grouped by form during a scan, and ``scan/settled.py``
judges the forms of the whole log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.units import MORE_TIME
from receipt_cli.grammar.model import Field, Rule
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import CITATION, head_ends, in_json_string
from receipt_cli.scan.extraction.model import DROPPED, NOWHERE, TIME_BOX_S, Extraction, Span

MARK = "\0"
"""Separates the rule name from the form in the key of columns."""
MAX_FORMS = 128
"""Most forms kept for one rule; beyond that, the text before a record is free and proves nothing."""
OTHER = "*"
"""The form of all records beyond ``MAX_FORMS``."""
JUDGED = frozenset({"step", "eval"})
"""Events whose values become statistics."""
GROUPED, PART, GLUED, UNREAD = "grouped", "part", "glued", "unread"
"""Doubts about a number: its commas may separate thousands; a comma and digits follow it; other text is glued to it; its
label is printed without a number."""
MAX_LEAD = 60
_WORD = compile_later(rb"[A-Za-z]{2,}")
_BAR = compile_later(rb"[^\r\n]*\d%\|[^\]\r\n]*\]")
"""A bar up to its end; the text before it belongs to the bar."""
_TIME_WORDS = frozenset(
    b"it sec secs ms min mins hr hrs day days am pm utc gmt mon tue wed thu fri sat sun"
    b" jan feb mar apr may jun jul aug sep oct nov dec eta".split()
)
"""Words of times and bars, which vary from record to record."""
QUOTED = '{"'
"""Stands for the words before a record that is inside a string of a JSON object: quoted, whatever the others are."""
CITED = ":"
"""Ends the words before a record that a search found in a file: its name, and the line's number."""
SERVICE = "|"
_SERVICE = compile_later(rb"([A-Za-z][\w.-]*) +\| \Z")
"""A possible service name of Docker Compose, or the first word of a table row."""
_GROUPS = compile_later(rb"[-+]?\d{1,3}(?:,\d{3})+\Z")
_DECIMAL_COMMA = compile_later(rb",\d++(?!\.\d|,\d)|,\d{3}\.\d")
_BEGUN, _THREE = compile_later(rb"\d,\Z"), compile_later(rb"\d{3}\.\d")
"""The start of a number before a match, and a match that thousands may precede."""
_BEGIN = compile_later(rb"([^\d\r\n]*?[A-Za-z]{3}[^\d\r\n]*)\d")
"""How a record begins, up to its first number."""
_LETTERS = b" abcdefghijklmnopqrstuvwxyz"
_FIGURES = frozenset(b"%c" % byte for byte in b"0123456789.")
_TAIL = compile_later(rb"#|\.[A-Za-z#]|[A-Za-z_]\w*")
_HEAD = compile_later(rb"-\d|\[(?:[A-Za-z]|\d\d:\d\d|\d{4}-)")
"""A possible start of another record's head: a date, whose digits look like the number's, or a bracket before a word or time."""
_UNIT = compile_later(
    rb"[ \t]?((?:[kKMGT]|[kKMGT]i)?(?:B|[A-Za-z]{1,9}/(?:s|sec|second|min)|FLOPS?)|ns|us|ms|s|secs?|seconds?|min|h)(?![\w/])"
)
_DECIMALS = compile_later(rb"\.(\d*)")
_MORE_TIME = compile_later(MORE_TIME.encode() + rb"(?!/)")
_COMMA = compile_later(rb"(?<![\d,.])(\d{1,18}),(\d++)(?![,.]\d)")
_THOUSANDS = compile_later(rb"(?<![\w,.])\d{1,3}(?:,\d{3})++\.\d++(?![,.]\d)")
_SEPARATED = compile_later(rb"(?:(?:'|\xe2\x80\x99|\xc2\xa0|\xe2\x80[\x89\xaf])\d{3})++(?!\d)|(?: \d{3})++\.\d")
"""What follows the first digits of a number whose thousands a blank or an apostrophe separates."""
_DIVIDED = compile_later(rb"\d(?:[ ',]|\xe2\x80[\x89\x99\xaf]|\xc2\xa0)\Z")
"""The text of a cell before a number that is only a part of the cell's."""
_HEXADECIMAL = compile_later(rb"(?<!\w)[-+]?0[xX][\da-fA-F.]*+(?:[pP][-+]?)?\Z")
_BOUND = compile_later(rb"[\s:=][<>]\Z")
"""Before a number: a mark that says it is a bound, and no value."""
_ABSENT = compile_later(rb"(?i)(?<=[:=\s|(])(?:null|none|n/a|na|[-+]?1\.#\w{1,8}|[*?-]{2,12})(?=[\s,;|)\]}]|\Z)")
_WORDED = compile_later(
    rb"[ \t]*+[:=]?+[ \t]*+([^\s\d,;|(){}\[\]'\":=]{1,12}+)(?=[\s,;|)\]}]|\Z)(?![ \t]*+[:=]?+[ \t]*+[-+]?\.?\d)"
)
"""A cell that is neither a number nor the name of a number after it."""
_LABEL = compile_later(rb"[A-Za-z][A-Za-z_]*(?=['\"]?[ \t]*+(?:[:=|]|[^\sA-Za-z]|\Z|[A-Za-z]{1,4}[-+]?[ \t]*+(?:[,;|)]|\Z)))")
_EVALUATIONS = frozenset(["val", "valid", "validation", "eval", "test", "dev", "cv", "best", "mean", "avg", "average"])
_GAP, MAX_GAP = b" \t:=|'\"(-+", 8
"""Characters, and most bytes, between a label and its number."""
_BEFORE_COMMA = compile_later(rb"(?<![\d,.])[-+]?\d{1,18},\Z")
_BEHIND_COMMA = compile_later(rb",\d++(?:\.\d++)?(?:[eE][-+]?\d++)?(?![\d,.])")
MAX_WHOLE = 20
"""Bytes before a match that are searched for the start of its number."""
_NUMERIC = ("number", "integer")


class Form(NamedTuple):
    """A parsed form.

    ``lead``: the words before the record. ``doubts``: pairs of a column and ``GROUPED``, ``PART``, ``GLUED`` or ``UNREAD``.
    ``units``: pairs of a column and a unit as printed. ``last``: column and number of decimals of the number that ends the
    line.
    """

    lead: str = ""
    doubts: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, str], ...] = ()
    last: tuple[str, int] | None = None

    def text(self) -> str:
        """Return the form as a suffix of a column key; "" if it is empty."""
        if self == Form():
            return ""
        parts = [self.lead, *(f"?{name}={kind}" for name, kind in self.doubts), *(f"%{name}={unit}" for name, unit in self.units)]
        return MARK + "\t".join([*parts, *([f"${self.last[0]}={self.last[1]}"] if self.last is not None else [])])


@lru_cache(4096)
def read_form(text: str) -> Form:
    """Parse the suffix ``text`` of a column key."""
    lead, *parts = text.removeprefix(MARK).split("\t")
    pairs = [(part[0], *part[1:].rpartition("=")[::2]) for part in parts]
    last = next(((name, int(value)) for sign, name, value in pairs if sign == "$"), None)
    doubts, units = (tuple((name, value) for sign, name, value in pairs if sign == kind) for kind in "?%")
    return Form(lead, doubts, units, last)


def note_forms(record: bytes, read: Iterable[tuple[Rule, Sequence[Extraction]]]) -> None:
    """Set the form of each step and evaluation event that one grammar read in ``record``."""
    found = [(rule, event) for rule, events in read for event in events]
    ends = sorted({event.end for _, event in found})
    length = len(record.rstrip())
    for rule, event in found:
        if rule.event in JUDGED and rule.table is None and rule.block is None:
            begin = max((end for end in ends if end <= event.start), default=0)
            _read_whole(record, rule, event)
            event.form = Form(_lead(record, begin, event.start), *_numbers(record, rule, event, length)).text()


def readable(record: bytes) -> bytes:
    """Return ``record``, at the same length, with numbers in place of unreadable ones.

    A decimal comma becomes a point, and a mark of absence becomes zeros, so that rules find the record and its other numbers.
    """
    return without_absence(_COMMA.sub(rb"\1.\2", record))


@lru_cache(maxsize=2)
def without_absence(record: bytes) -> bytes:
    """Return ``record``, at the same length, with leading zeros for the commas between thousands of a number with a point, and
    zeros for marks of absence."""
    if b"," in record:
        record = _THOUSANDS.sub(lambda found: found[0].replace(b",", b"").rjust(len(found[0]), b"0"), record)
    return _ABSENT.sub(lambda found: b"0" * len(found[0]), record)


def without_words(record: bytes) -> bytes:
    """Return ``record``, at the same length, with the digit 0 in place of words that follow a metric's label."""
    spelled = bytearray(record)
    for label in _LABEL.finditer(record):
        cell = _WORDED.match(record, label.end())
        if cell is not None and label[0].decode("ascii").lower() in load_registry().by_alias:
            spelled[slice(*cell.span(1))] = b"0" * len(cell[1])
    return bytes(spelled)


def _read_whole(record: bytes, rule: Rule, event: Extraction) -> None:
    """Extend a number across a comma next to it: a pattern may match one side of the comma."""
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
    """Return the words before a record that begins at ``start``, without time stamps, prefixes and earlier records."""
    ends = [begin, *(end for end in head_ends(record) if begin < end and not record[start:end].strip())]
    text = record[ends[-1] : start]  # a blank of the envelope may be the match's
    if in_json_string(text):
        return QUOTED
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
    if CITATION.match(text):
        return " ".join(word.decode("ascii") for word in words)[: MAX_LEAD - 1] + CITED
    return (" ".join(word.decode("ascii") for word in words) + ('"' if quoted and words else ""))[:MAX_LEAD]


def _numbers(
    record: bytes, rule: Rule, event: Extraction, length: int
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], tuple[str, int] | None]:
    doubts, units, last = [], [], None
    torn = _torn_at(record, event)
    for name, span in _cells(record, rule, event):
        spec = rule.fields.get(name)
        doubt = _doubt(record, spec, event, span) or (PART if torn is not None and span[1] >= torn - 1 else None)
        if _DIVIDED.search(record, event.spans.get(name, span)[0], span[0]):
            doubt = PART  # the pattern of a value takes the end of its cell
        if doubt is not None:
            doubts.append((name, doubt))
        measured = spec is not None and spec.target[1].endswith(("_s", "_bytes", "_per_device"))  # a time, a rate, or bytes
        unit = _UNIT.match(record, span[1]) if measured else None
        if unit is not None:
            units.append((name, unit[1].decode("ascii")))
        if span[1] == length or record[span[1] : length] == b".":
            found = _DECIMALS.search(record, *span)
            last = name, 0 if found is None else len(found[1])
    doubts += [(name, UNREAD) for name in _labelled_only(record, rule, event)]
    return tuple(sorted(doubts)), tuple(sorted(units)), last


def _torn_at(record: bytes, event: Extraction) -> int | None:
    """Return where another record begins as this one does, inside a number: that one and those behind it are not its own."""
    begin = _BEGIN.match(record, event.start, event.end)
    place = record.find(begin[1], begin.end(), event.end + len(begin[1])) if begin is not None else -1
    behind = place + len(begin[1]) if begin is not None else 0
    return place if place > 0 and {record[place - 1 : place], record[behind : behind + 1]} <= _FIGURES else None


def _labelled_only(record: bytes, rule: Rule, event: Extraction) -> Iterator[str]:
    """Yield the fields whose label the record prints but whose value was not read (law 9)."""
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
    """Yield name and span of each number of an event, count-only ones excepted."""
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
    """Return the doubt about the number at ``span``, None if there is none."""
    text, end = record[slice(*span)], span[1]
    if _MORE_TIME.match(record, span[0] + len(text.rstrip(_LETTERS))):
        return PART
    if b"," in text:
        return GROUPED if spec is not None and spec.type == "number" and _GROUPS.match(text) else None
    if record[end : end + 1] == b"," and b"." not in text and text[-1:].isdigit() and _DECIMAL_COMMA.match(record, end):
        return PART
    if _BEGUN.match(record[max(0, span[0] - 2) : span[0]]) and (b"." not in text or _THREE.match(text)):
        return PART
    if _SEPARATED.match(record, end) and text.strip(b"+-").isdigit() and len(text.strip(b"+-")) <= 3:
        return GLUED if record[end : end + 1] == b" " else PART  # a blank may be between two columns
    before = record[max(0, span[0] - MAX_WHOLE) : span[0]]
    if _BOUND.search(before) or _HEXADECIMAL.search(before + text[:1].strip(b"0123456789.")):
        return GLUED
    open_end = event.end == end and text[-1:] in b"0123456789."
    if record[end : end + 1] == b"#" or _HEAD.match(record, end) or (open_end and _TAIL.match(record, end)):
        return None if _UNIT.match(record, end) or record[end : end + 1] in b"eExX%" else GLUED
    return None


def is_curve(spec: Field) -> bool:
    """Return whether a field is a curve such as a loss, which is never printed with thousands separators."""
    metric = load_registry().by_name.get(spec.target[1])
    return metric is not None and metric.klass == "curve"
