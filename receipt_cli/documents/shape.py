"""Does a document surely keep its schema? A quick yes for what we just made ourselves; never a quick no.

The full validator takes forty milliseconds to load. Here stand the few keywords that our schemas use, each read at
least as strictly as JSON Schema reads it: a keyword, a type or a reference that is not known here is no yes. Whoever
gets no yes asks the full validator, which also tells what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Schema = Mapping[str, Any]
_Check = Callable[[Any, Any, Schema, Schema], bool]
"""(the keyword's value, the instance, the schema that holds the keyword, the whole schema) → whether it is kept."""

ANNOTATIONS = frozenset({"$schema", "$id", "$defs", "title", "description"})
"""Keywords that demand nothing."""
_REFERENCE = "#/$defs/"


def surely_keeps(schema: Schema, document: object) -> bool:
    """Return True only when ``document``, as read from JSON and not nested without end, keeps ``schema``."""
    return _keeps(schema, document, schema)


def _keeps(schema: Any, instance: Any, root: Schema) -> bool:
    if not isinstance(schema, dict):
        return schema is True
    for keyword, value in schema.items():
        if keyword in ANNOTATIONS:
            continue
        check = _CHECKS.get(keyword)
        if check is None or not check(value, instance, schema, root):
            return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": _is_number,
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def _has_type(value: Any, instance: Any, _schema: Schema, _root: Schema) -> bool:
    return any(name in _TYPES and _TYPES[name](instance) for name in ([value] if isinstance(value, str) else value))


def _is_one_of(value: Any, instance: Any, _schema: Schema, _root: Schema) -> bool:
    return any(type(choice) is type(instance) and choice == instance for choice in value)


def _follows(value: Any, instance: Any, _schema: Schema, root: Schema) -> bool:
    name = value.removeprefix(_REFERENCE)
    return name != value and name in root.get("$defs", {}) and _keeps(root["$defs"][name], instance, root)


def _properties(value: Any, instance: Any, _schema: Schema, root: Schema) -> bool:
    if not isinstance(instance, dict):
        return True
    return all(_keeps(value[key], item, root) for key, item in instance.items() if key in value)


def _additional(value: Any, instance: Any, schema: Schema, root: Schema) -> bool:
    if not isinstance(instance, dict):
        return True
    known = schema.get("properties", ())
    return all(_keeps(value, item, root) for key, item in instance.items() if key not in known)


def _names(value: Any, instance: Any, _schema: Schema, root: Schema) -> bool:
    return not isinstance(instance, dict) or all(_keeps(value, key, root) for key in instance)


def _items(value: Any, instance: Any, _schema: Schema, root: Schema) -> bool:
    return not isinstance(instance, list) or all(_keeps(value, item, root) for item in instance)


def _required(value: Any, instance: Any, _schema: Schema, _root: Schema) -> bool:
    return not isinstance(instance, dict) or all(key in instance for key in value)


def _matches(value: Any, instance: Any, _schema: Schema, _root: Schema) -> bool:
    return not isinstance(instance, str) or compile_pattern(value).search(instance) is not None


@cache
def compile_pattern(source: str) -> re.Pattern[str]:
    """Return a pattern of a schema as JSON Schema means it: a last ``$`` is the end, not a place before a last newline."""
    return re.compile(rf"{source[:-1]}\Z" if source.endswith("$") and not source.endswith("\\$") else source)


def _at_least(kind: type[Any]) -> _Check:
    """Return the check that an instance of ``kind`` has a length or a size of at least the keyword's value."""
    return lambda value, instance, _schema, _root: not isinstance(instance, kind) or len(instance) >= value


def _at_most(kind: type[Any]) -> _Check:
    """Return the check that an instance of ``kind`` has a length or a size of at most the keyword's value."""
    return lambda value, instance, _schema, _root: not isinstance(instance, kind) or len(instance) <= value


_CHECKS: Mapping[str, _Check] = {
    "type": _has_type,
    "enum": _is_one_of,
    "const": lambda value, instance, schema, root: _is_one_of([value], instance, schema, root),
    "$ref": _follows,
    "properties": _properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "items": _items,
    "required": _required,
    "pattern": _matches,
    "minimum": lambda value, instance, _schema, _root: not _is_number(instance) or instance >= value,
    "maximum": lambda value, instance, _schema, _root: not _is_number(instance) or instance <= value,
    "minLength": _at_least(str),
    "maxLength": _at_most(str),
    "minItems": _at_least(list),
    "maxItems": _at_most(list),
    "minProperties": _at_least(dict),
}
