"""Canonical JSON: equal documents give equal bytes. Also the digest of a receipt's captured parts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the document as UTF-8 JSON: keys in their order, shortest round-trip floats, one newline at the end."""
    try:
        text = _indented(document, "\n", {})
    except (TypeError, RecursionError):  # not JSON: let the standard library raise its own error
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    return f"{text}\n".encode()


_LARGE = 16
"""Least number of keys of an object whose text is cached: a receipt has the primary phase's summary twice."""


def _indented(value: Any, line: str, kept: dict[int, tuple[str, str]]) -> str:
    """Return the text of ``json.dumps(…, indent=2)``, in half the time; ``line`` is a line end with its indentation.

    ``kept`` caches the text and the ``line`` of large objects by identity. Raises ``TypeError`` for a value that is not
    JSON, ``ValueError`` for NaN and infinity.
    """
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if value is None or kind is bool:
        return "null" if value is None else "true" if value else "false"
    if kind is int or (kind is float and -math.inf < value < math.inf):
        return repr(value)
    if isinstance(value, dict):
        large = len(value) >= _LARGE
        if large and id(value) in kept:
            text, its_line = kept[id(value)]
            return text.replace(its_line, line)  # encoded strings contain no line end
        inner = line + "  "
        parts = [
            f"{encode_basestring(key)}: {encode_basestring(item) if type(item) is str else _indented(item, inner, kept)}"
            for key, item in value.items()
        ]
        text = f"{{{inner}{f',{inner}'.join(parts)}{line}}}" if parts else "{}"
        if large:
            kept[id(value)] = text, line
        return text
    if isinstance(value, list | tuple):
        inner = line + "  "
        return f"[{inner}{f',{inner}'.join([_indented(item, inner, kept) for item in value])}{line}]" if value else "[]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def canonical_line(document: Mapping[str, Any]) -> bytes:
    """Return the document as one line of JSON Lines."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode("utf-8")


CAPTURED = ("run", "header", "attachments")


def captured_digest(document: Mapping[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of a receipt's captured parts, as one line of JSON.

    ``evidence`` and stated facts are included if the receipt has any.
    """
    parts = {part: document[part] for part in (*CAPTURED, "evidence") if part in document or part in CAPTURED}
    derivation = document.get("derivation")
    options = derivation.get("options") if isinstance(derivation, Mapping) else None
    facts = options.get("facts") if isinstance(options, Mapping) else None
    return sha256(canonical_line(parts if facts is None else {**parts, "facts": facts})).hexdigest()


def is_touched(document: Mapping[str, Any]) -> bool | None:
    """Return whether the captured parts changed after the receipt was written; None if the receipt has no digest of them."""
    stated = document.get("captured_sha256")
    return None if stated is None else stated != captured_digest(document)
