"""A change of a figure → the header fields that changed where it began, and the commits between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from receipt_cli.comparison.comparable import describe_run
from receipt_cli.comparison.policy import Policy
from receipt_cli.documents.diff import differences
from receipt_cli.history.lanes import LaneRun

REACH = 4
"""Runs on each side through which a field must keep its value for its change to be one that stayed."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of the header that had one value before a run and another from it on."""

    pointer: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where a change began, ``at`` counted in runs, and what changed there: ``fields``, and commits from one to the other."""

    at: int
    fields: tuple[FieldChange, ...]
    commits: tuple[str, str] | None


def attribute(runs: Sequence[LaneRun], choices: Sequence[int], policy: Policy) -> Attribution:
    """Return what changed at the first of ``choices`` (places among ``runs``, best first) where a field did.

    The figure alone often cannot tell which of some neighbouring runs was the first; a field that changed there decides.
    Fields that the policy ignores (names, seeds, commits) do not.
    """
    known: dict[int, Mapping[str, Any]] = {}

    def described(place: int) -> Mapping[str, Any]:
        if place not in known:
            known[place] = {**describe_run(runs[place].document), **_reading(runs[place].document)}
        return known[place]

    for at in choices:
        fields = tuple(_changed(len(runs), at, described, policy))
        if fields:
            return Attribution(at, fields, _commits(runs, at))
    return Attribution(choices[0], (), _commits(runs, choices[0]))


def _reading(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the log was read: a grammar of another version may give another meaning to the same text."""
    derivation = document["derivation"]
    return {
        "/derivation/grammars": ", ".join(f"{g['id']}@v{g['version']}" for g in derivation["grammars"]) or None,
        "/derivation/rules": derivation["rules"],
    }


def _changed(count: int, at: int, described: Any, policy: Policy) -> Any:
    before = [described(i) for i in range(max(0, at - REACH), at)]
    after = [described(i) for i in range(at, min(count, at + REACH))]
    for place, value in after[0].items():
        old = before[-1].get(place) if before else None
        if value is None or old is None or not differences(old, value) or policy.severity(place) == "ignore":
            continue
        kept = [_keeps(side, place, one) for side, one in ((before, old), (after, value))]
        if all(kept):
            yield FieldChange(place, old, value)


def _keeps(side: Sequence[Mapping[str, Any]], place: str, value: object) -> bool:
    """True where no run of a side knows another value."""
    return all(run.get(place) is None or not differences(run[place], value) for run in side)


def _commits(runs: Sequence[LaneRun], at: int) -> tuple[str, str] | None:
    if at == 0:
        return None
    old, new = (runs[place].document["header"]["git"]["commit"] for place in (at - 1, at))
    return (old, new) if old and new and old != new else None
