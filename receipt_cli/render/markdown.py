"""Escape foreign text as Markdown that only displays it: no markup, link, image or mention takes effect."""

from __future__ import annotations

import re
from collections.abc import Sequence

from receipt_cli.render.text import clean

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
