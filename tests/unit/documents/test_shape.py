"""The quick yes: given to every receipt that we make, and never to what the full validator refuses."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from receipt_cli.documents.schemas import get_schema, list_schemas
from receipt_cli.documents.shape import surely_keeps
from receipt_cli.documents.validate import KINDS

ROOT = Path(__file__).resolve().parents[3]
GOLDENS = sorted((ROOT / "fixtures").rglob("*.receipt.json"))
EXAMPLES = [json.loads(path.read_bytes()) for path in sorted((ROOT / "fixtures" / "receipts").glob("*/valid/*.json"))]
KNOWN = {f"{e.kind}/{e.version}": get_schema(e.kind, e.version)[1] for e in list_schemas() if e.kind in KINDS}
SCHEMA = KNOWN["receipt/1.2"]
ODD: list[Any] = [None, True, False, 0, 1, -1, 1.0, 0.5, -0.5, 1e308, "", "x", "x" * 400, "1", [], [None], {}, {"": None}]


def receipts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [json.loads(path.read_bytes()) for path in GOLDENS]
    for document in found:
        document["derivation"]["tool_version"] = "0.1.0"  # the one field that goldens leave out
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in places(item, (*path, key)))]


def mutated(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    made = copy.deepcopy(document)
    *path, last = rng.choice([place for place in places(made) if place])
    parent: Any = made
    for key in path:
        parent = parent[key]
    match rng.randrange(4):
        case 0:
            del parent[last]
        case 1:
            parent[last] = copy.deepcopy(rng.choice(ODD))
        case 2 if isinstance(parent, dict):
            parent[rng.choice(["", "x", "loss", "A b", "0"])] = copy.deepcopy(rng.choice(ODD))
        case 2:
            parent.extend([copy.deepcopy(parent[last])] * rng.choice([1, 300]))
        case _:
            parent[last] = float(parent[last]) if type(parent[last]) is int else [parent[last]]
    return made


def test_every_golden_receipt_gets_it() -> None:
    found = receipts()
    assert len(found) > 20
    assert all(surely_keeps(SCHEMA, document) for document in found)


@pytest.mark.parametrize("version", KNOWN)
def test_every_valid_example_gets_it(version: str) -> None:
    found = [document for document in EXAMPLES if document["schema_version"] == version]
    assert len(found) >= 2
    assert all(surely_keeps(KNOWN[version], document) for document in found)


@pytest.mark.parametrize("version", KNOWN)
def test_nothing_invalid_gets_it(version: str) -> None:
    rng = random.Random(4)
    validator = jsonschema.Draft202012Validator(KNOWN[version])
    documents = [document for document in EXAMPLES if document["schema_version"] == version]
    documents += receipts() if KNOWN[version] is SCHEMA else []
    refused = 0
    for _ in range(500):
        document = mutated(rng.choice(documents), rng)
        if surely_keeps(KNOWN[version], document):
            assert validator.is_valid(document)
        else:
            refused += 1
    assert refused > 150


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        ({"type": "integer"}, True),
        ({"type": "integer"}, 1.0),  # JSON Schema has it for an integer: the full validator decides
        ({"type": "number"}, False),
        ({"type": ["string", "null"]}, 1),
        ({"const": 1}, True),
        ({"enum": [0, 1]}, False),
        ({"minimum": 0}, -1),
        ({"minimum": 0}, float("nan")),
        ({"maximum": 1}, 2),
        ({"minLength": 1}, ""),
        ({"maxLength": 1}, "ab"),
        ({"minItems": 1}, []),
        ({"maxItems": 0}, [1]),
        ({"minProperties": 1}, {}),
        ({"required": ["a"]}, {}),
        ({"items": {"type": "string"}}, ["a", 1]),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}),
        ({"additionalProperties": {"type": "string"}}, {"b": 1}),
        ({"propertyNames": {"pattern": "^[a-z]$"}}, {"B": 1}),
        ({"pattern": "^a"}, "ba"),
        ({"pattern": "^a$"}, "a\n"),  # Python's $ lets a newline follow, JSON Schema's does not
        ({"$defs": {"x": {"type": "string"}}, "$ref": "#/$defs/x"}, 1),
        ({"$ref": "#/$defs/none"}, 1),
        ({"$ref": "https://example.com/other"}, 1),
        ({"anyOf": [{}]}, 1),  # a keyword that is not known here
        ({"type": "what"}, 1),
        (False, 1),
    ],
)
def test_no_yes(schema: Any, instance: object) -> None:
    assert not surely_keeps(schema, instance)


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        (True, 1),
        ({"title": "a", "description": "b", "$schema": "c", "$id": "d"}, 1),
        ({"minimum": 0, "minLength": 1, "minItems": 1, "required": ["a"], "pattern": "a"}, None),
        ({"minimum": 0}, True),
        ({"$defs": {"x": {"type": "string"}}, "$ref": "#/$defs/x"}, "a"),
    ],
)
def test_yes(schema: Any, instance: object) -> None:
    assert surely_keeps(schema, instance)
