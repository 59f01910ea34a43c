"""Shorten tqdm bars: their cells repeat the numbers beside them, in a thousand forms."""

from __future__ import annotations

import re

from receipt_cli.patterns import compile_later

_CELLS = compile_later(rb"(?<=%\|)(?=\xe2\x96)((?:\xe2\x96\x88)*+)(\xe2\x96[\x89-\x8f])?( *+)(?=\|)")
"""A bar between its marks: full cells, a partly full one, empty ones."""
_FULL, _PART = b"\xe2\x96\x88", b"\xe2\x96\x8c"
KEPT = 2
"""Cells of each kind that stay: searches for a bar or a run of cells still match."""


def short_bars(record: bytes) -> bytes:
    """Shorten each bar of a record to ``KEPT`` full and ``KEPT`` empty cells, with one form of a partly full cell."""
    return _CELLS.sub(_short, record) if b"%|" in record else record


def _short(bar: re.Match[bytes]) -> bytes:
    full, blank = min(KEPT, len(bar[1]) // len(_FULL)), min(KEPT, len(bar[3]))
    return full * _FULL + (_PART if bar[2] else b"") + blank * b" "
