"""The shipped schemas: listed with true digests, fully described, and at one with the code."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from receipt_cli.definitions import resources
from receipt_cli.definitions.failure_markers import Category, Reason, Retry, Role
from receipt_cli.definitions.metrics import REGISTRY_PATH, load_registry
from receipt_cli.definitions.strict_yaml import read_yaml
from receipt_cli.definitions.units import SPECIAL_UNITS, UNITS
from receipt_cli.documents.schema_fields import Change, compare_schemas
from receipt_cli.documents.schemas import (
    SchemaEntry,
    Status,
    find_entry,
    get_json_schema,
    list_schemas,
    parse_index,
    read_entry,
)
from receipt_cli.documents.validate import KINDS as DOCUMENT_KINDS
from receipt_cli.errors import DataError
from receipt_cli.grammar import model as grammar
from receipt_cli.grammar import parse as grammar_file
from receipt_cli.header.document import empty_header
from receipt_cli.problems import MAX_EXCERPT, MAX_FIRST
from receipt_cli.receipts.assembly import LOG_KEYS, RUN_KEYS
from receipt_cli.receipts.versions import SCHEMA_VERSION
from receipt_cli.redaction.text import TAIL_LINES

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
KINDS = (*DOCUMENT_KINDS, "grammar", "markers", "times", "samples")
VERSIONS = [(entry.kind, entry.version) for entry in list_schemas() if entry.kind in KINDS]
DOCUMENTS = sorted((ROOT / "fixtures" / "receipts").glob("*/valid/*.json"))
GRAMMARS = sorted(path for path in (ROOT / "grammars").glob("*/v*.yaml") if path.parent.name not in ("markers", "generic"))
CATALOGUES = sorted((ROOT / "grammars" / "markers").glob("v*.yaml"))

TOP = "schema_version run header summary phases checks failure goodput attachments derivation"
HEADER = "git software hardware parallelism model seeds flags execution cost cwd collected_at sources"
SLUGS = (
    "cuda_oom host_oom nan_loss nccl_timeout nccl_error cuda_error ecc_or_xid preempted time_limit killed "
    "segfault disk_full import_error child_failed traceback interrupted truncated no_grammar_match unknown"
)
CONCLUSIONS = {"truncated", "no_grammar_match", "unknown"}
"""Failure slugs that no single line proves."""
OPTIONAL = {"files", "launches", "ranks", "origin"}
"""Fields that only a log of several files, several runs or several ranks has, or an imported document."""
ADDED = {
    "#": {"captured_sha256", "cost", "evidence"},
    "#/properties/run": {"wall_time_s", "peak_rss_bytes", "log_complete", "log_loss", "recovered", "sampled"},
    "#/properties/goodput": {"rule", "phase", "step_evidence", "parts", "range", "stalls"},
    "#/properties/derivation": {"peaks", "redactions", "cells", "check_lines", "candidates", "times", "samples"},
    "#/properties/goodput/properties/badput_s": {"gpu_idle"},
    "#/properties/goodput/properties/parts": {"gpu_idle"},
    "#/properties/derivation/properties/problems": {"kinds"},
    "#/properties/derivation/properties/problems/properties/first/items": {"lines", "values", "fields"},
    "#/$defs/header": {"data"},
    "#/$defs/header/properties/model": {"parameter_digest"},
    "#/properties/derivation/properties/log": {"time"},
    "#/properties/derivation/properties/options": {"wall", "log_complete", "running", "replaced_bytes", "job", "facts"},
    "#/properties/failure/properties/exception/properties/frame": {"relative"},
    "#/properties/failure": {"exception", "culprit", "victims", "retry", "progress"},
    "#/$defs/summary/properties/steps": {"reached", "first_line", "last_line"},
    "#/$defs/stat": {"places", "printed_digits"},
    "#/$defs/other_stat": {"places", "printed_digits"},
    "#/$defs/summary": {
        *("flags", "spikes", "bottleneck", "memory", "time"),
        *("step_times", "realised", "identities", "checkpoints"),
        *("time_to_train_s", "position", "slow_steps"),
    },
    "#/$defs/summary/properties/ranks/additionalProperties": {"median_step_time_s", "straggles"},
}
"""Fields of a receipt that a later minor version added where an earlier one has others."""
ADDED_TO_HEADERS = {"#/$defs/header": {"data"}, "#/$defs/header/properties/model": {"parameter_digest"}}
ADDED_TO_PROFILES = {"#/properties/events": {"stall_reasons"}, "#/$defs/kernel": {"launch"}}
"""The same of a GPU profile."""


def schema(kind: str, version: str = "1.0") -> dict[str, Any]:
    return get_json_schema(find_entry(kind, version))


def defined(kind: str, *path: str) -> Any:
    found: Any = schema(kind)
    for key in path:
        found = found[key]
    return found


def subschemas(node: Any, at: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with the place where it stands."""
    yield at, node
    for key in ("properties", "$defs"):
        for name, inner in node.get(key, {}).items():
            yield from subschemas(inner, f"{at}/{key}/{name}")
    for key in ("items", "additionalProperties", "propertyNames"):
        if isinstance(node.get(key), dict):
            yield from subschemas(node[key], f"{at}/{key}")
    for key in ("anyOf", "oneOf", "allOf"):
        for number, inner in enumerate(node.get(key, ())):
            yield from subschemas(inner, f"{at}/{key}/{number}")


