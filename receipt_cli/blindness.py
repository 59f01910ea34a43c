"""Does a pattern tell one digit from another? If not, whether and where it matches a record depends on its layout alone.

The layout of a record is its bytes with every digit masked. A pattern is digit-blind when each place of it that
consumes or inspects a byte accepts all ten digits or none of them: then any two records of one layout take the same way
through it, and what was proven for one of them holds for the other.
"""

from __future__ import annotations

import re

_DIGITS = frozenset(b"0123456789")
_SHORTHANDS = {"d": True, "w": True, "S": True, "D": False, "W": False, "s": False, "h": False, "v": False, "R": False}
"""Escapes that stand for a set of bytes, and whether the digits are in it."""
_ANCHORS = frozenset("bBAZzGKmM")
_CONTROL = frozenset("ntrfave0")
_QUANTIFIER = re.compile(r"\{\d*,?\d*\}")
_GROUP = re.compile(r"\(\?(?:P?<[A-Za-z_]\w*>|[aimsLu]*(?:-[ims]+)?:|[:|>]|<?[=!]|[aims]+\)|#[^)]*\))")
_CALL = re.compile(r"\(\?&[A-Za-z_]\w*\)|\(\?\(DEFINE\)")
_RANGE = re.compile(r"(\\?.)-(\\?[^\]])", re.S)
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")


def kept_after(pattern: str) -> frozenset[str] | None:
    """Return the characters behind which digits matter to ``pattern`` (in the syntax of ``regex``); None: they may anywhere.

    A literal digit is only compared where the literal character before it matched: ``Acc@1`` cares for the digits
    behind an ``@``, and for no others. What this reading does not know for sure (back references, recursion by number,
    conditions, properties, fuzzy matching) counts as None.
    """
    kept: set[str] = set()
    at = 0
    before: str | None = None  # the literal character that must stand right before
    while at < len(pattern):
        char = pattern[at]
        literal: str | None = None
        if char == "\\":
            length = _escape(pattern, at)
            if not length:
                return None
            literal = pattern[at + 1] if not pattern[at + 1].isalnum() else None
            at += length
        elif char == "[":
            end = _class_end(pattern, at)
            if end < 0 or not _blind_class(pattern[at + 1 : end]):
                return None
            at = end + 1
        elif char == "(":
            call = _CALL.match(pattern, at)
            group = _GROUP.match(pattern, at) if pattern.startswith("(?", at) else None
            if pattern.startswith("(?", at) and group is None and call is None:
                return None
            at = call.end() if call else group.end() if group else at + 1
        elif char == "{":
            found = _QUANTIFIER.match(pattern, at)
            if found is None and pattern[at + 1 : at + 2].isalpha():
                return None  # fuzzy matching: {e<=1}
            at = found.end() if found is not None else at + 1
        elif char.isdigit():
            if before is None:
                return None
            kept |= {before.lower(), before.upper()}
            at += 1
            literal = before
        else:
            literal = char if char not in "^$.|)?*+" else None
            at += 1
        if literal is not None and pattern[at : at + 1] in ("?", "*", "{", "|"):
            literal = None
        before = literal
    return frozenset(kept)


def _escape(pattern: str, at: int) -> int:
    """Return the length of the escape at ``at`` where it is blind and known, else 0."""
    char = pattern[at + 1 : at + 2]
    if char in _SHORTHANDS or char in _ANCHORS or char in _CONTROL:
        return 2 if not pattern[at + 2 : at + 3].isdigit() or char != "0" else 0
    if char and not char.isalnum():
        return 2
    return 0


def _class_end(pattern: str, at: int) -> int:
    """Return where the set that opens at ``at`` closes, or -1 for one inside another (not one of ``re``'s)."""
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern):
        if pattern[end] == "\\":
            end += 2
        elif pattern[end] == "]":
            return end
        elif pattern.startswith("[:", end):
            return -1
        else:
            end += 1
    return -1


def _blind_class(body: str) -> bool:
    """True when a set holds all digits, or none."""
    found: set[int] = set()
    at = 1 if body.startswith("^") else 0
    while at < len(body):
        low, length = _member(body, at)
        if low is None:
            return False
        at += length
        if isinstance(low, frozenset):
            found |= low
            continue
        if body[at : at + 1] == "-" and at + 1 < len(body):
            high, length = _member(body, at + 1)
            if not isinstance(high, int):
                return False
            found |= _DIGITS & set(range(low, high + 1))
            at += 1 + length
        else:
            found |= _DIGITS & {low}
    return not found or found == _DIGITS


def _member(body: str, at: int) -> tuple[int | frozenset[int] | None, int]:
    """Return the code of the character at ``at``, or the digits of the set it stands for, and how long it is."""
    if body[at] != "\\":
        return ord(body[at]), 1
    char = body[at + 1 : at + 2]
    if char in _SHORTHANDS:
        return (_DIGITS if _SHORTHANDS[char] else frozenset()), 2
    if char in _CONTROL and char != "0":
        return 0, 2
    if char == "x" and re.fullmatch(r"[0-9a-fA-F]{2}", body[at + 2 : at + 4]):
        return int(body[at + 2 : at + 4], 16), 4
    if char and not char.isalnum():
        return ord(char), 2
    return None, 0
