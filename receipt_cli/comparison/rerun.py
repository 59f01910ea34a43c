"""Decide whether a run is another one again, or continues it: from what both logs print, step by step.

The verdict is one of ``VERDICTS``. It never says more than both logs show: where no position in the data is printed, it does
not name the data; where one log prints fewer digits, the runs are the same within them, not identical.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from receipt_cli.comparison.comparable import Document, FieldDifference, Policy, judge, listed
from receipt_cli.comparison.streams import Stream, Streams
from receipt_cli.numeric.array_types import Floats, Mask

SCHEMA_VERSION = "reproducibility/2.0"
SameRun = Literal[
    "identical", "same_within_printed_precision", "same_within_tolerance", "same_data_other_numbers", "other_data",
    "other_numbers_data_not_printed", "not_comparable",
]  # fmt: skip
VERDICTS: tuple[SameRun, ...] = get_args(SameRun)
SAME = VERDICTS[:3]
"""Verdicts of runs that print the same."""
_START = "/header/flags/start_step"
_PARAMETERS = "/header/model/parameter_digest"
_DATA = "/header/data/"
_BATCH = "/header/flags/global_batch_size"
_ELASTIC = (
    "/header/parallelism/", "/header/hardware/accelerators", "/header/flags/micro_batch_size",
    "/header/flags/gradient_accumulation_steps", _BATCH, "/header/flags/tokens_per_step",
)  # fmt: skip
"""Prefixes of fields in which a run may differ from the one that it continues: it has other devices, but the same work."""
_SLACK = 1 + 1e-9
_SEAM = 8
"""Records on each side of a seam whose losses are compared if no step is in both logs."""
_JUMP = 6.0
"""Least jump of the loss at a seam, in standard deviations of a record."""
_AXES = (("samples", ("samples_total",)), ("tokens", ("tokens_total",)))

Question = Literal["rerun", "resume"]
"""``rerun``: the second run repeats the first; ``resume``: it continues from one of the first run's steps."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs: its receipt, and what it prints step by step; None if its log was not read."""

    name: str
    document: Document
    streams: Streams | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What one kind of evidence says of two runs: whether it is the ``same`` in both, None if a run lacks it."""

    same: bool | None
    because: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return this part as JSON values."""
        return {"same": self.same, "because": self.because, **self.facts}


@dataclass(frozen=True, slots=True)
class Compared:
    """Two streams at their common steps. ``exact``: both have the same values, printed alike."""

    stream: Stream
    same: bool | None
    exact: bool
    facts: Mapping[str, Any]

    @property
    def because(self) -> str:
        """The result in one line."""
        facts = self.facts
        if not facts["compared"]:
            return "the runs print no step in common"
        if (at := facts["departs"]) is not None:
            lines = f" (lines {at['a_line']} and {at['b_line']})" if None not in (at["a_line"], at["b_line"]) else ""
            return f"{'record' if self.stream.by_order else 'step'} {at['step']}: {at['a_text']} and {at['b_text']}{lines}"
        how = "" if self.exact else " " + facts["how"]
        kind = "record" if self.stream.by_order else "step"
        return f"equal at {facts['compared']} {kind}{'s' * (facts['compared'] > 1)}{how}"

    def document(self) -> dict[str, Any]:
        """Return this comparison as JSON values."""
        facts = {name: value for name, value in self.facts.items() if name != "how"}
        return {"metric": self.stream.name, "role": self.stream.role, "same": self.same, "because": self.because, **facts}


def reproducibility(
    a: Side,
    b: Side,
    policy: Policy,
    *,
    steps: int | None = None,
    tolerance: float | None = None,
    question: Question = "rerun",
) -> dict[str, Any]:
    """Return the document (``reproducibility/2.0``) that says whether ``b`` is the run ``a`` again, or continues it.

    All steps that both print are compared, or the first ``steps`` records of each; values as printed, or within a relative
    ``tolerance``. A run that continues on other devices is compared at equal samples or tokens, if its batch differs.
    """
    resumed = question == "resume"
    configuration, notes = _configuration(a.document, b.document, policy, resumed=resumed)
    seeds, parameters = _seeds(a.document, b.document), _parameters(a.document, b.document)
    point = (_continuation if resumed else _resume)(a.document, b.document)
    axis, sides = _aligned(a, b, resumed=resumed)
    curves = _curves(sides, steps, tolerance, resumed=resumed)
    seam = _seam(a, b) if resumed and not any(curve.facts["compared"] for curve in curves) else None
    data = _data(a.document, b.document, curves, seam, _start(a, b) if axis != "step" else None)
    told = _Told(configuration, seeds, parameters, point, data, curves, seam)
    verdict, because = told.verdict()
    return {
        "schema_version": SCHEMA_VERSION,
        "a": a.name,
        "b": b.name,
        "question": question,
        "verdict": verdict,
        "because": because,
        "steps": steps,
        "tolerance": tolerance,
        "aligned_by": axis,
        "configuration": configuration.document(),
        "seeds": seeds.document(),
        "parameters": parameters.document(),
        "resume": point.document(),
        "data": data.document(),
        "curves": [curve.document() for curve in curves],
        "notes": [*notes, *told.notes()],
    }


