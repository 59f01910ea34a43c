"""Check whether a run reproduces another or resumes it: configuration, seeds, resume point, and the first losses.

``reproduced`` is ``yes`` only if all parts are known to be equal, ``no`` if any part is known to differ, and ``unknown``
otherwise. Values that both runs lack are not equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from receipt_cli.comparison.comparable import Document, FieldDifference, Policy, judge
from receipt_cli.numeric.precision import printed_unit

SCHEMA_VERSION = "reproducibility/1.1"
STEPS = 100
"""Default number of compared step records, from the first."""
METRICS = ("loss", "grad_norm", "learning_rate")
"""Metrics whose values are compared; without the first the answer is unknown."""
_DECIDES = ("/header/flags/", "/header/execution/")
"""Prefixes of fields that decide unless the policy ignores them: they affect numerics."""
_START = "/header/flags/start_step"
_SLACK = 1 + 1e-9
_DISTINCT = 8
"""Least number of distinct values that shows the printed digits; in fewer, trailing zeros may be missing."""

Answer = Literal["yes", "no", "unknown"]
Question = Literal["rerun", "resume"]
"""``rerun``: the second run repeats the first; ``resume``: it continues from one of the first run's steps."""
Points = Sequence[tuple[int, float]]
"""(step, value) of each record in step order, including NaN and infinities."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs: its receipt, and the values of ``METRICS`` by step; None if its log was not read."""

    name: str
    document: Document
    points: Mapping[str, Points] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What one kind of evidence says of two runs: whether it is the ``same`` in both, None if a run lacks it."""

    same: bool | None
    because: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return this part as JSON values."""
        return {"same": self.same, "because": self.because, **self.facts}


def reproducibility(
    a: Side,
    b: Side,
    policy: Policy,
    *,
    steps: int = STEPS,
    tolerance: float | None = None,
    question: Question = "rerun",
) -> dict[str, Any]:
    """Return the document (``reproducibility/1.1``) that answers whether ``b`` reproduces ``a``, or resumes it.

    The first ``steps`` records of each metric are compared as printed, or within a relative ``tolerance``. For a resume,
    only steps that both runs trained are compared, and unknown seeds do not matter: the generators' state comes from the
    checkpoint.
    """
    resumed = question == "resume"
    configuration, notes = _configuration(a.document, b.document, policy)
    point = (_continuation if resumed else _resume)(a.document, b.document)
    parts = {"configuration": configuration, "seeds": _seeds(a.document, b.document), "resume": point}
    curves = [curve for name in METRICS if (curve := _curve(name, a, b, steps, tolerance, resumed=resumed)) is not None]
    if not any(curve["metric"] == METRICS[0] for curve in curves):
        notes.append("no losses to compare: a receipt has no steps, so give the logs, or their series")
        curves = [_missing(METRICS[0]), *curves]
    sames = [part.same for name, part in parts.items() if name != "seeds" or part.same is False or not resumed]
    sames += [curve["same"] for curve in curves]
    answer: Answer = "no" if False in sames else "unknown" if None in sames else "yes"
    return {
        "schema_version": SCHEMA_VERSION,
        "a": a.name,
        "b": b.name,
        "question": question,
        "reproduced": answer,
        "steps": steps,
        "tolerance": tolerance,
        **{name: part.document() for name, part in parts.items()},
        "curves": curves,
        "notes": notes,
    }


def _configuration(a: Document, b: Document, policy: Policy) -> tuple[Part, list[str]]:
    """Return whether two runs have the same configuration, and notes on differences that do not decide."""
    judgement = judge(a, b, policy)
    mine = [f for f in judgement.differences if not f.pointer.startswith("/header/seeds/") and f.pointer != _START]
    deciding = [f for f in mine if f.severity == "block" or (f.severity != "ignore" and f.pointer.startswith(_DECIDES))]
    deciding += [f for f in mine if f.unknown and f not in deciding and policy.severity(f.pointer) == "block"]
    apart, unknown = [f for f in deciding if not f.unknown], [f for f in deciding if f.unknown]
    fields = {"differences": [_field(f) for f in apart], "unknown": [_field(f) for f in unknown]}
    notes = [f"{f.pointer} is unknown on one side" if f.unknown else f"{f.pointer} differs" for f in mine if f not in deciding]
    notes += [reason for reason in judgement.reasons if not reason.startswith("/")]
    notes += [reason for reason in judgement.reasons if reason.endswith("unknown on both sides")]
    if apart:
        return Part(False, f"{_list(f.pointer for f in apart)} differ" + "s" * (len(apart) == 1), fields), notes
    if unknown:
        return Part(None, f"only one run has {_list(f.pointer for f in unknown)}", fields), notes
    return Part(True, "all deciding fields are equal", fields), notes


def _field(difference: FieldDifference) -> dict[str, Any]:
    return {"pointer": difference.pointer, "a": difference.a, "b": difference.b}


def _list(pointers: Iterable[str]) -> str:
    names = list(pointers)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _seeds(a: Document, b: Document) -> Part:
    left, right = (document["header"]["seeds"] or {} for document in (a, b))
    seeds = {"a": dict(left), "b": dict(right)}
    apart = [name for name in left if name in right and left[name] != right[name]]
    if apart:
        return Part(False, f"{apart[0]} is {left[apart[0]]} and {right[apart[0]]}", seeds)
    if not left or not right:
        return Part(None, "no seed is known of " + ("either run" if not left and not right else "a" if not left else "b"), seeds)
    alone = sorted(left.keys() ^ right.keys())
    if alone:
        return Part(None, f"only one run has {_list(alone)}", seeds)
    return Part(True, ", ".join(f"{name} {value}" for name, value in left.items()), seeds)


