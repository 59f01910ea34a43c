"""A verdict as annotations, SARIF, JUnit, a job summary and the files of a CI job."""

import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.ci.findings import PER_LEVEL, Finding, Place, Places, find, render_annotations
from receipt_cli.ci.gates import Gates
from receipt_cli.ci.verdict import Verdict, rule

EXAMPLE = Path(__file__).resolve().parents[3] / "fixtures" / "receipts" / "receipt-1.0" / "valid" / "out_of_memory.json"


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXAMPLE.read_bytes())
    return found


@pytest.fixture
def verdict(document: dict[str, Any]) -> Verdict:
    return rule(document, Gates(), None)


@pytest.fixture
def places(document: dict[str, Any], tmp_path: Path) -> Places:
    return Places.of(document, "run.log", str(tmp_path / "logs" / "run.log"), {"GITHUB_WORKSPACE": str(tmp_path)})


def test_the_failure_is_the_first_finding_and_has_its_line(document: dict[str, Any], verdict: Verdict, places: Places) -> None:
    findings = list(find(document, verdict, places))
    assert findings[0].rule == f"failure/{document['failure']['reason']}"
    assert findings[0].place == Place("logs/run.log", document["failure"]["line_number"])
    assert {finding.level for finding in findings[1:] if finding.rule.startswith("check/")} == {"error"}


def test_lines_of_several_files_are_found_in_their_file(tmp_path: Path) -> None:
    places = Places("x", str(tmp_path), (("a.log", 10), ("b.log", 5)), tmp_path)
    assert places.locate(10) == Place("a.log", 10)
    assert places.locate(11) == Place("b.log", 1)
    assert places.locate(16) == places.locate(None) == Place(".")
    assert Places("-", None, (), tmp_path).locate(1) is None
    assert Place("/tmp/a b", 1).uri == "file:///tmp/a%20b"


def test_annotations_are_bounded_and_cannot_be_forged() -> None:
    findings = [Finding("problem/x", "warning", "x,y:z", "100%\n::error::forged", Place("a.log", n)) for n in range(30)]
    lines = render_annotations(findings).splitlines()
    assert len(lines) == PER_LEVEL
    assert lines[0] == "::warning file=a.log,line=0,title=x%2Cy%3Az::100%25\\n::error::forged"
    assert lines[-1] == "::warning title=receipt::21 more: see the job summary"