@dataclass(frozen=True, slots=True)
class _Told:
    """All parts of an answer, and the verdict that follows from them."""

    configuration: Part
    seeds: Part
    parameters: Part
    point: Part
    data: Part
    curves: Sequence[Compared]
    seam: Part | None

    def verdict(self) -> tuple[SameRun, str]:
        """Return the verdict and its reason."""
        numbers = [curve for curve in self.curves if curve.stream.role == "numbers" and curve.facts["compared"]]
        deciding = [curve for curve in numbers if curve.stream.decides]
        if self.configuration.same is False:
            return "not_comparable", self.configuration.because
        if self.point.same is False:
            return "not_comparable", self.point.because
        if self.data.same is False:
            return "other_data", self.data.because
        if not deciding and self.seam is None:
            printed = any(curve.stream.decides for curve in self.curves)
            return "not_comparable", "the runs print no step in common" if printed else "no losses of both runs are known"
        apart = [("seeds", part.because) for part in (self.seeds, self.parameters) if part.same is False]
        leaving = sorted((curve for curve in numbers if curve.same is False), key=lambda curve: curve.facts["departs"]["step"])
        apart += [(curve.stream.name, curve.because) for curve in leaving]
        if self.seam is not None:
            if self.seam.same is None:
                return "not_comparable", self.seam.because
            apart += [("loss", self.seam.because)] if self.seam.same is False else []
            same: SameRun = "same_within_printed_precision"
            because = self.seam.because
        else:
            count = max(curve.facts["compared"] for curve in deciding)
            because = f"all that both print is equal at {count} steps"
            hows = {curve.facts["how"] for curve in self.curves if curve.facts["compared"] and not curve.exact}
            same = "identical" if not hows else VERDICTS[1] if hows == {PRINTED} else VERDICTS[2]
            because += "".join(f", {how}" for how in sorted(hows)[-1:])
        if not apart:
            return same, because
        because = f"{apart[0][0].replace('_', ' ')}: {apart[0][1]}" if apart[0][0] != "seeds" else apart[0][1]
        return ("same_data_other_numbers" if self.data.same else "other_numbers_data_not_printed"), because

    def notes(self) -> list[str]:
        """Return remarks on the comparison that do not change its verdict: steps that only one log has."""
        found: list[str] = []
        for curve in self.curves:
            alone = curve.facts["only_in_a"] + curve.facts["only_in_b"]
            if alone and curve.stream.decides and curve.facts["compared"]:
                found.append(f"{curve.stream.name}: {alone} steps are in one log only, between the first and last of both")
        return found


PRINTED = "as far as the fewer digits show"


def _configuration(a: Document, b: Document, policy: Policy, *, resumed: bool) -> tuple[Part, list[str]]:
    """Return whether two runs have the same configuration, and notes on differences that do not decide."""
    judgement = judge(a, b, policy)
    beside = ("/header/seeds/", _DATA, _START, _PARAMETERS)
    mine = [f for f in judgement.differences if not f.pointer.startswith(beside)]
    elastic = [f for f in mine if resumed and f.pointer.startswith(_ELASTIC)]
    deciding = [f for f in mine if f not in elastic and f.decides]
    deciding += [f for f in mine if f.unknown and f not in (*deciding, *elastic) and policy.severity(f.pointer) == "block"]
    apart, unknown = [f for f in deciding if not f.unknown], [f for f in deciding if f.unknown]
    fields = {"differences": [_field(f) for f in apart], "unknown": [_field(f) for f in unknown]}
    notes = [str(f) for f in mine if f not in deciding]
    notes += [reason for reason in judgement.reasons if not reason.startswith("/")]
    notes += [reason for reason in judgement.reasons if reason.endswith("unknown on both sides")]
    if apart:
        return Part(False, f"{listed([f.pointer for f in apart])} differ" + "s" * (len(apart) == 1), fields), notes
    if unknown:
        return Part(None, f"only one run has {listed([f.pointer for f in unknown])}", fields), notes
    return Part(True, "all deciding fields are equal", fields), notes


