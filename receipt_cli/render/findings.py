"""Render findings of lint or validation: place, reason, the text in question with a caret, and advice."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len as cells

from receipt_cli.problems import Finding
from receipt_cli.render.console import Page, Span, elide, elide_start
from receipt_cli.render.scale import many
from receipt_cli.render.style import Role, Style

_ROLES: dict[str, Role] = {"error": "bad", "warning": "warn"}
_MARGIN = 2 + 2  # cells before a snippet: indent and bar


def render_findings(findings: Sequence[Finding], style: Style) -> str:
    """Return the findings in their order, then how many of each severity; empty if there are none."""
    page = Page(style)
    for finding in findings:
        _write(page, finding)
    if findings:
        page.gap()
        page.line(*_totals(findings))
    return page.text()


def _write(page: Page, finding: Finding) -> None:
    severity = page.say(finding.severity)
    role = _ROLES.get(finding.severity, "accent")
    head = [Span(severity, role), ": "]
    place, reason = page.say(finding.where), page.say(finding.reason)
    used = cells(severity) + 2
    if place and used + cells(place) + 2 + cells(reason) <= page.style.width:
        page.line(*head, Span(f"{place}: ", "dim"), reason)
    elif not place and used + cells(reason) <= page.style.width:
        page.line(*head, reason)
    else:
        page.line(*head, Span(place, "dim"))
        page.prose(reason, indent=2)
    if finding.snippet:
        _snippet(page, finding.snippet, finding.caret, role)
    if finding.help:
        page.prose(f"help: {finding.help}", indent=2)


def _snippet(page: Page, snippet: str, caret: int | None, role: Role) -> None:
    """Add the snippet and the caret under it; a long one is cut on both sides of the caret."""
    line = snippet.rstrip("\r\n")
    if caret is None or not 0 <= caret <= len(line):
        page.line(Span("| ", "dim"), line, indent=2)
        return
    room = page.style.width - _MARGIN - 1
    before, after = page.say(line[:caret]), page.say(line[caret:])
    if cells(before) + cells(after) > room:
        keep = max(room - cells(after), room // 2)
        before = elide_start(before, keep)
        after = elide(after, room - cells(before))
    page.line(Span("| ", "dim"), before + after, indent=2)
    page.line(Span("| ", "dim"), " " * cells(before), Span("^", role), indent=2)


def _totals(findings: Sequence[Finding]) -> list[str]:
    severities = dict.fromkeys(finding.severity for finding in findings)
    spans: list[str] = []
    for severity in sorted(severities, key=lambda name: ("error", "warning").index(name) if name in _ROLES else 2):
        number = sum(finding.severity == severity for finding in findings)
        spans += [", "] if spans else []
        spans.append(Span(many(number, severity), _ROLES.get(severity, "accent")))
    return spans
