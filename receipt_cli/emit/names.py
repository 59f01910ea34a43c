"""Names of metrics, as a document or a printed line can hold them."""

from __future__ import annotations

import re

MAX_NAME = 200
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PRINTED = re.compile(r"[A-Za-z_][A-Za-z0-9_./@%+:\-]{0,199}")


def checked_name(name: str) -> str:
    """Return ``name`` where a document can hold it: 1 to 200 characters, no control character. Raises ``ValueError``."""
    if not 0 < len(name) <= MAX_NAME or _CONTROL.search(name):
        raise ValueError(f"{name!r} is no name of a metric: 1 to {MAX_NAME} characters without control characters")
    return name


def printed_name(name: str) -> str:
    """Return ``name`` where it can stand before ``=``: ASCII letters, digits and ``_./@%+:-``. Raises ``ValueError``."""
    if not _PRINTED.fullmatch(name):
        raise ValueError(f"{name!r} cannot be printed as the name of a metric: a letter or _, then letters, digits and _./@%+:-")
    return name