def _field(difference: FieldDifference) -> dict[str, Any]:
    return {"pointer": difference.pointer, "a": difference.a, "b": difference.b}


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
        return Part(None, f"only one run has {listed(alone)}", seeds)
    return Part(True, ", ".join(f"{name} {value}" for name, value in left.items()), seeds)


def _parameters(a: Document, b: Document) -> Part:
    """Return whether both runs state the same digest of their initial parameters."""
    left, right = (document["header"]["model"].get("parameter_digest") for document in (a, b))
    facts = {"a": left, "b": right}
    if left is None or right is None:
        return Part(None, "no digest of the initial parameters is known of both", facts)
    return Part(left == right, f"initial parameters {left}" + ("" if left == right else f" and {right}"), facts)


def _data(a: Document, b: Document, curves: Sequence[Compared], seam: Part | None, start: Part | None) -> Part:
    """Return whether both runs were trained on the same data: False if any printed fact or position differs.

    True only if a place in the data is printed and equal, or the amount of data is and no seed differs.
    """
    left, right = (document["header"].get("data") or {} for document in (a, b))
    names = [name for name in {**left, **right} if left.get(name) is not None or right.get(name) is not None]
    told = {"facts": [{"pointer": f"{_DATA}{name}", "a": left.get(name), "b": right.get(name)} for name in names]}
    apart = [name for name in names if None not in (left.get(name), right.get(name)) and left[name] != right[name]]
    positions = [curve for curve in curves if curve.stream.role == "data" and curve.facts["compared"]]
    leaving = sorted((curve for curve in positions if curve.same is False), key=lambda curve: curve.facts["departs"]["step"])
    departed = [f"{curve.stream.name.replace('_', ' ')}, {curve.because}" for curve in leaving]
    departed += [part.because for part in (seam, start) if part is not None and part.facts.get("position") is False]
    if apart:
        differing = [f"{name.replace('_', ' ')} {left[name]} and {right[name]}" for name in apart]
        return Part(False, "; ".join([*differing, *departed[:1]]), told)
    if departed:
        return Part(False, departed[0], told)
    seeds = _seeds(a, b).same
    digest = left.get("digest") is not None and left.get("digest") == right.get("digest")
    if digest or any(curve.stream.strength == "place" for curve in positions):
        return Part(True, "both print the same " + ("digest of the data" if digest else "place in the data"), told)
    amount = any(curve.stream.strength == "amount" for curve in positions) or (seam is not None and seam.facts.get("position"))
    if amount and seeds is not False:
        return Part(True, "both have used as much data at each step, and no seed differs", told)
    if amount:
        return Part(None, "both used as much data, but their seeds differ: its order is not shown", told)
    return Part(None, "no position in the data is printed by both", told)


def _resume(a: Document, b: Document) -> Part:
    """Return whether both runs have the same resume step and the same first printed step."""
    firsts, starts, steps = _beginnings(a, b)
    if None not in starts and starts[0] != starts[1]:
        return Part(False, f"a starts at step {starts[0]}, b at step {starts[1]}", steps)
    first, second = firsts
    if first is None or second is None:
        return Part(None, "a run prints no step", steps)
    if first != second:
        between = None if abs(first - second) < max(_stride(a), _stride(b)) else False
        return Part(between, f"a begins with step {first}, b with step {second}", steps)
    return Part(True, f"both begin with step {first}", steps)


def _continuation(a: Document, b: Document) -> Part:
    """Return whether ``b`` begins after the first step of ``a``, at a step that ``a`` trained or the next one."""
    firsts, starts, steps = _beginnings(a, b)
    begin = starts[1] if starts[1] is not None else firsts[1]
    last = _steps(a).get("last")
    if begin is None or firsts[0] is None or last is None:
        return Part(None, "a run prints no step", steps)
    if begin <= firsts[0]:
        return Part(False, f"a begins with step {firsts[0]}, b with step {begin}, which is not later", steps)
    if begin > last + _stride(a):
        return Part(None, f"b begins with step {begin}, after the last step of a, {last}", steps)
    return Part(
        True, f"b begins with step {begin}, " + ("which a trained" if begin <= last else f"after the last of a, {last}"), steps
    )


def _beginnings(a: Document, b: Document) -> tuple[list[int | None], list[int | None], dict[str, Any]]:
    """Return the first printed steps and the resume steps of both runs, and both as JSON values."""
    firsts = [_steps(document).get("first") for document in (a, b)]
    starts = [(document["header"]["flags"] or {}).get("start_step") for document in (a, b)]
    pairs = zip("ab", firsts, starts, strict=True)
    return firsts, starts, {side: {"first_step": first, "start_step": start} for side, first, start in pairs}


