"""Parse Python and JSON objects inside a line, without ``eval``; numbers stay as printed."""

from __future__ import annotations

import re
from typing import Self

from receipt_cli.patterns import compile_later

MAX_DEPTH = 32
MAX_ITEMS = 4096


class Text(str):
    """A text with its offset ``start`` in the log, or -1 if the log spells it differently (an escape, ``1_000``)."""

    __slots__ = ("start",)

    start: int

    def __new__(cls, text: str, start: int) -> Self:
        """Make the text."""
        made = super().__new__(cls, text)
        made.start = start
        return made


class Number(Text):
    """The text of a number as printed."""

    __slots__ = ()


Value = None | bool | Text | list["Value"] | dict[str, "Value"]

_SPACE = compile_later(r"[ \t\n\r]*+")
_NUMBER = compile_later(
    r"[-+]?(?:\d[\d_]*+\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?(?![\w.])|[-+]?(?:nan|NaN|NAN|inf|Infinity|INF)(?!\w)"
)
_PAIR = compile_later(
    r"""(?:'(?P<key>[^'\\]*+)'|"(?P<name>[^"\\]*+)")[ \t\n\r]*+:[ \t\n\r]*+"""
    r"""(?:'(?P<text>[^'\\]*+)'|"(?P<string>[^"\\]*+)"|(?P<number>[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?(?![\w.])))"""
    r"[ \t\n\r]*+(?:,[ \t\n\r]*+|(?=\}))"
)
"""A key with a text or number, as most objects consist of."""
_WORD = compile_later(r"[A-Za-z_][\w.]{0,63}+")
_ARGUMENT = compile_later(r"[A-Za-z_][\w.]{0,63}+|<[\w.]{1,64}>")  # torch.float64, <NllLossBackward0>
_STRING = {
    '"': compile_later(r'"([^"\\]*+(?:\\.[^"\\]*+)*)"', re.S),
    "'": compile_later(r"'([^'\\]*+(?:\\.[^'\\]*+)*)'", re.S),
}
_ESCAPE = compile_later(
    r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", re.S
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_CONSTANTS: dict[str, Value] = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}


class NotALiteral(Exception):
    """The text has no literal at this offset."""


def parse_object(text: str, start: int, keys: list[tuple[int, int]] | None = None) -> tuple[dict[str, Value], int]:
    """Parse the dict or JSON object that begins with ``{`` at ``start``; return it and the offset after it.

    Appends the spans of all its keys to ``keys``. Numbers are returned as ``Number`` (printed text);
    ``np.float64(0.5)`` and ``tensor(0.5, device=…)`` give the number inside. Raises ``NotALiteral`` for anything else,
    for a depth over 32 and for more than 4096 items.
    """
    parser = _Parser(text, [] if keys is None else keys)
    value, end = parser.value(start, 0)
    if not isinstance(value, dict):
        raise NotALiteral
    return value, end


class _Parser:
    def __init__(self, text: str, keys: list[tuple[int, int]]) -> None:
        self.text = text
        self.keys = keys
        self.items = 0

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def peek(self, at: int) -> str:
        return self.text[at : at + 1]

    def value(self, at: int, depth: int) -> tuple[Value, int]:
        self.items += 1
        if depth > MAX_DEPTH or self.items > MAX_ITEMS:
            raise NotALiteral
        at = self.skip(at)
        head = self.peek(at)
        if head == "{":
            return self.mapping(at + 1, depth)
        if head in ("[", "("):
            return self.sequence(at + 1, "]" if head == "[" else ")", depth)
        if head in ("'", '"'):
            return self.string(at)
        number = _NUMBER.match(self.text, at)
        if number:
            text = number.group()
            return (Number(text.replace("_", ""), -1) if "_" in text else Number(text, number.start())), number.end()
        word = _WORD.match(self.text, at)
        if word is None:
            raise NotALiteral
        if word.group() in _CONSTANTS:
            return _CONSTANTS[word.group()], word.end()
        if self.peek(word.end()) == "(":  # np.float64(0.5), tensor(0.5, device='cuda:0')
            return self.wrapped(word.end() + 1, depth)
        raise NotALiteral

    def wrapped(self, at: int, depth: int) -> tuple[Value, int]:
        value, at = self.value(at, depth + 1)
        while self.peek(self.skip(at)) == ",":
            at = self.skip(self.skip(at) + 1)
            keyword = _WORD.match(self.text, at)
            if keyword and self.peek(keyword.end()) == "=":
                at = keyword.end() + 1
            word = _ARGUMENT.match(self.text, at)
            at = word.end() if word and word.group() not in _CONSTANTS else self.value(at, depth + 1)[1]
        at = self.skip(at)
        if self.peek(at) != ")" or not isinstance(value, Number):
            raise NotALiteral
        return value, at + 1

    def string(self, at: int) -> tuple[Text, int]:
        found = _STRING[self.text[at]].match(self.text, at)
        if found is None:
            raise NotALiteral
        body = found.group(1)
        return (Text(_ESCAPE.sub(_unescape, body), -1) if "\\" in body else Text(body, at + 1)), found.end()

    def sequence(self, at: int, close: str, depth: int) -> tuple[list[Value], int]:
        values: list[Value] = []
        at = self.skip(at)
        while self.peek(at) != close:
            value, at = self.value(at, depth + 1)
            values.append(value)
            at = self.separator(at, close)
        return values, at + 1

    def mapping(self, at: int, depth: int) -> tuple[dict[str, Value], int]:
        values: dict[str, Value] = {}
        at = self.skip(at)
        while self.peek(at) != "}":
            pair = _PAIR.match(self.text, at)
            if pair is not None and depth < MAX_DEPTH:
                self.items += 2
                if self.items > MAX_ITEMS:
                    raise NotALiteral
                key_group, group = ("key" if pair["name"] is None else "name"), str(pair.lastgroup)
                self.keys.append((at, pair.end(key_group) + 1))
                kind = Number if group == "number" else Text
                values[pair[key_group]] = kind(pair[group], pair.start(group))
                at = pair.end()
                continue
            begin = at
            key, at = self.value(at, depth + 1)
            self.keys.append((begin, at))
            at = self.skip(at)
            if self.peek(at) != ":" or isinstance(key, list | dict):
                raise NotALiteral
            values[str(key)], at = self.value(at + 1, depth + 1)
            at = self.separator(at, "}")
        return values, at + 1

    def separator(self, at: int, close: str) -> int:
        at = self.skip(at)
        if self.peek(at) == ",":
            return self.skip(at + 1)
        if self.peek(at) != close:
            raise NotALiteral
        return at


def _unescape(found: re.Match[str]) -> str:
    body = found.group(1)
    if len(body) == 1:
        return _SIMPLE.get(body, body)
    if len(body) == 11:  # a surrogate pair, as JSON writes characters over U+FFFF
        return bytes.fromhex(body[1:5] + body[7:]).decode("utf-16-be")
    code = int(body[1:], 16)
    return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"
