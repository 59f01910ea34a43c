"""Render comparisons of documents besides receipts, for the terminal and as Markdown, from the same tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from receipt_cli.render.comparison.words import OUTCOMES, VERDICTS
from receipt_cli.render.console import Column, Page, Span, write_texts
from receipt_cli.render.fields import UNKNOWN, or_dash
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import byte_size, count, many, measure, number, percent, signed, significant
from receipt_cli.render.store import figure_label, score_name
from receipt_cli.render.style import Role, Style
from receipt_cli.render.text import code, escape, table

Part = Mapping[str, Any]
_MOST = 12
"""Most rows of a table without ``full``."""
_STATES: Mapping[str, tuple[str, Role]] = {
    "vanished": ("vanished", "plain"),
    "appeared": ("appeared", "plain"),
    "not_listed": ("not listed", "dim"),
}
_BY = {"better": 1, "worse": 0, "different": 2, "noise": 3, "not_judged": 4, "equal": 5}


class Section(NamedTuple):
    """One table: its title, a note on it, columns, and rows; the first column names what a row is of."""

    title: str
    note: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


def render_documents_compared(document: Part, style: Style, *, full: bool = False) -> str:
    """Return the comparison (``document_comparison/1.0``), each line ended by a newline; ``full``: every row."""
    page = Page(style)
    for each in document["comparisons"]:
        page.gap()
        word, role = VERDICTS[each["verdict"]]
        names = [side["file"] for side in (document["baseline"], each["candidate"])]
        page.line(Span(word, role), Span(f"  {names[0]} → {names[1]}", "strong"))
        for reason in each["reasons"]:
            page.prose(reason, indent=2, bullet="· ")
        for section in _SECTIONS[document["kind"]](each):
            page.heading(section.title, Span(section.note, "dim"))
            shown = section.rows if full else section.rows[:_MOST]
            write_texts(page, section.columns, shown)
            page.left_out(len(section.rows) - len(shown), "" if full else "(--full)")
    return page.text()


def documents_markdown(document: Part) -> str:
    """Return the comparison (``document_comparison/1.0``) as GitHub-flavoured Markdown."""
    lines: list[str] = []
    for each in document["comparisons"]:
        names = [code(side["file"]) for side in (document["baseline"], each["candidate"])]
        lines += [f"### {escape(VERDICTS[each['verdict']][0])}: {names[0]} → {names[1]}", ""]
        lines += [f"- {escape(reason)}" for reason in each["reasons"]] + ([""] if each["reasons"] else [])
        for section in _SECTIONS[document["kind"]](each):
            rows = [[code(cell) if not i else escape(cell) for i, cell in enumerate(row)] for row in section.rows[:40]]
            lines += [f"#### {escape(section.title)}", "", *table([escape(c.title) for c in section.columns], rows), ""]
            if len(section.rows) > 40:
                lines += [f"{len(section.rows) - 40} more rows", ""]
    return "\n".join(lines)


def _value(name: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{byte_size(value)}/s" if name == "bytes_per_s" else count(value) if name.endswith("count") else measure(name, value)


def _change(part: Part) -> str:
    """Return the change of a figure in percent, else its difference."""
    difference, ratio = part["difference"], part["ratio"]
    if difference is None:
        return UNKNOWN
    if ratio is None or ratio <= 0:
        return signed(difference, count if difference == int(difference) else partial(number, digits=3))
    share = abs(ratio - 1) * 100
    return f"× {significant(ratio)}" if ratio >= 10 else signed(difference, lambda _: f"{significant(share) if share else '0'} %")


_SIDES = (Column("before", right=True), Column("after", right=True))


def _figures(title: str, parts: Sequence[Part], note: str = "") -> Iterator[Section]:
    if parts:
        sides = ([_value(part["name"], part[side]) for side in "ab"] for part in parts)
        rows = [[figure_label(part["name"]), *values, _change(part)] for part, values in zip(parts, sides, strict=True)]
        yield Section(title, note, [Column("figure", least=10), *_SIDES, Column("change", right=True)], rows)


def _ablation(each: Part) -> Iterator[Section]:
    names = list(dict.fromkeys([*each["changes"][0], *each["changes"][1]]))
    if names and each["verdict"] != "not_comparable":
        rows = [[name, *(str(side.get(name, UNKNOWN)) for side in each["changes"])] for name in names]
        yield Section("settings that are changed", "", [Column("setting", least=10), Column("before"), Column("after")], rows)
    columns = [
        Column("metric", least=10), Column("of", drop=1), Column("cells", right=True), Column("differ", right=True),
        Column("most", right=True, least=12),
    ]  # fmt: skip
    rows = []
    for curve in each["curves"]:
        role: Role = "plain" if curve["differing_count"] else "dim"
        cells = [curve["of"], count(curve["cell_count"]), count(curve["differing_count"]), _greatest(curve)]
        rows.append([metric_label(curve["metric"]), *(Span(cell, role) for cell in cells)])
    if rows:
        yield Section("curves", f"cell by cell at {many(each['common_step_count'], 'common step')}", columns, rows)
    for curve in each["curves"]:
        shown = [part for part in curve["window"] if part["difference"] != 0]
        if shown and curve["of"] == "model":
            yield from _figures(f"{metric_label(curve['metric'])} in the window", shown)
    yield from _unmatched(each["unmatched"], lambda part: f"{metric_label(part['metric'])} of the {part['of']}")


def _greatest(part: Part) -> str:
    found = part["greatest"]
    if found is None:
        return UNKNOWN
    values = [or_dash(found[side], number) for side in "ab"]
    layer = f" layer {found['layer']}" if "layer" in found else ""
    return f"{values[0]} → {values[1]} at step {found['step']}{layer}"


def _unmatched(parts: Sequence[Part], named: Callable[[Part], str]) -> Iterator[Section]:
    if parts:
        sides = {"a": "before", "b": "after"}
        rows = [[named(part), sides[part["side"]], part.get("why", "only here")] for part in parts]
        yield Section("not compared", "", [Column("what", least=12), Column("side"), Column("why", least=10)], rows)


def _evaluation(each: Part) -> Iterator[Section]:
    scores = sorted(each["scores"], key=lambda score: _BY[score["outcome"]])
    columns = [
        Column("score", least=18), *_SIDES, Column("difference", right=True), Column("± both", right=True), Column("verdict"),
        Column("steps", drop=1),
    ]  # fmt: skip
    rows = []
    for score in scores:
        word, role = OUTCOMES[score["outcome"]]
        values = [or_dash(score[side], number) for side in "ab"]
        apart = or_dash(score["difference"], lambda value: signed(value, partial(number, digits=3)))
        error = or_dash(score["combined_stderr"], lambda value: number(value, 2))
        steps = [or_dash(score[f"{side}_step"]) for side in "ab"]
        places = Span(f"{steps[0]} → {steps[1]}" if steps != [UNKNOWN] * 2 else UNKNOWN, "dim")
        rows.append([score_name(score), *values, apart, error, Span(word, role), places])
    if rows:
        note = f"noise: within {number(each['far'], 3)} combined standard errors"
        yield Section(many(len(rows), "score"), note, columns, rows)
    yield from _figures("recorded figures", each["figures"])
    yield from _unmatched(each["unmatched"], score_name)


def _profile(each: Part) -> Iterator[Section]:
    yield from _figures("session", each["figures"])
    grown = [k for k in each["kernels"] if k["difference"] is None or k["difference"] != 0]
    columns = [
        Column("kernel", least=16), *_SIDES, Column("change", right=True), Column("time", right=True),
        Column("launches", right=True, drop=2), Column("mean", right=True, drop=1),
    ]  # fmt: skip
    rows = []
    for kernel in grown:
        word, role = _STATES.get(kernel["state"], (_change(kernel), "plain"))
        more = or_dash(kernel["difference"], lambda value: signed(value, partial(_value, "total_s")))
        totals = [_value("total_s", kernel[side]) for side in "ab"]
        launches, means = (
            _both([kernel[f"{side}_{key}"] for side in "ab"], shown)
            for key, shown in (("count", count), ("mean_s", lambda value: measure("mean_s", value)))
        )
        rows.append([kernel["kernel"], *totals, Span(word, role), more, launches, means])
    if rows:
        same = len(each["kernels"]) - len(grown)
        note = "by the change of the time in them" + (f"; {many(same, 'kernel')} as before" if same else "")
        yield Section(many(len(rows), "kernel"), note, columns, rows)
    for copy in (copy for copy in each["copies"] if any(figure["difference"] != 0 for figure in copy["figures"])):
        yield from _figures(f"copies {copy['direction'].replace('_', ' ')}", copy["figures"])
    if each["stalls"]:
        rows = [
            [f"{stall['reason']}{' (no instruction issued)' if stall['not_issued'] else ''}",
             *(percent(stall[side]) for side in "ab"),
             signed(stall["difference"], lambda share: f"{significant(share * 100)} points")]
            for stall in each["stalls"]
        ]  # fmt: skip
        plan = [Column("reason", least=12), *_SIDES, Column("change", right=True)]
        yield Section("stall reasons", "shares of samples", plan, rows)
    for lane in each["lanes"]:
        note = "" if lane["a_status"] == lane["b_status"] == "ok" else f"{lane['a_status']} → {lane['b_status']}"
        yield from _figures(f"lane {lane['label']}", lane["figures"], note)


def _both(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    """Return two values with an arrow between them, or one if they are equal."""
    texts = [or_dash(value, shown) for value in values]
    return texts[0] if texts[0] == texts[1] else " → ".join(texts)


def _golden(each: Part) -> Iterator[Section]:
    columns = [
        Column("figure", least=10), Column("system", least=10, drop=1), Column("steps", right=True), Column("differ", right=True),
        Column("first", right=True, least=12),
    ]  # fmt: skip
    rows = []
    for curve in each["curves"]:
        where = or_dash(curve["first"], lambda first: f"{first['a']} → {first['b']} at step {first['step']}")
        rows.append([curve["metric"], curve["system"], count(curve["cell_count"]), count(curve["differing_count"]), where])
    if rows:
        yield Section("curves", "as printed", columns, rows)
    yield from _unmatched(each["unmatched"], lambda part: str(part["system"]))


_SECTIONS: Mapping[str, Callable[[Part], Iterator[Section]]] = {
    "ablation": _ablation,
    "evaluation": _evaluation,
    "gpu_profile": _profile,
    "golden": _golden,
}
"""Kind → the tables of one comparison."""
