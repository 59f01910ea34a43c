"""Build the report document from receipts, within a limit of bytes, and its page: one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, TypeAlias

from receipt_cli.comparison.comparable import Policy
from receipt_cli.definitions.metrics import Registry
from receipt_cli.documents.canonical import run_id
from receipt_cli.history.lane_history import history, make_lanes, watch
from receipt_cli.render.card import render_card
from receipt_cli.render.comparison.words import field_name, field_value
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import kind_of
from receipt_cli.render.store import render_failures, render_runs, tally_documents
from receipt_cli.render.style import Style
from receipt_cli.report.curves import SeriesFolder
from receipt_cli.report.detail import pack, report_documents, run_detail
from receipt_cli.report.drift import Sign, alarms, signs, vanished
from receipt_cli.report.packing import MAX_NAME, Pool, byte_count, columns, compact, number, present, short_text
from receipt_cli.report.row import CHECKS, COLUMNS, core_row, listed, pack_row
from receipt_cli.store.files import Quarantined
from receipt_cli.store.listing import failure_groups

Document: TypeAlias = Mapping[str, Any]

FORMAT = "report/1"
MAX_BYTES = 7_900_000
"""Largest report data, in bytes: with its styles and scripts a report stays below 8 MB."""
LATEST = 20
"""Runs at the top of a report."""
_WIDTH = 110
_MAX_QUARANTINED = 200
_MAX_FIELDS = 12
_TAIL = 12
"""Lines kept of the end of a failed log if the report is too large."""


def store_report(
    receipts: Iterable[Document],
    policy: Policy,
    registry: Registry,
    *,
    title: str,
    quarantined: Sequence[Quarantined] = (),
    series: SeriesFolder | None = None,
    documents: Sequence[Mapping[str, Any]] = (),
    most: int = MAX_BYTES,
) -> dict[str, Any]:
    """Return the report of a store, with runs by time: those without a time first, the newest last.

    ``documents`` are the store's other documents, as ``list_documents`` gives them.

    Beyond ``most`` bytes, the oldest runs keep only their rows, and the report counts them.
    """
    pool = Pool()
    shown: list[dict[str, Any]] = []
    rows: list[tuple[dict[str, Any], dict[str, Any], list[Sign], list[list[Any]], Document]] = []
    for document in receipts:
        drawn = series.curves(document) if series is not None else []
        core = core_row(document, registry)
        shown.append(listed(document))
        rows.append((core, run_detail(document), list(signs(document)), drawn, _slim(document)))
    rows.sort(key=lambda row: (row[0]["at"] is not None, row[0]["at"] or 0, row[0]["digest"]))
    places = {run_id(row[4]): place for place, row in enumerate(rows)}
    report = {
        **_frame("store", short_text(title), registry, pool),
        "plain": _plain(shown, tally_documents(documents)),
        "runs": columns((pack_row(row[0], pool) for row in rows), COLUMNS),
        "lanes": _lanes([row[4] for row in rows], policy, registry, pool, places),
        "drift": alarms([[*row[2], *gone] for row, gone in zip(rows, vanished([row[4] for row in rows]), strict=True)], pool),
        "quarantine": [
            [short_text(q.path), q.exit_code, short_text(q.error), short_text(q.why)] for q in quarantined[:_MAX_QUARANTINED]
        ],
        "quarantined": len(quarantined),
        "documents": report_documents(documents, places),
    }
    return _bounded(report, [(row[1], row[3]) for row in rows], pool, most)


def one_run_report(
    document: Document, registry: Registry, curves: Sequence[list[Any]], unread: Sequence[str], path: str | None = None
) -> dict[str, Any]:
    """Return the report of one run, with ``curves`` of its log, and ``unread`` lines that look like metrics.

    ``path`` is that of its log: a run without a name is called by its file.
    """
    if path is not None:
        document = {**document, "run": {**document["run"], "log_paths": [path]}}
    pool = Pool()
    core = pack_row(core_row(document, registry), pool)
    more = {"curves": _packed(curves, pool), "unread": [short_text(line) for line in unread]}
    detail = {**pack(run_detail(document), pool), **present(more)}
    title = pool.texts[core["name"]]
    return {
        **_frame("run", title, registry, pool),
        "plain": render_card(document, Style(), log=path),
        "runs": columns([core], COLUMNS),
        "lanes": [],
        "drift": alarms([list(signs(document))], pool),
        "quarantine": [],
        "quarantined": 0,
        "documents": report_documents((), {}),
        "details": [detail],
        "left_out": [0, 0],
    }


def _plain(rows: list[dict[str, Any]], others: str) -> str:
    """Return the last runs, what failed, and the number of ``others`` as text, for a reader without scripts."""
    rows = sorted(sorted(rows, key=lambda row: row["run_id"]), key=lambda row: row["run_at"] or "", reverse=True)
    style = Style(width=_WIDTH)
    parts = render_runs(rows, style, LATEST), render_failures(rows, failure_groups(rows), style, LATEST)
    return "\n".join(parts).replace(": --limit 0", "").replace("messages, uncut: --full\n", "") + (
        f"\n{others}\n" if others else ""
    )


def _frame(kind: str, title: str, registry: Registry, pool: Pool) -> dict[str, Any]:
    metrics = {m.name: [metric_label(m.name), kind_of(m.name), m.better, m.klass] for m in registry.metrics}
    metrics["goodput_ratio"] = ["time in steps", "ratio", "higher", "rate"]
    metrics["training_time_s"] = ["training time", "time", "none", "counter"]
    metrics["healthy"] = ["runs that did not fail", "ratio", "higher", "rate"]
    return {
        "format": FORMAT,
        "kind": kind,
        "latest": LATEST,
        "title": title,
        "metrics": metrics,
        "checks": list(CHECKS),
        "texts": pool.texts,
        "facts": pool.facts,
    }


def _slim(document: Document) -> Document:
    """Return the parts of a receipt that the history reads: thousands of whole receipts would fill the memory."""
    wanted = ("grammars", "rules", "log", "launches", "problems")
    derivation = {key: value for key, value in document["derivation"].items() if key in wanted}
    summary = document["summary"]
    kept = {key: document[key] for key in ("run", "header", "checks", "goodput", "evidence") if key in document}
    failure = document["failure"]
    kept["failure"] = failure and {"reason": failure["reason"]}
    return {**kept, "derivation": derivation, "summary": summary and {**summary, "other_metrics": {}, "derived": {}}}


def _lanes(
    documents: Sequence[Document], policy: Policy, registry: Registry, pool: Pool, places: Mapping[str, int]
) -> list[dict[str, Any]]:
    histories = history(documents, policy, registry)["lanes"]
    lanes: list[dict[str, Any]] = []
    for entry, lane in zip(histories, make_lanes(documents)[0], strict=True):
        runs = [places[run.run_id] for run in lane.runs]
        metrics = [
            {
                "metric": watched.name,
                "at": [runs[place] for place in watched.places],
                "values": [number(value) for value in watched.values],
                "changes": [_change(change, pool, places) for change in metric["changes"]],
                "spikes": [[places[spike["run_id"]], number(spike["value"])] for spike in metric["spikes"]],
            }
            for metric, watched in zip(entry["metrics"], watch(lane, registry), strict=True)
        ]
        lanes.append(
            {
                "lane": pool.text(lane.lane, MAX_NAME),
                "preset": pool.text(lane.preset, MAX_NAME),
                "group": pool.text(" · ".join(lane.group) or None, MAX_NAME),
                "finished": lane.finished,
                "searched": lane.searched,
                "undated": len(lane.undated),
                "runs": runs,
                "metrics": metrics,
            }
        )
    return lanes


def _change(change: Document, pool: Pool, places: Mapping[str, int]) -> dict[str, Any]:
    texts = [
        [pool.text(field_name(f["pointer"])), pool.text(field_value(f["before"])), pool.text(field_value(f["after"]))]
        for f in change["fields"]
    ]
    return {
        "kind": change["kind"],
        "outcome": change["outcome"],
        "run": places[change["run"]["run_id"]],
        "before": number(change["before"]),
        "after": number(change["after"]),
        "fields": texts[:_MAX_FIELDS],
        "more": max(0, len(texts) - _MAX_FIELDS),
        "commits": list(change["commits"].values()) if change["commits"] else None,
    }


def _packed(curves: Sequence[list[Any]], pool: Pool) -> list[list[Any]]:
    return [[phase, pool.text(name), *rest] for phase, name, *rest in curves]


def _short(detail: dict[str, Any]) -> dict[str, Any]:
    """Return a detail with only the last ``_TAIL`` lines of its log."""
    failure = detail.get("failure") or {}
    return {**detail, "failure": {**failure, "tail": failure["tail"][-_TAIL:]}} if "tail" in failure else detail


def _bounded(
    report: dict[str, Any], details: Sequence[tuple[dict[str, Any], list[list[Any]]]], pool: Pool, most: int
) -> dict[str, Any]:
    """Return the report with the details of the newest runs that fit, then the curves of the newest that fit.

    If not everything fits, logs of failed runs are cut to ``_TAIL`` lines: they are two thirds of the data of real runs.
    """
    room = most - byte_count(report) + pool.size
    if sum(byte_count(detail) + byte_count(curves) for detail, curves in details) + pool.size > room:
        details = [(_short(detail), curves) for detail, curves in details]
    kept: list[dict[str, Any] | None] = [None] * len(details)
    for place in reversed(range(len(details))):
        packed = pack(details[place][0], pool)
        room -= byte_count(packed) + 1
        if room < pool.size:
            break
        kept[place] = packed
    drawn = 0
    for place in reversed(range(len(details))):
        detail, curves = kept[place], details[place][1]
        room -= byte_count(curves) + 12 if curves else 0
        if room < pool.size or detail is None:
            break
        if curves:
            kept[place] = {**detail, "curves": _packed(curves, pool)}
            drawn += 1
    undrawn = sum(bool(curves) for _, curves in details) - drawn
    return {**report, "details": kept, "left_out": [kept.count(None), undrawn]}


SCRIPTS = (
    "format.js",
    "model.js",
    "chart.js",
    "panels.js",
    "lanes.js",
    "overlay.js",
    "runs.js",
    "run.js",
    "documents.js",
    "main.js",
)
STYLE = "report.css"
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""In JSON these characters occur only in texts; escaped, they cannot end the element or begin a comment."""


def render_page(report: Mapping[str, Any]) -> bytes:
    """Return the report as HTML in UTF-8. The same report gives the same bytes.

    The page's policy allows only its one style and one script, by their digests, and no connection. Values of receipts are in a
    block of JSON, which the script adds to the page as text, never as markup.
    """
    script = "(function () {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
    style = _asset(STYLE)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    filled = {
        "POLICY": html.escape(policy, quote=False),
        "TITLE": html.escape(f"{report['title']} · receipt"),
        "STYLE": style,
        "PLAIN": html.escape(report["plain"], quote=False),
        "DATA": compact({key: value for key, value in report.items() if key != "plain"}).translate(_ESCAPES),
        "SCRIPT": script,
    }
    pieces = _asset("page.html").split("@@")  # text, name, text, name, …, text
    return "".join(filled[piece] if place % 2 else piece for place, piece in enumerate(pieces)).encode("utf-8", "replace")


def _asset(name: str) -> str:
    return resources.files("receipt_cli.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
