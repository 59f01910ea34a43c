"""Foreign text, made safe for a terminal, or for Markdown: no markup, link, image or mention in it takes effect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category

from receipt_cli.patterns import compile_later

ELLIPSIS = "…"
CLEAN_LIMIT = 4000
"""Longest string that is cleaned; longer ones are cut. No line shows as many characters."""
_MAX_MARKS = 2  # combining marks on one letter; a taller stack is drawn over the neighbouring lines
_VARIATION_SELECTORS = "\ufe0e\ufe0f"  # they change a glyph's width in some terminals and nothing else

_COMMAND = compile_later(r"(?m)^(\s*):(?=:)|##(?=\[|vso\[|teamcity\[)")


def clean(text: str, *, unicode: bool = True) -> str:
    r"""Return ``text`` with everything that could control a terminal written as an escape (``\x1b``, ``\u202e``).

    These are control characters, line separators, format characters (bidirectional overrides, zero-width),
    lone surrogates, private-use and unassigned code points, and combining marks without a letter or stacked
    more than two high. With ``unicode=False`` every character outside ASCII is escaped. Idempotent. Text of
    more than ``CLEAN_LIMIT`` characters is cut with ``…``.
    """
    if len(text) > CLEAN_LIMIT:
        text = text[: CLEAN_LIMIT - 1] + ELLIPSIS
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    marks = _MAX_MARKS  # a mark at the start would be drawn over the cell before this text
    for char in text:
        if char.isascii():
            out.append(char if char.isprintable() else _escape(char))
            marks = 0
        elif char in _VARIATION_SELECTORS:
            continue
        elif not unicode:
            out.append(_escape(char))
        elif category(char) in ("Mn", "Me"):
            out.append(char if marks < _MAX_MARKS else _escape(char))
            marks += 1
        else:
            out.append(char if char.isprintable() or category(char) == "Zs" else _escape(char))
            marks = 0
    return "".join(out)


def _escape(char: str) -> str:
    if char.isascii():
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or f"\\x{ord(char):02x}"
    return char.encode("ascii", "backslashreplace").decode("ascii")


def disarm(text: str) -> str:
    """Return ``text`` without the commands that a CI system reads from the output of a step.

    GitHub reads ``::name::`` at the start of a line and ``##[name]`` anywhere, Azure ``##vso[``, TeamCity ``##teamcity[``.
    """
    return _COMMAND.sub(lambda found: f"{found[1]}: " if found[1] is not None else "# #", text)


MAX_CELL = 300
_LINK = re.compile(r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)")


def escape(text: str) -> str:
    """Return a sentence of this program, which may quote a name, as plain text."""
    shown = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~@-])", r"\\\1", shown)


def code(text: str) -> str:
    """Return foreign ``text``, cut to ``MAX_CELL`` characters, as code: links and mentions in it have no effect."""
    shown = clean(text)
    shown = shown if len(shown) <= MAX_CELL else f"{shown[: MAX_CELL - 1]}…"
    return f"<code>{_LINK.sub('<!-- -->', escape(shown))}</code>" if shown else ""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose cells are Markdown already."""
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
