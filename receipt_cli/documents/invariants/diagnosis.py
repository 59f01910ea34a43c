"""Rules of a phase's diagnosis: bottleneck and memory agree with the phase's values, and flags and spikes with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from receipt_cli.documents.invariants.figures import close, ratio
from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, pointer, summaries

_RATIOS = {
    "data_time_ratio": ("data_time_s", ("step_time_s",)),
    "dispatch_wait_ratio": ("dispatch_wait_s", ("dispatch_wait_s", "step_time_s")),
    "infer_over_train_ratio": ("infer_capacity_samples_per_s", ("train_capacity_samples_per_s",)),
}
"""Ratio → its numerator, and the medians whose sum is its denominator."""
_NEEDS = {
    "inference": (
        {"dispatch_wait_s", "step_time_s"},
        {"dispatch_wait_s", "cycle_time_s"},
        {"infer_over_train_ratio"},
        {"generation_time_s", "step_time_s"},
    ),
    "training": ({"infer_over_train_ratio"}, {"pooled_sample_slope"}),
    "balanced": ({"infer_over_train_ratio"}, {"data_time_s"}),
    "data": ({"data_time_s"},),
    "compute": ({"data_time_s"}, {"compute_time_s", "step_time_s"}),
}
"""Verdict → sets of medians, at least one of which must be present."""


def _blocks(document: Document, name: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for at, summary in summaries(document):
        if summary.get(name) is not None:
            yield at + pointer(name), summary[name], summary


def _medians(document: Document) -> Broken:
    for at, found, summary in _blocks(document, "bottleneck"):
        medians = found["medians"]
        for name, value in medians.items():
            stated = summary["metrics"].get(name)
            if stated is not None and stated["median"] is not None and not close(value, stated["median"]):
                yield f"{at}/medians/{name}", f"is {value}, the phase's own median is {stated['median']}"
        for name, (above, below) in _RATIOS.items():
            known = {name, above, *below} <= medians.keys()
            wanted = ratio(medians[above], sum(medians[part] for part in below)) if known else None
            if name == "dispatch_wait_ratio" and {name, above, "cycle_time_s"} <= medians.keys():
                wanted = ratio(medians[above], max(medians[above], medians["cycle_time_s"]))  # if too few steps print their time
            if wanted is not None and not close(medians[name], wanted):
                yield f"{at}/medians/{name}", f"is {medians[name]}, but {wanted} by the medians"


def _verdict(document: Document) -> Broken:
    for at, found, _ in _blocks(document, "bottleneck"):
        needs = _NEEDS.get(found["verdict"], ())
        if needs and not any(names <= found["medians"].keys() for names in needs):
            yield f"{at}/verdict", f"is {found['verdict']}, but no median supports it"


def _figures(document: Document) -> Broken:
    for at, story, _ in _blocks(document, "memory"):
        figures = story["figures"]
        for kind in ("allocated", "reserved", "peak_allocated", "peak_reserved"):
            highest = figures.get(f"{kind}_max_bytes")
            for end in ("first", "last"):
                value = figures.get(f"{kind}_{end}_bytes")
                if highest is not None and value is not None and value > highest:
                    yield f"{at}/figures/{kind}_{end}_bytes", f"{value} is above the largest, {highest}"
        low, high = figures.get("rank_peak_min_bytes"), figures.get("rank_peak_max_bytes")
        if (low is None) != (high is None) or (low is not None and high is not None and low > high):
            yield f"{at}/figures", "smallest and largest rank peak: not in order, or only one is known"


def _reading(document: Document) -> Broken:
    for at, story, _ in _blocks(document, "memory"):
        figures, reading = story["figures"], story["reading"]
        pair = any({f"{kind}allocated_last_bytes", f"{kind}reserved_last_bytes"} <= figures.keys() for kind in ("", "peak_"))
        at_end = {"oom_requested_bytes", "oom_reserved_unallocated_bytes"} <= figures.keys()
        if reading in ("steady", "growth") and not pair:
            yield f"{at}/reading", f"is {reading} without allocated and reserved memory"
        elif reading == "fragmentation" and not pair and not at_end:
            yield f"{at}/reading", "is fragmentation without allocated and reserved memory, or free memory at the end"


DIAGNOSIS_RULES: tuple[Rule, ...] = (
    Rule("bottleneck_medians", PHASES, _medians),
    Rule("bottleneck_verdict", PHASES, _verdict),
    Rule("memory_figures", PHASES, _figures),
    Rule("memory_reading", PHASES, _reading),
)


_TOLD = 20
"""Most spikes of a metric that are listed one by one."""
_SLACK = 0.021
"""Largest relative error of reported × factor against derived: the rule's tolerance and a rounded division."""
_COUNTED = ("mfu_above_one", "impossible_steps")
"""Kinds of flags that count records."""


def _flags(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, summary in summaries(document):
        for number, flag in enumerate(summary.get("flags", ())):
            yield at + pointer("flags", number), flag


def _flag_factor(document: Document) -> Broken:
    for at, flag in _flags(document):
        reported, derived, factor = flag["reported"], flag["derived"], flag["factor"]
        if factor is not None and factor <= 0:
            yield f"{at}/factor", "is not above 0"
        elif factor is not None and None not in (reported, derived):
            if abs(reported * factor - derived) > _SLACK * abs(derived):
                yield f"{at}/factor", f"the printed value times {factor} is not the derived value"
        elif flag["kind"] == "off_by_integer_factor":
            yield f"{at}/factor", "an integer factor needs both values"


def _flag_count(document: Document) -> Broken:
    for at, flag in _flags(document):
        if flag["kind"] in _COUNTED and flag["count"] is None:
            yield f"{at}/count", f"{flag['kind']} needs the number of records"


def _spike_counts(document: Document) -> Broken:
    for at, summary in summaries(document):
        for name, found in ((summary.get("spikes") or {}).get("metrics", {})).items():
            here = at + pointer("spikes", "metrics", name)
            if found["critical_count"] > found["count"]:
                yield f"{here}/critical_count", "is more than all spikes"
            if len(found["first"]) != min(found["count"], _TOLD):
                yield f"{here}/first", f"lists {len(found['first'])} of {found['count']} spikes"
            stated = summary["metrics"].get(name)
            if stated is not None and stated["window"] == "all" and found["count"] > (stated["record_count"] or found["count"]):
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
