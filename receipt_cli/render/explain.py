"""Render how a log was read: the chosen grammar, the records of its rules, and a learned draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.fields import UNKNOWN, child, items, real, text, truth, whole
from receipt_cli.render.scale import count, number
from receipt_cli.render.style import Style

_MAX_CANDIDATES = 20
_MAX_RULES = 100
_MAX_LINES = 20
_MAX_UNREAD = 5


def render_explain(explanation: Mapping[str, object], style: Style) -> str:
    """Return the explanation of a detection.

    ``candidates``: list of ``{id, version, score, step_records, records, chosen, why}``, best first, where
    ``score`` is a number or a text. ``rules``: list of ``{grammar, rule, event, matched, near_misses}`` of the chosen
    grammar. ``unmatched``: list of ``{line_number, text}``, lines that look like metrics and that no rule
    explains. ``explanations``: list of ``{kind, records, line, chosen, score, evidence, why}`` of a log that no grammar knows.
    Missing values are ``–``.
    """
    page = Page(style)
    _write_candidates(page, items(explanation, "candidates"))
    _write_explanations(page, items(explanation, "explanations"))
    _write_rules(page, items(explanation, "rules"))
    _write_unmatched(page, items(explanation, "unmatched"))
    return page.text()


def _write_candidates(page: Page, candidates: Sequence[object]) -> None:
    if not candidates:
        page.line("no grammar explains a record of this log")
        return
    rows: list[list[Span]] = []
    for candidate in candidates[:_MAX_CANDIDATES]:
        chosen = truth(candidate, "chosen") is True
        version = whole(candidate, "version")
        name = page.say(text(candidate, "id") or "?") + (f"@v{version}" if version is not None else "")
        rows.append(
            [
                Span("✓" if chosen else " ", "good"),
                Span(name, "strong" if chosen else "plain"),
                Span(_score(page, child(candidate, "score"))),
                Span(_count(candidate, "step_records")),
                Span(_count(candidate, "records")),
            ]
        )
    columns = [
        Column(""),
        Column("grammar", least=16),
        Column("score", right=True, drop=1),
        Column("step records", right=True),
        Column("records", right=True),
    ]
    write_table(page, columns, rows, indent=0, hidden=len(candidates) - _MAX_CANDIDATES, what="candidates")
    for candidate, row in zip(candidates, rows, strict=False):
        if why := text(candidate, "why"):
            page.prose(page.say(why), "dim", bullet=f"{row[1].text}: ")


def _write_explanations(page: Page, explanations: Sequence[object]) -> None:
    """Write what may be the records of training, each with its evidence and its weights."""
    if not explanations:
        return
    page.heading("what may be the records of training, by the weight of the evidence")
    for each in explanations:
        weights = child(each, "evidence")
        told = (
            ", ".join(f"{name.replace('_', ' ')} {value:+g}" for name, value in weights.items())
            if isinstance(weights, dict)
            else ""
        )
        mark = "✓" if truth(each, "chosen") is True else " "
        page.line(
            f"{mark} {_score(page, child(each, 'score'))}  {_count(each, 'records')} × {page.say(text(each, 'line') or '')}"
        )
        page.prose(told, "dim", bullet="    ")
        if why := text(each, "why"):
            page.prose(page.say(why), bullet="    not read: ")


def _write_rules(page: Page, rules: Sequence[object]) -> None:
    if not rules:
        return
    rows = [
        [
            Span(page.say(text(rule, "grammar") or "?"), "dim"),
            Span(page.say(text(rule, "rule") or "?")),
            Span(page.say(text(rule, "event") or ""), "dim"),
            Span(_count(rule, "matched"), "plain" if whole(rule, "matched") else "dim"),
            Span(_count(rule, "near_misses"), "warn" if whole(rule, "near_misses") else "dim"),
        ]
        for rule in rules[:_MAX_RULES]
    ]
    columns = [
        Column("grammar", least=16),
        Column("rule", least=16),
        Column("event", least=8),
        Column("matched", right=True),
        Column("almost read", right=True),
    ]
    several = len({row[0].text for row in rows}) > 1
    if not several:
        columns, rows = columns[1:], [row[1:] for row in rows]
    page.heading(f"rules of the chosen {'grammars' if several else 'grammar'}")
    write_table(page, columns, rows, hidden=len(rules) - _MAX_RULES, what="rules")


def _write_unmatched(page: Page, lines: Sequence[object]) -> None:
    if not lines:
        return
    rows = [
        [
            Span(_line(line), "dim"),
            Span(page.say((text(line, "text") or "").expandtabs(4).strip())),
        ]
        for line in lines[:_MAX_LINES]
    ]
    page.heading("lines that look like metrics and match no rule")
    columns = [Column("line", right=True), Column("text", least=20)]
    write_table(page, columns, rows, hidden=len(lines) - _MAX_LINES, what="lines")


def render_learned(reading: Mapping[str, object], style: Style) -> str:
    """Return the table of ``reading``: ``grammar``, ``matched`` of ``records``, ``steps``, ``first_step``, ``last_step``,
    ``fields`` (``{name, records, first, last}``), ``unmatched_count``, ``unmatched`` (``{line_number, text}``) and ``questions``
    (``{text, answers}``).
    """
    page = Page(style)
    page.line(
        Span(page.say(text(reading, "grammar") or "?"), "strong"),
        f" reads {_count(reading, 'matched')} of {_count(reading, 'records')} records: "
        f"{_count(reading, 'steps')} steps, {_count(reading, 'first_step')} to {_count(reading, 'last_step')}",
    )
    rows = [
        [
            Span(page.say(text(field, "name") or "?"), "strong"),
            Span(_count(field, "records")),
            Span(_number(real(field, "first"))),
            Span(_number(real(field, "last"))),
        ]
        for field in items(reading, "fields")
    ]
    if rows:
        columns = [Column("field", least=12), *(Column(name, right=True) for name in ("records", "first", "last"))]
        write_table(page, columns, rows, indent=0)
    unmatched = items(reading, "unmatched")[:_MAX_UNREAD]
    if unmatched:
        page.line(f"{_count(reading, 'unmatched_count')} lines look like metrics and are not read:")
    for line in unmatched:
        page.line(Span(f"{_line(line):>8}  ", "dim"), page.say(text(line, "text") or ""))
    for question in items(reading, "questions"):
        page.prose(page.say(f"? {text(question, 'text') or ''}"), "warn")
        answers = [answer for answer in items(question, "answers") if isinstance(answer, str)]
        if answers:
            page.line(Span(page.say(f"    --answer {' or '.join(answers)}"), "dim"))
    return page.text()


def render_first_records(rows: Sequence[Mapping[str, object]], style: Style) -> str:
    """Return the first record that each rule reads: rows of ``rule`` and ``first`` (``{line_number, text, fields}`` or None)."""
    page = Page(style)
    for row in rows:
        page.line()
        first = child(row, "first")
        if first is None:
            page.line(Span(page.say(text(row, "rule") or "?"), "strong"), " reads no record")
            continue
        page.line(Span(page.say(text(row, "rule") or "?"), "strong"), f" reads first line {_line(first)}")
        page.line(Span(page.say(f"    {text(first, 'text') or ''}"), "dim"))
        fields = child(first, "fields")
        told = fields.items() if isinstance(fields, Mapping) else ()
        page.line(page.say("    " + ", ".join(f"{name} {value}" for name, value in told)))
    return page.text()


def _score(page: Page, score: object) -> str:
    if isinstance(score, str):
        return page.say(score)
    value = real(score)
    return count(value) if value is not None and value == int(value) else _number(value, 3)


def _number(value: float | None, digits: int = 4) -> str:
    return UNKNOWN if value is None else number(value, digits)


def _line(entry: object) -> str:
    """Return the line number of an entry in plain digits, to be pasted."""
    value = whole(entry, "line_number")
    return UNKNOWN if value is None else str(value)


def _count(entry: object, key: str) -> str:
    value = whole(entry, key)
    return UNKNOWN if value is None else count(value)
