"""Named parts of patterns: ``(?&number)`` in a grammar stands for the pattern of a number. Part of the grammar format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from receipt_cli.patterns import compile_later

_REST = r"(?:\.\d*+)?+(?:[eE][-+]?\d++)?+|\.\d++(?:[eE][-+]?\d++)?+|(?i:nan|inf))"
PARTS: Final[Mapping[str, str]] = {
    "number": rf"[-+]?(?:\d++{_REST}",
    "grouped": rf"[-+]?(?:(?:\d{{1,3}}(?:,\d{{3}})++(?!\d)|\d++){_REST}",
    "integer": r"\d++",
    "time": r"(?:\d{1,6} days?, *+)?+\d{1,4}:\d\d(?::\d\d)?+(?:[.,]\d++)?+",
    "text": r"[^\s,;|\]]{1,80}+",
    "bar": r"(?:\|[^|,\n]{0,400}+\|?+|\[[^\]\n]{0,400}\]|[^ \t\n]{0,400})",
    "blanks": r"[ \t]*+",
    "gap": r"[^\n]{0,2000}?",
    "end": r"(?![\w%]|,\d{3})",
}
"""Name → pattern. ``grouped`` is a number that may have commas between thousands; ``gap`` is as little text of the line as
possible; ``end`` matches at the end of a number without a unit right after it."""
_CALL = compile_later(r"\(\?&([A-Za-z_]\w*)\)")


def expand(pattern: str) -> str:
    """Return ``pattern`` with its named parts expanded, and without its line breaks, which are only layout.

    A group of the pattern with the same name takes precedence over a part.
    """
    joined = re.sub(r"\n[ \t]*", "", pattern) if "\n" in pattern else pattern
    if "(?&" not in joined:
        return joined

    def part(call: re.Match[str]) -> str:
        name = call[1]
        return PARTS[name] if name in PARTS and f"<{name}>" not in joined else call[0]

    return _CALL.sub(part, joined)


def abbreviate(pattern: str) -> str:
    """Return ``pattern`` with parts replaced by their names; ``expand`` reverses it."""
    for name in ("grouped", "number", "bar", "gap", "end"):
        pattern = pattern.replace(PARTS[name], f"(?&{name})")
    return pattern
