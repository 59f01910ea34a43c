"""Canonical JSON: the bytes of a document, which never differ for equal values; and the digest of a receipt's captured parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the document as UTF-8 JSON: keys as they stand, shortest round-trip floats, one newline at the end."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode("utf-8")


def canonical_line(document: Mapping[str, Any]) -> bytes:
    """Return the document as one line of JSON Lines."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode("utf-8")


CAPTURED = ("run", "header", "attachments")


def captured_digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the captured parts of a receipt and of its stated facts as one line of JSON, in hexadecimal.

    Facts and ``evidence`` take part where the receipt has any.
    """
    parts = {part: document[part] for part in (*CAPTURED, "evidence") if part in document or part in CAPTURED}
    derivation = document.get("derivation")
    options = derivation.get("options") if isinstance(derivation, Mapping) else None
    facts = options.get("facts") if isinstance(options, Mapping) else None
    return hashlib.sha256(canonical_line(parts if facts is None else {**parts, "facts": facts})).hexdigest()


def is_touched(document: Mapping[str, Any]) -> bool | None:
    """Return whether the captured parts were changed since the receipt was written; None where it has no digest of them."""
    stated = document.get("captured_sha256")
    return None if stated is None else stated != captured_digest(document)
