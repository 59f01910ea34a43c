"""Findings → SARIF 2.1.0 (OASIS Static Analysis Results Interchange Format), for code scanning pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from receipt_cli import __version__
from receipt_cli.ci.findings import RULES, Finding
from receipt_cli.render.terminal.text import clean

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render_sarif(findings: Sequence[Finding]) -> bytes:
    """Return one run of the tool ``receipt`` with a result a finding, as UTF-8 JSON."""
    rules = list(dict.fromkeys(finding.rule for finding in findings))
    driver = {"name": "receipt", "version": __version__, "rules": [_rule(name) for name in rules]}
    results = [_result(finding, rules.index(finding.rule)) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"


def _rule(name: str) -> dict[str, Any]:
    kind, _, rest = name.partition("/")
    return {"id": clean(name), "shortDescription": {"text": f"{kind}: {clean(rest)}"}, "fullDescription": {"text": RULES[kind]}}


def _result(finding: Finding, index: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": clean(finding.rule),
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": clean(finding.message)},
    }
    if finding.place is not None:
        physical: dict[str, Any] = {"artifactLocation": {"uri": finding.place.uri}}
        if finding.place.line is not None:
            physical["region"] = {"startLine": finding.place.line}
        found["locations"] = [{"physicalLocation": physical}]
    return found
