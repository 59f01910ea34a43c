"""Mask secrets over several lines: private keys, and secrets that a terminal wrapped at the ends of lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from receipt_cli.patterns import compile_later
from receipt_cli.redaction.forms import FORM_LEADS, FORMS
from receipt_cli.redaction.places import LOOSE, SURE, says_nothing

MASK = "[redacted:private-key]"
_KEY_HEAD = r"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----"
_WHOLE = compile_later(_KEY_HEAD + r"[\s\S]{0,16384}?(?:-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----|\Z)")
_NO_END = compile_later(_KEY_HEAD + r"(?:[^-]|-(?!----)){0,65536}")
_END = compile_later(r"-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY = compile_later(r"(?<=Private-Lines: )[0-9]{1,4}\s(?:[A-Za-z0-9+/=]{1,76}\s){1,128}")
_LAST_WORD = compile_later(r"(?:\A|[^A-Za-z0-9+/])[A-Za-z0-9+/]{4,}={0,2}(?:\\[nr])?\Z")
_ALONE = compile_later(r"\A([ ]{0,8})(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{76})\Z")
"""A line of base64 exactly as long as a line of a key: it may have been cut out of a key."""
_LENGTHS = (64, 84)
"""Shortest and longest such line, in characters."""
_DER = compile_later(r"(?:MI[IGH]|MC4CAQ|MHcCAQ|b3BlbnNzaC1r)[A-Za-z0-9+/]{44,}={0,2}")
"""Beginning of a key or certificate in base64."""
_KEY_REACH = 16 * 1024
"""Characters searched before the end of a key: three times the longest key in use."""


def mask_keys(text: str) -> str:
    """Mask the private keys in ``text``."""
    if "PRIVATE KEY" in text:
        text = _NO_END.sub(MASK, _WHOLE.sub(MASK, text))
        text = _mask_rests(text)
    if "Private-Lines: " in text:
        text = _PUTTY.sub(MASK + "\n", text)
    if "MI" in text or "MC4CAQ" in text or "MHcCAQ" in text or "b3BlbnNzaC1r" in text:
        text = _DER.sub(MASK, text)
    return _mask_lone_lines(text) if len(text) >= _LENGTHS[0] else text


def _mask_lone_lines(text: str) -> str:
    shortest, longest = _LENGTHS
    lines = text.split("\n")
    if not any(shortest <= len(line) <= longest for line in lines):
        return text
    return "\n".join([_ALONE.sub(_mask_line, line) if shortest <= len(line) <= longest else line for line in lines])


def _mask_line(match: re.Match[str]) -> str:
    line = match.group()
    mixed = any(c.isdigit() for c in line) and any(c.islower() for c in line) and any(c.isupper() for c in line)
    return f"{match[1]}{MASK}" if mixed else line


def _mask_rests(text: str) -> str:
    """Mask the lines before the end of a key whose beginning is missing, back to the first line of other text."""
    pieces: list[str] = []
    done = 0
    for end in _END.finditer(text):
        pieces += [text[done : _rest_start(text, end.start(), done)], MASK]
        done = end.end()
    return "".join([*pieces, text[done:]])


def _rest_start(text: str, end: int, least: int) -> int:
    start = text.rfind("\n", least, end) + 1 or least
    if text[start:end].strip():  # on one line, as in JSON: from the blank before it
        start = max(text.rfind(" ", least, end), text.rfind("\n", least, end), least - 1) + 1
    while start > max(least, end - _KEY_REACH):
        before = text.rfind("\n", least, start - 1) + 1 or least
        if _LAST_WORD.search(text[before : start - 1][-200:]) is None:
            break
        start = before
    return start


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


def mask_wrapped(text: str, mask: Callable[[str], str]) -> str:
    """Mask all parts of each secret that continues after a line of 40 or more characters.

    The continuation must not be a word, because a secret may also end with its line. So ``mask`` masks the last line by itself,
    too: what is taken for the continuation may be the name of another secret.
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
        rest, _, _ = text[done:].partition("\n")
        begun = text[start:done]
        own = mask(begun + rest)
        if own != begun + rest:
            pieces.append(_behind(own, begun, rest))
            done += len(rest)
    return "".join([*pieces, text[done:]]) if pieces else text


def _behind(own: str, covered: str, rest: str) -> str:
    """Return the part of ``own``, a masked line, that shows ``rest``. Before masking, the line was ``covered + rest``.

    If a mask reaches from ``covered`` into ``rest``, return only the part of ``rest`` after that mask.
    """
    if own.startswith(covered):
        return own[len(covered) :]
    return rest[next(at for at in range(len(rest) + 1) if own.endswith(rest[at:])) :]


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
            value, crosses = joined[start:end], start < first < end and not says_nothing(joined[start:first])
            mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
            if crosses and len(value) >= 16 and mixed and not says_nothing(value):
                return start, end - start, "named"
    return None


def _begins_line(rest: str) -> bool:
    """Return whether text cannot continue a secret: words (``torch.OutOfMemoryError``, ``GPU0``), an assignment, a time."""
    return _STARTS.match(rest) is not None or all(map(_is_word, _JOINT.split(rest)))


def _is_word(part: str) -> bool:
    letters = part.rstrip("0123456789")
    if len(part) - len(letters) > 3 or (letters and not letters.isalpha()):
        return False
    return letters.islower() or 3 * sum(map(str.isupper, letters)) <= max(3, len(letters)) or letters in _CAPITALS
