"""Extract the detail pages of a report: of a receipt, with statistics, failure, provenance and doubts; of other documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from receipt_cli.comparison.comparable import describe_run
from receipt_cli.history.document_history import document_history
from receipt_cli.render.card import find_doubts
from receipt_cli.render.comparison.words import field_name, field_value
from receipt_cli.render.fields import UNKNOWN, or_dash
from receipt_cli.render.scale import count, duration, figure, percent
from receipt_cli.render.store import NOUNS, cells_of, figure_label, score_name, score_text, series_cells
from receipt_cli.render.style import Style
from receipt_cli.report.packing import Pool, byte_count, number, present, short_text
from receipt_cli.report.row import instant

Document: TypeAlias = Mapping[str, Any]

STATISTICS = ("first", "last", "min", "max", "median")
SOURCES = {"metrics": 0, "derived": 1, "other_metrics": 2}
"""Printed by the trainer, recomputed, and printed outside the registry."""
MAX_METRICS = 60
MAX_FACTS = 150
MAX_TAIL = 50
MAX_FIRST = 8


def run_detail(document: Document) -> dict[str, Any]:
    """Return the known details of a run; ``pack`` prepares them for a page."""
    summary, derivation = document["summary"] or {}, document["derivation"]
    return present(
        {
            "digest": derivation["log"]["sha256"],
            "metrics": list(_metrics(summary)),
            "omitted": max(0, sum(len(summary.get(block) or {}) for block in SOURCES) - MAX_METRICS) or None,
            "jumps": _jumps(summary),
            "saved": (summary.get("checkpoints") or {}).get("last_step"),
            "consistency": [
                [c["metric"], number(c["reported"]), number(c["derived"]), number(c["ratio"]), c["consistent"]]
                for c in summary.get("consistency") or []
            ],
            "steps": _steps(summary),
            "time": number(summary.get("training_time_s")),
            "phases": [_phase(phase["summary"], phase["name"]) for phase in document["phases"]],
            "checks": [[short_text(name), value] for name, value in document["checks"].items()],
            "times": [document["run"]["started_at"], document["run"]["finished_at"], document["header"]["collected_at"]],
            "exit": document["run"]["exit_code"],
            "failure": _failure(document["failure"]),
            "goodput": _goodput(document["goodput"]),
            "header": list(_header(document)),
            "origin": list(_origin(derivation)),
            "lines": [derivation["lines"][key] for key in ("matched", "ignored", "unmatched", "undecodable")],
            "doubts": [short_text(doubt) for doubt in find_doubts(document, Style())],
            "near": _near(derivation["near_misses"]),
            "problems": _problems(derivation["problems"]),
            "attachments": [
                [short_text(a["kind"]), short_text(a["uri"]), a["sha256"], number(a["size_bytes"])]
                for a in document["attachments"]
            ],
            "ranks": len(summary.get("ranks") or {}) or None,
        }
    )


def pack(detail: Mapping[str, Any], pool: Pool) -> dict[str, Any]:
    """Return ``detail`` with shared texts replaced by their numbers in ``pool``."""
    metrics = [[pool.text(row[0]), row[1], *map(pool.text, row[2:5]), *row[5:]] for row in detail.get("metrics", ())]
    facts = {key: [pool.fact(*fact) for fact in detail[key]] for key in ("header", "origin") if key in detail}
    return {**detail, **facts, "metrics": metrics}


def _metrics(summary: Document) -> Iterator[list[Any]]:
    """Yield ``[name, source, window, scope, definition, records, nonfinite, first, last, min, max, median]``."""
    entries = ((name, source, entry) for block, source in SOURCES.items() for name, entry in (summary.get(block) or {}).items())
    for (name, source, entry), _ in zip(entries, range(MAX_METRICS), strict=False):
        texts = [entry[key] for key in ("window", "scope", "definition")]
        counts = [entry["record_count"], entry["nonfinite_count"]]
        yield [name, source, *texts, *counts, *(number(entry[key]) for key in STATISTICS)]


def _steps(summary: Document) -> list[Any] | None:
    """Return first, last, planned, records, restarts, superseded, steady, warm-up and implausible records."""
    if not summary:
        return None
    steps, steady = summary["steps"], summary["steady_state"]
    keys = ("first", "last", "planned", "record_count", "restart_count", "superseded_count")
    return [steps[key] for key in keys] + [steady[key] for key in ("record_count", "excluded_warmup", "excluded_implausible")]


def _jumps(summary: Document) -> dict[str, list[Any]]:
    found = ((summary.get("spikes") or {}).get("metrics") or {}).items()
    return {name: [m["count"], [[j["step"], number(j["value"])] for j in m["first"]]] for name, m in found if m["count"]}


def _phase(summary: Document, name: str | None) -> list[Any]:
    metrics = summary["metrics"]
    figures = [number((metrics.get(metric) or {}).get(key)) for metric, key in (("loss", "last"), ("tokens_per_s", "median"))]
    return [short_text(name or ""), *(summary["steps"][key] for key in ("record_count", "first", "last")), *figures]


def _failure(failure: Document | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return present(
        {
            "line": failure["line_number"],
            "message": short_text(failure["message"] or "") or None,
            "tail": [short_text(line) for line in failure["log_tail"][-MAX_TAIL:]],
        }
    )


def _goodput(goodput: Document | None) -> dict[str, Any] | None:
    if goodput is None:
        return None
    lost = {key: number(value) for key, value in goodput["badput_s"].items() if value}
    times = {"wall": number(goodput["wall_time_s"]), "step": number(goodput["step_time_s"]), "lost": lost}
    inferred = [key for key, part in (goodput.get("parts") or {}).items() if part and part.get("how") == "inferred"]
    return {**times, "inferred": inferred, "evidence": goodput["evidence"]}


def _header(document: Document) -> Iterator[tuple[object, ...]]:
    """Yield (field, value, source) of each known header field of the run."""
    sources = document["header"]["sources"] or {}
    known = ((pointer, value) for pointer, value in describe_run(document).items() if value is not None)
    for (pointer, value), _ in zip(known, range(MAX_FACTS), strict=False):
        if pointer.startswith("/header/"):
            yield (field_name(pointer), field_value(value), _source(sources, pointer.removeprefix("/header")))


def _source(sources: Mapping[str, str], pointer: str) -> str | None:
    while pointer:
        if pointer in sources:
            return sources[pointer]
        pointer = pointer.rpartition("/")[0]
    return None


def _origin(derivation: Document) -> Iterator[tuple[object, ...]]:
    """Yield (name, value, digest) of each input and definition from which the receipt was derived."""
    for grammar in derivation["grammars"]:
        name = f"{grammar['id']}@v{grammar['version']}"
        yield ("grammar", f"{name}, chosen by {grammar['chosen_by'].replace('_', ' ')}", grammar["sha256"])
    for key in ("markers", "registry"):
        yield (key, f"v{derivation[key]['version']}", derivation[key]["sha256"])
    log = derivation["log"]
    yield ("rules", derivation["rules"], None)
    yield ("log size", f"{log['size_bytes']} bytes, {log['line_count']} lines", None)
    for file in (log.get("files") or [])[:MAX_FIRST]:
        yield ("log file", file["name"], file["sha256"])
    launches = derivation.get("launches")
    if launches:
        yield ("run of the log", f"{launches['used']} of {launches['count']}", None)
    for key, value in derivation["options"].items():
        if value is not None:
            yield (f"option {key}".replace("_", " "), value, None)
    yield ("written by", f"receipt {derivation['tool_version']}", None)


def _near(near: Document) -> list[Any]:
    if not near["count"]:
        return []
    first = [[f"{m['grammar']} {m['rule']}", m["line_number"], short_text(m["excerpt"])] for m in near["first"][:MAX_FIRST]]
    return [near["count"], first]


def _problems(problems: Document) -> list[Any]:
    if not problems["count"]:
        return []
    first = [
        [p["kind"], p["line_number"], short_text(p["detail"]), short_text(p["excerpt"] or "")]
        for p in problems["first"][:MAX_FIRST]
    ]
    return [problems["count"], first]


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
         count(c["step_count"]), str(c["first_step"]), str(c["last_step"])]
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
