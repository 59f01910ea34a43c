"""Mask private keys: whole ones, keys without beginning or end, and single lines of keys."""

from __future__ import annotations

import re

from receipt_cli.patterns import compile_later

MASK = "[redacted:private-key]"
_HEAD = r"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----"
_WHOLE = compile_later(_HEAD + r"[\s\S]{0,16384}?(?:-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----|\Z)")
_NO_END = compile_later(_HEAD + r"(?:[^-]|-(?!----)){0,65536}")
_END = compile_later(r"-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY = compile_later(r"(?<=Private-Lines: )[0-9]{1,4}\s(?:[A-Za-z0-9+/=]{1,76}\s){1,128}")
_LAST_WORD = compile_later(r"(?:\A|[^A-Za-z0-9+/])[A-Za-z0-9+/]{4,}={0,2}(?:\\[nr])?\Z")
_ALONE = compile_later(r"\A([ ]{0,8})(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{76})\Z")
"""A line of base64 exactly as long as a line of a key: it may have been cut out of a key."""
_LENGTHS = (64, 84)
"""Shortest and longest such line, in characters."""
_DER = compile_later(r"(?:MI[IGH]|MC4CAQ|MHcCAQ|b3BlbnNzaC1r)[A-Za-z0-9+/]{44,}={0,2}")
"""Beginning of a key or certificate in base64."""
_REACH = 16 * 1024
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
    while start > max(least, end - _REACH):
        before = text.rfind("\n", least, start - 1) + 1 or least
        if _LAST_WORD.search(text[before : start - 1][-200:]) is None:
            break
        start = before
    return start
