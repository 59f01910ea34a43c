"""Signs in receipts that a log format has drifted: each kind of sign, and the runs that show it.

A metric that the runs of a lane no longer print shows in no single log, only in the series of runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from receipt_cli.render.fields import or_dash
from receipt_cli.render.scale import measure
from receipt_cli.report.packing import Pool, short_text

Document: TypeAlias = Mapping[str, Any]

GENERIC = "generic"
MOSTLY_UNREAD = 0.5
"""Share of unmatched records above which a log counts as mostly unread, even with steps; a judgement."""
_LEAST_RECORDS = 40
MAX_ALARMS = 60
RECENT = 20
BEFORE = 10
"""Runs examined before a metric disappears; most of them must have it."""
LEAST_BEFORE = 4
LEAST_SINCE = 3
"""Fewest runs without the metric: fewer may have died before they printed it."""
_USUAL = 0.8


class Sign(NamedTuple):
    """A sign, in one run, that a trainer prints other lines than its grammar knows: kind, subject, count and an example."""

    kind: str
    about: str
    seen: int
    example: str


def signs(document: Document) -> Iterator[Sign]:
    """Yield the signs of drift in a receipt."""
    derivation = document["derivation"]
    grammar = ", ".join(f"{g['id']}@v{g['version']}" for g in derivation["grammars"]) or "no grammar"
    if not derivation["grammars"]:
        yield Sign("unrecognised", "no grammar recognises the log", 1, _first_problem(document, ""))
    near = derivation["near_misses"]
    if near["count"]:
        first = near["first"][0] if near["first"] else None
        name = f"{first['grammar']} {first['rule']}" if first else grammar
        yield Sign("near_miss", f"lines that nearly match {name}", near["count"], first["excerpt"] if first else "")
    if any(g["id"] == GENERIC for g in derivation["grammars"]):
        about = "unknown trainer, read by its labels"
        yield Sign("generic", about, 1, _first_problem(document, "generic_reading"))
    kinds: dict[str, list[Any]] = {}
    told = ("generic_reading",) if derivation["grammars"] else ("generic_reading", "no_step_recognised")
    for problem in derivation["problems"]["first"]:
        if problem["kind"] not in told:
            kinds.setdefault(problem["kind"], []).append(problem)
    for kind, problems in kinds.items():
        example = problems[0]["excerpt"] or problems[0]["detail"]
        yield Sign("problem", f"{kind.replace('_', ' ')} in {grammar}", len(problems), example)
    lines = derivation["lines"]
    total = sum(lines[key] or 0 for key in ("matched", "ignored", "unmatched"))
    if derivation["grammars"] and total >= _LEAST_RECORDS and lines["unmatched"] > MOSTLY_UNREAD * total:
        share = f"{lines['unmatched']} of {total} records match no rule"
        yield Sign("unread", f"most of the log is unread by {grammar}", lines["unmatched"], share)
    for entry in (document["summary"] or {}).get("consistency") or []:
        if entry["consistent"] is False:
            values = (entry["reported"], entry["derived"])
            printed, recomputed = (or_dash(value, partial(measure, entry["metric"]), "nothing") for value in values)
            contradiction = f"printed {printed}, batch size and step time give {recomputed}"
            yield Sign("inconsistent", f"{entry['metric']} printed by {grammar}", 1, contradiction)


def _first_problem(document: Document, kind: str) -> str:
    problems = [p for p in document["derivation"]["problems"]["first"] if not kind or p["kind"] == kind]
    return problems[0]["detail"] if problems else ""


def alarms(runs: Sequence[Sequence[Sign]], pool: Pool) -> list[dict[str, Any]]:
    """Return every sign with its runs, ordered by the number of recent runs.

    ``runs`` are in order of time. ``recent`` counts the runs with the sign among the last ``RECENT``.
    """
    alarms_by_sign: dict[tuple[str, str], dict[str, Any]] = {}
    for place, seen in enumerate(runs):
        for sign in seen:
            alarm = alarms_by_sign.setdefault((sign.kind, sign.about), {"runs": [], "count": 0, "example": ""})
            if not alarm["runs"] or alarm["runs"][-1] != place:
                alarm["runs"].append(place)
            alarm["count"] += sign.seen
            alarm["example"] = sign.example or alarm["example"]  # the newest
    start = len(runs) - RECENT
    alarms = [
        {
            "kind": kind,
            "about": pool.text(about),
            "runs": alarm["runs"],
            "count": alarm["count"],
            "recent": sum(place >= start for place in alarm["runs"]),
            "example": pool.text(short_text(alarm["example"])),
        }
        for (kind, about), alarm in alarms_by_sign.items()
    ]
    alarms.sort(key=lambda a: (-a["recent"], -len(a["runs"]), a["kind"], a["about"]))
    return alarms[:MAX_ALARMS]


def vanished(documents: Sequence[Document]) -> list[list[Sign]]:
    """Return for each receipt the metrics that runs of its lane and preset no longer print by then.

    ``documents`` are in order of time. Runs without a step, and runs without lane and preset, do not count.
    """
    signs_of: list[list[Sign]] = [[] for _ in documents]
    lanes: dict[tuple[str | None, str | None], list[int]] = {}
    for place, document in enumerate(documents):
        key = document["run"]["lane"], document["run"]["preset"]
        if any(key) and _has_steps(document):
            lanes.setdefault(key, []).append(place)
    for (lane, preset), places in lanes.items():
        printed = [frozenset(documents[place]["summary"]["metrics"]) for place in places]
        title = " · ".join(name for name in (lane, preset) if name)
        for metric in sorted(frozenset().union(*printed)):
            last = max(i for i, names in enumerate(printed) if metric in names)
            before = [metric in names for names in printed[max(0, last + 1 - BEFORE) : last + 1]]
            since = places[last + 1 :]
            if len(since) >= LEAST_SINCE and len(before) >= LEAST_BEFORE and sum(before) >= _USUAL * len(before):
                run = documents[places[last]]
                name = run["run"]["name"] or run["derivation"]["log"]["sha256"][:12]
                sign = Sign("vanished", f"{metric} is no longer printed in {title}", 1, f"last in {name}")
                for place in since:
                    signs_of[place].append(sign)
    return signs_of


def _has_steps(document: Document) -> bool:
    return bool(document["summary"]) and document["summary"]["steps"]["record_count"] != 0
