"""The last record of a log without a final line end: which part of it is certainly whole.

Only the text after a number ends it. So a number at the end of such a record, with or without a unit, counts only if earlier
records prove its length: they end with as many decimals or with the same text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import plain
from receipt_cli.scan.columns import RuleColumns, TextColumn
from receipt_cli.scan.segment import SegmentBody

PROOF = 3
"""Records with the same ending that prove the length of the last number."""
_TOKEN = compile_later(
    rb"(?<![^\s,;=|()\[\]{}\"'<>])[^\s,;=|()\[\]{}\"'<>%]*\d[^\s,;=|()\[\]{}\"'<>%]*(?:[ \t][A-Za-z/]{1,12})?$"
)
_GROUPED = compile_later(rb"(?<![\w.,])\d{1,3}(?:,\d{3})*,\d{0,3}$")
_NUMBER = compile_later(rb"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|(?<![A-Za-z_])(?:nan|inf(?:inity)?)(?![A-Za-z_]))", re.IGNORECASE)
_BAR = compile_later(rb"(?<=\|)(?:[ #]|\xe2\x96[\x88-\x8f])+(?=\|)")
_FIGURE = compile_later(rb"[0-9A-Za-z]")
_UNIT = compile_later(rb"\d([^\d]*[A-Za-z/])$")
_DECIMALS = compile_later(rb"[^.]*\d\.(\d+)(\D*)$")
_BLANKS = compile_later(rb"\s+")
_OPEN = compile_later(rb"[0 |]")
"""Characters at which the shape of a record may first differ from its text."""


def certain_part(record: bytes, before: bytes) -> tuple[bytes, bytes]:
    """Return the part of an unended ``record`` whose numbers are certainly whole, and its model.

    The model is an earlier record that begins alike and is longer; empty if there is none, or if an earlier record ends at the
    same place. ``before`` are the last bytes of the log, the record included.
    """
    text = plain(record + b"\n")[:-1].rstrip()
    shape = shape_of(text)
    lines = plain(before[: len(before) - len(record)]).replace(b"\r", b"\n").split(b"\n")[1 if len(before) > len(record) else 0 :]
    begin = _OPEN.split(shape, 1)[0]
    shapes = [(shape_of(line), line) for line in lines if line.lstrip().startswith(begin)]
    alike = [line for other, line in shapes if other == shape]
    longer = [(other[len(shape) :], line) for other, line in shapes if other.startswith(shape)] if b"0" in shape else []
    model = next((line for rest, line in reversed(longer) if _FIGURE.search(rest)), b"") if not alike else b""
    token = _last_token(text)
    if token is None or _is_proven(token[0], [_last_token(line.rstrip()) for line in alike]):
        return record, model
    return text[: token.start()], model


def _last_token(text: bytes) -> re.Match[bytes] | None:
    """Return the number at the end with its unit and thousands groups."""
    return _GROUPED.search(text) or _TOKEN.search(text)


def shape_of(text: bytes) -> bytes:
    """Return a record without its bar, each number (``nan`` too) as 0 and each run of blanks as one blank."""
    return _BLANKS.sub(b" ", _NUMBER.sub(b"0", _BAR.sub(b"", text))).strip()


def _is_proven(token: bytes, others: list[re.Match[bytes] | None]) -> bool:
    """Return whether similar records confirm the unit, the text or the decimals at the end of the last number."""
    ends = [other[0] for other in others if other is not None]
    unit = _UNIT.search(token)
    if ends and unit is not None and all(end.endswith(unit[1]) for end in ends):
        return True  # the unit follows the number in each
    if len(ends) < PROOF:
        return False
    if all(end == token for end in ends):
        return True
    own, forms = _decimals(token), [_decimals(end) for end in ends]  # nothing follows the longest of many
    return own is not None and forms.count(own) >= PROOF and all(form is not None and form <= own for form in forms)


def _decimals(token: bytes) -> tuple[bytes, int] | None:
    """Return the text after the decimals of a number, and the number of decimals; None for a whole number."""
    found = _DECIMALS.match(token)
    return None if found is None else (found[2], len(found[1]))


def is_closed(record: bytes) -> bool:
    """Return whether a record ends with a bracket: its numbers are whole."""
    return record.rstrip()[-1:] in (b"}", b"]", b")")


def figures(body: SegmentBody) -> dict[tuple[str, str], list[object]]:
    """Return the event count and all values of each rule, without positions and times."""
    found: dict[tuple[str, str], list[object]] = {}
    for key, columns in body.rules.items():
        named = (columns.numbers, columns.texts, columns.unregistered)
        unnamed = (columns.headers, columns.cells, columns.pairs)
        values = [{name: list(column.values) for name, column in kind.items()} for kind in named]
        found[key] = [len(columns), *values, *(list(column.values) for column in unnamed)]
    return found


def drop_open_texts(body: SegmentBody, longer: SegmentBody, facts: Mapping[tuple[str, str], Collection[str]]) -> bool:
    """Drop texts that change if a letter is appended; return whether any did.

    ``longer`` is the body of the record with a letter appended. ``facts`` are the fields, by rule, that may be dropped: a name
    may be cut, but not a known word such as a status.
    """
    dropped = False
    for key, columns in body.rules.items():
        theirs = longer.rules.get(key)
        for name in [name for name in columns.texts if name in facts.get(key, ())]:
            if theirs is not None and name in theirs.texts and theirs.texts[name].values != columns.texts[name].values:
                del columns.texts[name]
                dropped = True
    return dropped


def keep_known(last: SegmentBody, earlier: Mapping[tuple[str, str], Collection[str]], keys: Collection[tuple[str, str]]) -> bool:
    """Drop numbers that the rules ``keys`` never read before; return whether any was dropped.

    ``earlier`` has the names that each rule read. A rule without earlier records, or one that now lacks its usual step, loses
    the whole record.
    """
    dropped = False
    for key in [key for key in last.rules if key in keys]:
        columns, known = last.rules[key], earlier.get(key)
        if known is None or ("step" in known and "step" not in columns.numbers):
            del last.rules[key]
            dropped = True
        else:
            dropped |= _drop_new_names(columns.numbers, known)
            dropped |= _drop_new_names(columns.unregistered, known)
    return dropped


def note_unread(kept: Mapping[tuple[str, str], RuleColumns], whole: SegmentBody) -> None:
    """Note each number of a record that ``kept`` lacks because it may be cut as printed but unread."""
    for key, columns in kept.items():
        theirs = whole.rules[key]
        for name, column in (*theirs.numbers.items(), *theirs.unregistered.items()):
            if name not in columns.numbers and name not in columns.unregistered:
                columns.unread[name] = TextColumn()
                columns.unread[name].append(0, f"{column.values[0]:.12g}")


def keep_shared(body: SegmentBody, model: SegmentBody) -> None:
    """Drop from a cut record's ``body`` every rule and name that ``model``, a whole record, lacks."""
    for key in [key for key in body.rules if key not in model.rules]:
        del body.rules[key]
    for key, columns in body.rules.items():
        theirs = model.rules[key]
        _drop_new_names(columns.numbers, theirs.numbers)
        _drop_new_names(columns.texts, theirs.texts)
        _drop_new_names(columns.unregistered, theirs.unregistered)


def _drop_new_names(columns: dict[str, Any], known: Collection[str]) -> bool:
    names = [name for name in columns if name not in known]
    for name in names:
        del columns[name]
    return bool(names)
