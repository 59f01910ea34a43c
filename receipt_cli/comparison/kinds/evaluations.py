"""Compare two evaluations: scores of the same task, metric, filter and shots, each difference against the combined error.

The combined standard error is the root of the sum of squares. A difference within ``FAR`` of it is noise; without both errors
it is stated and not judged. Evaluations of the same samples are less independent than that, so the rule calls too few
differences real rather than too many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from receipt_cli.comparison.kinds.contrast import Document, Reasons, pairs
from receipt_cli.documents.invariants.evaluation import SCORE_KEY

FAR = 1.96
"""Combined standard errors beyond which a difference is no noise: 95 % of equal models are within."""
_KEY = tuple(name for name in SCORE_KEY if name != "shots")
_TOTALS = ("step_count", "duration_s", "commits_per_s", "tokens_per_s")
Score = Mapping[str, Any]
Key = tuple[Any, ...]


def compare_evaluations(a: Document, b: Document) -> dict[str, Any]:
    """Return the comparison of two evaluations: their ``scores`` side by side, ``unmatched`` ones, and recorded ``figures``.

    Of several scores of one key, as a log has them, the last one counts. Not comparable are evaluations without a common
    score or figure.
    """
    reasons = Reasons()
    scores, unmatched = _matched(a, b, reasons)
    figures = _figures(a, b)
    if not scores and not figures:
        reasons.blocking.append("they have no score of the same task, metric, filter and shots")
    for name, side in (("the first", a), ("the second", b)):
        if not side["complete"]:
            reasons.weak.append(f"{name} was not finished")
    samples = [s for s in scores if None not in (s["a_samples"], s["b_samples"]) and s["a_samples"] != s["b_samples"]]
    if samples:
        reasons.weak.append(f"{len(samples)} of {len(scores)} scores are of another number of samples")
    return {**reasons.document(), "far": FAR, "scores": scores, "unmatched": unmatched, "figures": figures}


def _matched(a: Document, b: Document, reasons: Reasons) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the scores that both have, and those without a counterpart with the reason."""
    mine, theirs = _last(a), _last(b)
    scores: list[dict[str, Any]] = []
    unmatched: list[dict[str, Any]] = []
    unknown = 0
    for key in dict.fromkeys([*mine, *theirs]):
        left, right = mine.get(key, {}), theirs.get(key, {})
        both = [shots for shots in left if shots in right]
        if not both and len(left) == len(right) == 1 and None in (*left, *right):
            unknown += 1
            taken = [(next(iter(left.values())), next(iter(right.values())))]
            rest: list[tuple[str, Score]] = []
        else:
            taken = [(left[shots], right[shots]) for shots in both]
            rest = [
                (side, s)
                for side, held, other in (("a", left, right), ("b", right, left))
                for n, s in held.items()
                if n not in other
            ]
        for first, second in taken:
            versions = (first["task_version"], second["task_version"])
            if None not in versions and versions[0] != versions[1]:
                why = f"versions of the task: {versions[0]} and {versions[1]}"
                unmatched += [_named(score) | {"side": side, "why": why} for side, score in (("a", first), ("b", second))]
            else:
                scores.append(_beside(first, second))
        for side, score in rest:
            other = right if side == "a" else left
            why = f"shots of the other: {', '.join('unknown' if n is None else str(n) for n in other)}" if other else "only here"
            unmatched.append(_named(score) | {"side": side, "why": why})
    if unknown:
        reasons.weak.append(f"the shots of {unknown} {'score is' if unknown == 1 else 'scores are'} unknown on one side")
    return scores, unmatched


def _last(document: Document) -> dict[Key, dict[int | None, Score]]:
    """Return key → shots → the last score."""
    found: dict[Key, dict[int | None, Score]] = {}
    step = (document.get("model") or {}).get("step")
    order = ("step", "after_step", "line_number")
    for score in sorted(document.get("scores", ()), key=lambda one: [-1 if one[name] is None else one[name] for name in order]):
        own = score if score["step"] is not None else {**score, "step": step}
        found.setdefault(tuple(score[name] for name in _KEY), {})[score["shots"]] = own
    return found


def _named(score: Score) -> dict[str, Any]:
    return {name: score[name] for name in SCORE_KEY}


def _beside(a: Score, b: Score) -> dict[str, Any]:
    """Return two scores of one key with their difference and how it is judged."""
    judged = judge_difference(*((a[name], b[name]) for name in ("value", "stderr", "higher_is_better")))
    return {
        **_named(a),
        "shots": a["shots"] if a["shots"] is not None else b["shots"],
        "a": a["value"],
        "b": b["value"],
        "a_stderr": a["stderr"],
        "b_stderr": b["stderr"],
        **judged,
        "a_step": _step(a),
        "b_step": _step(b),
        "a_samples": a["sample_count"],
        "b_samples": b["sample_count"],
    }


Pair = tuple[float | None, float | None]


def judge_difference(values: Pair, errors: Pair, better: Pair) -> dict[str, Any]:
    """Return the difference of two values, its error, whether ``higher_is_better`` as far as both say it, and the outcome.

    The outcome is ``equal``, ``noise``, ``better``, ``worse``, ``different`` (no direction is known) or ``not_judged``.
    """
    difference = values[1] - values[0] if values[0] is not None and values[1] is not None else None
    combined = math.hypot(errors[0], errors[1]) if errors[0] is not None and errors[1] is not None else None
    directions = {direction for direction in better if direction is not None}
    direction = directions.pop() if len(directions) == 1 else None
    outcome = "not_judged"
    if difference == 0:
        outcome = "equal"
    elif difference is not None and combined is not None:
        told = "different" if direction is None else "better" if (difference > 0) == direction else "worse"
        outcome = "noise" if abs(difference) <= FAR * combined else told
    return {"difference": difference, "combined_stderr": combined, "higher_is_better": direction, "outcome": outcome}


def _step(score: Score) -> int | None:
    step: int | None = score["step"] if score["step"] is not None else score["after_step"]
    return step


def _figures(a: Document, b: Document) -> list[dict[str, Any]]:
    """Return what a performance tracker recorded in both: totals, and the last value of each metric."""
    if a["summary"] is None or b["summary"] is None:
        return []
    sides = [dict(_recorded(side)) for side in (a, b)]
    return [figure for figure in pairs(dict.fromkeys([*sides[0], *sides[1]]), *sides) if None not in (figure["a"], figure["b"])]


def _recorded(document: Document) -> Iterator[tuple[str, float | None]]:
    summary = document["summary"]
    yield from ((name, summary[name]) for name in _TOTALS)
    yield from ((name, figures["last"]) for name, figures in summary["metrics"].items())
