"""List the fields of a JSON Schema, and compare two versions of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from receipt_cli.definitions.reading import json_type
from receipt_cli.problems import pointer

Schema = Mapping[str, Any]

_UNITS = (
    ("_bytes_per_s", "bytes per second"),
    ("_per_s_per_device", "per second and device"),
    ("_per_s", "per second"),
    ("_bytes", "bytes"),
    ("_ratio", "ratio"),
    ("_count", "count"),
    ("_counts", "count"),
    ("_celsius", "degrees Celsius"),
    ("_at", "time"),
    ("_s", "seconds"),
)
"""Ending of a field name → unit; longer endings first."""
_LIMITS = (
    "const", "enum", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
    "minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems",
)  # fmt: skip
_NO_UNIT = {"string", "boolean", "object"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a document.

    ``pointer`` is a JSON pointer in which ``*`` stands for every entry of an array and every name of an open object.
    ``types`` are JSON types, or ``any`` if the schema sets none; ``required``: its object must have the field. ``limits``
    are the schema's keywords that bound the value; for an open object, ``names`` bounds its keys. ``same_as`` is the
    pointer of an earlier field with the same inner fields, which are then not listed again.
    """

    pointer: str
    types: tuple[str, ...]
    required: bool
    description: str
    limits: Mapping[str, Any] = field(default_factory=dict)
    same_as: str | None = None

    @property
    def unit(self) -> str | None:
        """The unit by the ending of the field's name, or None."""
        if set(self.types) <= _NO_UNIT | {"null"} and not self.pointer.endswith("_at"):
            return None
        name = next((part for part in reversed(self.pointer.split("/")) if part != "*"), "")
        return next((unit for end, unit in _UNITS if name.endswith(end)), None)

    def document(self) -> dict[str, object]:
        """Return the field as JSON values."""
        return {
            "pointer": self.pointer,
            "types": list(self.types),
            "required": self.required,
            "unit": self.unit,
            "description": self.description,
            "limits": dict(self.limits),
            "same_as": self.same_as,
        }

    @property
    def kind(self) -> str:
        """The types in words."""
        return " or ".join(self.types)

    @property
    def choices(self) -> tuple[object, ...]:
        """The allowed values in schema order; empty if the schema does not list them."""
        return (self.limits["const"],) if "const" in self.limits else tuple(self.limits.get("enum", ()))


def list_fields(schema: Schema, *, again: bool = False) -> list[Field]:
    """Return the fields of ``schema`` in its order; ``again``: list the fields of a shared definition at each use."""
    told: dict[str, str] = {}
    return list(_inside(schema, schema, "", told, () if again else None))


def _inside(node: Schema, root: Schema, at: str, told: dict[str, str], open_: tuple[str, ...] | None) -> Iterator[Field]:
    """Yield the fields and array entries inside ``node``, which is at the pointer ``at``."""
    required = node.get("required", ())
    for name, inner in node.get("properties", {}).items():
        yield from _field(inner, root, at + pointer(name), name in required, told, open_)
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            yield from _field(node[keyword], root, f"{at}/*", False, told, open_)


def _field(
    node: Schema, root: Schema, at: str, required: bool, told: dict[str, str], open_: tuple[str, ...] | None
) -> Iterator[Field]:
    """Yield the field at ``at``, then its inner fields. ``open_``: definitions entered so far; None: list each only once."""
    reference = node.get("$ref")
    whole: Schema = {**_defined(root, reference), **node} if reference is not None else node
    alternatives = [inner for keyword in ("anyOf", "oneOf") for inner in whole.get(keyword, ())]
    seen = told.get(reference) if reference is not None and open_ is None else None
    looped = open_ is not None and reference in open_
    yield Field(at, _types(whole, alternatives, root), required, str(whole.get("description", "")), _limits(whole), seen)
    if reference is not None:
        told.setdefault(reference, at)
        open_ = None if open_ is None else (*open_, reference)
    if seen is None and not looped:
        for inner in (whole, *alternatives):
            yield from _inside(inner, root, at, told, open_)


def _types(node: Schema, alternatives: list[Schema], root: Schema) -> tuple[str, ...]:
    stated = node.get("type")
    if stated is not None:
        return (stated,) if isinstance(stated, str) else tuple(stated)
    choices = node.get("enum", [node["const"]] if "const" in node else [])
    names = [json_type(choice) for choice in choices]
    for inner in alternatives:
        names += _types({**_defined(root, inner["$ref"]), **inner} if "$ref" in inner else inner, [], root)
    return tuple(dict.fromkeys(names)) or ("any",)


def _limits(node: Schema) -> dict[str, Any]:
    limits = {keyword: node[keyword] for keyword in _LIMITS if keyword in node}
    names = node.get("propertyNames")
    if isinstance(names, dict):
        limits["names"] = {key: value for key, value in names.items() if key != "description"}
    if node.get("additionalProperties") is False:
        limits["closed"] = True
    return limits


def _defined(root: Schema, reference: str) -> Schema:
    found: Schema = root["$defs"][reference.removeprefix("#/$defs/")]
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """One changed property of a field.

    ``what`` is ``field`` for a whole field added or removed, else ``type``, ``required``, ``description`` or the keyword
    of the schema. ``old`` and ``new`` are the values in each schema, None if absent. ``compatible``: a minor version may
    make this change, which is to add optional fields (with anything inside them) or to change a description.
    """

    pointer: str
    kind: Literal["added", "removed", "changed"]
    what: str
    old: object
    new: object
    compatible: bool

    def document(self) -> dict[str, object]:
        """Return the change as JSON values."""
        return asdict(self)


def compare_schemas(old: Schema, new: Schema) -> list[Change]:
    """Return the changes in the order of ``new``, then the removed fields; ``/schema_version`` is not compared."""
    before, after = ({each.pointer: each for each in list_fields(schema, again=True)} for schema in (old, new))
    found: list[Change] = []
    for at, each in after.items():
        if at == "/schema_version":
            continue
        if at not in before:
            inside_new = at.rpartition("/")[0] not in before and at.count("/") > 1
            found.append(Change(at, "added", "field", None, each.kind, inside_new or not each.required))
        else:
            found += _changes(before[at], each)
    found += [Change(at, "removed", "field", each.kind, None, False) for at, each in before.items() if at not in after]
    return found


def is_compatible(changes: list[Change]) -> bool:
    """Return whether a reader of the old schema can read every document of the new one if it ignores unknown fields."""
    return all(change.compatible for change in changes)


def _changes(old: Field, new: Field) -> Iterator[Change]:
    pairs: list[tuple[str, object, object]] = [
        ("type", " or ".join(old.types), " or ".join(new.types)),
        ("required", old.required, new.required),
        *((name, old.limits.get(name), new.limits.get(name)) for name in dict.fromkeys((*old.limits, *new.limits))),
        ("description", old.description, new.description),
    ]
    for what, before, after in pairs:
        if before != after:
            yield Change(new.pointer, "changed", what, before, after, what == "description")
