"""Compare the run of a CI job with its baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from receipt_cli.comparison.comparable import Policy, Verdict, judge
from receipt_cli.comparison.contrasts import Contrast, Run, comparison_document, contrast
from receipt_cli.definitions.metrics import Registry


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baseline runs and their comparison with a job's run; the verdict is the worst over all of them."""

    names: tuple[str, ...]
    contrast: Contrast
    verdict: Verdict
    reasons: tuple[str, ...]

    def metric(self, name: str) -> Mapping[str, Any] | None:
        """Return the comparison of one metric, or None if a run lacks it."""
        return next((m for m in self.contrast.document["metrics"] if m["name"] == name), None)

    def document(self) -> dict[str, Any]:
        """Return the comparison document (``comparison/1.4``)."""
        contrast = {**self.contrast.document, "verdict": self.verdict, "reasons": list(self.reasons)}
        return comparison_document(self.names, [contrast])


def hold_against(run: Run, baselines: Sequence[Run], policy: Policy, registry: Registry) -> Baseline:
    """Compare ``run`` with ``baselines``, pooled as repeats of each other."""
    comparison = contrast(baselines, [run], policy, registry)
    judgements = [comparison.judgement, *(judge(other.document, run.document, policy) for other in baselines[1:])]
    worst: Verdict = next((v for v in _WORST_FIRST if any(judgement.verdict == v for judgement in judgements)), "comparable")
    reasons = dict.fromkeys(reason for judgement in judgements for reason in judgement.reasons)
    return Baseline(tuple(other.name for other in baselines), comparison, worst, tuple(reasons))


_WORST_FIRST: tuple[Verdict, ...] = ("not_comparable", "caveats")