def _stride(document: Document) -> int:
    """Return how many steps lie between two records of a run, on average; 1 if that is unknown."""
    first, last, count = (_steps(document).get(name) for name in ("first", "last", "record_count"))
    known = first is not None and last is not None and count is not None and count > 1
    return max(1, round((last - first) / (count - 1))) if known else 1  # type: ignore[operator]


def _steps(document: Document) -> Mapping[str, Any]:
    return (document.get("summary") or {}).get("steps") or {}


def _batch(side: Side) -> object:
    position = (side.document.get("summary") or {}).get("position") or {}
    stated = (side.document["header"]["flags"] or {}).get("global_batch_size")
    return stated if stated is not None else position.get("by_step") if position.get("kind") == "samples" else None


def _aligned(a: Side, b: Side, *, resumed: bool) -> tuple[str, tuple[Streams, Streams]]:
    """Return what the streams are aligned by, and the streams: by step, or by samples or tokens if a resume has another batch."""
    streams = a.streams or {}, b.streams or {}
    batches = _batch(a), _batch(b)
    if not resumed or None in batches or batches[0] == batches[1]:
        return "step", streams
    for axis, names in _AXES:
        keys = [next((side[name] for name in names if name in side), None) for side in streams]
        if keys[0] is not None and keys[1] is not None:
            return axis, (_along(streams[0], keys[0]), _along(streams[1], keys[1]))
    return "step", streams


def _along(streams: Streams, key: Stream) -> dict[str, Stream]:
    """Return the streams with the values of ``key`` in place of the steps; values at steps without one are left out."""
    found: dict[str, Stream] = {}
    for name, stream in streams.items():
        if stream.role == "data":
            continue
        _, mine, its = np.intersect1d(stream.steps, key.steps, assume_unique=True, return_indices=True)
        found[name] = replace(stream.chosen(mine), steps=key.values[its])
    return found


def _start(a: Side, b: Side) -> Part:
    """Return whether ``b``, whose batch is another one, starts at a position that ``a`` reached: in samples or tokens."""
    first, second = ((side.document.get("summary") or {}).get("position") or {} for side in (a, b))
    known = first.get("kind") == second.get("kind") and None not in (first.get("by_step"), second.get("by_step"))
    if not known or not first["by_step"]:
        return Part(None, "the position at which b starts is not known")
    start = second["first"] - second["by_step"]
    reached = (start - first["first"]) / first["by_step"]
    fine = reached == int(reached) and first["first"] <= start <= first["last"]
    return Part(fine, f"b starts after {start:.15g} {first['kind']}" + (", where a was" * fine), {"position": fine})


def _curves(sides: tuple[Streams, Streams], steps: int | None, tolerance: float | None, *, resumed: bool) -> list[Compared]:
    """Return the comparison of each stream that both runs have, positions first, then losses."""
    names = [name for name in sides[0] if name in sides[1] and sides[0][name].by_order == sides[1][name].by_order]
    names = [name for name in names if not (resumed and sides[0][name].by_order)]
    order = sorted(names, key=lambda name: (sides[0][name].role != "data", not sides[0][name].decides))
    return [_compare(sides[0][name], sides[1][name], steps, tolerance, resumed=resumed) for name in order]


