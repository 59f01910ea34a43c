"""Canonical JSON: the bytes of a document, which never differ for equal values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the document as UTF-8 JSON: keys as they stand, shortest round-trip floats, one newline at the end."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode("utf-8")


def canonical_line(document: Mapping[str, Any]) -> bytes:
    """Return the document as one line of JSON Lines."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode("utf-8")
