"""Write a verdict to the requested files and to the channels of the CI platform.

JUnit XML has a suite of checks and a suite of gates, one test case each. It uses only elements and attributes common to the
schemas of Jenkins' xUnit plugin and Maven Surefire (``junit-10.xsd``, ``surefire-test-report.xsd``). No times: checks take none.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipt_cli.ci.findings import Places, find, render_annotations, render_sarif
from receipt_cli.ci.job_summary import MAX_BYTES, render_summary
from receipt_cli.ci.verdict import Ruling, Verdict
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import OutputError, system_errors
from receipt_cli.io.atomic import write_atomically
from receipt_cli.render.text import clean

_SUITES = (("check", "checks"), ("gate", "gates"))


def render_junit(document: Mapping[str, Any], verdict: Verdict) -> bytes:
    """Return the report as UTF-8 XML; unknown answers, and failed checks that are not required, are skipped tests."""
    failed = str(verdict.count("failed"))
    cause = _cause(document)
    root = ET.Element("testsuites", {"name": "receipt", "tests": str(len(verdict.rulings)), "failures": failed, "errors": "0"})
    for kind, name in _SUITES:
        rulings = verdict.of_kind(kind)
        if not rulings:
            continue
        states = [ruling.state for ruling in rulings]
        counts = {"tests": len(states), "failures": states.count("failed"), "errors": 0}
        skipped = states.count("unknown") + states.count("noted")
        attributes = {"name": f"receipt.{name}", **{key: str(n) for key, n in counts.items()}, "skipped": str(skipped)}
        suite = ET.SubElement(root, "testsuite", attributes)
        for ruling in rulings:
            _case(suite, name, ruling, cause if kind == "check" else "")
        tail = (document.get("failure") or {}).get("log_tail") or []
        if kind == "check" and tail:
            ET.SubElement(suite, "system-out").text = "\n".join(map(clean, tail))
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _cause(document: Mapping[str, Any]) -> str:
    """Return the cause of the run's failure, in words; "" without a failure."""
    failure = document.get("failure")
    if not failure:
        return ""
    line = f"line {failure['line_number']} of the log: " if failure["line_number"] is not None else ""
    return clean(f"{failure['reason']}: {line}{failure['message'] or 'no message'}")


def _case(suite: ET.Element, name: str, ruling: Ruling, cause: str) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": f"receipt.{name}", "name": clean(ruling.name)})
    sentence = clean(ruling.sentence)
    if ruling.state == "failed":
        ET.SubElement(case, "failure", {"type": ruling.kind, "message": sentence}).text = cause or None
    elif ruling.state != "passed":
        ET.SubElement(case, "skipped", {"message": sentence})


_WORDS = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class Targets:
    """Files to write, None for no file; ``annotations``: None means only on GitHub."""

    junit: Path | None = None
    sarif: Path | None = None
    summary: Path | None = None
    dotenv: Path | None = None
    receipt: Path | None = None
    annotations: bool | None = None


def deliver(document: Mapping[str, Any], verdict: Verdict, places: Places, targets: Targets, environ: Mapping[str, str]) -> str:
    """Write the outputs named by ``targets`` and the platform's variables; return the annotations to print.

    The receipt is written first, because it explains the others. Raises ``OutputError``.
    """
    findings = list(find(document, verdict, places))
    if targets.receipt is not None:
        write_atomically(targets.receipt, canonical_bytes(dict(document)))
    if targets.junit is not None:
        write_atomically(targets.junit, render_junit(document, verdict))
    if targets.sarif is not None:
        write_atomically(targets.sarif, render_sarif(findings))
    outputs = list_outputs(document, verdict)
    if targets.dotenv is not None:
        write_atomically(targets.dotenv, render_dotenv(outputs).encode())
    if environ.get("GITHUB_OUTPUT"):
        _append(Path(environ["GITHUB_OUTPUT"]), render_outputs(outputs).encode())
    if targets.summary is not None:
        write_atomically(targets.summary, render_summary(document, verdict, findings))
    elif environ.get("GITHUB_STEP_SUMMARY"):
        path = Path(environ["GITHUB_STEP_SUMMARY"])
        _append(path, render_summary(document, verdict, findings, MAX_BYTES - _size(path)))
    wanted = environ.get("GITHUB_ACTIONS") == "true" if targets.annotations is None else targets.annotations
    return render_annotations(findings) if wanted else ""


def _size(path: Path) -> int:
    """Return the size of the file, in bytes: the platform's limit is for the whole step."""
    with system_errors(OutputError, "cannot read", path):
        return path.stat().st_size if path.exists() else 0


def _append(path: Path, data: bytes) -> None:
    with system_errors(OutputError, "cannot write", path), path.open("ab") as file:
        file.write(data)


def list_outputs(document: Mapping[str, Any], verdict: Verdict) -> dict[str, str]:
    """Return names and values, all from a closed set, so that no text of a log is among them."""
    baseline = verdict.baseline
    return {
        "passed": _WORDS[verdict.passed],
        "healthy": _WORDS[verdict.healthy],
        "proven": _WORDS[verdict.proven],
        "completed": _WORDS.get(document["checks"].get("completed"), "unknown"),
        "failure_reason": (document.get("failure") or {}).get("reason") or "",
        "comparability": baseline.verdict if baseline is not None else "",
        "failed_count": str(verdict.count("failed")),
        "unknown_count": str(verdict.count("unknown")),
    }


def render_outputs(outputs: Mapping[str, str]) -> str:
    """Return ``name=value`` lines for ``$GITHUB_OUTPUT``."""
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def render_dotenv(outputs: Mapping[str, str]) -> str:
    """Return ``RECEIPT_NAME=value`` lines for a dotenv report."""
    return render_outputs({f"RECEIPT_{name.upper()}": value for name, value in outputs.items()})
