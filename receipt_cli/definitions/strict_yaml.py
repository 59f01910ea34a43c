"""Read a definition's YAML as plain data without tags, duplicate keys and aliases; and write such data."""

from __future__ import annotations

import math
from typing import Any

import yaml

from receipt_cli.errors import DataError

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 24
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
MAX_BYTES = 1 << 20
"""Largest definition that is read, in bytes."""


class _StrictLoader(_BASE):  # type: ignore[misc]  # the C loader has no stub that mypy can subclass
    """Safe loader that refuses duplicate keys and aliases (an alias bomb needs them; a definition does not)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a scalar", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
            seen.add(key)
        result: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return result


def _refuse_dangers(text: str, where: str) -> None:
    """Raise ``DataError`` for aliases, tags and deep nesting, before the recursive composer runs."""
    depth = 0
    for event in yaml.parse(text, Loader=_BASE):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise DataError("aliases are not allowed", where=f"{where}:{line}")
        tag = getattr(event, "tag", None)
        if tag is not None and tag != "!":
            raise DataError(f"tags are not allowed: {tag}", where=f"{where}:{line}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise DataError(_TOO_DEEP, where=f"{where}:{line}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def read_yaml(text: bytes, where: str, *, shipped: bool = False) -> dict[str, Any]:
    """Return the mapping in ``text``; ``where`` names it in errors. ``shipped``: trusted, so skip the safety checks.

    Raises ``DataError`` with ``where:line`` for YAML that is invalid, has duplicate keys, aliases or tags, or is not
    a mapping at the top.
    """
    if len(text) > MAX_BYTES:
        raise DataError("definition is too large", where=where, why=f"over {MAX_BYTES} bytes")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError("definition is not UTF-8", where=where, why=str(error)) from error
    try:
        if not shipped:
            _refuse_dangers(decoded, where)
        data = yaml.load(decoded, Loader=_StrictLoader)  # a SafeLoader subclass
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        said = _TOO_DEEP if "nesting depth" in (error.problem or "") else error.problem  # PyYAML has its own limit
        raise DataError(said or "invalid YAML", where=f"{where}:{line}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DataError("invalid YAML", where=where, why=str(error)) from error
    if not isinstance(data, dict):
        raise DataError("definition is not a mapping", where=where)
    return data


def locate(text: bytes, path: tuple[str | int, ...]) -> int:
    """Return the 1-based line of the node at ``path`` (keys and list indices), or of its nearest known ancestor."""
    try:
        node = yaml.compose(text.decode("utf-8", "replace"), Loader=_BASE)
    except yaml.YAMLError:
        return 1
    line = 1
    for part in path:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(part):
                    found, line = value, key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
            line = found.start_mark.line + 1
        if found is None:
            return line
        node = found
    return line


class _Writer(yaml.SafeDumper):
    """Writes multi-line strings as blocks, lists indented below their keys, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_Writer.add_representer(str, _Writer.represent_str)


def write_yaml(data: Any, *, flow: bool | None = None) -> str:
    """Return ``data`` as YAML that reads back equal; unless ``flow`` is False, a collection of scalars is on one line."""
    text: str = yaml.dump(data, Dumper=_Writer, default_flow_style=flow, sort_keys=False, allow_unicode=True, width=math.inf)
    return text
