"""Shorten the bars that tqdm draws: their cells say nothing that the numbers beside them do not, and take a thousand forms."""

from __future__ import annotations

import re

from receipt_cli.patterns import compile_later

_CELLS = compile_later(rb"(?<=%\|)(?=\xe2\x96)((?:\xe2\x96\x88)*+)(\xe2\x96[\x89-\x8f])?( *+)(?=\|)")
"""Between the marks of a bar: full cells, one that is partly full, empty ones."""
_FULL, _PART = b"\xe2\x96\x88", b"\xe2\x96\x8c"
KEPT = 2
"""Cells of a kind that stay: what only looks for a bar, or for a run of cells, finds it in the short one, too."""


def short_bars(record: bytes) -> bytes:
    """Return a record with at most ``KEPT`` full and ``KEPT`` empty cells in each bar, and one form of partly full ones."""
    return _CELLS.sub(_short, record) if b"%|" in record else record


def _short(bar: re.Match[bytes]) -> bytes:
    full, blank = min(KEPT, len(bar[1]) // len(_FULL)), min(KEPT, len(bar[3]))
    return full * _FULL + (_PART if bar[2] else b"") + blank * b" "
