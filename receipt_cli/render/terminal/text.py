"""Foreign text, made safe for a terminal and measured in character cells."""

from __future__ import annotations

from unicodedata import category, east_asian_width

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
    marks = _MAX_MARKS  # a mark at the very start would sit on the cell before this text
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


def cells(text: str) -> int:
    """Return how many cells cleaned ``text`` fills: two for a wide character, none for a combining mark."""
    if text.isascii():
        return len(text)
    return sum(_char_cells(char) for char in text)


def _char_cells(char: str) -> int:
    if char.isascii():
        return 1
    if east_asian_width(char) in ("W", "F"):
        return 2
    return 0 if category(char) in ("Mn", "Me") else 1


def elide(text: str, width: int) -> str:
    """Return ``text`` if it fits ``width`` cells, else its start and ``…``."""
    if cells(text) <= width:
        return text
    if width < 1:
        return ""
    room = width - 1
    for index, char in enumerate(text):
        room -= _char_cells(char)
        if room < 0:
            return text[:index] + ELLIPSIS
    return text


def elide_middle(text: str, width: int) -> str:
    """Return ``text`` if it fits ``width`` cells, else its start, ``…`` and its end."""
    if cells(text) <= width:
        return text
    start = elide(text, max(1, width // 2))
    return start + elide_start(text, width - cells(start) + 1)[1:]


def elide_start(text: str, width: int) -> str:
    """Return ``text`` if it fits ``width`` cells, else ``…`` and its end."""
    if cells(text) <= width:
        return text
    end = elide(text[::-1], width)[:-1][::-1]
    while end and not _char_cells(end[0]):  # a mark whose letter is gone
        end = end[1:]
    return ELLIPSIS + end if width > 0 else ""


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return ``text`` filled with blanks to ``width`` cells, on its left when it is aligned ``right``."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def wrap(text: str, width: int, max_lines: int) -> list[str]:
    """Return ``text`` broken at blanks into at most ``max_lines`` lines of ``width`` cells.

    A word is never broken: one that is wider than a line ends in ``…``, and so does the last line when more
    would follow.
    """
    words = [elide(word, width) for word in text.split(" ") if word]
    lines: list[str] = []
    while words:
        line = words.pop(0)
        while words and cells(line) + 1 + cells(words[0]) <= width:
            line = f"{line} {words.pop(0)}"
        if words and len(lines) == max_lines - 1:
            return [*lines, elide(f"{line} {' '.join(words)}", width)]
        lines.append(line)
    return lines


def disarm(text: str) -> str:
    """Return ``text`` without the commands that a CI system reads from the output of a step.

    GitHub reads ``::name::`` at the start of a line and ``##[name]`` anywhere, Azure ``##vso[``, TeamCity ``##teamcity[``.
    """
    return _COMMAND.sub(lambda found: f"{found[1]}: " if found[1] is not None else "# #", text)