EVERYWHERE = [(f"{kind}/{version}", at, node) for kind, version in VERSIONS for at, node in subschemas(schema(kind, version))]


def test_index_and_folder_hold_the_same_files():
    listed = {entry.path for entry in list_schemas()}
    found = {path.relative_to(SCHEMAS).as_posix() for path in SCHEMAS.glob("*/*") if path.is_file()}
    assert listed == found
    assert {entry.kind for entry in list_schemas()} == {*KINDS, "output", "metrics", "peaks"}


@pytest.mark.parametrize("entry", list_schemas(), ids=lambda entry: f"{entry.kind}-{entry.version}")
def test_digest_is_the_one_listed(entry: SchemaEntry):
    assert read_entry(entry) == (SCHEMAS / entry.path).read_bytes()
    assert entry.path.startswith(f"{entry.kind}/v{entry.version}.")


def test_registry_is_the_one_listed():
    (entry,) = [entry for entry in list_schemas() if entry.path == REGISTRY_PATH]
    registry = load_registry()
    assert (entry.version, entry.sha256) == (str(registry.version), registry.sha256)


def test_changelog_tells_of_every_schema():
    text = (SCHEMAS / "CHANGELOG.md").read_text(encoding="utf-8")
    assert all(f"`{entry.kind}/{entry.version}`" in text for entry in list_schemas())


