"""Golden curves: what good runs printed step by step, and whether another run or golden document has the same.

The values of one run, or of several that print the same, are exact. Of several that differ a little the tolerance of a step is
``spread/1``: ``FAR`` standard deviations of a run around the mean, from the spread of the runs at the steps around it, and half a
unit of the last printed digit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from receipt_cli.comparison.kinds.contrast import Cells, Reasons, places
from receipt_cli.comparison.streams import Stream, Streams
from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import DataError, UsageError
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.numeric.precision import Printing

SCHEMA_VERSION = "golden/1.0"
Rule = Literal["exact", "ratio", "spread/1"]
FAR = {2: 12.0, 3: 8.0, 4: 7.0}
"""Number of runs → standard deviations within which another good run stays; the fewer runs, the less their spread is known."""
_FAR = 6.0
_WINDOW = 10
"""Steps on each side from which the spread at a step is taken, at least."""
_SLACK = 1 + 1e-9


class System(NamedTuple):
    """Where a run was made; None where that is unknown."""

    lane: str | None
    device: str | None
    world_size: int | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> System:
        """Return the system of the run of a receipt."""
        header = document["header"]
        devices = header["hardware"]["accelerators"] or []
        return cls(
            document["run"]["lane"], devices[0]["name"] if devices else None, (header["parallelism"] or {}).get("world_size")
        )

    def __str__(self) -> str:
        ranks = None if self.world_size is None else f"{self.world_size} ranks"
        return ", ".join(known for known in (self.lane, self.device, ranks) if known is not None) or "unknown system"


def make_golden(
    runs: Sequence[tuple[Mapping[str, Any], Streams]], *, steps: int | None = None, ratio: float | None = None
) -> dict[str, Any]:
    """Return the document (``golden/1.0``) of runs: receipts and what they print; runs on one system are one reference.

    ``steps`` limits the records of each figure; ``ratio`` is a relative tolerance, in place of the spread of the runs. Raises
    ``UsageError`` if a run prints no loss by step.
    """
    systems: dict[System, list[tuple[Mapping[str, Any], Streams]]] = {}
    for document, streams in runs:
        systems.setdefault(System.of(document), []).append((document, streams))
    references = []
    for system, mine in systems.items():
        names = [name for name in mine[0][1] if all(name in streams and not streams[name].by_order for _, streams in mine)]
        order = sorted(names, key=lambda name: mine[0][1][name].role != "data")
        each = [[streams[name] for _, streams in mine] for name in order]
        curves = [curve for group in each if group[0].texts is None and (curve := _curve(group, steps, ratio)) is not None]
        if not any(group[0].decides for group in each):
            raise UsageError("the runs print no loss by step", why=f"{len(mine)} runs of {system}")
        logs = [document["derivation"]["log"]["sha256"] for document, _ in mine]
        references.append({"system": system._asdict(), "runs": logs, "curves": curves})
    return {"schema_version": SCHEMA_VERSION, "references": references}


def _curve(group: Sequence[Stream], steps: int | None, ratio: float | None) -> dict[str, Any] | None:
    """Return the golden curve of a figure at the steps of all runs; None without one."""
    common = group[0].steps
    for stream in group[1:]:
        common = np.intersect1d(common, stream.steps, assume_unique=True)
    common = common[:steps]
    if not len(common):
        return None
    values = np.stack([stream.values[np.searchsorted(stream.steps, common)] for stream in group])
    mean, alike = values.mean(axis=0), bool(((values == values[0]) | (np.isnan(values) & np.isnan(values[0]))).all())
    printing = group[0].printing
    rule: Rule = "ratio" if ratio is not None and group[0].role == "numbers" else "exact" if alike else "spread/1"
    tolerances: list[float] | None = None
    if rule == "ratio":
        tolerances = [float(value) for value in np.where(np.isfinite(mean), np.abs(mean) * (ratio or 0.0), 0.0)]
    elif rule == "spread/1":
        if not np.isfinite(values).all():
            return None
        tolerances = [float(f"{value:.3g}") for value in _spread(values, printing.units(mean))]
    texts = [printing.text(float(value)) for value in (values[0] if alike else mean)]
    about = {"metric": group[0].name, "role": group[0].role, "rule": rule}
    return {**about, "steps": [int(step) for step in common], "values": texts, "tolerances": tolerances}


def _spread(values: Floats, units: Floats) -> Floats:
    """Return the tolerance at each step ([n]) of ``values`` ([runs, n])."""
    runs, count = values.shape
    variance = values.var(axis=0, ddof=1)
    width = min(count, 2 * max(_WINDOW, count // 40) + 1)
    sums = np.concatenate([[0.0], np.cumsum(variance)])
    starts = np.clip(np.arange(count) - width // 2, 0, count - width)
    near = (sums[starts + width] - sums[starts]) / width
    tolerances: Floats = FAR.get(runs, _FAR) * np.sqrt(np.maximum(near, variance) * (1 + 1 / runs)) + units / 2
    return tolerances


def read_golden(data: bytes, where: str) -> dict[str, Any]:
    """Return the golden curves in ``data``. Raises ``DataError`` for another or an invalid document."""
    errors = [finding for finding in validate_bytes(data, where) if finding.severity == "error"]
    document: dict[str, Any] = json.loads(data)
    if errors or not str(document.get("schema_version")).startswith("golden/"):
        why = f"{errors[0].pointer}: {errors[0].reason}" if errors else f"it is {document.get('schema_version')}"
        raise DataError("not golden curves", where=where, why=why, try_="receipt golden make RUN... -o golden.json")
    return document


@dataclass(frozen=True, slots=True)
class Departure:
    """Where a run leaves a golden curve: the step, both values as printed, the tolerance there, and the line in the log."""

    step: int
    golden: str
    found: str
    tolerance: float
    line: int | None


@dataclass(frozen=True, slots=True)
class HeldCurve:
    """A run against one golden curve: ``inside`` of ``compared`` steps are within the tolerance, ``missing`` are not printed."""

    metric: str
    rule: Rule
    compared: int
    inside: int
    missing: int
    departure: Departure | None
    meets: int | None
    steps: Sequence[float]
    golden: Sequence[float]
    found: Sequence[float]

    def document(self) -> dict[str, Any]:
        """Return the result as JSON values, without the curves."""
        keys = ("metric", "rule", "compared", "inside", "missing", "departure", "meets")
        told = {key: getattr(self, key) for key in keys}
        return {**told, "departure": self.departure and asdict(self.departure)}


@dataclass(frozen=True, slots=True)
class Held:
    """A run against the golden curves of its system; ``reason`` if there are none."""

    system: System
    curves: tuple[HeldCurve, ...]
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"system": self.system._asdict(), "reason": self.reason, "curves": [curve.document() for curve in self.curves]}


def hold(golden: Mapping[str, Any], document: Mapping[str, Any], streams: Streams | None) -> Held:
    """Return the run of a receipt, and what it prints, against the golden curves of its system.

    What the run does not say of its system fits any reference, if one is left.
    """
    system = System.of(document)
    fitting = [entry for entry in golden["references"] if _fits(System(**entry["system"]), system, exactly=True)]
    fitting = fitting or [entry for entry in golden["references"] if _fits(System(**entry["system"]), system, exactly=False)]
    if len(fitting) != 1:
        known = "; ".join(str(System(**entry["system"])) for entry in golden["references"])
        which = "none" if not fitting else "several"
        return Held(system, (), f"{which} of the references fits {system}: {known}")
    if streams is None:
        return Held(system, (), "a receipt has no steps: give the log, or --log")
    return Held(system, tuple(_held(curve, streams.get(curve["metric"])) for curve in fitting[0]["curves"]))


def _fits(reference: System, run: System, *, exactly: bool) -> bool:
    pairs = list(zip(reference, run, strict=True))
    return all(one == other for one, other in pairs) if exactly else all(None in pair or pair[0] == pair[1] for pair in pairs)


def _held(curve: Mapping[str, Any], stream: Stream | None) -> HeldCurve:
    steps, golden = (np.array(curve[name], np.float64) for name in ("steps", "values"))
    allowed = np.zeros(len(steps)) if curve["tolerances"] is None else np.array(curve["tolerances"], np.float64)
    if stream is None:
        return HeldCurve(curve["metric"], curve["rule"], 0, 0, len(steps), None, None, [], [], [])
    printed_at, values = last_of_each(stream.steps, stream.values)
    common, mine, theirs = np.intersect1d(steps, printed_at, assume_unique=True, return_indices=True)
    wanted, found, slack = golden[mine], values[theirs], allowed[mine]
    printed = _printing(curve)
    if None not in (printed.decimals, stream.printing.decimals) and printed.decimals != stream.printing.decimals:
        slack = np.maximum(slack, np.maximum(printed.units(wanted), stream.printing.units(found)) / 2)
    with np.errstate(invalid="ignore"):
        near = (wanted == found) | (np.isnan(wanted) & np.isnan(found)) | (np.abs(wanted - found) <= slack * _SLACK)
    departure, meets = None, None
    if not near.all():
        at = int(np.argmin(near))
        text, index = curve["values"][int(mine[at])], int(theirs[at])
        departure = Departure(int(common[at]), text, stream.shown(index), float(slack[at]), stream.line_of(index))
        behind = int(np.flatnonzero(~near)[-1]) + 1
        meets = int(common[behind]) if behind < len(common) else None
    counts = len(common), int(np.count_nonzero(near)), len(steps) - len(common)
    return HeldCurve(curve["metric"], curve["rule"], *counts, departure, meets, common.tolist(), wanted.tolist(), found.tolist())


def _printing(curve: Mapping[str, Any]) -> Printing:
    decimals = {len(text.partition(".")[2]) for text in curve["values"] if "e" not in text.lower() and "n" not in text}
    values = np.array(curve["values"], np.float64)
    digits = {"least": min(decimals), "greatest": max(decimals)} if decimals else None
    return Printing.of({"printed_digits": digits}, values)


def compare_goldens(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comparison of two golden documents: their ``curves``, each with the first step at which the values differ.

    Not comparable are documents without a common system, or without a common figure of it.
    """
    reasons = Reasons()
    sides = [{System(**reference["system"]): reference for reference in side["references"]} for side in (a, b)]
    common = [system for system in sides[0] if system in sides[1]]
    if not common:
        reasons.blocking.append("they have no system in common")
    curves = [curve for system in common for curve in _common_curves(system, sides[0][system], sides[1][system])]
    if common and not curves:
        reasons.blocking.append("they have no figure of a system in common")
    others = [{"system": str(system), "side": "a" if system in sides[0] else "b"}
              for system in dict.fromkeys([*sides[0], *sides[1]]) if system not in common]  # fmt: skip
    return {**reasons.document(), "curves": curves, "unmatched": others}


def _common_curves(system: System, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    theirs = {curve["metric"]: curve for curve in b["curves"]}
    for mine in a["curves"]:
        other = theirs.get(mine["metric"])
        if other is None:
            continue
        left, right = places(mine["steps"]), places(other["steps"])
        cells, first = Cells(), None
        for step in sorted(left.keys() & right.keys()):
            values = mine["values"][left[step]], other["values"][right[step]]
            cells.add(*(float(value) if value not in ("nan", "inf", "-inf") else None for value in values), step=step)
            if values[0] != values[1] and first is None:
                first = {"step": step, "a": values[0], "b": values[1]}
        about = {"system": str(system), "metric": mine["metric"], "a_rule": mine["rule"], "b_rule": other["rule"]}
        found.append({**about, **cells.document(), "first": first})
    return found