def _compare(a: Stream, b: Stream, steps: int | None, tolerance: float | None, *, resumed: bool) -> Compared:
    """Return the comparison of two streams at the steps of both: of all records, or of the first ``steps`` of each."""
    first, last = max(s.steps[0] for s in (a, b)), min(s.steps[-1] for s in (a, b))
    if resumed and steps is not None:
        a, b = (s.between(first, last) for s in (a, b))
    if steps is not None:
        a, b = (s.between(s.steps[0], s.steps[:steps][-1]) if len(s.steps) else s for s in (a, b))
    common, left, right = np.intersect1d(a.steps, b.steps, assume_unique=True, return_indices=True)
    x, y = a.values[left], b.values[right]
    alike = (x == y) | (np.isnan(x) & np.isnan(y))
    printed, how = _slack(a, b, x, y)
    if a.role == "data":
        tolerance = None
    slack = printed if tolerance is None else np.maximum(printed, tolerance * np.maximum(np.abs(x), np.abs(y)))
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isfinite(x) & np.isfinite(y), np.abs(x - y), np.nan)
    near, within = (alike | (apart <= limit * _SLACK) for limit in (slack, printed))
    if tolerance is not None and not within.all():
        how = f"within {tolerance:g} of their size"
    at = int(np.argmin(near)) if not near.all() else None
    inside = [int(np.count_nonzero((s.steps >= first) & (s.steps <= last))) - len(common) for s in (a, b)]
    facts: dict[str, Any] = {
        "compared": len(common),
        "matches": int(np.count_nonzero(alike)),
        "first": int(common[0]) if len(common) else None,
        "last": int(common[-1]) if len(common) else None,
        "departs": None if at is None else _departure(a, b, int(left[at]), int(right[at]), float(common[at])),
        "greatest": None,
        "meets": None,
        "only_in_a": max(0, inside[0]),
        "only_in_b": max(0, inside[1]),
        "how": how,
    }
    if at is not None and a.texts is None and not np.isnan(apart).all():
        worst = int(np.nanargmax(apart))
        facts["greatest"] = {"step": int(common[worst]), "delta": float(y[worst] - x[worst])}
    if at is not None:
        behind = int(np.flatnonzero(~near)[-1]) + 1
        facts["meets"] = int(common[behind]) if behind < len(common) else None
    same = None if not len(common) else at is None
    return Compared(a, same, bool(alike.all()) and how == "", facts)


def _slack(a: Stream, b: Stream, x: Floats, y: Floats) -> tuple[Floats, str]:
    """Return half a unit of the coarser print of each pair of values, 0 if both are printed alike; and what to call it."""
    one, other = a.printing, b.printing
    alike = (one.decimals, one.significant) == (other.decimals, other.significant)
    fixed = None not in (one.decimals, other.decimals)
    if alike or a.texts is not None or (not fixed and bool(((x == y) | (np.isnan(x) & np.isnan(y))).all())):
        return np.zeros(len(x)), ""
    return np.maximum(one.units(x), other.units(y)) / 2, PRINTED


def _departure(a: Stream, b: Stream, left: int, right: int, step: float) -> dict[str, Any]:
    pairs = (a, float(a.values[left])), (b, float(b.values[right]))
    values = [None if stream.texts is not None or not math.isfinite(value) else value for stream, value in pairs]
    return {
        "step": int(step),
        "a": values[0],
        "b": values[1],
        "a_text": a.shown(left),
        "b_text": b.shown(right),
        "a_line": a.line_of(left),
        "b_line": b.line_of(right),
    }


def _seam(a: Side, b: Side) -> Part:
    """Return whether ``b`` goes on where ``a`` ended, if no step is in both: by the position, and by the losses on both sides."""
    positions = [(side.document.get("summary") or {}).get("position") or {} for side in (a, b)]
    end, begin = _steps(a.document).get("last"), _steps(b.document).get("first")
    known = positions[0].get("kind") == positions[1].get("kind") and None not in [one.get("by_step") for one in positions]
    if not known or end is None or begin is None or begin <= end:
        return Part(None, "no step is in both logs, and no position says where b goes on")
    expected = positions[0]["last"] + positions[1]["by_step"] * (begin - end)
    kind, found = positions[0]["kind"], positions[1]["first"]
    if found != expected:
        because = f"b goes on at {found:.15g} {kind} in step {begin}, a would have been at {expected:.15g}"
        return Part(False, because, {"position": False})
    told = f"no step is in both logs; the position goes on at {found:.15g} {kind} in step {begin}"
    jump = _jump((a.streams or {}).get("loss"), (b.streams or {}).get("loss"))
    if jump is None:
        return Part(None, f"{told}, but there are too few losses to compare", {"position": True})
    return Part(not jump, f"the loss jumps at the seam: {jump}" if jump else told, {"position": True})


def _jump(a: Stream | None, b: Stream | None) -> str | None:
    """Return the jump of the loss from the last records of ``a`` to the first of ``b``, empty if it is none; None if unknown."""
    if a is None or b is None or min(len(a.values), len(b.values)) < _SEAM:
        return None
    before, behind = a.values[-_SEAM:], b.values[:_SEAM]
    if not (np.isfinite(before).all() and np.isfinite(behind).all()):
        return None
    trend = np.diff(np.concatenate([before, behind]))
    quiet: Mask = np.arange(len(trend)) != _SEAM - 1
    noise = float(np.sqrt(np.mean(trend[quiet] ** 2)))
    jumped = abs(float(np.median(behind) - np.median(before)))
    return f"{a.shown(len(a.values) - 1)} to {b.shown(0)}" if jumped > _JUMP * max(noise, 1e-12) * math.sqrt(_SEAM / 2) else ""
