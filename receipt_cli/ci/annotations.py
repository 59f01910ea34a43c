"""Findings → GitHub's workflow commands (``::error file=…,line=…::…``), as many as one step shows."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.ci.findings import Finding, Level
from receipt_cli.render.terminal.text import clean, disarm

PER_LEVEL = 10
"""Annotations of one level that GitHub shows of a step."""
_MAX_TITLE = 200
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render_annotations(findings: Sequence[Finding]) -> str:
    """Return a command a line; of more than ``PER_LEVEL`` of a level the last says how many are left out."""
    lines: list[str] = []
    for level, command in _COMMANDS.items():
        mine = [finding for finding in findings if finding.level == level]
        shown = mine if len(mine) <= PER_LEVEL else mine[: PER_LEVEL - 1]
        lines += [_line(command, finding) for finding in shown]
        if len(shown) < len(mine):
            lines.append(f"::{command} title=receipt::{len(mine) - len(shown)} more: see the job summary")
    return "".join(f"{line}\n" for line in lines)


def _line(command: str, finding: Finding) -> str:
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
