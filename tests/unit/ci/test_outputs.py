"""A verdict as annotations, SARIF, JUnit, a job summary and the files of a CI job."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.ci.delivery import Targets, deliver, list_outputs, render_dotenv
from receipt_cli.ci.findings import PER_LEVEL, Finding, list_findings, render_annotations, render_sarif
from receipt_cli.ci.gates import Gates
from receipt_cli.ci.job_summary import render_summary
from receipt_cli.ci.junit import render_junit
from receipt_cli.ci.log_locations import Place, Places
from receipt_cli.ci.page import render_page
from receipt_cli.ci.verdict import Verdict, rule
from receipt_cli.errors import OutputError
from receipt_cli.render.style import Style

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
    findings = list_findings(document, verdict, places)
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


def test_sarif_refers_to_its_rules() -> None:
    findings = [Finding("failure/oom", "error", "t", "m", Place("a.log", 3)), Finding("gate/g", "error", "t", "m", None)]
    run = json.loads(render_sarif(findings))["runs"][0]
    rules = [entry["id"] for entry in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == ["failure/oom", "gate/g"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    assert "locations" not in run["results"][1]


def test_junit_counts_what_it_contains(document: dict[str, Any], verdict: Verdict) -> None:
    root = ET.fromstring(render_junit(document, verdict))
    suite = root.find("testsuite")
    assert suite is not None and suite.get("name") == "receipt.checks"
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure")) == verdict.count("failed") > 0
    assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))


def test_the_summary_leaves_sections_out_and_names_them(document: dict[str, Any], verdict: Verdict) -> None:
    whole = render_summary(document, verdict, [])
    assert whole.startswith("## ❌ Training run failed".encode())
    small = render_summary(document, verdict, [], len(whole) // 2)
    assert len(small) <= len(whole) // 2 and b"> left out, for the page would be too large: " in small


def test_the_page_begins_with_the_verdict(document: dict[str, Any], verdict: Verdict) -> None:
    assert render_page(document, verdict, Style()).startswith("✗ failed")


def test_files_and_channels_of_the_platform(document: dict[str, Any], verdict: Verdict, places: Places, tmp_path: Path) -> None:
    environ = {"GITHUB_OUTPUT": str(tmp_path / "out"), "GITHUB_STEP_SUMMARY": str(tmp_path / "page"), "GITHUB_ACTIONS": "true"}
    targets = Targets(dotenv=tmp_path / "job.env", receipt=tmp_path / "run.json")
    annotations = deliver(document, verdict, places, targets, environ)
    assert annotations.startswith("::error file=logs/run.log")
    assert (tmp_path / "out").read_text().splitlines()[0] == "passed=false"
    assert (tmp_path / "page").read_bytes() == render_summary(document, verdict, list_findings(document, verdict, places))
    assert (tmp_path / "job.env").read_text() == render_dotenv(list_outputs(document, verdict))
    assert json.loads((tmp_path / "run.json").read_bytes()) == document
    with pytest.raises(OutputError):
        deliver(document, verdict, places, Targets(), {"GITHUB_OUTPUT": str(tmp_path / "missing" / "out")})
