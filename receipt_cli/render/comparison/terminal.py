"""A comparison document → what a person reads: first whether the runs compare, then how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from receipt_cli.render.comparison.words import (
    OUTCOMES,
    VERDICTS,
    change,
    curve_facts,
    field_name,
    field_value,
    figure_name,
    figures,
    interval,
    reason_text,
)
from receipt_cli.render.scale import count
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Role, Style
from receipt_cli.render.terminal.table import Column, align

_MAX_FIELDS = 40
_MAX_REASONS = 8
_MAX_NAMES = 4
_BASES = {"within_run": "of these runs' own steps", "between_runs": "between runs"}


def render_comparison(document: Mapping[str, Any], style: Style) -> str:
    """Return the comparison (``comparison/1.0``), each line ended by a newline."""
    page = Page(style)
    for contrast in document["contrasts"]:
        page.gap()
        _names(page, document["baseline"]["runs"], contrast["runs"])
        _verdict(page, contrast)
        _metrics(page, contrast["metrics"])
        _curves(page, contrast["curves"])
        _outcome(page, contrast["outcome"])
        _fields(page, contrast["fields"])
        page.gap()
        for note in contrast["notes"]:
            page.prose(page.say(note), "dim", bullet="· ")
    return page.text()


def _names(page: Page, baseline: Sequence[str], runs: Sequence[str]) -> None:
    for side, names in (("a", baseline), ("b", runs)):
        shown = ", ".join(page.say(name) for name in names[:_MAX_NAMES])
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        repeats = f"  {len(names)} runs" if len(names) > 1 else ""
        page.line(Span(f"{side}  ", "dim"), Span(f"{shown}{more}", "strong"), Span(repeats, "dim"))


def _verdict(page: Page, contrast: Mapping[str, Any]) -> None:
    words, role = VERDICTS[contrast["verdict"]]
    page.gap()
    page.line(Span(words, role))
    reasons = contrast["reasons"]
    for reason in reasons[:_MAX_REASONS]:
        page.prose(page.say(reason_text(reason)), indent=2, bullet="· ")
    if len(reasons) > _MAX_REASONS:
        page.line(Span(f"… {count(len(reasons) - _MAX_REASONS)} more", "dim"), indent=2)


def _metrics(page: Page, metrics: Sequence[Mapping[str, Any]]) -> None:
    if not metrics:
        return
    page.heading("metrics")
    columns = [
        Column("metric", least=12), Column("unit"), Column("a", right=True), Column("b", right=True),
        Column("change", right=True), Column("95 % interval", right=True, drop=1), Column("", drop=2),
    ]  # fmt: skip
    shown = sorted(metrics, key=lambda m: m["better"] == "none")  # what has a direction first
    same = [m for m in shown if m["outcome"] == "equal" and m["better"] == "none"]
    page.rows(align(columns, [_row(page, m) for m in shown if m not in same], page.style.width - 2))
    if same:
        page.prose(page.say(f"equal: {', '.join(map(figure_name, same))}"), "dim", indent=2)
    bases = dict.fromkeys(_BASES[m["basis"]] for m in metrics if m["basis"] != "none")
    if bases:
        page.prose(f"intervals {' and '.join(bases)}", "dim", indent=2)
    for m in metrics:
        if m["outcome"] == "incomparable":
            page.prose(page.say(f"{figure_name(m)}: {m['reason']}"), "warn", indent=2, bullet="! ")


def _row(page: Page, m: Mapping[str, Any]) -> list[Span]:
    unit, a, b = figures(m)
    words, role = OUTCOMES[m["outcome"]]
    strong: Role = role if m["outcome"] in ("better", "worse") else "plain"
    texts = Span(page.say(figure_name(m))), Span(unit, "dim"), Span(a), Span(b)
    return [*texts, Span(change(m), strong), Span(interval(m), "dim"), Span(words, role)]


def _curves(page: Page, curves: Sequence[Mapping[str, Any]]) -> None:
    if curves:
        page.heading("curves")
    for c in curves:
        name, facts = curve_facts(c)
        page.flow(page.say(name), [[Span(page.say(fact))] for fact in facts], label_width=12)


def _outcome(page: Page, outcome: Mapping[str, Any]) -> None:
    words = {True: "true", False: "false", None: "unknown"}
    rows = [
        [Span(page.say(c["check"])), *(Span(words[c[side]], "bad" if c[side] is False else "plain") for side in ("a", "b"))]
        for c in outcome["checks"]
    ]
    reasons = [outcome["failure"][side] for side in ("a", "b")]
    if reasons[0] != reasons[1]:
        rows.append([Span("failure"), *(Span(page.say(reason or "none"), "bad" if reason else "plain") for reason in reasons)])
    if rows:
        page.heading("outcome")
        page.rows(align([Column("check", least=8), Column("a"), Column("b")], rows, page.style.width - 2))


def _fields(page: Page, fields: Sequence[Mapping[str, Any]]) -> None:
    if not fields:
        return
    page.heading("fields that differ")
    roles: dict[str, Role] = {"block": "bad", "warn": "warn", "ignore": "dim"}
    rows = [
        [Span(page.say(field_name(f["pointer"])), roles[f["severity"]]), *(Span(page.say(field_value(f[s]))) for s in ("a", "b"))]
        for f in fields[:_MAX_FIELDS]
    ]
    columns = [Column("field", least=12), Column("a", least=8), Column("b", least=8)]
    page.rows(align(columns, rows, page.style.width - 2))
    if len(fields) > _MAX_FIELDS:
        page.line(Span(f"… {count(len(fields) - _MAX_FIELDS)} more", "dim"), indent=2)
