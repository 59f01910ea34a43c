"""Canonical JSON: the bytes of a document, which never differ for equal values; and the digest of a receipt's captured parts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the document as UTF-8 JSON: keys as they stand, shortest round-trip floats, one newline at the end."""
    try:
        text = _indented(document, "\n", {})
    except (TypeError, RecursionError):  # a key that is no text, what is no JSON, a circle: for the standard library to refuse
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    return f"{text}\n".encode()


_LARGE = 16
"""Keys of an object whose text is kept: the summary of the primary phase is in a receipt twice."""


def _indented(value: Any, line: str, kept: dict[int, tuple[str, str]]) -> str:
    """Return what ``json.dumps`` with ``indent=2`` does, in half the time; ``line`` is a line end and the indentation.

    Of large objects the text and its ``line`` are ``kept``, by identity. Raises ``TypeError`` for what JSON does not have,
    ``ValueError`` for NaN and infinity.
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
            return text.replace(its_line, line)  # there is no line end in a text
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
    """Return the SHA-256 of the captured parts of a receipt and of its stated facts as one line of JSON, in hexadecimal.

    Facts and ``evidence`` take part where the receipt has any.
    """
    parts = {part: document[part] for part in (*CAPTURED, "evidence") if part in document or part in CAPTURED}
    derivation = document.get("derivation")
    options = derivation.get("options") if isinstance(derivation, Mapping) else None
    facts = options.get("facts") if isinstance(options, Mapping) else None
    return sha256(canonical_line(parts if facts is None else {**parts, "facts": facts})).hexdigest()


def is_touched(document: Mapping[str, Any]) -> bool | None:
    """Return whether the captured parts were changed since the receipt was written; None where it has no digest of them."""
    stated = document.get("captured_sha256")
    return None if stated is None else stated != captured_digest(document)