@pytest.mark.parametrize(("kind", "version"), [("receipt", "9.0"), ("invoice", "1.0"), ("metrics", "1.0")])
def test_unknown_schema_is_refused(kind: str, version: str):
    with pytest.raises(DataError, match="there is no schema"):
        find_entry(kind, version)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of schemas/ that the package reads instead of its own."""
    folder = tmp_path / "schemas"
    shutil.copytree(SCHEMAS, folder)
    monkeypatch.setattr(resources, "data_root", lambda kind: tmp_path / kind)
    list_schemas.cache_clear()
    yield folder
    list_schemas.cache_clear()


def test_changed_schema_is_refused(copied: Path):
    path = copied / "header" / "v1.0.schema.json"
    path.write_bytes(path.read_bytes() + b"\n")
    assert schema("receipt")
    with pytest.raises(DataError, match="not the one that was shipped") as caught:
        schema("header")
    assert caught.value.where == "schemas/header/v1.0.schema.json"


@pytest.mark.parametrize("path", ["markers/v1.0.schema.json", "index.yaml"])
def test_missing_file_is_refused(copied: Path, path: str):
    (copied / path).unlink()
    with pytest.raises(DataError, match="missing"):
        schema("markers")
    if path == "index.yaml":
        with pytest.raises(DataError, match="missing"):
            list_schemas()


ENTRY = {"kind": "a", "version": "1.0", "path": "a/v1.json", "status": "draft", "since": "0.1.0", "sha256": "0" * 64}
BROKEN_INDEX = [{"more": 1}, {"schemas": ["a"]}, {"schemas": [{k: v for k, v in ENTRY.items() if k != "since"}]}]


@pytest.mark.parametrize("data", BROKEN_INDEX)
def test_broken_index_is_refused(data: Any):
    with pytest.raises(DataError, match="not an index"):
        parse_index(json.dumps(data).encode(), "index.yaml")


def test_the_shipped_index_is_sound():
    entries = list_schemas()
    assert len({(entry.kind, entry.version) for entry in entries}) == len(entries) > 0
    for entry in entries:
        assert entry.status in get_args(Status) and all(isinstance(value, str) for value in asdict(entry).values())
        assert not entry.path.startswith("/") and ".." not in entry.path.split("/")


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_schema_is_sound_and_self_contained(kind: str, version: str):
    found = schema(kind, version)
    Draft202012Validator.check_schema(found)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["$id"] == f"urn:receipt:schema:{kind}:{version}"
    refs = {node["$ref"] for _, node in subschemas(found) if "$ref" in node}
    assert refs == {f"#/$defs/{name}" for name in found.get("$defs", ())}


def test_every_field_is_described():
    assert len(EVERYWHERE) > 300
    alternatives = {"anyOf", "oneOf"}  # of one field that is described
    fields = [case for case in EVERYWHERE if not alternatives & set(case[1].split("/")) and set(case[2]) != {"$ref"}]
    assert [f"{kind} {at}" for kind, at, node in fields if not node.get("description", "").strip()] == []


def test_fixed_shapes_are_closed():
    shapes = [(kind, at, node) for kind, at, node in EVERYWHERE if "properties" in node]
    assert len(shapes) > 40
    assert [f"{kind} {at}" for kind, at, node in shapes if node.get("additionalProperties") is not False] == []


@pytest.mark.parametrize(("kind", "version"), [case for case in VERSIONS if case[0] in DOCUMENT_KINDS])
def test_every_field_of_a_document_is_required(kind: str, version: str):
    shapes = [(at, node) for at, node in subschemas(schema(kind, version)) if "properties" in node]
    added = {"receipt": ADDED, "gpu_profile": ADDED_TO_PROFILES, "header": ADDED_TO_HEADERS}.get(kind, {})
    always = OPTIONAL if kind == "receipt" else set()
    optional = {at: always | added.get(at, set()) for at, _ in shapes}
    required = [(at, [key for key in node["properties"] if key not in optional[at]], node["required"]) for at, node in shapes]
    assert [at for at, keys, node in required if keys != node] == []


def test_keys_stand_in_the_order_of_the_contract():
    assert list(schema("receipt")["properties"]) == TOP.split()
    assert list(defined("receipt", "$defs", "header", "properties")) == HEADER.split()
    checks = list(defined("receipt", "properties", "checks", "properties"))
    assert checks[:4] == ["finite_losses", "zero_exit_code", "has_steps", "no_oom"]
    statistic = "id window scope definition record_count nonfinite_count first last min max mean median"
    assert list(defined("receipt", "$defs", "stat", "properties")) == statistic.split()
    assert list(defined("receipt", "$defs", "other_stat", "properties")) == statistic.split()[1:]
    assert list(defined("receipt", "$defs", "derived_stat", "properties")) == [*statistic.split(), "inputs"]


def test_all_documents_describe_one_header_one_run_and_one_attachment():
    for kind in (kind for kind in DOCUMENT_KINDS if kind != "golden"):
        assert defined(kind, "$defs", "header") == defined("receipt", "$defs", "header")
        if kind not in ("receipt", "header"):
            for part in ("run", "attachments"):
                assert defined(kind, "properties", part) == defined("receipt", "properties", part)
    run = defined("receipt", "properties", "run", "properties")
    assert {key: run[key] for key in defined("header", "properties", "run", "properties")} == defined(
        "header", "properties", "run", "properties"
    )


def ordered(document: Any, node: dict[str, Any], root: dict[str, Any], at: str = "") -> Iterator[str]:
    """Places where the keys of a document do not stand in the schema's order."""
    if "$ref" in node:
        node = root["$defs"][node["$ref"].removeprefix("#/$defs/")]
    if isinstance(document, list):
        for number, item in enumerate(document):
            yield from ordered(item, node.get("items", {}), root, f"{at}/{number}")
    elif isinstance(document, dict):
        known = [key for key in document if key in node.get("properties", {})]
        if known != [key for key in node.get("properties", {}) if key in document]:
            yield at
        for key, value in document.items():
            inner = node.get("properties", {}).get(key, node.get("additionalProperties"))
            if isinstance(inner, dict):
                yield from ordered(value, inner, root, f"{at}/{key}")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_example_keys_stand_in_schema_order(path: Path):
    document = json.loads(path.read_bytes())
    kind, _, version = path.parents[1].name.partition("-")
    root = schema(kind, version)
    assert list(ordered(document, root, root)) == []


def test_there_are_examples_of_every_version():
    folders = {path.parents[1].name for path in DOCUMENTS}
    assert folders == {f"{kind}-{version}" for kind, version in VERSIONS if kind in DOCUMENT_KINDS}
    assert len(DOCUMENTS) > 25


