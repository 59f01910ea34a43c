"""What rich prints for a style: lines of text that are safe for a terminal and no wider than it."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType

from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.text import clean, disarm

_ASCII = str.maketrans("✓✗■▶▸–—−…→×≠·│µ▁▂▃▄▅▆▇█", "+x#>>---~>x!||u.:-=+*#@")
"""Our own glyphs in ASCII, one cell for one cell, so that tables stay aligned."""


def say(text: str, style: Style) -> str:
    """Return foreign ``text`` made safe to print; ``–`` if nothing is left of it."""
    return clean(text, unicode=style.unicode) or "–"


def printed(*parts: RenderableType, style: Style) -> str:
    """Return what rich prints of ``parts``, each line ended by a newline; none is a command to a CI system."""
    console = Console(
        file=StringIO(),
        width=style.width,
        height=style.height,
        force_terminal=style.color,
        force_jupyter=False,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
    lines = capture.get().split("\n")
    text = "\n".join(line.rstrip(" ") for line in lines)
    return disarm(text if style.unicode else text.translate(_ASCII))
