"""A document → the same without the fields that a version of its schema does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipt_cli.schemas import get_schema, list_schemas, read_version


def keep_known(document: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return ``document`` as far as the schema ``version`` (such as receipt/1.0) knows it; whole where that is unknown."""
    parts = read_version(version)
    known = {f"{entry.kind}/{entry.version}" for entry in list_schemas()}
    if parts is None or version not in known:
        return dict(document)
    root = get_schema(parts[0], f"{parts[1]}.{parts[2]}")[1]
    kept: dict[str, Any] = _kept(document, root, root)
    return kept


def _kept(value: Any, node: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if "$ref" in node:
        node = root["$defs"][node["$ref"].removeprefix("#/$defs/")]
    if isinstance(value, list):
        return [_kept(item, node.get("items", {}), root) for item in value]
    if not isinstance(value, Mapping):
        return value
    fields, rest = node.get("properties", {}), node.get("additionalProperties", True)
    inner = rest if isinstance(rest, dict) else {}
    return {key: _kept(item, fields.get(key, inner), root) for key, item in value.items() if key in fields or rest is not False}
