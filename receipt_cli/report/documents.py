"""The documents of a store besides receipts in a report: their lists, a page for each, and their course by lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from receipt_cli.history.document_history import document_history
from receipt_cli.render.document_list import NOUNS, cells_of, figure_label, score_name, score_text, series_cells
from receipt_cli.render.fields import UNKNOWN, or_dash
from receipt_cli.render.scale import count, duration, figure, number, percent
from receipt_cli.report.packing import byte_count, short_text
from receipt_cli.report.row import instant

Row = Mapping[str, Any]
MAX_DOCUMENTS = 1000
"""Most documents of a report: the latest."""
MAX_BYTES = 2_000_000
"""Most bytes of the tables of documents; later ones are listed without."""
_MAX_ROWS = 40
_DIGEST = 16


def report_documents(rows: Sequence[Row], places: Mapping[str, int]) -> dict[str, Any]:
    """Return the documents in ``rows`` (the latest first) for a report; ``places`` are the indices of its runs.

    ``listed`` are their kinds with titles of columns and lines, ``pages`` what a page shows, by digest, ``course`` the series
    by lane, ``unreadable`` the skipped files.
    """
    valid = [row for row in rows if row["refusal"] is None and not row["excluded"]]
    kept, room = valid[:MAX_DOCUMENTS], MAX_BYTES
    listed: list[dict[str, Any]] = []
    for kind, noun in NOUNS.items():
        mine = [row for row in kept if row["kind"] == kind]
        if mine:
            titles, lines = cells_of(kind, mine)
            packed = [[*_head(row, places), *map(short_text, line)] for row, line in zip(mine, lines, strict=True)]
            listed.append({"kind": kind, "noun": noun, "titles": titles, "rows": packed})
    pages: dict[str, Any] = {}
    for row in kept:
        page = _page(row, places)
        room -= byte_count(page)
        if room < 0:
            break
        pages[row["sha256"][:_DIGEST]] = page
    course = [
        {
            "title": short_text(f"{NOUNS[group['kind']]}s · {group['lane'] or group['run_name'] or group['run_id'][:8]}"),
            "rows": [list(map(short_text, series_cells(group["kind"], one))) for one in group["series"][:_MAX_ROWS]],
            "more": max(0, len(group["series"]) - _MAX_ROWS),
        }
        for group in document_history(kept)["groups"]
    ]
    broken = [[row["path"], short_text(row["refusal"])] for row in rows if row["refusal"] is not None][:_MAX_ROWS]
    return {"listed": listed, "pages": pages, "course": course, "unreadable": broken, "left_out": len(valid) - len(kept)}


def _head(row: Row, places: Mapping[str, int]) -> list[Any]:
    """Return digest, time in seconds since 1970, place of the run or None, and what the run is called."""
    return [row["sha256"][:_DIGEST], instant(row["run_at"]), places.get(row["run_id"] or ""), short_text(row["name"] or "")]


def _page(row: Row, places: Mapping[str, int]) -> dict[str, Any]:
    digest, at, run, name = _head(row, places)
    facts = [(key, value) for key, value in _FACTS[row["kind"]](row) if value not in (None, "", UNKNOWN)]
    facts += [(name.replace("_", " "), row[name]) for name in ("lane", "preset", "linked_by")]
    facts.append(("version", row["schema_version"]))
    tables = [
        {
            "title": title,
            "heads": heads,
            "rows": [list(map(short_text, line)) for line in lines[:_MAX_ROWS]],
            "more": max(0, len(lines) - _MAX_ROWS),
        }
        for title, heads, lines in _TABLES[row["kind"]](row)
        if lines
    ]
    return {
        "kind": row["kind"],
        "noun": NOUNS[row["kind"]],
        "title": short_text(row["title"]),
        "digest": digest,
        "at": at,
        "run": run,
        "name": name,
        "facts": [[key, short_text(str(value))] for key, value in facts if value],
        "tables": tables,
    }


Table = tuple[str, list[str], list[list[str]]]


def _evaluation_facts(row: Row) -> list[tuple[str, Any]]:
    return [
        ("model", row["model"]),
        ("revision", row["revision"]),
        ("step", row["checkpoint_step"]),
        ("evaluated by", row["producer"]),
        ("finished", "yes" if row["complete"] else "no"),
        ("time", or_dash(row["duration_s"], duration)),
    ]


def _evaluation_tables(row: Row) -> list[Table]:
    scores = []
    for score in row["scores"] or ():
        after = or_dash(score["after_step"], lambda step: f"after {step}")
        samples, place = or_dash(score["sample_count"], count), or_dash(score["step"], str, after)
        scores.append([score_name(score), score_text(score), samples, place])
    return [("Scores", ["score", "value", "samples", "step"], scores), _curves(row)]


def _curves(row: Row) -> Table:
    heads = ["metric", "first", "last", "least", "greatest", "median"]
    figures = ("first", "last", "min", "max", "median")
    curves = row["curves"] or ()
    lines = [[figure_label(c["metric"]), *(figure(c["metric"], c[name]) for name in figures)] for c in curves]
    return ("Curves", heads, lines)


def _ablation_facts(row: Row) -> list[tuple[str, Any]]:
    since = "" if row["from_step"] is None else f" from {row['from_step']}"
    return [
        ("study", row["study"].replace("_", " ")), ("variant", row["variant"]), ("against", row["baseline"]),
        ("changes", row["changes"] if row["changes"] != "{}" else None),
        ("model", f"{row['architecture']}, {row['layer_count']} layers"), ("window", f"{row['window_step_count']} steps{since}"),
    ]  # fmt: skip


def _profile_facts(row: Row) -> list[tuple[str, Any]]:
    return [
        ("device", row["device_name"]), ("program", row["application"]), ("session", figure("duration_s", row["duration_s"])),
        ("busy time", figure("busy_s", row["busy_s"])), ("share busy", or_dash(row["busy_ratio"], percent)),
        ("launches", or_dash(row["launch_count"], count)),
        ("time in kernels", figure("total_s", row["kernel_time_s"])), ("records are missing", "yes" if row["lossy"] else None),
    ]  # fmt: skip


def _profile_tables(row: Row) -> list[Table]:
    times = ("total_s", "mean_s", "max_s")
    kernels = [[k["kernel"], count(k["count"]), *(figure(name, k[name]) for name in times)] for k in row["kernels"] or ()]
    stalls = [
        [f"{s['reason']}{' (no instruction issued)' if s['not_issued'] else ''}", count(s["sample_count"]), percent(s["ratio"])]
        for s in row["stalls"] or ()
    ]
    return [
        ("Kernels", ["kernel", "launches", "total", "mean", "longest"], kernels),
        ("Stall reasons", ["reason", "samples", "share"], stalls),
    ]


def _golden_tables(row: Row) -> list[Table]:
    lines = [
        [c["metric"], ", ".join(str(v) for v in (c["lane"], c["device"], c["world_size"]) if v) or "any system", c["rule"],
         number(c["step_count"]), str(c["first_step"]), str(c["last_step"])]
        for c in row["golden_curves"] or ()
    ]  # fmt: skip
    return [("Curves", ["figure", "system", "tolerance", "steps", "from", "to"], lines)]


_FACTS: Mapping[str, Callable[[Row], list[tuple[str, Any]]]] = {
    "evaluation": _evaluation_facts,
    "ablation": _ablation_facts,
    "gpu_profile": _profile_facts,
    "golden": lambda row: [("systems", row["title"]), ("good runs", count(len(row["golden_runs"])))],
}
_TABLES: Mapping[str, Callable[[Row], list[Table]]] = {
    "evaluation": _evaluation_tables,
    "ablation": lambda row: [_curves(row)],
    "gpu_profile": _profile_tables,
    "golden": _golden_tables,
}
