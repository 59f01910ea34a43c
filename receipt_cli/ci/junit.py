"""Write a verdict as JUnit XML: a suite of checks and a suite of gates, one test case each.

Uses only elements and attributes common to the schemas of Jenkins' xUnit plugin and Maven Surefire (``junit-10.xsd``,
``surefire-test-report.xsd``). No times: checks take none.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from receipt_cli.ci.verdict import Ruling, Verdict
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
