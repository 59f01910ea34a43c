"""Rules of a phase's flags and spikes: counts that fit each other, factors that lead from the printed figure to the derived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, pointer, summaries

_TOLD = 20
"""Spikes of a metric that are told one by one."""
_SLACK = 0.021
"""A factor leads to the derived figure within this share: the tolerance of the rule, and a rounded division."""
_COUNTED = ("mfu_above_one", "impossible_steps")
"""Kinds of flags that are about records."""


def _flags(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, summary in summaries(document):
        for number, flag in enumerate(summary.get("flags", ())):
            yield at + pointer("flags", number), flag


def _flag_factor(document: Document) -> Broken:
    for at, flag in _flags(document):
        reported, derived, factor = flag["reported"], flag["derived"], flag["factor"]
        if factor is not None and factor <= 0:
            yield f"{at}/factor", "is not a factor"
        elif factor is not None and None not in (reported, derived):
            if abs(reported * factor - derived) > _SLACK * abs(derived):
                yield f"{at}/factor", f"the printed figure times {factor} is not the derived one"
        elif flag["kind"] == "off_by_integer_factor":
            yield f"{at}/factor", "an integer factor needs both figures"


def _flag_count(document: Document) -> Broken:
    for at, flag in _flags(document):
        if flag["kind"] in _COUNTED and flag["count"] is None:
            yield f"{at}/count", f"{flag['kind']} is about records: says of how many"


def _spike_counts(document: Document) -> Broken:
    for at, summary in summaries(document):
        for name, found in ((summary.get("spikes") or {}).get("metrics", {})).items():
            here = at + pointer("spikes", "metrics", name)
            if found["critical_count"] > found["count"]:
                yield f"{here}/critical_count", "is more than all spikes"
            if len(found["first"]) != min(found["count"], _TOLD):
                yield f"{here}/first", f"tells {len(found['first'])} of {found['count']} spikes"
            stated = summary["metrics"].get(name)
            if stated is not None and stated["window"] == "all" and found["count"] > stated["record_count"]:
                yield f"{here}/count", "is more than the metric has records"


def _spike_rises(document: Document) -> Broken:
    for at, summary in summaries(document):
        for name, found in ((summary.get("spikes") or {}).get("metrics", {})).items():
            for number, spike in enumerate(found["first"]):
                if not 0 < spike["average"] < spike["value"]:
                    yield at + pointer("spikes", "metrics", name, "first", number), "does not rise over its average"


ODDITY_RULES: tuple[Rule, ...] = (
    Rule("flag_factor", PHASES, _flag_factor),
    Rule("flag_count", PHASES, _flag_count),
    Rule("spike_counts", PHASES, _spike_counts),
    Rule("spike_rises", PHASES, _spike_rises),
)
