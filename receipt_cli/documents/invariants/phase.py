"""Rules of a phase: its statistics, diagnosis and progress agree with each other and with the metric registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.invariants.rule import (
    PHASES,
    Broken,
    Document,
    Rule,
    check_once,
    close,
    each,
    figure_rules,
    is_import,
    ratio,
    summaries,
)
from receipt_cli.problems import pointer

_RATIO_SLACK = 1e-3


def _statistics(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, summary in summaries(document):
        for part in ("metrics", "other_metrics", "derived"):
            for name, statistic in summary[part].items():
                yield at + pointer(part, name), statistic


def _registered(at: str, summary: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (pointer, name, statistic) of the metrics with an id."""
    return ((f"{at}/{part}/{name}", name, s) for part in ("metrics", "derived") for name, s in summary[part].items())


def _metric_identity(document: Document) -> Broken:
    registry = load_registry()
    if document["derivation"]["registry"]["version"] > registry.version:
        return  # names may be newer: ``_registry_version`` reports it
    for at, summary in summaries(document):
        for place, name, statistic in _registered(at, summary):
            metric = registry.by_name.get(name)
            if metric is None:
                yield place, f"is not a metric of registry version {registry.version}"
            elif statistic["id"] != metric.id:
                yield f"{place}/id", f"is {statistic['id']}, but {metric.id} in the registry"
        for number, entry in enumerate(summary["consistency"]):
            if entry["metric"] not in registry.by_name:
                yield f"{at}/consistency/{number}/metric", f"is not a metric of registry version {registry.version}"


def _metric_window(at: str, summary: Document) -> Broken:
    by_id = load_registry().by_id
    for place, _, statistic in _registered(at, summary):
        if statistic["window"] == "steady" and statistic["id"] in by_id and by_id[statistic["id"]].window == "all":
            yield f"{place}/window", "the registry has this metric over all records"


def _registry_version(document: Document) -> Broken:
    stated, known = document["derivation"]["registry"]["version"], load_registry().version
    if stated > known:
        yield "/derivation/registry/version", f"is {stated}, newer than {known}: the names of metrics are not checked"


