"""Find the digits that a pattern compares. If there are none, its matches depend only on the layout of a record.

The layout of a record is its bytes with every digit masked. A pattern is digit-blind if each position that consumes or
inspects a byte accepts all ten digits or none: then it treats any two records of one layout alike, and a result for one
of them holds for the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from receipt_cli.patterns import compile_later

_DIGITS = frozenset(b"0123456789")
_ANCHORS = frozenset("bBAZzGKmM")
_CONTROL = {"n": 10, "t": 9, "r": 13, "f": 12, "a": 7, "e": 27, "v": 11}
_OPERATORS = frozenset("^$.|)?*+")
_SOME_DIGITS = "[]"
"""Literal of a token that is a set with some digits, but not all."""
_SAME = "()"
"""Literal of a token that is a back reference."""
_DEFINE = "(?(DEFINE)"
_CALL = "(?&"
"""Start of a subpattern call: a called group can match at other places too."""
_SET = r"\[\^?+\]?+(?:\\.|\[(?!:)|[^\[\]\\])*+\]"
_CHAR = r"\\x[0-9a-fA-F]{2}|\\.|."
_GROUP = (
    r"\(\?\([A-Za-z_]\w*\)|\(\*(?:PRUNE|SKIP|FAIL)\)"
    r"|\(\?(?:P?<[A-Za-z_]\w*>|[aims]*(?:-[ims]+)?:|[|>]|<?[=!]|[aims]+\)|\(DEFINE\)|&[A-Za-z_]\w*\))|\((?!\?)"
)
_LONGER = {
    "[": compile_later(_SET, re.DOTALL),
    "(": compile_later(_GROUP),
    "{": compile_later(r"\{(?:\d+(?:,\d*)?|,\d+)\}"),
}
"""First character of a longer token → its pattern."""
_BYTE = compile_later(r"\\x([0-9a-fA-F]{2})")
_MEMBER = compile_later(rf"\\([dDwWsSh])|({_CHAR})(?:-({_CHAR}))?", re.DOTALL)
"""A member of a set: a class of characters, or one character or a range."""
_SPECIAL = compile_later(r"[.^$*+?{}\[\]\\|()]")
_FEWEST = 2
"""Least number of characters other than digits in a text that locates its digits."""
_REFERENCE = compile_later(r"\(\?P=([A-Za-z_]\w*)\)|\\([1-9])(?!\d)")


class Unknown(Exception):
    """The pattern contains syntax that is not understood."""


class Compared(NamedTuple):
    """The digits that a pattern compares: ``kept`` are the texts after which it compares digits with its own.

    ``own`` are literal texts of the pattern with digits, such as ``0it [``. ``echoes`` are patterns of the text between two
    runs of digits that it compares with each other: ``/`` if ``40/40`` is the last batch. ``far`` are patterns of the text
    right before a run that it compares with any earlier run. Texts are in lower case and match both cases.
    """

    kept: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    echoes: frozenset[str] = frozenset()
    far: frozenset[str] = frozenset()

    @classmethod
    def union(cls, found: Iterable[Compared | None]) -> Compared | None:
        """Return the digits that several patterns compare; None if one may compare digits anywhere."""
        every = [*found]
        known = [one for one in every if one is not None]
        return (
            cls(*(frozenset().union(*texts) for texts in zip(cls(), *known, strict=True))) if len(known) == len(every) else None
        )


def kept_after(pattern: str) -> frozenset[str] | None:
    """Return the texts after which digits matter to ``pattern``; None if they may matter elsewhere too."""
    compared = digits_compared(pattern)
    return None if compared is None or any(compared[1:]) else compared.kept


@cache
def digits_compared(pattern: str) -> Compared | None:
    """Return the digits that ``pattern`` (in ``regex`` syntax) compares; None if it may compare digits anywhere.

    A literal digit is compared only after the literal characters before it: ``Acc@1`` compares the digits after ``acc@``
    and no others. Without characters before it, the characters after it give the place. Syntax that is not fully
    understood (many back references, recursion by number, properties, fuzzy matching, verbose patterns) gives None. Bytes
    from 128 on are written as the character with their number.
    """
    tokens = tokens_of(pattern)
    if tokens is None:
        return None
    kept, own, echoes, far = set[str](), set[str](), set[str](), set[str]()
    opened: list[tuple[str, str]] = []  # of each open group: ``before`` its content, and after it
    before = ""  # the literal characters that must come right before
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
                told = tells_place(before)  # if not, use the characters after it
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
    """Return ``before`` and the literal characters from the digit ``index`` up to the next run of digits: ``0it [``.

    Empty if they do not locate the digit, or if the text ends with a digit.
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
    """Return whether ``text`` has enough characters other than digits to locate its digits in a record."""
    return sum(ord(char) not in _DIGITS for char in text) >= _FEWEST


def _echo(tokens: Sequence[tuple[str, str | None]], index: int) -> tuple[bool, str] | None:
    r"""Return a pattern that locates the runs compared by the back reference ``index``: ``/`` in ``(\d++)/(?:\1|\d++)``.

    (True, the pattern between the runs), or (False, the pattern right before the second run) if they may be far apart.
    None if a group that it may refer to is not a run of digits, or if there is no such pattern.
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
    """Return an ``re`` pattern of the text that tokens ``start`` to ``index`` match; "" if it may be empty or have digits.

    The pattern is looser than the tokens: it omits assertions and the order of alternatives.
    """
    opened: list[int] = []
    closes: dict[int, int] = {}
    for at in range(start, index):
        if opens(tokens[at][0]):
            opened.append(at)
        elif tokens[at][0] == ")":
            if not opened:
                return ""  # the run is in a group that may not have matched
            closes[opened.pop()] = at
    parts: list[str | None] = []  # None for a token that is unknown or takes digits
    inside: list[int | None] = []  # of each open group around the reference: the number of parts before it
    at, told = start, -1  # the token of the last part
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
                return ""  # quantifies an omitted token
            parts += [] if _is_quantifier(tokens[at - 1]) else [token]  # without the sign of a possessive or lazy one
            told = at
        elif token not in ("^", "$") and (literal is not None or token[1:] not in _ANCHORS):
            parts.append(_without_digits(token, literal))
            told = at
        at += 1
    known = [part for part in parts if part is not None]
    text = "".join(known)
    return "" if len(known) < len(parts) or re.fullmatch(text, "") else text


def _without_digits(token: str, literal: str | None) -> str | None:
    """Return the ``re`` pattern of a token that matches one byte and no digit; None for another token."""
    if literal is not None:
        if len(literal) > 1 or ord(literal) in _DIGITS:
            return None
        return _SPECIAL.sub(r"\\\g<0>", literal.lower() if literal.isascii() else literal)
    try:
        return None if token[0] not in "[\\" or re.match(token, "0") else token
    except re.error:  # not a set of ``re``
        return None


def _right_before(tokens: Sequence[tuple[str, str | None]], index: int) -> str:
    """Return a pattern of the literal characters right before ``index``; "" if there may be none."""
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
    r"""Return the index of the ")" of the group at ``place`` if the group is only digits (``\d+``), else None."""
    at = place + 2
    while at < len(tokens) and _is_quantifier(tokens[at]):
        at += 1
    return at if tokens[place + 1][0] == r"\d" and at < len(tokens) and tokens[at][0] == ")" else None


def _is_whole_run(tokens: Sequence[tuple[str, str | None]], place: int) -> bool:
    r"""Return whether the group at ``place`` always takes a whole run of digits (``\d++``), outside lookarounds."""
    looks = any(token in ("(?=", "(?!", "(?<=", "(?<!") for token in _around(tokens, place))
    return [token for token, _ in tokens[place + 1 : place + 5]] == [r"\d", "+", "+", ")"] and not looks


def _around(tokens: Sequence[tuple[str, str | None]], index: int) -> list[str]:
    """Return the opening tokens of the groups around the token ``index``."""
    opened: list[str] = []
    for token, _ in tokens[:index]:
        if opens(token):
            opened.append(token)
        elif token == ")" and opened:
            opened.pop()
    return opened


def find_name(token: str) -> str:
    """Return the name of the group that ``token`` opens, or ""."""
    return token.partition("<")[2][:-1] if token.startswith(("(?P<", "(?<")) and token.endswith(">") else ""


def tokens_of(pattern: str) -> list[tuple[str, str | None]] | None:
    """Return the tokens of a pattern, each with its literal character or None; None if a token is not understood."""
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
    """Return whether ``token`` opens a group; flags and calls do not."""
    return token.startswith("(") and (token.startswith("(?(") or not token.endswith(")"))


def _repeats(tokens: Sequence[tuple[str, str | None]], index: int) -> bool:
    """Return whether the group that opens at ``index`` may match several times in a row."""
    depth = 0
    for at in range(index, len(tokens)):
        text = tokens[at][0]
        depth += 1 if opens(text) else -1 if text == ")" else 0
        if not depth:
            return _is_repeated(tokens, at) and tokens[at + 1][0][0] != "?"
    return True


def _is_repeated(tokens: Sequence[tuple[str, str | None]], at: int) -> bool:
    """Return whether the token at ``at`` has a quantifier."""
    return at + 1 < len(tokens) and _is_quantifier(tokens[at + 1])


def _is_quantifier(token: tuple[str, str | None]) -> bool:
    return token[1] is None and token[0][0] in "*+?{"


def _step(pattern: str, at: int) -> tuple[int, str | None] | None:
    """Return the length of the token at ``at`` and its literal character or None; None if it is not understood."""
    char = pattern[at]
    reference = _REFERENCE.match(pattern, at)
    if reference is not None:
        return len(reference[0]), _SAME
    if char == "\\":
        return _escape(pattern, at)
    if char not in _LONGER:
        return 1, None if char in _OPERATORS else char
    found = _LONGER[char].match(pattern, at)
    if found is None:
        return None
    try:
        return len(found[0]), _SOME_DIGITS if char == "[" and _has_some_digits(found[0]) else None
    except Unknown:
        return None


def _escape(pattern: str, at: int) -> tuple[int, str | None] | None:
    char = pattern[at + 1 : at + 2]
    if char and (char in "dDwWsShR" or char in _ANCHORS or char in _CONTROL):
        return 2, None
    byte = _BYTE.match(pattern, at)
    if byte is not None:
        return 4, chr(int(byte[1], 16))
    return (2, char) if char and not char.isalnum() else None


def _has_some_digits(token: str) -> bool:
    """Return whether a set matches some digits, but not all. Raises ``Unknown``."""
    taken = set[int]()
    for kind, low, high in _MEMBER.findall(token[1:-1].removeprefix("^")):
        if low:
            taken.update(range(_code_of(low), _code_of(high or low) + 1))
        elif kind in "dwS":
            taken |= _DIGITS
    return 0 < len(taken & _DIGITS) < len(_DIGITS)


def _code_of(member: str) -> int:
    """Return the byte that an escape or a character of a set matches. Raises ``Unknown``."""
    if member[0] != "\\":
        return ord(member)
    if len(member) == 4:
        return int(member[2:], 16)
    if member[1] not in _CONTROL and member[1].isalnum():
        raise Unknown
    return _CONTROL.get(member[1], ord(member[1]))
