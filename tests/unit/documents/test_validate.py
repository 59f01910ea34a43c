"""Validation: examples of every rule, routing by version, bytes that are not JSON, and hostile documents."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.definitions.strict_yaml import read_yaml
from receipt_cli.documents.validate import KINDS, Finding, has_errors, rules_of, validate_bytes, validate_document
from receipt_cli.errors import DataError, InputError
from receipt_cli.problems import pointer, split_pointer

EXAMPLES = Path(__file__).resolve().parents[3] / "fixtures" / "receipts"
VALID = sorted(EXAMPLES.glob("*/valid/*.json"))
INVALID = sorted(EXAMPLES.glob("*/invalid/*.json"))
HEALTHY = EXAMPLES / "receipt-1.0" / "valid" / "healthy.json"


def name(path: Path) -> str:
    return f"{path.parents[1].name}/{path.stem}"


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes())


def expectations(kind: Path) -> dict[str, Any]:
    return read_yaml((kind / "expectations.yaml").read_bytes(), f"{kind.name}/expectations.yaml")


EXPECTED = {kind.name: expectations(kind) for kind in sorted(EXAMPLES.iterdir())}


def errors(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def holder(document: Any, at: str) -> tuple[Any, Any]:
    """The container that holds the value at a JSON pointer, and its key there."""
    *path, last = split_pointer(at)
    for part in path:
        document = document[int(part) if isinstance(document, list) else part]
    return document, int(last) if isinstance(document, list) else last


@pytest.mark.parametrize("path", VALID, ids=name)
def test_valid_example(path: Path):
    findings = validate_bytes(path.read_bytes(), path.name)
    assert not has_errors(findings), findings
    assert findings == [] or path.stem == "newer_minor"


@pytest.mark.parametrize("path", INVALID, ids=name)
def test_invalid_example_breaks_its_rule_alone(path: Path):
    expected = EXPECTED[path.parents[1].name][path.stem]
    every = validate_bytes(path.read_bytes(), path.name)
    found = errors(every) or every  # what a reader of headers takes is a note
    assert errors(every) or path.parents[1].name.startswith("header")
    wanted = expected["at"] if isinstance(expected["at"], list) else [expected["at"]]
    assert {finding.rule for finding in found} == {expected["rule"]}
    assert [finding.pointer for finding in found] == wanted
    assert all(finding.reason and len(finding.reason) <= 400 for finding in found)


@pytest.mark.parametrize("path", INVALID, ids=name)
def test_invalid_example_differs_from_a_valid_one_in_one_spot(path: Path):
    expected = EXPECTED[path.parents[1].name][path.stem]
    base = path.parents[1] / "valid" / f"{expected['base']}.json"
    document, other = read(base), read(path)
    if expected["rule"] == "duplicate_key":
        assert document == other  # Python's reader keeps one of the two
        return
    assert str(document) != str(other)
    (container, key), (changed, _) = holder(document, expected["change"]), holder(other, expected["change"])
    if isinstance(changed, dict) and key not in changed:
        del container[key]
    else:
        container[key] = changed[key]
    assert document == other or str(document) == str(other)  # NaN differs from itself


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_has_an_example(kind: str):
    tables = [table for folder, table in EXPECTED.items() if folder.startswith(f"{kind}-")]
    shown = {entry["rule"] for table in tables for entry in table.values()}
    rules = {rule.name for rule in rules_of(kind) if rule.severity == "error"}
    assert rules
    assert rules <= shown


def test_every_check_of_values_and_versions_has_an_example():
    assert {name(path) for path in INVALID} == {f"{k}/{stem}" for k, table in EXPECTED.items() for stem in table}
    shown = {entry["rule"] for table in EXPECTED.values() for entry in table.values()}
    assert {"json_value", "duplicate_key", "schema_version", "unknown_kind"} <= shown
    assert {rule for rule in shown if rule.startswith("schema.")} >= {"schema.required", "schema.additionalProperties"}


@pytest.mark.parametrize("path", [path for path in VALID if path.parents[1].name.startswith("receipt-")], ids=name)
@pytest.mark.parametrize("broken", [None, ("steps", "first", "x"), ("steps", "first", float("nan")), ("metrics", "loss", {})])
def test_a_summary_that_is_a_phases_own_is_judged_like_a_copy(path: Path, broken: tuple[str, str, object] | None):
    document = read(path)
    for phase in document["phases"]:
        if phase["summary"] == document["summary"]:
            document["summary"] = phase["summary"]
    if broken is not None and document["summary"] is not None:
        part, key, value = broken
        document["summary"][part][key] = value
    assert repr(validate_document(document)) == repr(
        validate_document(copy.deepcopy(document) | {"summary": copy.deepcopy(document["summary"])})
    )


def test_a_newer_minor_is_read_with_notes_and_the_same_with_unknown_fields_is_invalid():
    document = read(EXAMPLES / "receipt-1.0" / "valid" / "newer_minor.json")
    findings = validate_document(document)
    assert {finding.severity for finding in findings} == {"note"}
    assert (findings[0].rule, "written by a newer receipt" in findings[0].reason) == ("newer_minor", True)
    same = errors(validate_document({**document, "schema_version": "receipt/1.0"}))
    for found in (findings, same):
        unknown = [f.pointer for f in found if f.rule == "schema.additionalProperties"]
        assert unknown == ["/carbon", "/run/queue", "/header/site", "/summary/steps/micro_count"]


@pytest.mark.parametrize(
    ("version", "why"),
    [
        *((newer, "written by a newer receipt") for newer in ("receipt/2.0", "receipt/99.1", "header/2.0", "gpu_profile/3.7")),
        ("receipt/0.9", "never published"),
    ],
)
def test_another_major_is_refused(version: str, why: str):
    with pytest.raises(DataError, match=why) as caught:
        validate_document({**read(HEALTHY), "schema_version": version})
    assert caught.value.exit_code == 5


NO_VERSIONS = (None, 1, 1.0, "", "receipt", "receipt/1", "receipt/1.0\n", "Receipt/1.0", [], {})
NO_DOCUMENTS = [
    *(
        ({"schema_version": version}, ("/schema_version", "schema_version"))
        for version in (None, 1, 1.0, "", "receipt", "receipt/1", "receipt/1.0\n", "Receipt/1.0", [], {})
    ),
    *((document, ("", "schema.type")) for document in (None, True, 1, 1.5, "receipt/1.0", [], ())),
    ({"schema_version": "grammar/1.0"}, ("/schema_version", "unknown_kind")),  # a schema of definitions
]


@pytest.mark.parametrize(("document", "found"), NO_DOCUMENTS)
def test_what_is_no_document_is_one_finding(document: object, found: tuple[str, str]):
    assert [(f.pointer, f.rule) for f in validate_document(document)] == [found]


def test_syntax_error_names_the_line():
    with pytest.raises(InputError) as caught:
        validate_bytes(b'{\n"a": 1,\n}', "receipt.json")
    assert caught.value.where == "receipt.json:3"


def test_bytes_and_document_agree():
    data = HEALTHY.read_bytes()
    assert validate_bytes(data, "x") == validate_document(json.loads(data)) == []


def test_all_findings_are_collected():
    document = read(HEALTHY)
    document["run"]["name"] = 7
    del document["checks"]["no_oom"]
    document["derivation"]["lines"]["matched"] += 1
    document["phases"][1]["summary"]["steps"]["last"] = -1
    found = {(f.pointer, f.rule) for f in validate_document(document)}
    assert found == {
        ("/run/name", "schema.type"),
        ("/checks/no_oom", "schema.required"),
        ("/derivation/lines", "lines_add_up"),
        ("/phases/1/summary/steps/last", "steps_in_order"),
    }


def test_findings_come_in_the_same_order_each_time():
    document = read(HEALTHY)
    document["header"] = {}
    first, again = validate_document(document), validate_document(copy.deepcopy(document))
    assert first == again
    assert len(first) >= 11


def test_a_huge_value_is_not_repeated_in_a_reason():
    document = read(HEALTHY)
    document["failure"] = "x" * 100_000
    document["run"]["name"] = {"x" * 100: list(range(1000))}
    assert all(len(f.reason) < 400 for f in validate_document(document))


def test_document_is_left_as_it_was():
    for path in VALID:
        document = read(path)
        validate_document(document)
        assert document == read(path)


DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value", [(1, 2), {1}, b"x", object(), {1: 2}, {"\ud83d": 1}, DEEP], ids=lambda value: type(value).__name__
)
def test_python_value_that_is_not_json(value: object):
    document = {**read(HEALTHY), "attachments": value}
    assert {f.rule for f in validate_document(document)} == {"json_value"}


@pytest.mark.parametrize("path", [path for path in VALID if path.parents[1].name == "receipt-1.0"], ids=name)
def test_every_document_of_1_0_is_one_of_1_1(path: Path):
    document = read(path)
    if document["schema_version"] == "receipt/1.0":
        assert validate_document({**document, "schema_version": "receipt/1.1"}) == []


def test_origin_is_unknown_to_1_0():
    document = {**read(EXAMPLES / "receipt-1.1" / "valid" / "import_of_values.json"), "schema_version": "receipt/1.0"}
    assert ("/derivation/origin", "schema.additionalProperties") in {(f.pointer, f.rule) for f in validate_document(document)}


HUGE = [
    ("/header/sources/~1cwd", "log:" + "9" * 5000),
    ("/header/sources/~1hardware~1accelerators~1" + "9" * 5000, "host"),
    ("/header/sources/~1hardware~1accelerators~1" + "9" * 300, "host"),
    ("/derivation/lines", {"matched": 10**308, "ignored": 10**308, "unmatched": 1e308, "undecodable": 0.0}),
    ("/run/exit_code", 10**5000),
    ("/run/name", 10**5000),
]


@pytest.mark.parametrize(("at", "value"), HUGE, ids=[str(number) for number in range(len(HUGE))])
def test_huge_numbers_are_judged(at: str, value: object):
    document = read(HEALTHY)
    container, key = holder(document, at)
    container[key] = value
    assert errors(validate_document(document))


def test_ratio_of_huge_figures_is_judged():
    document = read(EXAMPLES / "receipt-1.0" / "valid" / "two_phases.json")
    entry = document["phases"][1]["summary"]["consistency"][0]
    entry.update(reported=1.5, ratio=10**308, derived=10**308)
    assert "consistency_ratio" in {f.rule for f in validate_document(document)}


@pytest.mark.parametrize(
    "figures",
    [
        {"first": 1.5e308, "last": 1.6e308, "min": 1.5e308, "max": 1.6e308, "mean": None, "median": None},
        {"first": 0.1, "last": 0.1, "min": 0.1, "max": 0.1, "mean": 0.1 + 2e-17, "median": 0.1},
    ],
    ids=["near the end of float64", "off by a rounding"],
)
def test_figures_of_any_size_are_valid(figures: dict[str, float | None]):
    document = read(EXAMPLES / "receipt-1.0" / "valid" / "two_phases.json")
    document["phases"][1]["summary"]["metrics"]["loss"].update(figures)
    assert validate_document(document) == []


@given(st.lists(st.text()))
def test_pointers_lead_back(parts: list[str]):
    assert split_pointer(pointer(*parts)) == tuple(parts)
