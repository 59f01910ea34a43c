"""Does a pattern tell one digit from another? If not, whether and where it matches a record depends on its layout alone.

The layout of a record is its bytes with every digit masked. A pattern is digit-blind when each place of it that
consumes or inspects a byte accepts all ten digits or none of them: then any two records of one layout take the same way
through it, and what was proven for one of them holds for the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from receipt_cli.patterns import compile_later

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
_SPECIAL = compile_later(r"[.^$*+?{}\[\]\\|()]")
_FEWEST = 2
"""Characters other than digits in a text that tells where its digits are meant."""
_REFERENCE = compile_later(r"\(\?P=([A-Za-z_]\w*)\)|\\([1-9])(?!\d)")


class Compared(NamedTuple):
    """What a pattern asks of digits: ``kept`` are the texts behind which it compares them with its own.

    ``own`` are texts that it looks for, each of which begins with a digit: ``0it [``. ``echoes`` are patterns of what is between
    two runs of digits that it compares with each other: ``/`` where ``40/40`` is the last batch; ``far`` are patterns of what is
    right before a run that it compares with any run before. Texts are in lower case, which stands for both.
    """

    kept: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    echoes: frozenset[str] = frozenset()
    far: frozenset[str] = frozenset()

    @classmethod
    def union(cls, found: Iterable[Compared | None]) -> Compared | None:
        """Return what several patterns ask of digits; None where one may compare them anywhere."""
        every = [*found]
        known = [one for one in every if one is not None]
        return (
            cls(*(frozenset().union(*texts) for texts in zip(cls(), *known, strict=True))) if len(known) == len(every) else None
        )


def kept_after(pattern: str) -> frozenset[str] | None:
    """Return the texts behind which alone digits matter to ``pattern``; None: they may elsewhere."""
    compared = digits_compared(pattern)
    return None if compared is None or any(compared[1:]) else compared.kept


@cache
def digits_compared(pattern: str) -> Compared | None:
    """Return what ``pattern`` (in the syntax of ``regex``) asks of digits; None: it may compare them anywhere.

    A literal digit is only compared where the literal characters before it matched: ``Acc@1`` cares for the digits
    behind ``acc@``, and for no others. Where none are before it, those behind it say where. What this reading does not know
    for sure (many back references, recursion by number, properties, fuzzy matching, verbose patterns) counts as None. Bytes
    from 128 on are named by the character of their number.
    """
    tokens = tokens_of(pattern)
    if tokens is None:
        return None
    kept, own, echoes, far = set[str](), set[str](), set[str](), set[str]()
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
            echo = _echo(tokens, index) if _CALL not in pattern and "(?|" not in pattern else None
            if echo is None:
                return None
            (echoes if echo[0] else far).add(echo[1])
            before = ""
        else:
            if literal == _SOME_DIGITS or ord(literal) in _DIGITS:
                told = tells_place(before)  # else what is behind tells more
                found = "" if told or before[-1:].isdigit() else _own_text(tokens, index, before)
                if found:
                    own.add(found)
                elif not before:
                    return None
                elif ord(before[-1]) not in _DIGITS:
                    kept.add(before)
            before = "" if literal == _SOME_DIGITS else before + (literal.lower() if literal.isascii() else literal)
    return Compared(*map(frozenset, (kept, own, echoes, far)))


def _own_text(tokens: Sequence[tuple[str, str | None]], index: int, before: str) -> str:
    """Return the literal characters ``before`` and from the digit ``index`` on, to the next digit behind others: ``0it [``.

    Empty where these do not tell where it is meant, or where the digits end.
    """
    text = before
    for at, (_, literal) in enumerate(tokens[index:], index):
        if literal is None or len(literal) > 1 or _is_repeated(tokens, at):
            break
        if ord(literal) in _DIGITS and at > index and ord(text[-1]) not in _DIGITS:
            break
        text += literal.lower() if literal.isascii() else literal
    return text if tells_place(text) and ord(text[-1]) not in _DIGITS else ""


def tells_place(text: str) -> bool:
    """True for a text with enough characters beside its digits to tell where they are meant."""
    return sum(ord(char) not in _DIGITS for char in text) >= _FEWEST


def _echo(tokens: Sequence[tuple[str, str | None]], index: int) -> tuple[bool, str] | None:
    r"""Return what tells the runs of digits that the back reference ``index`` compares: ``/`` in ``(\d++)/(?:\1|\d++)``.

    True with what is between them; False with what is right before the second, where they may be far apart. None where a
    group that it may mean holds anything but a run of digits, or nothing tells what it is compared with.
    """
    reference = _REFERENCE.fullmatch(tokens[index][0])
    groups = [(place, token) for place, (token, _) in enumerate(tokens) if token == "(" or find_name(token)]
    meant = [
        place
        for i, (place, token) in enumerate(groups, 1)
        if reference is not None and (reference[2] == str(i) or find_name(token) == reference[1])
    ]
    if any(token in ("(?<=", "(?<!") for token in _around(tokens, index)):
        return None
    ends = [end for place in meant if (end := _end_of_run(tokens, place)) is not None and end < index]
    text = _between(tokens, max(ends) + 1, index) if ends else ""
    if text:
        return True, text
    text = _right_before(tokens, index) if meant and all(_is_whole_run(tokens, place) for place in meant) else ""
    return (False, text) if text else None


def _between(tokens: Sequence[tuple[str, str | None]], start: int, index: int) -> str:
    """Return a pattern (of ``re``) of what the tokens up to ``index`` take: no digits, but never nothing. Empty: they may.

    What asks for more is left out of it: assertions, and which of several ways is taken first.
    """
    opened: list[int] = []
    closes: dict[int, int] = {}
    for at in range(start, index):
        if opens(tokens[at][0]):
            opened.append(at)
        elif tokens[at][0] == ")":
            if not opened:
                return ""  # the run is in a group that may not have been passed
            closes[opened.pop()] = at
    parts: list[str | None] = []  # None for what is not known, or takes digits
    inside: list[int | None] = []  # of the open groups: what is before it, for one around the reference
    at, told = start, -1  # the token that the last part is of
    while at < index:
        token, literal = tokens[at]
        if token in ("(?=", "(?!", "(?<=", "(?<!") and at in closes:
            at = closes[at]
        elif opens(token):
            if token not in ("(?:", "(?>", "(?=", "(?!") or (at not in closes and _repeats(tokens, at)):
                return ""
            inside.append(None if at in closes else len(parts))
            parts += ["(?:"] if at in closes else []
        elif token == ")":
            inside.pop()
            parts.append(")")
            told = at
        elif token == "|":
            if not inside:
                return ""
            begun = inside[-1]
            parts[len(parts) if begun is None else begun :] = ["|"] if begun is None else []
        elif _is_quantifier(tokens[at]):
            if told != at - 1:
                return ""  # of what is left out
            parts += [] if _is_quantifier(tokens[at - 1]) else [token]  # not the second sign of a possessive or a lazy one
            told = at
        elif token not in ("^", "$") and (literal is not None or token[1:] not in _ANCHORS):
            parts.append(_without_digits(token, literal))
            told = at
        at += 1
    known = [part for part in parts if part is not None]
    text = "".join(known)
    return "" if len(known) < len(parts) or re.fullmatch(text, "") else text


def _without_digits(token: str, literal: str | None) -> str | None:
    """Return a pattern (of ``re``) of a token that takes a byte, but no digit; None for another."""
    if literal is not None:
        if len(literal) > 1 or ord(literal) in _DIGITS:
            return None
        return _SPECIAL.sub(r"\\\g<0>", literal.lower() if literal.isascii() else literal)
    try:
        return None if token[0] not in "[\\" or re.match(token, "0") else token
    except re.error:  # ``re`` has no such set
        return None


def _right_before(tokens: Sequence[tuple[str, str | None]], index: int) -> str:
    """Return a pattern of the literal characters right before ``index``; empty where there may be none."""
    text, at, sure = "", index - 1, False
    while at > 0:
        times = ""
        while at > 0 and _is_quantifier(tokens[at]):
            times, at = "+" if tokens[at][0] == "+" else "*", at - 1
        token, literal = tokens[at]
        if literal is not None and (part := _without_digits(token, literal)) is not None:
            text, sure = part + times + text, sure or times != "*"
        elif token not in ("(?:", "(?>", "(?=", "(?!") or _repeats(tokens, at):
            break
        at -= 1
    return text if sure else ""


def _end_of_run(tokens: Sequence[tuple[str, str | None]], place: int) -> int | None:
    r"""Return where the group that opens at ``place`` closes, one of digits alone (``\d+``); None for another."""
    at = place + 2
    while at < len(tokens) and _is_quantifier(tokens[at]):
        at += 1
    return at if tokens[place + 1][0] == r"\d" and at < len(tokens) and tokens[at][0] == ")" else None


def _is_whole_run(tokens: Sequence[tuple[str, str | None]], place: int) -> bool:
    r"""True when the group that opens at ``place`` takes a run of digits to its end (``\d++``), before what follows."""
    looks = any(token in ("(?=", "(?!", "(?<=", "(?<!") for token in _around(tokens, place))
    return [token for token, _ in tokens[place + 1 : place + 5]] == [r"\d", "+", "+", ")"] and not looks


def _around(tokens: Sequence[tuple[str, str | None]], index: int) -> list[str]:
    """Return the tokens that open the groups around a place."""
    opened: list[str] = []
    for token, _ in tokens[:index]:
        if opens(token):
            opened.append(token)
        elif token == ")" and opened:
            opened.pop()
    return opened


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
            return _is_repeated(tokens, at) and tokens[at + 1][0][0] != "?"
    return True


def _is_repeated(tokens: Sequence[tuple[str, str | None]], at: int) -> bool:
    """True when the token at ``at`` may match several times in a row, or not at all."""
    return at + 1 < len(tokens) and _is_quantifier(tokens[at + 1])


def _is_quantifier(token: tuple[str, str | None]) -> bool:
    return token[1] is None and token[0][0] in "*+?{"


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
