"""Compare two ablations: the same study of the same model at the same steps and layers; which cells differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from receipt_cli.comparison.kinds.contrast import Cells, Document, Reasons, pairs, places

_FIGURES = ("first", "last", "min", "max", "mean", "median")


def compare_ablations(a: Document, b: Document) -> dict[str, Any]:
    """Return the comparison of two ablations: ``curves`` of the model and of its layers, by metric.

    Not comparable are studies of different kinds, other architectures or numbers of layers, and ablations without a common
    step. Cells are compared at common steps, exactly.
    """
    reasons = Reasons()
    reasons.equal("the study", a["ablation"]["kind"], b["ablation"]["kind"], blocks=True)
    for what, name in (("the architecture", "architecture"), ("the number of layers", "layer_count")):
        reasons.equal(what, a["model"][name], b["model"][name], blocks=True)
    mine, theirs = places(a["steps"]), places(b["steps"])
    common = sorted(mine.keys() & theirs.keys())
    if not common:
        reasons.blocking.append("there is no common step")
    elif len(common) < max(len(mine), len(theirs)):
        reasons.weak.append(f"only {len(common)} of {len(mine)} and {len(theirs)} steps are in both")
    if a["window"]["from_step"] != b["window"]["from_step"]:
        ends = [side["window"]["from_step"] for side in (a, b)]
        begins = ["the first step" if step is None else f"step {step}" for step in ends]
        reasons.weak.append(f"the windows begin at {begins[0]} and at {begins[1]}")
    stated = {**a["ablation"]["changes"], **b["ablation"]["changes"]}
    configs = [side["model"]["config"] for side in (a, b)]
    others = [k for k in dict.fromkeys([*configs[0], *configs[1]]) if k not in stated and configs[0].get(k) != configs[1].get(k)]
    if others:
        reasons.weak.append(f"the configurations differ in {', '.join(others[:6])}, which no change states")
    same = [study["baseline"] or study["variant"] for study in (a["ablation"], b["ablation"])]
    if same[0] != same[1]:
        reasons.weak.append(f"they are stated against different baselines: {same[0]} and {same[1]}")
    comparable = reasons.verdict != "not_comparable"
    return {
        **reasons.document(),
        "changes": [dict(side["ablation"]["changes"]) for side in (a, b)],
        "common_step_count": len(common),
        "curves": _curves(a, b, common) if comparable else [],
        "unmatched": _unmatched(a, b) if comparable else [],
    }


def _curves(a: Document, b: Document, common: Sequence[int]) -> list[dict[str, Any]]:
    """Return each metric of both, of the model and of its layers."""
    mine, theirs = places(a["steps"]), places(b["steps"])
    found: list[dict[str, Any]] = []
    for metric in (name for name in a["curves"] if name in b["curves"]):
        cells = Cells()
        for step in common:
            cells.add(a["curves"][metric][mine[step]], b["curves"][metric][theirs[step]], step=step)
        sides = [side["summary"]["curves"].get(metric, {}) for side in (a, b)]
        found.append({"metric": metric, "of": "model", **cells.document(), "window": pairs(_FIGURES, *sides)})
    for metric in (name for name in a["layer_curves"] if name in b["layer_curves"]):
        cells, layers = Cells(), [side["layer_curves"][metric] for side in (a, b)]
        for layer in (key for key in layers[0] if key in layers[1]):
            for step in common:
                cells.add(layers[0][layer][mine[step]], layers[1][layer][theirs[step]], step=step, layer=int(layer))
        extremes = [side["summary"]["layer_curves"].get(metric, {}) for side in (a, b)]
        found.append({"metric": metric, "of": "layers", **cells.document(), "window": pairs(("min", "max"), *extremes)})
    return found


def _unmatched(a: Document, b: Document) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "of": of, "side": side}
        for part, of in (("curves", "model"), ("layer_curves", "layers"))
        for side, mine, other in (("a", a, b), ("b", b, a))
        for metric in mine[part]
        if metric not in other[part]
    ]
