"""Render a verdict for the terminal output of a CI step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from receipt_cli.ci.verdict import Ruling, State, Verdict, departed, draw, title_of
from receipt_cli.render.comparison.words import VERDICTS, reason_text
from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.style import Role, Style

_MARKS: dict[State, tuple[str, Role]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "unknown": ("?", "warn"),
    "noted": ("·", "dim"),
}
_MAX_REASONS = 4
_MAX_CURVES = 2


def render_page(document: Mapping[str, Any], verdict: Verdict, style: Style) -> str:
    """Return the verdict: whether the job passes, the gates, the checks, and the reasons against a comparison."""
    page = Page(style)
    result = Span("✓ passed", "good") if verdict.passed else Span("✗ failed", "bad")
    numbers = [f"{verdict.count(state)} {state}" for state in ("failed", "unknown", "passed", "noted") if verdict.count(state)]
    failure = document.get("failure")
    cause = [[Span(failure["reason"], "warn")]] if failure else []
    page.flow("", [[result], [", ".join(numbers)], *cause], indent=0)
    if failure and failure["message"]:
        at = f"line {failure['line_number']}: " if failure["line_number"] is not None else ""
        page.prose(f"{at}{failure['message']}", indent=2)
    for ruling in (r for r in verdict.rulings if r.fails):
        page.prose(f"{ruling.name}: {ruling.sentence}", "bad", indent=2, bullet="✗ ")
    _rulings(page, "gates", verdict.of_kind("gate"))
    _golden(page, verdict)
    _rulings(page, "checks", verdict.of_kind("check"))
    if verdict.baseline is not None:
        words, role = VERDICTS[verdict.baseline.verdict]
        page.heading("baseline", Span(", ".join(verdict.baseline.names[:3]), "dim"))
        page.line(Span(words, role), indent=2)
        for reason in verdict.baseline.reasons[:_MAX_REASONS]:
            page.prose(reason_text(reason), "dim", indent=2, bullet="· ")
    return page.text()


def _golden(page: Page, verdict: Verdict) -> None:
    for curve in departed(verdict.golden)[:_MAX_CURVES] if verdict.golden is not None else ():
        page.heading(title_of(curve))
        page.paste(draw(curve, page.style))


def _rulings(page: Page, title: str, rulings: Sequence[Ruling]) -> None:
    if not rulings:
        return
    page.heading(title)
    rows = []
    for ruling in rulings:
        mark, role = _MARKS[ruling.state]
        named: Role = role if ruling.state == "failed" else "plain"
        cells = [
            Span(mark, role),
            Span(ruling.name, named),
            Span(ruling.wanted, "dim"),
            Span(ruling.found, named),
        ]
        rows.append(cells)
    columns = [Column(""), Column("name", least=16), Column("wanted", least=8), Column("found", least=12)]
    write_table(page, columns, rows)
