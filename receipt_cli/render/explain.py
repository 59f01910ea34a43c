"""Render how a log was read: the chosen grammar, the records of its rules, and a learned draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.fields import or_dash
from receipt_cli.render.scale import count, number
from receipt_cli.render.style import Style

Row = Mapping[str, Any]
_MAX_CANDIDATES = 20
_MAX_RULES = 100
_MAX_UNREAD = 5


def render_explain(explanation: Row, style: Style) -> str:
    """Return the explanation of a detection.

    ``candidates``: list of ``{id, version, score, step_records, records, chosen, why}``, best first. ``rules``: list of
    ``{grammar, rule, event, matched, near_misses}`` of the chosen grammar. ``unmatched``: list of ``{line_number, text}``, lines
    that look like metrics and that no rule explains. ``explanations``: list of ``{records, line, chosen, score, evidence, why}``
    of a log that no grammar knows.
    """
    page = Page(style)
    _write_candidates(page, explanation["candidates"])
    _write_explanations(page, explanation["explanations"])
    _write_rules(page, explanation["rules"])
    if lines := explanation["unmatched"]:
        page.heading("lines that look like metrics and match no rule")
        columns = [Column("line", right=True), Column("text", least=20)]
        write_table(page, columns, [[Span(str(at), "dim"), text.expandtabs(4).strip()] for at, text in map(_place, lines)])
    return page.text()


def _write_candidates(page: Page, candidates: Sequence[Row]) -> None:
    if not candidates:
        page.line("no grammar explains a record of this log")
        return
    names = [each["id"] + (f"@v{each['version']}" if each["version"] is not None else "") for each in candidates]
    rows = []
    for name, each in zip(names[:_MAX_CANDIDATES], candidates, strict=False):
        counts = [count(each[key]) for key in ("step_records", "records")]
        rows.append([_mark(each), Span(name, "strong" if each["chosen"] else "plain"), _score(each["score"]), *counts])
    columns = [Column(""), Column("grammar", least=16), Column("score", right=True, drop=1)]
    columns += [Column("step records", right=True), Column("records", right=True)]
    write_table(page, columns, rows, indent=0, hidden=len(candidates) - _MAX_CANDIDATES, what="candidates")
    for name, each in zip(names[:_MAX_CANDIDATES], candidates, strict=False):
        page.prose(each["why"], "dim", bullet=f"{name}: ")


def _write_explanations(page: Page, explanations: Sequence[Row]) -> None:
    if explanations:
        page.heading("what may be the records of training, by the weight of the evidence")
    for each in explanations:
        page.line(f"{_mark(each)} {_score(each['score'])}  {count(each['records'])} × {each['line']}")
        told = ", ".join(f"{name.replace('_', ' ')} {value:+g}" for name, value in each["evidence"].items())
        page.prose(told, "dim", bullet="    ")
        if each["why"] is not None:
            page.prose(each["why"], bullet="    not read: ")


def _write_rules(page: Page, rules: Sequence[Row]) -> None:
    if not rules:
        return
    several = len({rule["grammar"] for rule in rules}) > 1
    rows = []
    for rule in rules[:_MAX_RULES]:
        matched = Span(count(rule["matched"]), "plain" if rule["matched"] else "dim")
        almost = Span(count(rule["near_misses"]), "warn" if rule["near_misses"] else "dim")
        whose = [Span(rule["grammar"], "dim")] if several else []
        rows.append([*whose, rule["rule"], Span(rule["event"], "dim"), matched, almost])
    columns = [Column("grammar", least=16)] if several else []
    columns += [Column("rule", least=16), Column("event", least=8), Column("matched", right=True)]
    page.heading(f"rules of the chosen {'grammars' if several else 'grammar'}")
    write_table(page, [*columns, Column("almost read", right=True)], rows, hidden=len(rules) - _MAX_RULES, what="rules")


def render_learned(reading: Row, style: Style) -> str:
    """Return the table of ``reading``: ``grammar``, ``matched`` of ``records``, ``steps``, ``first_step``, ``last_step``,
    ``fields`` (``{name, records, first, last}``), ``unmatched_count``, ``unmatched`` (``{line_number, text}``) and ``questions``
    (``{text, answers}``).
    """
    page = Page(style)
    counts = {key: or_dash(reading[key], count) for key in ("matched", "records", "steps", "first_step", "last_step")}
    told = "reads {matched} of {records} records: {steps} steps, {first_step} to {last_step}".format(**counts)
    page.line(Span(reading["grammar"], "strong"), f" {told}")
    if fields := reading["fields"]:
        columns = [Column("field", least=12), *(Column(name, right=True) for name in ("records", "first", "last"))]
        ends = [[or_dash(field[end], number) for end in ("first", "last")] for field in fields]
        rows = [[Span(f["name"], "strong"), count(f["records"]), *own] for f, own in zip(fields, ends, strict=True)]
        write_table(page, columns, rows, indent=0)
    if reading["unmatched"]:
        page.line(f"{count(reading['unmatched_count'])} lines look like metrics and are not read:")
    for at, text in map(_place, reading["unmatched"][:_MAX_UNREAD]):
        page.line(Span(f"{at:>8}  ", "dim"), text)
    for question in reading["questions"]:
        page.prose(f"? {question['text']}", "warn")
        if question["answers"]:
            page.line(Span(f"    --answer {' or '.join(question['answers'])}", "dim"))
    return page.text()


def render_first_records(rows: Sequence[Row], style: Style) -> str:
    """Return the first record that each rule reads: rows of ``rule`` and ``first`` (``{line_number, text, fields}`` or None)."""
    page = Page(style)
    for row in rows:
        page.line()
        first, name = row["first"], Span(row["rule"], "strong")
        if first is None:
            page.line(name, " reads no record")
            continue
        page.line(name, f" reads first line {first['line_number']}")
        page.line(Span(f"    {first['text']}", "dim"))
        page.line("    " + ", ".join(f"{field} {value}" for field, value in first["fields"].items()))
    return page.text()


def _mark(each: Row) -> Span:
    return Span("✓" if each["chosen"] else " ", "good")


def _score(value: float) -> str:
    return count(value) if value == int(value) else number(value, 3)


def _place(line: Row) -> tuple[int, str]:
    return line["line_number"], line["text"]
