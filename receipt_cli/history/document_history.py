"""The course of what documents besides receipts say: scores, figures of GPU profiles and of ablations, by lane.

Documents of one lane are one group; those without a lane are one if they belong to one run. A score is held against the one
before it, within the combined standard error; other figures are shown and not judged: one value has no spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from receipt_cli.comparison.kinds.evaluations import judge_difference
from receipt_cli.documents.invariants.evaluation import SCORE_KEY

Row = Mapping[str, Any]
_PROFILE = ("busy_ratio", "busy_s", "kernel_time_s")


class _Point(NamedTuple):
    """One value of a document, with its training step and line; ``stderr`` and ``better`` of a score."""

    row: Row
    value: float
    step: int | None = None
    line: int = 0
    stderr: float | None = None
    better: bool | None = None

    @property
    def at(self) -> str | None:
        """When the run was."""
        at: str | None = self.row["run_at"]
        return at


def document_history(rows: Sequence[Row], lane: str | None = None) -> dict[str, Any]:
    """Return the ``groups`` of documents, each with its series; ``alone_count`` documents are in none.

    ``rows`` are those of a store's documents. Those of excluded runs, of golden curves, and unreadable ones are left out;
    with ``lane`` only those of that lane count.
    """
    groups: dict[tuple[str, str | None, str | None], list[Row]] = {}
    alone = 0
    for row in rows:
        if row["refusal"] is not None or row["excluded"] or row["kind"] == "golden" or (lane is not None and row["lane"] != lane):
            continue
        if row["lane"] is None and row["run_id"] is None:
            alone += 1
        else:
            groups.setdefault((row["kind"], row["lane"], None if row["lane"] is not None else row["run_id"]), []).append(row)
    found = [
        _group(kind, own, members)
        for (kind, own, _), members in sorted(groups.items(), key=lambda item: tuple(map(str, item[0])))
    ]
    return {"groups": found, "alone_count": alone}


def documents_worsened(history: Mapping[str, Any]) -> bool:
    """Return whether the last score of any task is worse than the one before it."""
    return any(series["outcome"] == "worse" for group in history["groups"] for series in group["series"])


def _group(kind: str, lane: str | None, rows: Sequence[Row]) -> dict[str, Any]:
    series: dict[tuple[Any, ...], list[_Point]] = {}
    for row in rows:
        for key, point in _OF_KIND[kind](row):
            series.setdefault(key, []).append(point)
    return {
        "kind": kind,
        "lane": lane,
        "run_name": rows[0]["run_name"] if lane is None else None,
        "run_id": rows[0]["run_id"] if lane is None else None,
        "document_count": len(rows),
        "series": [_series(kind, key, points) for key, points in series.items()],
    }


def _series(kind: str, key: tuple[Any, ...], points: Sequence[_Point]) -> dict[str, Any]:
    """Return one figure over its documents in their order: by time, then by step, then by line of the log.

    If some have a time, those without one are counted and left out. If none has, they have an order if their steps differ, or
    in one document; else nothing is judged.
    """
    undated = [point for point in points if point.at is None]
    if len(undated) < len(points):
        points = [point for point in points if point.at is not None]
    points = sorted(points, key=lambda p: (p.at or "", -1 if p.step is None else p.step, p.line, p.row["sha256"]))
    steps, files = [point.step for point in points], {point.row["sha256"] for point in points}
    ordered = points[0].at is not None or len(files) == 1 or (None not in steps and len(set(steps)) == len(steps))
    judged: dict[str, Any] = {}
    if len(points) > 1 and ordered and kind == "evaluation":
        before, last = points[-2:]
        judged = judge_difference((before.value, last.value), (before.stderr, last.stderr), (before.better, last.better))
    return {
        "of": dict(zip(_NAMES[kind], key, strict=True)),
        "ordered": ordered,
        "undated_count": len(undated) if points[0].at is not None else 0,
        "values": [point.value for point in points],
        "stderrs": [point.stderr for point in points],
        "steps": steps,
        "times": [point.at for point in points],
        "documents": [point.row["sha256"] for point in points],
        "difference": judged.get("difference"),
        "outcome": judged.get("outcome"),
    }


def _scores(row: Row) -> Iterator[tuple[tuple[Any, ...], _Point]]:
    for score in row["scores"] or ():
        if score["value"] is not None:
            step = score["step"] if score["step"] is not None else score["after_step"]
            key = tuple(score[name] for name in SCORE_KEY)
            line, better = score["line_number"] or 0, score["higher_is_better"]
            yield key, _Point(row, score["value"], step, line, score["stderr"], better)
    for curve in row["curves"] or ():
        if curve["last"] is not None:
            key = (row["title"], None, None, curve["metric"], None, None)
            yield key, _Point(row, curve["last"])


def _profile(row: Row) -> Iterator[tuple[tuple[Any, ...], _Point]]:
    for name in _PROFILE:
        if row[name] is not None:
            yield (row["label"], name), _Point(row, row[name])


def _ablation(row: Row) -> Iterator[tuple[tuple[Any, ...], _Point]]:
    for curve in row["curves"] or ():
        if curve["median"] is not None:
            yield (row["study"], row["variant"], curve["metric"]), _Point(row, curve["median"])


_OF_KIND = {"evaluation": _scores, "gpu_profile": _profile, "ablation": _ablation}
_NAMES = {"evaluation": SCORE_KEY, "gpu_profile": ("label", "figure"), "ablation": ("study", "variant", "metric")}
"""Kind → what identifies one of its series."""
