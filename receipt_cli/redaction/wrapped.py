"""Mask secrets that a terminal wrapped at the ends of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from receipt_cli.patterns import compile_later
from receipt_cli.redaction.assignments import LOOSE, SURE, says_nothing
from receipt_cli.redaction.forms import FORM_LEADS, FORMS

_LEAST = 40
"""Width of the narrowest terminal in use, in characters: shorter lines were not wrapped."""
_PREFIX = r"(?:\[[A-Za-z_]{0,12}[0-9]{1,5}\]:?[ ]?|[0-9]{1,5}:[ ]|\([A-Za-z_]{1,32}[ ]pid=[0-9]{1,9}[^)\n]{0,64}\)[ ])?"
"""The rank label at the start of each line."""
_BREAK = compile_later(rf"(?<=[A-Za-z0-9+/=_:-])[ ]?[│┃|]?\n{_PREFIX}[ \t│┃|]{{0,60}}(?P<rest>[A-Za-z0-9+/=_.-]{{2,400}})")
_STARTS = compile_later(r"[A-Za-z_.]{2,40}=[^=]|[0-9]{4}-[0-9]{2}-|[0-9]{2}:[0-9]{2}")
"""The start of a new line: an assignment, a date or a time."""
_CAPITALS = frozenset({"CRITICAL", "CUDA", "DEBUG", "ERROR", "FATAL", "GPU", "INFO", "NCCL", "NOTE", "TRACE", "WARN", "WARNING"})
_JOINT = compile_later(r"[-_.:]")
_HEAD = 400
_MOST_LINES = 16


def mask_wrapped(text: str) -> str:
    """Mask all parts of each secret that continues after a line of 40 or more characters.

    The continuation must not be a word, because a secret may also end with its line.
    """
    pieces: list[str] = []
    done = 0
    behind = 0
    while (stop := text.find("\n", line := behind)) >= 0:
        behind = stop + 1
        found = _break_at(text, stop) if stop - line >= _LEAST else None
        if found is None:
            continue
        at = found.start()
        if at - line < _LEAST or at <= done or _begins_line(found["rest"]):
            continue
        head = max(line, done, at - _HEAD)
        parts = [(head, at), *_rests(text, found)]
        known = _spanning([text[start:end] for start, end in parts])
        if known is None:
            continue
        begin, size, kind = known
        for start, end in parts:
            covered = min(end - start, begin + size) - max(0, begin)
            if covered > 0:
                first = start + max(0, begin)
                pieces += [text[done:first], f"[redacted:{kind}]"]
                done = first + covered
            begin -= end - start
    return "".join([*pieces, text[done:]]) if pieces else text


def _break_at(text: str, end: int) -> re.Match[str] | None:
    """Match ``_BREAK`` around the end of a line; skip a frame and a blank before it."""
    at = end - 1 if text[end - 1] in "│┃|" else end
    return _BREAK.match(text, at - 1 if text[at - 1] == " " else at)


def _rests(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the continuation; a line that is one run of letters may itself continue."""
    for _ in range(_MOST_LINES):
        start, end = found.span("rest")
        yield start, end
        after = _BREAK.match(text, end)
        if after is None or end - start < _LEAST or _begins_line(after["rest"]):
            return
        found = after


def _spanning(parts: list[str]) -> tuple[int, int, str] | None:
    """Return start, length and class of a secret in the joined ``parts`` that crosses the end of the first part."""
    joined, first = "".join(parts), len(parts[0])
    for kind, _, pattern in (FORMS[number] for number in FORM_LEADS.groups_in(joined)):
        for found in pattern.finditer(joined):
            if found.start() < first < found.end():
                return found.start(), found.end() - found.start(), kind
    lowered = joined.lower()
    if len(lowered) != len(joined):
        return None
    for pattern in (SURE, LOOSE):
        for found in pattern.finditer(lowered):
            start, end = found.span("secret")
            if start < first < end and not says_nothing(joined[start:first]) and _is_key(joined[start:end]):
                return start, end - start, "named"
    return None


def _is_key(value: str) -> bool:
    return len(value) >= 16 and any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not says_nothing(value)


def _begins_line(rest: str) -> bool:
    """Return whether text cannot continue a secret: words (``torch.OutOfMemoryError``, ``GPU0``), an assignment, a time."""
    return _STARTS.match(rest) is not None or all(map(_is_word, _JOINT.split(rest)))


def _is_word(part: str) -> bool:
    letters = part.rstrip("0123456789")
    if len(part) - len(letters) > 3 or (letters and not letters.isalpha()):
        return False
    return letters.islower() or 3 * sum(map(str.isupper, letters)) <= max(3, len(letters)) or letters in _CAPITALS