def _resume(a: Document, b: Document) -> Part:
    """Return whether both runs have the same resume step and the same first printed step."""
    firsts, starts, steps = _beginnings(a, b)
    if None not in starts and starts[0] != starts[1]:
        return Part(False, f"a starts at step {starts[0]}, b at step {starts[1]}", steps)
    if None in firsts:
        return Part(None, "a run prints no step", steps)
    if firsts[0] != firsts[1]:
        return Part(False, f"a begins with step {firsts[0]}, b with step {firsts[1]}", steps)
    return Part(True, f"both begin with step {firsts[0]}", steps)


def _continuation(a: Document, b: Document) -> Part:
    """Return whether ``b`` begins at a step that ``a`` trained, after the first step of ``a``."""
    firsts, starts, steps = _beginnings(a, b)
    begin = starts[1] if starts[1] is not None else firsts[1]
    last = _steps(a).get("last")
    if begin is None or firsts[0] is None or last is None:
        return Part(None, "a run prints no step", steps)
    if begin <= firsts[0]:
        return Part(False, f"a begins with step {firsts[0]}, b with step {begin}, which is not later", steps)
    if begin > last:
        return Part(None, f"b begins with step {begin}, after the last step of a, {last}", steps)
    return Part(True, f"b begins with step {begin}, which a trained", steps)


def _beginnings(a: Document, b: Document) -> tuple[list[int | None], list[int | None], dict[str, Any]]:
    """Return the first printed steps and the resume steps of both runs, and both as JSON values."""
    firsts = [_steps(document).get("first") for document in (a, b)]
    starts = [(document["header"]["flags"] or {}).get("start_step") for document in (a, b)]
    pairs = zip("ab", firsts, starts, strict=True)
    return firsts, starts, {side: {"first_step": first, "start_step": start} for side, first, start in pairs}


def _steps(document: Document) -> Mapping[str, Any]:
    return (document.get("summary") or {}).get("steps") or {}


def _digits(document: Document, name: str) -> Mapping[str, int] | None:
    """Return the number of digits with which a metric was printed; None if the receipt does not have it."""
    metrics = (document.get("summary") or {}).get("metrics") or {}
    digits: Mapping[str, int] | None = (metrics.get(name) or {}).get("printed_digits")
    return digits


def _missing(name: str) -> dict[str, Any]:
    because = "not printed, or not read"
    return {"metric": name, "same": None, "because": because, "compared": 0, "first": None, "last": None, "departs": None}


def _curve(name: str, a: Side, b: Side, steps: int, tolerance: float | None, *, resumed: bool) -> dict[str, Any] | None:
    """Return the comparison of the first records of a metric; None if a run has none.

    With ``resumed``, steps outside the common range of the runs are not compared.
    """
    known = [dict(side.points.get(name, ())) if side.points is not None else {} for side in (a, b)]
    if not known[0] or not known[1]:
        return None
    heads = [sorted(points)[:steps] for points in known]
    if resumed:
        first, last = max(head[0] for head in heads), min(head[-1] for head in heads)
        heads = [[step for step in head if first <= step <= last] for head in heads]
    common = sorted(set(heads[0]) & set(heads[1]))
    digits = [_digits(side.document, name) for side in (a, b)]
    near = _Near(known, common, tolerance, digits)
    departs = next((step for step in common if not near(known[0][step], known[1][step])), None)
    result = _missing(name) | {"same": False, "because": "", "compared": len(common)}
    result |= {"first": common[0], "last": common[-1]} if common else {}
    if departs is not None:
        values = [known[side][departs] for side in (0, 1)]
        shown = [value if math.isfinite(value) else None for value in values]
        result["departs"] = {"step": departs, "a": shown[0], "b": shown[1]}
        result["because"] = f"step {departs}: {values[0]!r} and {values[1]!r}"
        return result
    lacking = min(map(len, heads))
    if not common:
        result |= {"same": None, "because": "the runs print no step in common"}
    elif len(common) < max(map(len, heads)):
        other = f"only {lacking} of the first {steps} records are known" if lacking < steps else "the runs print different steps"
        result |= {"same": None, "because": f"equal at {len(common)} steps, but {other}"}
    else:
        result |= {"same": True, "because": f"equal at {len(common)} steps {near.how}"}
    return result


class _Near:
    """Compares two values: returns whether they are equal as printed, or within a relative tolerance."""

    def __init__(
        self,
        known: Sequence[Mapping[int, float]],
        common: Sequence[int],
        tolerance: float | None,
        digits: Sequence[Mapping[str, int] | None] = (None, None),
    ) -> None:
        values = [{v for step in common if math.isfinite(v := points[step])} for points in known]
        units = [printed_unit(shown, sorted(side)) for shown, side in zip(digits, values, strict=True)]
        coarse = units.index(max(units))
        self._half = units[coarse] / 2 if units[0] != units[1] and len(values[coarse]) >= _DISTINCT else 0.0
        self._tolerance = tolerance or 0.0
        self.how = "as printed" if tolerance is None else f"within {tolerance:g} of their size"

    def __call__(self, a: float, b: float) -> bool:
        if a == b or (math.isnan(a) and math.isnan(b)):
            return True
        if not math.isfinite(a) or not math.isfinite(b):
            return False
        return abs(a - b) <= max(self._half, self._tolerance * max(abs(a), abs(b))) * _SLACK
