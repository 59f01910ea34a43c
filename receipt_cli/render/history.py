"""Render a history document for the terminal: changes lane by lane, with the header fields that changed at the same run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from receipt_cli.render.comparison.words import OUTCOMES, field_name, field_value
from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.metrics import metric_label, sparkline
from receipt_cli.render.scale import count, many, measure, percent, scale_for, signed, significant
from receipt_cli.render.store import CHANGES, series_cells, short_id, tally
from receipt_cli.render.style import Style

_TREND = 24
_MAX_FIELDS = 8
_GROUPS = 12
_FEW = 3
"""Most groups that are named as too small."""
_NAME = 40
_SERIES = 12
_KINDS = {"evaluation": "evaluations", "gpu_profile": "GPU profiles", "ablation": "ablations"}
_SIGNS = {"better": "✓", "worse": "✗", "different": "▸"}


def render_history(
    document: Mapping[str, Any], style: Style, *, quiet: bool = False, full: bool = False, store: str = "STORE"
) -> str:
    """Return the history (``history/1.1``), each line ended by a newline; ``quiet``: only lanes with a change.

    Groups come as a table, with the next command for the ``store``; ``full``: all of them, and the runs in none.
    """
    page = Page(style)
    lanes = document["lanes"]
    if not quiet:
        page.line(tally([{"outcome": word} for word, number in document["outcomes"].items() for _ in range(number)]))
        if any(lane["group"] for lane in lanes) or document["alone"]:
            _groups(page, document, store, full=full)
    for lane in lanes:
        if lane["searched"] and (not quiet or any(metric["changes"] for metric in lane["metrics"])):
            _lane(page, lane)
    _documents(page, document.get("documents") or {"groups": [], "alone_count": 0}, quiet=quiet, full=full, store=store)
    return page.text()


def _documents(page: Page, found: Mapping[str, Any], *, quiet: bool, full: bool, store: str) -> None:
    """Add the series of the documents besides receipts, a table for each kind and lane; ``quiet``: only changed scores."""
    for group in found["groups"]:
        series = [one for one in group["series"] if not quiet or one["outcome"] in ("better", "worse", "different")]
        if not series:
            continue
        whose = group["lane"] or group["run_name"] or short_id(group["run_id"])
        page.heading(f"{_KINDS[group['kind']]} · {whose}", Span(many(group["document_count"], "document"), "dim"))
        shown = series if full else series[:_SERIES]
        rows = []
        for one in shown:
            name, first, last, _ = series_cells(group["kind"], one)
            word, role = CHANGES.get(one["outcome"], ("", "plain"))
            course = sparkline(one["values"], _TREND, least_span=0.05) if len(one["values"]) > 2 and one["ordered"] else ""
            rows.append([name, first, last, Span(word, role), Span(course, "accent")])
        columns = [Column("figure", least=16), Column("first", right=True, drop=1), Column("last", right=True)]
        columns += [Column("since the one before"), Column("over the documents", drop=2)]
        used = [i for i in range(len(columns)) if i < 3 or any(row[i] for row in rows)]
        write_table(page, [columns[i] for i in used], [[row[i] for i in used] for row in rows])
        page.left_out(len(series) - len(shown), "(--full)")
    if found["alone_count"] and not quiet:
        alone = many(found["alone_count"], "document")
        page.prose(f"{alone} without a lane and a run: receipt store ls {store}", "dim")


def render_groups(document: Mapping[str, Any], style: Style, store: str) -> str:
    """Return all groups of a history, and the named lanes with the number of their runs."""
    page = Page(style)
    for lane in document["lanes"]:
        if lane["lane"]:
            title = " · ".join(filter(None, (lane["lane"], lane["preset"])))
            page.flow("lane", [title, f"{count(lane['run_count'] + lane['undated_count'])} runs"])
    _groups(page, document, store, full=True)
    return page.text()


def _groups(page: Page, document: Mapping[str, Any], store: str, *, full: bool = False) -> None:
    """Add the groups of runs without a lane, those that are alone, and how a group gets a name."""
    groups = [lane for lane in document["lanes"] if lane["group"]]
    first = "No lanes: compared are runs" if len(groups) == len(document["lanes"]) else "Without a lane, compared are runs"
    fields = [field.rpartition("/")[2] for field in document["by"]]
    listed = ", ".join(fields[:-1]) + (" and " if fields[:-1] else "") + fields[-1]
    page.prose(f"{first} whose {listed} {'is' if len(fields) == 1 else 'are'} known and equal.")
    columns = [
        Column("group", right=True), Column("runs", right=True), Column("finished", right=True), Column("dates", drop=1),
        Column(" · ".join(fields)),
    ]  # fmt: skip
    shown = groups if full else groups[:_GROUPS]
    rows = []
    for place, lane in enumerate(shown, 1):
        counts = [count(each) for each in (lane["run_count"] + lane["undated_count"], lane["finished_count"])]
        values = " · ".join(filter(None, [*lane["group"], lane["preset"]]))
        begun, end = _day(lane["first_at"]), _day(lane["last_at"])
        dates = begun if begun == end else f"{begun} … {end[5:] if end[:4] == begun[:4] else end}"
        rows.append([Span(str(place), "strong"), *counts, dates, values])
    write_table(page, columns, rows, indent=0)
    if len(shown) < len(groups):
        page.line(Span(f"{count(len(groups) - len(shown))} more groups: --full", "dim"))
    _alone(page, document, full=full)
    for place, lane in enumerate(shown[:_FEW], 1):
        if not lane["searched"]:
            few, least = lane["finished_count"], document["least_finished"]
            page.line(f"{place}: {few} finished run{' is' if few == 1 else 's are'} too few to find a change ({least})")
    if groups:
        page.line(Span("keep it:  ", "dim"), f"receipt store lane {store} --group 1 {_slug(groups[0])}")


def _alone(page: Page, document: Mapping[str, Any], *, full: bool) -> None:
    alone, fields = document["alone"], len(document["by"])
    if not alone:
        return
    which = {1: "it", 2: "one of the two", 3: "one of the three", 4: "one of the four"}.get(fields, "one of these")
    many = f"{count(len(alone))} {'run is' if len(alone) == 1 else 'runs are'} alone, or {which} is unknown"
    page.prose(many + ("" if full else " (--full)"))
    for run in alone if full else ():
        lacks = f"unknown: {', '.join(run['unknown'])}" if run["unknown"] else "alone"
        page.flow("", [_run(run), Span(lacks, "dim")])


def _slug(lane: Mapping[str, Any]) -> str:
    """Return a name for a group: its model and the last word of its hardware, if the fields include them."""
    words = [*lane["group"][1:2], *(value.split()[-1] for value in lane["group"][2:3])] or lane["group"]
    return re.sub(r"[^a-z0-9.]+", "-", " ".join(words).lower()).strip("-")[:_NAME] or "NAME"


def _lane(page: Page, lane: Mapping[str, Any]) -> None:
    title = " · ".join(filter(None, (lane["lane"], *lane["group"], lane["preset"])))
    span = f"{_day(lane['first_at'])} to {_day(lane['last_at'])}" if lane["first_at"] else "no dated run"
    page.heading(title, Span(f"{count(lane['run_count'])} runs, {span}", "dim"))
    if lane["undated_count"]:
        page.prose(f"{count(lane['undated_count'])} runs without a time are left out", "warn", indent=2, bullet="! ")
    _table(page, lane["metrics"])
    for metric in lane["metrics"]:
        for change in metric["changes"]:
            _change(page, metric, change)
    spikes = [(metric, spike) for metric in lane["metrics"] for spike in metric["spikes"]]
    for metric, spike in spikes[:4]:
        shown = f"{metric_label(metric['metric'])} {measure(metric['metric'], spike['value'])}, alone, in {_run(spike)}"
        page.prose(f"jump: {shown}", "dim", indent=2, bullet="· ")
    if len(spikes) > 4:
        page.line(Span(f"· {count(len(spikes) - 4)} more jumps", "dim"), indent=2)


def _table(page: Page, metrics: Sequence[Mapping[str, Any]]) -> None:
    columns = [Column("metric", least=10), Column("unit"), Column("first", right=True, drop=1), Column("last", right=True)]
    rows = []
    for metric in metrics:
        values = metric["values"]
        scale = scale_for(_kind(metric), values)
        ends = [scale.format(values[0]), scale.format(values[-1])]
        rows.append([_label(metric), Span(scale.unit, "dim"), *ends, Span(sparkline(values, _TREND, least_span=0.05), "accent")])
    write_table(page, [*columns, Column("over the runs", drop=2)], rows)


def _label(metric: Mapping[str, Any]) -> str:
    return "runs that did not fail" if metric["metric"] == "healthy" else metric_label(metric["metric"])


def _kind(metric: Mapping[str, Any]) -> str:
    """Return the metric whose scale applies; a share of runs has that of a ratio."""
    return "healthy_ratio" if metric["metric"] == "healthy" else metric["metric"]


def _change(page: Page, metric: Mapping[str, Any], change: Mapping[str, Any]) -> None:
    values = (change["before"], change["after"])
    scale = scale_for(_kind(metric), values)
    moved = f"{scale.format(values[0])} → {scale.format(values[1])} {scale.unit}".strip()
    since = "creeps from" if change["kind"] == "creep" else "from"
    page.gap()
    what = f"{_SIGNS[change['outcome']]} {_label(metric)} {_size(metric, change)}"
    page.line(Span(what, OUTCOMES[change["outcome"]][1]), f" {since} {_run(change['run'])}", indent=2)
    page.line(Span(moved, "dim"), indent=6)
    fields = change["fields"]
    for field in fields[:_MAX_FIELDS]:
        text = f"{field_name(field['pointer'])} {field_value(field['before'])} → {field_value(field['after'])}"
        page.prose(text, indent=6, bullet="· ")
    page.left_out(len(fields) - _MAX_FIELDS, "fields", indent=6)
    if not fields:
        page.line(Span("no recorded header field changed there", "dim"), indent=6)
    if change["commits"] is not None:
        page.line(Span(f"commits {change['commits']['from'][:12]}..{change['commits']['to'][:12]}", "dim"), indent=6)


def _size(metric: Mapping[str, Any], change: Mapping[str, Any]) -> str:
    delta = change["after"] - change["before"]
    if metric["metric"] in ("healthy", "goodput_ratio"):
        return signed(delta, lambda share: f"{percent(share).removesuffix(' %')} points")
    if not change["before"]:
        return signed(delta, partial(measure, metric["metric"]))
    share = abs(delta / change["before"]) * 100
    return signed(delta, lambda _: f"{f'{share:.1f}' if share < 99.95 else significant(share, 3)} %")


def _run(run: Mapping[str, Any]) -> str:
    when = _day(run["at"])
    return f"{when} ({run['name']})" if when != "–" else run["name"]


def _day(time: str | None) -> str:
    return time[:10] if time else "–"
