"""Does a pattern tell one digit from another? If not, whether and where it matches a record depends on its layout alone.

The layout of a record is its bytes with every digit masked. A pattern is digit-blind when each place of it that
consumes or inspects a byte accepts all ten digits or none of them: then any two records of one layout take the same way
through it, and what was proven for one of them holds for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from receipt_cli.lazy_dataclass import NamedTuple
from receipt_cli.lazy_pattern import compile_later, find_stored

_DIGITS = frozenset(b"0123456789")
_SHORTHANDS = {"d": True, "w": True, "S": True, "D": False, "W": False, "s": False, "h": False, "v": False, "R": False}
"""Escapes that stand for a set of bytes, and whether the digits are in it."""
_ANCHORS = frozenset("bBAZzGKmM")
_CONTROL = frozenset("ntrfae")
_OPERATORS = frozenset("^$.|)?*+")
_SOME_DIGITS = "[]"
"""Stands for a set that holds some digits and not others."""
_SAME = "()"
"""Stands for a back reference."""
_DEFINE = "(?(DEFINE)"
_CALL = "(?&"
"""What a group holds may be called from elsewhere, too."""
_QUANTIFIER = compile_later(r"\{(?:\d+(?:,\d*)?|,\d+)\}")
_GROUP = compile_later(
    r"\(\?\([A-Za-z_]\w*\)|\(\*(?:PRUNE|SKIP|FAIL)\)"
    r"|\(\?(?:P?<[A-Za-z_]\w*>|[aims]*(?:-[ims]+)?:|[|>]|<?[=!]|[aims]+\)|\(DEFINE\)|&[A-Za-z_]\w*\))|\((?!\?)"
)
_BYTE = compile_later(r"\\x([0-9a-fA-F]{2})")
_REFERENCE = compile_later(r"\(\?P=([A-Za-z_]\w*)\)|\\([1-9])(?!\d)")


class Compared(NamedTuple):
    """What a pattern asks of digits: ``kept`` are the texts behind which it compares them with its own.

    ``echoes`` are the texts between two runs of digits that it compares with each other: ``/`` where ``40/40`` is the
    last batch. Texts are in lower case, which stands for both.
    """

    kept: frozenset[str] = frozenset()
    echoes: frozenset[str] = frozenset()


def kept_after(pattern: str) -> frozenset[str] | None:
    """Return the texts behind which digits matter to ``pattern``; None: they may anywhere, or it compares those of two places."""
    compared = digits_compared(pattern)
    return None if compared is None or compared.echoes else compared.kept


@cache
def digits_compared(pattern: str) -> Compared | None:
    """Return what ``pattern`` (in the syntax of ``regex``) asks of digits; None: it may compare them anywhere.

    A literal digit is only compared where the literal characters before it matched: ``Acc@1`` cares for the digits
    behind ``acc@``, and for no others. What this reading does not know for sure (most back references, recursion by
    number, properties, fuzzy matching, verbose patterns) counts as None. Bytes from 128 on are named by the character of
    their number.
    """
    stored = find_stored("digits", pattern)
    if stored is None:
        return _digits_compared(pattern)
    (found,) = stored
    return None if found is None else Compared(*map(frozenset, found))


def _digits_compared(pattern: str) -> Compared | None:
    tokens = tokens_of(pattern)
    if tokens is None:
        return None
    kept: set[str] = set()
    echoes: set[str] = set()
    opened: list[tuple[str, str]] = []  # what stands before what each open group holds, and before what follows it
    before = ""  # the literal characters that must stand right before
    for index, (text, literal) in enumerate(tokens):
        if opens(text):
            known = not (text.startswith("(?<") or text == _DEFINE or _CALL in pattern or _repeats(tokens, index))
            around = text.startswith(("(?=", "(?!", "(?<=", "(?<!"))
            opened.append((before if known else "", before if around else ""))
            before = opened[-1][0]
        elif text == ")":
            if not opened:
                return None
            before = opened.pop()[1]
        elif text == "|":
            before = opened[-1][0] if opened else ""
        elif literal is None:
            before = ""
        elif literal == _SAME:
            between = _echoed_behind(tokens, index) if _CALL not in pattern and "(?|" not in pattern else ""
            if not between:
                return None
            echoes.add(between)
            before = ""
        else:
            if literal == _SOME_DIGITS or ord(literal) in _DIGITS:
                if not before:
                    return None
                if ord(before[-1]) not in _DIGITS:
                    kept.add(before)
            before = "" if literal == _SOME_DIGITS else before + (literal.lower() if literal.isascii() else literal)
    return Compared(frozenset(kept), frozenset(echoes))


def _echoed_behind(tokens: Sequence[tuple[str, str | None]], index: int) -> str:
    r"""Return the text between a run of digits and the back reference ``index`` to it: ``/`` in ``(\d++)/(?:\1|\d++)``.

    Empty where the group holds anything but a run of digits, or does not stand right before that text.
    """
    reference = _REFERENCE.fullmatch(tokens[index][0])
    text, at = "", index - 1
    while at > 0 and tokens[at][0] != ")":
        token, literal = tokens[at]
        if opens(token):
            if token.startswith(("(?<=", "(?<!", "(?(")) or _repeats(tokens, at):
                return ""
        elif literal is None or len(literal) > 1 or ord(literal) in _DIGITS:
            return ""
        text = (literal or "") + text
        at -= 1
    at -= 1
    while at > 0 and tokens[at][0][0] in "+*?{":
        at -= 1
    if at < 1 or tokens[at][0] != r"\d" or reference is None:
        return ""
    groups = [(place, token) for place, (token, _) in enumerate(tokens) if token == "(" or find_name(token)]
    meant = [place for i, (place, token) in enumerate(groups, 1) if reference[2] == str(i) or find_name(token) == reference[1]]
    return text.lower() if meant == [at - 1] else ""


def find_name(token: str) -> str:
    """Return the name of the group that ``token`` opens; empty where it has none."""
    return token.partition("<")[2][:-1] if token.startswith(("(?P<", "(?<")) and token.endswith(">") else ""


def tokens_of(pattern: str) -> list[tuple[str, str | None]] | None:
    """Return the tokens of a pattern, each with the character that it stands for alone; None: one is not blind, or unknown."""
    tokens: list[tuple[str, str | None]] = []
    at = 0
    while at < len(pattern):
        step = _step(pattern, at)
        if step is None:
            return None
        tokens.append((pattern[at : at + step[0]], step[1]))
        at += step[0]
    return tokens


def opens(token: str) -> bool:
    """True for a token that opens a group; flags and calls are whole in themselves."""
    return token.startswith("(") and (token.startswith("(?(") or not token.endswith(")"))


def _repeats(tokens: Sequence[tuple[str, str | None]], index: int) -> bool:
    """True when the group that opens at ``index`` may match several times in a row."""
    depth = 0
    for at in range(index, len(tokens)):
        text = tokens[at][0]
        depth += 1 if opens(text) else -1 if text == ")" else 0
        if not depth:
            return at + 1 < len(tokens) and tokens[at + 1][0][0] in "*+{"
    return True


def _step(pattern: str, at: int) -> tuple[int, str | None] | None:
    """Return how long the token at ``at`` is and the character that it stands for alone; None: it is not blind, or unknown."""
    char = pattern[at]
    reference = _REFERENCE.match(pattern, at)
    if reference is not None:
        return len(reference[0]), _SAME
    if char == "\\":
        return _escape(pattern, at)
    if char == "[":
        end = _class_end(pattern, at)
        blind = _blind_class(pattern[at + 1 : end]) if end > 0 else None
        return (end + 1 - at, None if blind else _SOME_DIGITS) if blind is not None else None
    if char in "({":
        found = (_GROUP if char == "(" else _QUANTIFIER).match(pattern, at)
        return (len(found.group()), None) if found is not None else None
    return 1, None if char in _OPERATORS else char


def _escape(pattern: str, at: int) -> tuple[int, str | None] | None:
    char = pattern[at + 1 : at + 2]
    if char in _SHORTHANDS or char in _ANCHORS or char in _CONTROL:
        return 2, None
    byte = _BYTE.match(pattern, at)
    if byte is not None:
        return 4, chr(int(byte[1], 16))
    return (2, char) if char and not char.isalnum() else None


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


def _blind_class(body: str) -> bool | None:
    """True when a set holds all digits, or none; False when it holds some; None when it is not understood."""
    found: set[int] = set()
    at = 1 if body.startswith("^") else 0
    while at < len(body):
        low, length = _member(body, at)
        if low is None:
            return None
        at += length
        if isinstance(low, frozenset):
            found |= low
        elif body[at : at + 1] == "-" and at + 1 < len(body):
            high, length = _member(body, at + 1)
            if not isinstance(high, int):
                return None
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
    if char in _CONTROL:
        return 0, 2
    byte = _BYTE.match(body, at)
    if byte is not None:
        return int(byte[1], 16), 4
    return (ord(char), 2) if char and not char.isalnum() else (None, 0)
