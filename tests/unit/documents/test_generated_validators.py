"""Validators that the build generates: they accept every receipt that we make, and nothing that jsonschema refuses."""

import copy
import json
import random
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import hatch_build
from receipt_cli.api.commands import validate
from receipt_cli.definitions import reading
from receipt_cli.definitions.reading import generated_validator
from receipt_cli.documents.schemas import get_json_schema, list_schemas
from receipt_cli.documents.validate import KINDS, _validator, validate_document
from receipt_cli.receipts.versions import SCHEMA_VERSION
from tests.tools.examples import costly

ROOT = Path(__file__).resolve().parents[3]
GOLDENS = sorted((ROOT / "fixtures").rglob("*.receipt.json"))
EXAMPLES = [json.loads(path.read_bytes()) for path in sorted((ROOT / "fixtures" / "receipts").glob("*/valid/*.json"))]
KNOWN = {f"{e.kind}/{e.version}": get_json_schema(e) for e in list_schemas() if e.kind in KINDS}
SCHEMA = KNOWN[SCHEMA_VERSION]
ODD: list[Any] = [None, True, False, 0, 1, -1, 1.0, 0.5, -0.5, 1e308, "", "x", "x" * 400, "1", [], [None], {}, {"": None}]


def keeps(version: str, document: object) -> bool:
    """Return whether the generated validator of a schema such as receipt/1.2 accepts ``document``."""
    validate = generated_validator(*version.split("/"))
    assert validate is not None, "make compile"
    try:
        validate(document)
    except ValueError as error:
        assert str(error).startswith("data")
        return False
    return True


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
            parent[rng.choice(["", "x", "loss", "A b", "0", "{x}", "{", "%s"])] = copy.deepcopy(rng.choice(ODD))
        case 2:
            parent.extend([copy.deepcopy(parent[last])] * rng.choice([1, 300]))
        case _:
            parent[last] = float(parent[last]) if type(parent[last]) is int else [parent[last]]
    return made


def test_every_golden_receipt_gets_it() -> None:
    found = receipts()
    assert len(found) > 20
    assert all(keeps(document["schema_version"], document) for document in found)


@pytest.mark.parametrize("version", KNOWN)
def test_every_valid_example_gets_it(version: str) -> None:
    found = [document for document in EXAMPLES if document["schema_version"] == version]
    assert len(found) >= 2
    assert all(keeps(version, document) for document in found)


@pytest.mark.parametrize("version", KNOWN)
def test_nothing_invalid_gets_it(version: str) -> None:
    rng = random.Random(4)
    validator = jsonschema.Draft202012Validator(KNOWN[version])
    documents = [document for document in EXAMPLES if document["schema_version"] == version]
    documents += receipts() if KNOWN[version] is SCHEMA else []
    refused, count = 0, costly(800)
    for _ in range(count):
        document = mutated(rng.choice(documents), rng)
        if keeps(version, document):
            assert validator.is_valid(document)
        else:
            refused += 1
    assert refused > 0.3 * count


@pytest.mark.parametrize("schema", [{"dependentSchemas": {}}, {"items": {"format": "date"}}, {"prefixItems": [{}]}])
def test_a_keyword_that_draft_7_may_not_share_stops_the_build(schema: Any) -> None:
    with pytest.raises(ValueError, match="unknown schema keyword"):
        hatch_build.generate_validator(schema)


def test_without_jsonschema_the_first_error_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    document = receipts()[0]
    assert validate_document(document) == []
    document["run"]["name"] = 5
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    _validator.cache_clear()
    (found,) = validate_document(document)
    assert (found.pointer, found.reason) == ("", "data.run.name must be string or null")


def test_without_generated_validators_jsonschema_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "generated_validator", lambda kind, version: None)
    document = receipts()[0]
    assert validate_document(document) == []
    document["run"]["name"] = 5
    assert [found.pointer for found in validate_document(document)] == ["/run/name"]


def test_receipt_validate_asks_jsonschema_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "generated_validator", lambda kind, version: pytest.fail("asked"))
    document, file = receipts()[0], tmp_path / "a.receipt.json"
    for name, places in (("a", []), (5, ["/run/name"])):
        document["run"]["name"] = name
        file.write_text(json.dumps(document))
        assert [found.pointer for found in validate([file])] == places