def _counted(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the statistics of a log; an imported document may state any of them without the others."""
    return iter(()) if is_import(document) else _statistics(document)


def _consistency_ratio(at: str, summary: Document) -> Broken:
    for number, entry in enumerate(summary["consistency"]):
        here, ratio = f"{at}/consistency/{number}", entry["ratio"]
        if (ratio is None) != (entry["consistent"] is None):
            yield f"{here}/consistent", "must be null if, and only if, the ratio is null"
        elif ratio is not None and None in (entry["reported"], entry["derived"]):
            yield f"{here}/ratio", "is given without both reported and derived"
        elif ratio is not None:
            reported, derived = float(entry["reported"]), float(entry["derived"])
            if not abs(reported - float(ratio) * derived) <= _RATIO_SLACK * abs(reported):
                yield f"{here}/ratio", "is not reported over derived"


STATISTIC_RULES: tuple[Rule, ...] = (
    Rule("metric_identity", (*PHASES, "derivation"), _metric_identity),
    Rule("metric_window", PHASES, each(_metric_window, summaries)),
    Rule("registry_version", ("derivation",), _registry_version, "note"),
    *figure_rules((*PHASES, "derivation"), _statistics, whole=_counted),
    Rule("consistency_ratio", PHASES, each(_consistency_ratio, summaries)),
)


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


def _blocks(name: str) -> Callable[[Document], Iterator[tuple[str, Any, dict[str, Any]]]]:
    """Return what yields (pointer, block, summary) of each summary that has the block ``name``."""

    def found(document: Document) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        for at, summary in summaries(document):
            if summary.get(name):
                yield at + pointer(name), summary[name], summary

    return found


def _medians(at: str, found: Document, summary: Document) -> Broken:
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


def _verdict(at: str, found: Document, _: Document) -> Broken:
    needs = _NEEDS.get(found["verdict"], ())
    if needs and not any(names <= found["medians"].keys() for names in needs):
        yield f"{at}/verdict", f"is {found['verdict']}, but no median supports it"


def _figures(at: str, story: Document, _: Document) -> Broken:
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


def _reading(at: str, story: Document, _: Document) -> Broken:
    figures, reading = story["figures"], story["reading"]
    pair = any({f"{kind}allocated_last_bytes", f"{kind}reserved_last_bytes"} <= figures.keys() for kind in ("", "peak_"))
    at_end = {"oom_requested_bytes", "oom_reserved_unallocated_bytes"} <= figures.keys()
    if reading in ("steady", "growth") and not pair:
        yield f"{at}/reading", f"is {reading} without allocated and reserved memory"
    elif reading == "fragmentation" and not pair and not at_end:
        yield f"{at}/reading", "is fragmentation without allocated and reserved memory, or free memory at the end"


def _slow_steps(at: str, found: Document, summary: Document) -> Broken:
    causes, longest = found["causes"], found["longest"]
    if sum(share["step_count"] for share in causes.values()) > found["step_count"]:
        yield f"{at}/causes", f"have more steps than the {found['step_count']} slow ones"
    if found["step_count"] > summary["steady_state"]["record_count"]:
        yield f"{at}/step_count", "is more than the records of the steady state"
    if len(longest) != min(found["step_count"], _LONGEST):
        yield f"{at}/longest", f"lists {len(longest)} of {found['step_count']}"
    if found["verdict"] is not None and found["verdict"] not in causes:
        yield f"{at}/verdict", f"is {found['verdict']}, which is the cause of no step"
    for number, one in enumerate(longest):
        if one["step_time_s"] <= one["usual_s"]:
            yield f"{at}/longest/{number}/step_time_s", "is not above the usual time"
        if one["cause"] is not None and one["cause"] not in causes:
            yield f"{at}/longest/{number}/cause", f"is {one['cause']}, which causes has not"


_LONGEST = 8
DIAGNOSIS_RULES: tuple[Rule, ...] = (
    Rule("bottleneck_medians", PHASES, each(_medians, _blocks("bottleneck"))),
    Rule("bottleneck_verdict", PHASES, each(_verdict, _blocks("bottleneck"))),
    Rule("memory_figures", PHASES, each(_figures, _blocks("memory"))),
    Rule("memory_reading", PHASES, each(_reading, _blocks("memory"))),
    Rule("slow_steps_agree", PHASES, each(_slow_steps, _blocks("slow_steps"))),
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


def _flag_factor(at: str, flag: Document) -> Broken:
    reported, derived, factor = flag["reported"], flag["derived"], flag["factor"]
    if factor is not None and factor <= 0:
        yield f"{at}/factor", "is not above 0"
    elif factor is not None and None not in (reported, derived):
        if abs(reported * factor - derived) > _SLACK * abs(derived):
            yield f"{at}/factor", f"the printed value times {factor} is not the derived value"
    elif flag["kind"] == "off_by_integer_factor":
        yield f"{at}/factor", "an integer factor needs both values"


def _flag_count(at: str, flag: Document) -> Broken:
    if flag["kind"] in _COUNTED and flag["count"] is None:
        yield f"{at}/count", f"{flag['kind']} needs the number of records"


def _spike_counts(at: str, spikes: Document, summary: Document) -> Broken:
    for name, found in spikes["metrics"].items():
        here = at + pointer("metrics", name)
        if found["critical_count"] > found["count"]:
            yield f"{here}/critical_count", "is more than all spikes"
        if len(found["first"]) != min(found["count"], _TOLD):
            yield f"{here}/first", f"lists {len(found['first'])} of {found['count']} spikes"
        stated = summary["metrics"].get(name)
        if stated is not None and stated["window"] == "all" and found["count"] > (stated["record_count"] or found["count"]):
            yield f"{here}/count", "is more than the metric has records"


def _spike_rises(at: str, spikes: Document, _: Document) -> Broken:
    for name, found in spikes["metrics"].items():
        for number, spike in enumerate(found["first"]):
            if not 0 < spike["average"] < spike["value"]:
                yield at + pointer("metrics", name, "first", number), "does not rise over its average"


ODDITY_RULES: tuple[Rule, ...] = (
    Rule("flag_factor", PHASES, each(_flag_factor, _flags)),
    Rule("flag_count", PHASES, each(_flag_count, _flags)),
    Rule("spike_counts", PHASES, each(_spike_counts, _blocks("spikes"))),
    Rule("spike_rises", PHASES, each(_spike_rises, _blocks("spikes"))),
)


_AMOUNTS = {"steps_per_s": "step_count", "tokens_per_s": "tokens", "samples_per_s": "samples"}
_ASCENDING = ("p5_s", "p50_s", "p90_s", "p95_s", "p99_s")
_LISTED = 20
"""Most checkpoints that a receipt lists."""


def _realised(at: str, found: Document, summary: Document) -> Broken:
    for rate, amount in _AMOUNTS.items():
        wanted = ratio(found[amount], found["duration_s"])
        if not close(found[rate], wanted):
            yield f"{at}/{rate}", f"is {found[rate]}, but {amount} over duration_s is {wanted}"
    steps = summary["steps"]
    known = steps["first"] is not None and steps["last"] is not None
    if found["step_count"] is not None and known and found["step_count"] != steps["last"] - steps["first"]:
        yield f"{at}/step_count", f"is not the number of steps from {steps['first']} to {steps['last']}"


def _step_times(at: str, found: Document, summary: Document) -> Broken:
    for low, high in pairwise(_ASCENDING):
        if found[low] > found[high]:
            yield f"{at}/{low}", f"is above {high}"
    printed = summary["metrics"].get("step_time_s")
    if found["source"] != "printed":
        if printed is not None:
            yield f"{at}/source", "is timestamps though the records print their step time"
    elif printed is None:
        yield f"{at}/source", "is printed, but the phase has no printed step time"
    elif printed["median"] is not None and not close(found["p50_s"], printed["median"]):
        yield f"{at}/p50_s", f"is {found['p50_s']}, the phase's own median is {printed['median']}"


def _identities(at: str, found: list[Document], _: Document) -> Broken:
    yield from check_once((f"{at}/{number}/name", one["name"]) for number, one in enumerate(found))
    for number, one in enumerate(found):
        if not close(one["ratio"], ratio(one["left"], one["right"])):
            yield f"{at}/{number}/ratio", "is not left over right"
        elif one["holds"] is not True and one["ratio"] == 1:
            yield f"{at}/{number}/holds", "is not true though both sides are equal"


def _checkpoints(at: str, found: Document, summary: Document) -> Broken:
    latest, last = found["latest"], found["latest"][-1]
    if len(latest) != min(found["count"], _LISTED):
        yield f"{at}/latest", f"lists {len(latest)} of {found['count']} checkpoints"
    if found["last_step"] != last["step"]:
        yield f"{at}/last_step", f"is {found['last_step']}, but the last listed checkpoint is of step {last['step']}"
    if found["last_line"] < last["line_number"]:
        yield f"{at}/last_line", "is before the last listed checkpoint"
    durations = [one["duration_s"] for one in latest]
    if found["count"] == len(latest) and (found["duration_s"] is None) != (None in durations):
        yield f"{at}/duration_s", "does not follow from the listed checkpoints"
    end = summary["steps"].get("reached", summary["steps"]["last"])
    unsaved = found["unsaved_step_count"]
    if unsaved is not None and end is not None and last["step"] is not None and unsaved > max(0, end - last["step"]):
        yield f"{at}/unsaved_step_count", f"is more than the steps from {last['step']} to {end}"


PROGRESS_RULES: tuple[Rule, ...] = (
    Rule("realised_rates", PHASES, each(_realised, _blocks("realised"))),
    Rule("step_time_spread", PHASES, each(_step_times, _blocks("step_times"))),
    Rule("identity_ratio", PHASES, each(_identities, _blocks("identities"))),
    Rule("checkpoints_agree", PHASES, each(_checkpoints, _blocks("checkpoints"))),
)
