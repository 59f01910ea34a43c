"""List the findings of a run and its log with their places, as GitHub workflow commands and as SARIF 2.1.0.

SARIF is the Static Analysis Results Interchange Format of OASIS, for code scanning pages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from receipt_cli import __version__
from receipt_cli.ci.verdict import Verdict
from receipt_cli.render.text import clean, disarm

WORKSPACES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE")
"""Variables with the path of the checkout on GitHub, GitLab and Jenkins."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file and a line in it, from 1; None if the finding is about the whole file.

    ``path`` is relative to the workspace, with slashes, if the file is inside; else absolute.
    """

    path: str
    line: int | None = None

    @property
    def uri(self) -> str:
        """The path as a URI reference (RFC 3986)."""
        return f"file://{quote(self.path)}" if self.path.startswith("/") else quote(self.path.replace("\\", "/"))


@dataclass(frozen=True, slots=True)
class Places:
    """Locations of a receipt's log. ``log`` is None if only the receipt is given; ``given`` is "-" for stdin."""

    given: str
    log: str | None
    files: tuple[tuple[str, int], ...]
    workspace: Path

    @classmethod
    def of(cls, document: Mapping[str, Any], given: str, log: str | None, environ: Mapping[str, str]) -> Places:
        """Return the places of ``document``, given as ``given``, whose log (a file, or a folder of files) is ``log``."""
        named = document["derivation"]["log"].get("files") or ()
        workspace = next((environ[name] for name in WORKSPACES if environ.get(name)), None)
        return cls(given, log, tuple((f["name"], f["line_count"]) for f in named), Path(workspace or os.getcwd()))

    def locate(self, line: int | None) -> Place | None:
        """Return the place of ``line`` in the log; without a log, that of the receipt; None for stdin."""
        if self.log is None:
            return None if self.given == "-" else Place(self._shown(Path(self.given)))
        if self.log == "-":
            return None
        path = Path(self.log)
        if not self.files:
            return Place(self._shown(path), line)
        folder = path if path.is_dir() else path.parent
        before = 0
        for name, count in self.files:
            if line is not None and before < line <= before + count:
                return Place(self._shown(folder / name), line - before)
            before += count
        return Place(self._shown(path))

    def _shown(self, path: Path) -> str:
        whole, base = Path(os.path.abspath(path)), Path(os.path.abspath(self.workspace))
        return (whole.relative_to(base) if whole.is_relative_to(base) else whole).as_posix()


Level = Literal["error", "warning", "note"]

MAX_TEXT = 1000
"""Longest message, and longest quotation from a log, in characters."""
RULES = {
    "failure": "Why the training run failed, as its log shows.",
    "check": "A check of the receipt that the gates require and that does not hold.",
    "gate": "A gate of the CI job that the run did not pass.",
    "problem": "A line of the log that is wrong or ambiguous; the values in doubt are left out of the receipt.",
    "near-miss": "A line of the log that almost matches a rule of the grammar: the trainer's format may have changed.",
}
"""Descriptions by the first part of a rule's name."""
PER_LEVEL = 10
"""Most annotations of one level that GitHub shows for a step."""
_MAX_TITLE = 200
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. ``rule`` is ``failure/cuda_oom`` or the like; ``message`` is plain text on one line."""

    rule: str
    level: Level
    title: str
    message: str
    place: Place | None


def find(document: Mapping[str, Any], verdict: Verdict, places: Places) -> Iterator[Finding]:
    """Yield the findings: the run's failure, the job's failed rulings, then problems and near misses in log order."""
    failure, derivation = document.get("failure"), document["derivation"]
    if failure:
        at = f" (line {failure['line_number']} of the log)" if failure["line_number"] is not None else ""
        message = failure["message"] or f"the run ended: {failure['reason']}"
        title = f"training failed: {failure['reason']}"
        yield Finding(f"failure/{failure['reason']}", "error", title, _cut(message, at), places.locate(failure["line_number"]))
    for ruling in verdict.rulings:
        if ruling.fails:
            title = f"{ruling.kind} {ruling.name}"
            message = _cut(f"{title}: {ruling.sentence}")
            yield Finding(f"{ruling.kind}/{ruling.name}", "error", title, message, places.locate(None))
    for problem in derivation["problems"]["first"]:
        line, kind = problem["line_number"], problem["kind"]
        level: Level = "note" if kind == "generic_reading" else "warning"
        yield Finding(f"problem/{kind}", level, kind, _cut(problem["detail"]), places.locate(line))
    for miss in (derivation.get("near_misses") or {"first": ()})["first"]:
        message = f"almost matches rule {miss['rule']} of {miss['grammar']}: has the format changed?"
        rule = f"near-miss/{miss['grammar']}"
        yield Finding(rule, "note", "line almost read", _cut(message), places.locate(miss["line_number"]))


def _cut(text: str, ending: str = "") -> str:
    room = MAX_TEXT - len(ending)
    return (text if len(text) <= room else f"{text[: room - 1]}…") + ending


def render_annotations(findings: Sequence[Finding]) -> str:
    """Return one command per line; beyond ``PER_LEVEL`` of a level, the last line counts the rest."""
    lines: list[str] = []
    for level, command in _COMMANDS.items():
        mine = [finding for finding in findings if finding.level == level]
        shown = mine if len(mine) <= PER_LEVEL else mine[: PER_LEVEL - 1]
        lines += [_command(command, finding) for finding in shown]
        if len(shown) < len(mine):
            lines.append(f"::{command} title=receipt::{len(mine) - len(shown)} more: see the job summary")
    return "".join(f"{line}\n" for line in lines)


def _command(command: str, finding: Finding) -> str:
    properties: dict[str, str] = {}
    if finding.place is not None:
        properties["file"] = finding.place.path
        if finding.place.line is not None:
            properties["line"] = str(finding.place.line)
    properties["title"] = finding.title[:_MAX_TITLE]
    named = ",".join(f"{key}={_escape(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items())
    return f"::{command} {named}::{_escape(finding.message)}"


def _escape(text: str) -> str:
    return disarm(clean(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def render_sarif(findings: Sequence[Finding]) -> bytes:
    """Return one run of the tool ``receipt`` with a result per finding, as UTF-8 JSON."""
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
    result: dict[str, Any] = {
        "ruleId": clean(finding.rule),
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": clean(finding.message)},
    }
    if finding.place is not None:
        physical: dict[str, Any] = {"artifactLocation": {"uri": finding.place.uri}}
        if finding.place.line is not None:
            physical["region"] = {"startLine": finding.place.line}
        result["locations"] = [{"physicalLocation": physical}]
    return result
