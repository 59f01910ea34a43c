"""Render findings of lint or validation, the fields of a schema, and the differences between two, for the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len as cells

from receipt_cli.problems import Finding
from receipt_cli.render.console import Page, Span, elide, elide_start
from receipt_cli.render.scale import count, many
from receipt_cli.render.style import Role, Style

if TYPE_CHECKING:
    from receipt_cli.documents.schema_fields import Change, Field


_POINTER, _TYPE = 46, 15
"""Widest columns of pointers and types, in cells; a longer text pushes the rest of its line to the right."""
_SIGNS: dict[str, tuple[str, Role]] = {"added": ("+", "good"), "removed": ("-", "bad"), "changed": ("~", "warn")}


def render_fields(fields: Sequence[Field], style: Style) -> str:
    """Return the reference: for each field a line of pointer, type and unit, aligned, and its description below."""
    page = Page(style)
    width, kinds = _widest((field.pointer for field in fields), _POINTER), _widest((field.kind for field in fields), _TYPE)
    for field in fields:
        optional = not field.required and not field.pointer.endswith("*")
        note = ", ".join(part for part in (field.unit, "optional" if optional else None) if part)
        pointer, kind = field.pointer.ljust(width), field.kind.ljust(kinds if note else 0)
        fits = len(pointer) + len(kind) + len(note) + 4 <= style.width
        page.line(Span(pointer, "strong"), "  ", kind, *([Span(f"  {note}", "dim")] if note and fits else []))
        if note and not fits:
            page.prose(note, "dim", indent=4)
        if field.description:
            page.prose(field.description, indent=4)
        if field.choices:
            page.prose(f"one of {', '.join(map(_json_text, field.choices))}", "dim", indent=4)
        if field.same_as is not None:
            page.line(Span(f"its fields are those of {field.same_as}", "dim"), indent=4)
    return page.text()


def render_changes(old: str, new: str, changes: Sequence[Change], style: Style) -> str:
    """Return the verdict on the two schemas named, then a line for each change, aligned."""
    page = Page(style)
    against = sum(not change.compatible for change in changes)
    if not changes:
        page.line(f"{old} and {new} hold the same fields")
    elif against:
        page.line(Span("not compatible", "bad"), f": a reader of {old} may refuse a {new}")
    else:
        page.line(Span("compatible", "good"), f": a reader of {old} reads a {new} and passes over the new")
    width = _widest((change.pointer for change in changes), _POINTER)
    for change in changes:
        sign, role = _SIGNS[change.kind]
        mark = Span("" if change.compatible else "  ✗", "bad")
        head = [Span(sign, role), " ", Span(change.pointer.ljust(width), "strong"), "  "]
        if change.what == "field":
            page.line(*head, str(change.new if change.kind == "added" else change.old), mark)
        elif change.what == "description":
            page.line(*head, "description", mark)
            page.prose(str(change.new), "dim", indent=4)
        else:
            page.line(*head, f"{change.what}: {_limit(change.old)} → {_limit(change.new)}", mark)
    if changes:
        page.gap()
        page.line(f"{count(len(changes))} changes, {count(against)} of them not allowed in a minor version")
    return page.text()


def _widest(texts: Iterable[str], most: int) -> int:
    return max((len(text) for text in texts if len(text) <= most), default=0)


def _limit(value: object) -> str:
    return "nothing" if value is None else _json_text(value)


def _json_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_ROLES: dict[str, Role] = {"error": "bad", "warning": "warn"}
_MARGIN = 2 + 2  # cells before a snippet: indent and bar


def render_findings(findings: Sequence[Finding], style: Style) -> str:
    """Return the findings in their order, then how many of each severity; empty if there are none."""
    page = Page(style)
    for finding in findings:
        _write_finding(page, finding)
    if findings:
        page.gap()
        page.line(*_totals(findings))
    return page.text()


def _write_finding(page: Page, finding: Finding) -> None:
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
