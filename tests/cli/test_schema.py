"""``receipt schema show --fields`` and ``receipt schema diff``, for people and for programs."""

import json
from collections.abc import Callable

import pytest

from receipt_cli.receipts.versions import SCHEMA_VERSION


def test_fields_are_listed_with_type_unit_and_meaning(invoke: Callable) -> None:
    done = invoke("schema", "show", "gpu_profile", "--fields")
    lines = done.stdout.decode().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("/lanes/*/elapsed_s "))
    assert lines[at].split() == ["/lanes/*/elapsed_s", "number", "or", "null", "seconds"]
    assert lines[at + 1] == "    Seconds that the timed steps took together; null when unknown."
    assert max(map(len, lines)) <= 80
    whole = [line for line in lines if line.startswith("/") and " integer" in line and len(line.split()[0]) < 45]
    assert len({line.index(" integer") for line in whole}) == 1, "the types stand in one column"


def test_fields_for_programs(invoke: Callable) -> None:
    found = {field["pointer"]: field for field in json.loads(invoke("schema", "show", "receipt", "--fields", "--json").stdout)}
    assert found["/derivation/origin"]["required"] is False
    assert found["/summary/metrics/*/mean"]["types"] == ["number", "null"]
    assert found["/phases/*/summary"]["same_as"] == "/summary"
    assert found["/failure/reason"]["limits"]["enum"][0] == "cuda_oom"


def test_the_newest_version_is_shown_unless_one_is_named(invoke: Callable) -> None:
    assert json.loads(invoke("schema", "show", "receipt").stdout)["title"] == SCHEMA_VERSION
    assert json.loads(invoke("schema", "show", "receipt/1.0").stdout)["title"] == "receipt/1.0"
    assert json.loads(invoke("schema", "show", "receipt", "--version", "1.0").stdout)["title"] == "receipt/1.0"


def test_diff_tells_what_a_version_adds(invoke: Callable) -> None:
    shown = invoke("schema", "diff", "receipt/1.0", "receipt/1.1").stdout.decode()
    assert shown.startswith("compatible: ")
    assert "+ /derivation/origin " in shown
    told = json.loads(invoke("schema", "diff", "receipt/1.0", "receipt/1.1", "--json").stdout)
    assert told["compatible"] is True
    assert {change["kind"] for change in told["changes"]} == {"added"}


def test_diff_tells_what_breaks_readers(invoke: Callable) -> None:
    done = invoke("schema", "diff", "receipt/1.1", "receipt/1.0")
    assert done.code == 0
    assert done.stdout.startswith(b"not compatible: ")
    assert b"- /derivation/origin " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [("show", "x", "--fields"), ("show", "metrics", "--fields"), ("diff", "receipt/1.0", "receipt/9.9"), ("diff", "x", "y")],
)
def test_what_is_no_schema_is_refused(arguments: tuple[str, ...], invoke: Callable) -> None:
    assert invoke("schema", *arguments).code == 5
