"""The text of a grammar, catalogue or registry → plain data: from the user's cache, else by reading the YAML."""

from __future__ import annotations

import hashlib
from typing import Any

from receipt_cli.definitions.cache import keep, recall

MIN_CACHED = 256
"""Bytes from which a definition is worth keeping."""


def load_definition(text: bytes, where: str, *, shipped: bool = False, lasting: bool = True) -> dict[str, Any]:
    """Return the mapping that ``text`` holds; ``where`` names it in errors. Raises ``DataError`` as ``read_yaml``.

    ``shipped``: the text comes with this package, so that it need not be searched for dangers first. Without
    ``lasting`` what had to be read as YAML is not kept.
    """
    sha256 = hashlib.sha256(text).hexdigest()
    data = recall(sha256) if len(text) >= MIN_CACHED else None
    if data is None:
        from receipt_cli.definitions.strict_yaml import read_yaml

        data = read_yaml(text, where, shipped=shipped)
        if lasting and len(text) >= MIN_CACHED:
            keep(sha256, data)
    return data


def locate(text: bytes, path: tuple[str | int, ...]) -> int:
    """Return the 1-based line of the node at ``path`` (keys and list indices), or of its nearest known ancestor."""
    from receipt_cli.definitions.strict_yaml import locate_node

    return locate_node(text, path)
