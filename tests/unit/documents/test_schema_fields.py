"""The field reference and the difference of two schemas, over small schemas and those that ship."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from receipt_cli.documents.schema_fields import compare_schemas, is_compatible, list_fields
from receipt_cli.documents.schemas import get_json_schema, list_schemas
from receipt_cli.documents.validate import KINDS

SMALL: dict[str, Any] = {
    "type": "object",
    "required": ["step_time_s", "spans"],
    "additionalProperties": False,
    "properties": {
        "step_time_s": {"description": "One step.", "type": ["number", "null"], "minimum": 0},
        "started_at": {"description": "Start.", "type": "string"},
        "a/b": {"description": "A name with a slash.", "enum": ["x", 1, None]},
        "spans": {"description": "Spans.", "type": "array", "items": {"description": "A span.", "$ref": "#/$defs/span"}},
        "last": {"description": "The last span.", "$ref": "#/$defs/span"},
        "sizes_bytes": {
            "description": "Sizes.",
            "type": "object",
            "additionalProperties": {"description": "A size.", "type": "integer"},
        },
    },
    "$defs": {
        "span": {
            "description": "A span of time.",
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {"name": {"description": "Its name.", "type": "string"}},
        }
    },
}


def test_fields_stand_in_the_order_of_the_schema_and_a_definition_is_told_once() -> None:
    fields = {field.pointer: field for field in list_fields(SMALL)}
    assert list(fields) == [
        "/step_time_s", "/started_at", "/a~1b", "/spans", "/spans/*", "/spans/*/name", "/last", "/sizes_bytes", "/sizes_bytes/*"
    ]  # fmt: skip
    assert [field.unit for field in fields.values()] == ["seconds", "time", *[None] * 6, "bytes"]
    assert (fields["/step_time_s"].required, fields["/started_at"].required) == (True, False)
    assert fields["/a~1b"].choices == ("x", 1, None)
    assert fields["/a~1b"].types == ("string", "integer", "null")
    assert fields["/last"].same_as == "/spans/*"
    assert fields["/spans/*"].description == "A span."
    assert fields["/step_time_s"].limits == {"minimum": 0}


def test_a_definition_inside_itself_ends() -> None:
    tree = {"properties": {"root": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}}
    assert [field.pointer for field in list_fields(tree, again=True)] == ["/root", "/root/next"]
    assert [field.pointer for field in list_fields(tree)] == ["/root", "/root/next"]


@pytest.mark.parametrize("entry", [e for e in list_schemas() if e.path.endswith(".json")], ids=lambda e: f"{e.kind}-{e.version}")
def test_every_shipped_schema_is_listed_with_a_type_and_a_meaning_for_each_field(entry: Any) -> None:
    fields = list_fields(get_json_schema(entry))
    assert len(fields) > 10
    pointers = [field.pointer for field in fields]
    assert len(set(pointers)) == len(pointers)
    assert [field.pointer for field in fields if not field.types] == []
    if entry.kind in KINDS:
        assert [field.pointer for field in fields if not field.description and not field.pointer.endswith("*")] == []


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    made = copy.deepcopy(SMALL)
    change(made)
    return made


NEW = {"description": "New.", "type": "object", "required": ["a"], "properties": {"a": {"description": "A.", "type": "integer"}}}
CHANGES: list[tuple[str, Callable[[dict[str, Any]], object], list[tuple[str, str, str]], bool]] = [
    ("nothing", lambda s: None, [], True),
    ("optional", lambda s: s["properties"].update(new=NEW), [("/new", "added", "field"), ("/new/a", "added", "field")], True),
    (
        "required",
        lambda s: (s["properties"].update(new={"description": "New.", "type": "integer"}), s["required"].append("new")),
        [("/new", "added", "field")],
        False,
    ),
    ("removed", lambda s: s["properties"].pop("started_at"), [("/started_at", "removed", "field")], False),
    ("type", lambda s: s["properties"]["step_time_s"].update(type="number"), [("/step_time_s", "changed", "type")], False),
    ("limit", lambda s: s["properties"]["step_time_s"].pop("minimum"), [("/step_time_s", "changed", "minimum")], False),
    ("words", lambda s: s["properties"]["spans"].update(description="All."), [("/spans", "changed", "description")], True),
    ("no_longer_required", lambda s: s["required"].remove("spans"), [("/spans", "changed", "required")], False),
    (
        "choices",
        lambda s: s["properties"]["a/b"].update(enum=["x", 1]),
        [("/a~1b", "changed", "type"), ("/a~1b", "changed", "enum")],
        False,
    ),
    (
        "in_a_definition",
        lambda s: s["$defs"]["span"]["properties"]["name"].update(maxLength=9),
        [("/spans/*/name", "changed", "maxLength"), ("/last/name", "changed", "maxLength")],
        False,
    ),
]


@pytest.mark.parametrize(("change", "wanted", "compatible"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_changes_are_told_and_judged(change: Any, wanted: list[tuple[str, str, str]], compatible: bool) -> None:
    found = compare_schemas(SMALL, changed(change))
    assert [(c.pointer, c.kind, c.what) for c in found] == wanted
    assert is_compatible(found) is compatible
