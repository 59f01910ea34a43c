"""The digest of a receipt's captured parts, which no log can give again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from receipt_cli.documents.canonical import canonical_line

CAPTURED = ("run", "header", "attachments")


def captured_digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the captured parts of a receipt as one line of JSON, in hexadecimal."""
    return hashlib.sha256(canonical_line({part: document[part] for part in CAPTURED})).hexdigest()


def is_touched(document: Mapping[str, Any]) -> bool | None:
    """Return whether the captured parts were changed since the receipt was written; None where it has no digest of them."""
    stated = document.get("captured_sha256")
    return None if stated is None else stated != captured_digest(document)