def minors() -> list[tuple[str, str, str]]:
    """Kind, version and next minor version of each pair that stand side by side."""
    pairs = pairwise(VERSIONS)  # each kind's versions in their order, a number that was left out among them
    return [(kind, old, new) for (kind, old), (other, new) in pairs if kind == other and old.split(".")[0] == new.split(".")[0]]


@pytest.mark.parametrize(("kind", "old", "new"), minors())
def test_minor_versions_add_optional_fields_and_nothing_else(kind: str, old: str, new: str):
    changes = compare_schemas(schema(kind, old), schema(kind, new))
    assert changes or find_entry(kind, new).status == "draft"
    others = [change for change in changes if not change.compatible and not may_be_null(new, change)]
    assert others == []


def may_be_null(version: str, change: Change) -> bool:
    """Whether a figure became nullable in receipt/1.4, where a problem may leave it open; a verdict goes with its rule."""
    if version != "1.4" or change.kind != "changed":
        return False
    retry = change.pointer.startswith("/failure/retry/") and change.what in ("type", "enum", "pattern")
    rule = change.pointer.endswith("/rule") and change.what in ("enum", "pattern")  # a figure goes with its rule, too
    return retry or rule or (change.pointer.endswith("_count") and (change.old, change.new) == ("integer", "integer or null"))


def test_empty_header_is_of_the_schema():
    root = schema("receipt")
    assert list(ordered(empty_header(), root["$defs"]["header"], root)) == []
    assert Draft202012Validator(root["$defs"]["header"]).is_valid(empty_header())


def test_vocabularies_are_those_of_the_code():
    failure = defined("receipt", "properties", "failure", "properties")
    seen = defined("receipt", "$defs", "marker", "properties")
    marker = defined("markers", "$defs", "marker", "properties")
    assert failure["reason"]["enum"] == SLUGS.split()
    assert set(SLUGS.split()) - CONCLUSIONS == set(get_args(Reason))
    assert seen["reason"]["enum"] == [*SLUGS.split(), None]
    assert set(marker["reason"]["enum"]) == {*get_args(Reason), None}
    assert set(failure["category"]["enum"]) == set(marker["category"]["enum"]) == set(get_args(Category))
    assert set(marker["role"]["enum"]) == set(get_args(Role))
    assert set(seen["role"]["enum"]) == set(get_args(Role)) - {"detail"}
    newest = schema("receipt", "1.3")["properties"]["failure"]["properties"]
    assert newest["retry"]["properties"]["verdict"]["enum"] == list(get_args(Retry))
    newest = schema("receipt", SCHEMA_VERSION.removeprefix("receipt/"))["properties"]
    assert tuple(newest["run"]["properties"]) == RUN_KEYS + LOG_KEYS
    assert newest["schema_version"]["const"] == SCHEMA_VERSION


def test_bounds_are_those_of_the_code():
    failure = defined("receipt", "properties", "failure", "properties")
    derivation = defined("receipt", "properties", "derivation", "properties")
    lists = [failure["markers"], derivation["observed"]]
    lists += [derivation[name]["properties"]["first"] for name in ("near_misses", "problems")]
    assert {node["maxItems"] for node in lists} == {MAX_FIRST}
    assert failure["log_tail"]["maxItems"] == TAIL_LINES
    assert failure["message"]["maxLength"] == MAX_EXCERPT


def test_grammar_vocabulary_is_that_of_the_code():
    rule, field = (defined("grammar", "$defs", name, "properties") for name in ("rule", "field"))
    assert {kind for kind in grammar_file.KINDS if kind in rule} == set(grammar_file.KINDS)
    assert set(field["fact"]["enum"]) == grammar.FACTS
    assert set(field["printed_in"]["enum"]) == set(UNITS) | SPECIAL_UNITS
    for name, noun in (("pairs", grammar.Pairs), ("mapping", grammar.Mapped), ("table", grammar.Table), ("block", grammar.Block)):
        parts = {"unknown" if part.name == "other" else part.name for part in fields(noun)}
        assert set(rule[name]["properties"]) - {"syntax"} == parts


def complaints(kind: str, data: object) -> list[str]:
    found = Draft202012Validator(schema(kind)).iter_errors(data)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


@pytest.mark.parametrize("path", [*GRAMMARS, *CATALOGUES], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_definition_is_of_the_schema(path: Path):
    kind = "markers" if path in CATALOGUES else "grammar"
    assert complaints(kind, read_yaml(path.read_bytes(), path.name)) == []
