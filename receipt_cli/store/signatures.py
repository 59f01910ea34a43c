"""Reduce a failure message to its signature, which is the same in every run with the same fault."""

from __future__ import annotations

import re

MAX_SIGNATURE = 200
_VOLATILE = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.I), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "<time>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.I), "<address>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b", re.I), "<id>"),
    (re.compile(r"\b[a-z][a-z-]*\d{3,}\b"), "<host>"),
    (re.compile(r"(?<![\w<])(?:[A-Za-z]:\\|~?/|\.{1,2}/)[^\s'\",:;()<>]*[^\s'\",:;()<>.]"), "<path>"),
    (re.compile(r"(?<![A-Za-z_\d])[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?", re.I), "#"),
    (re.compile(r"\s+"), " "),
)
"""(pattern of a part that varies between runs, its replacement), in this order: a URL contains a path, a path numbers."""


def signature(reason: str, exception_type: str | None, message: str | None) -> str:
    """Return the signature of a failure: reason, exception type, and message without varying parts.

    Numbers become ``#``, paths ``<path>``; addresses, identifiers, times and URLs likewise. At most ``MAX_SIGNATURE`` characters.
    """
    text = message or ""
    for pattern, stand_in in _VOLATILE:
        text = pattern.sub(stand_in, text)
    text = text.strip()
    if exception_type and exception_type in text:
        exception_type = None  # the message contains it
    return ": ".join(filter(None, (reason, exception_type, text)))[:MAX_SIGNATURE]
