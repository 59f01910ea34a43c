"""List the shipped schemas and read their bytes, checked against the digests in the index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from receipt_cli.definitions.resources import load_shipped, read_shipped
from receipt_cli.errors import DataError
from receipt_cli.patterns import compile_later

Status = Literal["draft", "released", "deprecated"]

INDEX_PATH = "index.yaml"
_INDEX = f"schemas/{INDEX_PATH}"
_VERSION = compile_later(r"([a-z][a-z0-9_]*)/(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\Z")


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """One line of ``schemas/index.yaml``: a schema (or the metric registry) and the digest of its bytes."""

    kind: str
    version: str
    path: str
    status: Status
    since: str
    sha256: str

    @property
    def name(self) -> str:
        """Kind and version, as a document states them."""
        return f"{self.kind}/{self.version}"

    @property
    def order(self) -> tuple[int, ...]:
        """Major and minor version."""
        return tuple(map(int, self.version.split(".")))


@cache
def list_schemas() -> tuple[SchemaEntry, ...]:
    """Return every shipped schema in the order of the index.

    Raises ``DataError`` if the index is missing or broken. ``read_entry`` checks the digests.
    """
    return load_shipped(_INDEX, lambda rows: tuple(SchemaEntry(*row) for row in rows), parse_index)


def parse_index(text: bytes, where: str) -> tuple[SchemaEntry, ...]:
    """Return the entries of the index in ``text``; ``where`` names it in errors. Raises ``DataError``."""
    from receipt_cli.definitions.strict_yaml import read_yaml

    try:
        return tuple(SchemaEntry(**entry) for entry in read_yaml(text, where)["schemas"])
    except (KeyError, TypeError) as error:
        raise DataError("not an index of schemas", where=where, why=str(error)) from error


def find_entry(name: str, version: str | None = None) -> SchemaEntry:
    """Return the entry of ``name``: KIND/VERSION, or KIND with ``version``, or KIND for its newest version.

    Raises ``DataError`` if there is none.
    """
    kind, _, stated = name.partition("/")
    entries = [entry for entry in list_schemas() if entry.kind == kind]
    wanted = version or stated or (max(entries, key=lambda entry: entry.order).version if entries else "")
    for entry in entries:
        if entry.version == wanted:
            return entry
    known = ", ".join(f"{entry.kind} {entry.version}" for entry in list_schemas())
    raise DataError(f"there is no schema {kind} {wanted}".rstrip(), where=_INDEX, why=f"known: {known}")


def get_json_schema(entry: SchemaEntry) -> dict[str, Any]:
    """Return the JSON Schema of ``entry``. Raises ``DataError`` as ``read_entry`` does, and if it is not a JSON Schema."""
    where = f"schemas/{entry.path}"
    if not entry.path.endswith(".json"):
        raise DataError(f"{entry.kind} {entry.version} is not a JSON Schema", where=where)
    schema: dict[str, Any] = json.loads(read_entry(entry))  # the digest proves that it is the shipped one
    return schema


def read_version(stated: object) -> tuple[str, int, int] | None:
    """Return kind, major and minor of a ``schema_version`` such as receipt/1.0, or None if ``stated`` is not one."""
    found = _VERSION.match(stated) if isinstance(stated, str) else None
    return None if found is None else (found[1], int(found[2]), int(found[3]))


def read_entry(entry: SchemaEntry) -> bytes:
    """Return the bytes of ``entry``. Raises ``DataError`` if they are missing or do not have its digest."""
    text = read_shipped(f"schemas/{entry.path}")
    digest = hashlib.sha256(text).hexdigest()
    if digest != entry.sha256:
        raise DataError(
            f"schema {entry.kind} {entry.version} is not the one that was shipped",
            where=f"schemas/{entry.path}",
            why=f"its sha256 is {digest}, the index says {entry.sha256}",
            try_="install receipt-cli again",
        )
    return text


def keep_known(document: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return ``document`` without the fields that schema ``version`` (such as receipt/1.0) lacks; whole if that is unknown."""
    parts = read_version(version)
    if parts is None or all(entry.name != version for entry in list_schemas()):
        return dict(document)
    root = get_json_schema(find_entry(version))
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
