"""Extract the detail page of a receipt: statistics, failure, provenance, doubts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from receipt_cli.comparison.comparable import describe_run
from receipt_cli.render.card import find_doubts
from receipt_cli.render.comparison.words import field_name, field_value
from receipt_cli.render.style import Style
from receipt_cli.report.packing import Pool, number, present, short_text

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
