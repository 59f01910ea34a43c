"""The receipt of each fixture log, made once in a process."""

import json
from pathlib import Path
from typing import Any

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.receipts.production import Product, Request, produce

_MADE: dict[Path, bytes] = {}


def product_of(path: Path) -> Product:
    """Return what reading a log gives, whose receipt is kept for ``receipt_of``."""
    product = produce(Request(path=str(path)))
    _MADE[path] = canonical_bytes(product.document)
    return product


def receipt_of(path: Path) -> dict[str, Any]:
    """Return the receipt of a log, a document of its own for each caller."""
    if path not in _MADE:
        product_of(path)
    document: dict[str, Any] = json.loads(_MADE[path])
    return document
