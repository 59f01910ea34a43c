"""JSON documents as objects: ``receipt.summary.steps.last`` beside ``receipt["summary"]["steps"]["last"]``."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from receipt_cli.documents.schemas import find_entry, get_json_schema

ITEM = "[]"
"""Path element for the items of an array."""


class View(Mapping[str, Any]):
    """A read-only object of a JSON document: a mapping whose keys are attributes too.

    Nested objects are views, arrays are tuples. An attribute of a receipt is None if the receipt lacks a field of the newest
    schema; an item raises ``KeyError``. ``values`` is a method, as in every mapping: read that field of a problem as
    ``problem["values"]``.
    """

    __slots__ = ("_data", "_more", "_path")

    def __init__(self, data: Mapping[str, Any], path: tuple[str, ...] | None = None, /, **more: Any) -> None:
        """``path``: place of ``data`` in a receipt, None outside one; ``more``: attributes that are not keys."""
        self._data, self._path, self._more = data, path, more

    def to_dict(self) -> dict[str, Any]:
        """Return the object as a plain copy, as ``json.load`` would."""
        return {key: _copied(value) for key, value in self._data.items()}

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._data[key], None if self._path is None else (*self._path, key))

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        return bool(self._data == (other._data if isinstance(other, View) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({reprlib.repr(self._data)})"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._data, *self._more, *_fields(self._path)})

    if not TYPE_CHECKING:  # type checkers know the declared attributes and refuse others

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_"):
                if name in self._more:
                    return self._more[name]
                if name in self._data:
                    return self[name]
                if name in _fields(self._path):
                    return None
            raise AttributeError(f"{type(self).__name__} has no field {name!r}", name=name, obj=self)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _wrapped(value: Any, path: tuple[str, ...] | None) -> Any:
    if isinstance(value, dict):
        return View(value, path)
    if isinstance(value, list):
        return tuple(_wrapped(item, None if path is None else (*path, ITEM)) for item in value)
    return value


@cache
def receipt_schema() -> dict[str, Any]:
    """Return the newest JSON Schema of receipts."""
    return get_json_schema(find_entry("receipt"))


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """Resolve a reference in the schema of receipts; other nodes are returned unchanged."""
    found: dict[str, Any] = receipt_schema()["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return found


def _fields(path: tuple[str, ...] | None) -> Collection[str]:
    """Return the schema's field names for the object of a receipt at ``path``; none for an object with free keys."""
    node = {} if path is None else receipt_schema()
    for step in path or ():
        node = resolved(node)
        child = node.get("items") if step == ITEM else node.get("properties", {}).get(step, node.get("additionalProperties"))
        node = child if isinstance(child, dict) else {}
    fields: dict[str, Any] = resolved(node).get("properties", {})
    return fields
