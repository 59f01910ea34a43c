"""Rules of a GPU profile: its values follow from each other, and the measured programs (lanes) have equal settings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from receipt_cli.documents.invariants.captured import HEADER_RULES
from receipt_cli.documents.invariants.rule import (
    Broken,
    Document,
    Rule,
    check_once,
    check_texts,
    close,
    each,
    figure_rules,
    ratio,
)
from receipt_cli.problems import pointer

_MATCHED = ("batch_size", "sequence_length", "warmup_step_count", "step_count")
_SLACK = 1 + 1e-9


def _measured(document: Document) -> Broken:
    if not document["lanes"] and document["events"] is None:
        yield "/lanes", "is empty, and there are no events: nothing was measured"


def _lanes(document: Document) -> Iterator[tuple[str, Document]]:
    return ((f"/lanes/{number}", lane) for number, lane in enumerate(document["lanes"]))


def _events(document: Document) -> Iterator[tuple[Document]]:
    """Yield the events, if there are any."""
    return zip(filter(None, [document["events"]]))


def _lane_labels(document: Document) -> Broken:
    return check_once((f"{at}/label", lane["label"]) for at, lane in _lanes(document))


def _lane_outcome(at: str, lane: Document) -> Broken:
    if (lane["status"] == "failed") != (lane["failure"] is not None):
        yield f"{at}/failure", "must be given if, and only if, the lane's status is failed"


def _lane_figures(at: str, lane: Document) -> Broken:
    times, elapsed = lane["step_times_s"], lane["elapsed_s"]
    if times is not None and len(times) != lane["step_count"]:
        yield f"{at}/step_times_s", f"has {len(times)} entries for {lane['step_count']} timed steps"
    elif times is not None and elapsed is not None and sum(map(float, times)) > elapsed * _SLACK:
        yield f"{at}/step_times_s", f"add up to more than elapsed_s, {elapsed}"
    shape = (lane["batch_size"], lane["sequence_length"], lane["step_count"])
    if None not in shape and lane["token_count"] != math.prod(map(int, shape)):
        yield f"{at}/token_count", "is not batch_size times sequence_length times step_count"
    if not close(lane["tokens_per_s"], ratio(lane["token_count"], elapsed)):
        yield f"{at}/tokens_per_s", "is not token_count over elapsed_s"


def _confirmed(lane: dict[str, Any]) -> bool | None:
    """Return whether the lane ran the requested kernels; None if unknown."""
    seen = [None if one["observed"] is None else one["observed"] == one["requested"] for one in lane["dispatch"]]
    return _all(seen) if seen else None


def _all(answers: list[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _lane_dispatch(at: str, lane: Document) -> Broken:
    if lane["dispatch_confirmed"] is not _confirmed(lane):
        yield f"{at}/dispatch_confirmed", "does not follow from dispatch"


def _compared(document: Document) -> list[dict[str, Any]]:
    """Return the lanes of the baseline and the candidate, if they exist and differ."""
    comparison, lanes = document["comparison"], {lane["label"]: lane for lane in document["lanes"]}
    if comparison is None or comparison["baseline"] == comparison["candidate"]:
        return []
    return [lanes[comparison[role]] for role in ("baseline", "candidate") if comparison[role] in lanes]


def _compared_lanes(document: Document) -> Broken:
    comparison, labels = document["comparison"], [lane["label"] for lane in document["lanes"]]
    if comparison is None:
        return
    for role in ("baseline", "candidate"):
        if comparison[role] not in labels:
            yield f"/comparison/{role}", "is not a lane of this profile"
    if comparison["baseline"] == comparison["candidate"]:
        yield "/comparison/candidate", "is the baseline itself"


def _matched(document: Document) -> Broken:
    lanes = _compared(document)
    if len(lanes) < 2:
        return
    for name in _MATCHED:
        stated = [lane[name] for lane in lanes]
        if stated[0] != stated[1]:
            yield "/comparison", f"the lanes are not matched: {name} is {stated[0]} and {stated[1]}"
    if any(lane["status"] != "ok" for lane in lanes):
        yield "/comparison", "a lane that failed is compared"


def _comparison_figures(document: Document) -> Broken:
    comparison, lanes = document["comparison"], _compared(document)
    if len(lanes) < 2:
        return
    before, after = lanes
    if not close(comparison["speedup"], ratio(after["tokens_per_s"], before["tokens_per_s"])):
        yield "/comparison/speedup", "is not the candidate's tokens_per_s over the baseline's"
    peaks = [lane["peak_memory_bytes"] for lane in lanes]
    if comparison["peak_memory_delta_bytes"] != (None if None in peaks else peaks[1] - peaks[0]):
        yield "/comparison/peak_memory_delta_bytes", "is not the candidate's peak_memory_bytes minus the baseline's"
    if comparison["dispatch_confirmed"] is not _all([_confirmed(lane) for lane in lanes]):
        yield "/comparison/dispatch_confirmed", "does not follow from the lanes"


def _derived_events(document: Document) -> Broken:
    if (document["events"] is None) != (document["derivation"] is None):
        yield "/derivation", "must be given if, and only if, there are events"


def _lossy(events: Document) -> Broken:
    if events["lossy"] is not bool(events["losses"]):
        yield "/events/lossy", f"is {str(events['lossy']).lower()}, but {len(events['losses'])} kinds of loss are listed"


def _busy(events: Document) -> Broken:
    duration, devices = events["duration_s"], [device["busy_s"] for device in events["devices"]]
    for number, busy in enumerate(devices):
        if None not in (busy, duration) and busy > duration * _SLACK:
            yield f"/events/devices/{number}/busy_s", f"is longer than the session, {duration}"
    known = None if None in devices or not devices else sum(map(float, devices))
    if devices and not close(events["busy_s"], known):
        yield "/events/busy_s", "is not the sum of the devices"
    elif events["busy_ratio"] is not None and not devices:
        yield "/events/busy_ratio", "is not null, but no device is listed"
    elif devices and not close(events["busy_ratio"], _busy_ratio(known, duration, sum(bool(busy) for busy in devices))):
        yield "/events/busy_ratio", "is not busy_s over duration_s of the devices that ran kernels"


def _busy_ratio(busy: float | None, duration: float | None, devices: int) -> float | None:
    share = ratio(busy, duration)
    return None if share is None else share / max(1, devices)


def _timings(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for (events,) in _events(document):
        yield from ((f"/events/kernels/top/{number}", kernel) for number, kernel in enumerate(events["kernels"]["top"]))
        yield from ((f"/events/scopes/{number}", scope) for number, scope in enumerate(events["scopes"]))


def _timing(at: str, timing: Document) -> Broken:
    low, mean, high = (timing[name] for name in ("min_s", "mean_s", "max_s"))
    unknown = None in (low, mean, high)
    if (timing["count"] == 0) != unknown or (timing["count"] == 0 and timing["total_s"]):
        yield at, f"has {timing['count']} durations, which its values contradict"
    elif not unknown:
        between = low <= mean * _SLACK and mean <= high * _SLACK
        if not between or not close(mean, ratio(timing["total_s"], timing["count"])):
            yield f"{at}/mean_s", "is not total_s over count, between min_s and max_s"


def _largest_first(document: Document) -> Broken:
    above: dict[str, float] = {}
    for at, timing in _timings(document):
        part = at.rpartition("/")[0]
        if timing["total_s"] > above.get(part, timing["total_s"]):
            yield at, "took longer than the previous entry"
        above[part] = timing["total_s"]


def _kernel_totals(events: Document) -> Broken:
    kernels = events["kernels"]
    top = kernels["top"]
    if len(top) > kernels["name_count"]:
        yield "/events/kernels/name_count", f"is {kernels['name_count']}, but {len(top)} are listed"
    if sum(int(kernel["count"]) for kernel in top) > kernels["launch_count"]:
        yield "/events/kernels/launch_count", "is less than the launches of the listed kernels"
    total = kernels["total_s"]
    if total is not None and sum(float(kernel["total_s"]) for kernel in top) > total * _SLACK:
        yield "/events/kernels/total_s", "is less than the total of the listed kernels"


def _launches(at: str, timing: Document) -> Broken:
    launch = timing.get("launch")
    if launch is None:
        return
    low, high = launch["occupancy_min_ratio"], launch["occupancy_max_ratio"]
    if launch["detail_count"] > timing["count"]:
        yield f"{at}/launch/detail_count", f"is more than the {timing['count']} launches"
    if (low is None) != (high is None) or (low is not None and low > high):
        yield f"{at}/launch/occupancy_min_ratio", "is above occupancy_max_ratio, or only one of them is known"


def _stall_reasons(events: Document) -> Broken:
    reasons = events.get("stall_reasons", [])
    named = ((f"/events/stall_reasons/{n}/reason", (one["reason"], one["not_issued"])) for n, one in enumerate(reasons))
    yield from check_once(named)
    above: dict[bool, dict[str, Any]] = {}
    for number, reason in enumerate(reasons):
        at, kind = f"/events/stall_reasons/{number}", reason["not_issued"]
        first = above.setdefault(kind, reason)
        if number and reason["sample_count"] > reasons[number - 1]["sample_count"]:
            yield f"{at}/sample_count", "is more than the previous reason's"
        elif not close(reason["ratio"] * first["sample_count"], first["ratio"] * reason["sample_count"]):
            yield f"{at}/ratio", "is not its share of the samples"
    for kind in above:
        if sum(float(reason["ratio"]) for reason in reasons if reason["not_issued"] is kind) > _SLACK:
            yield "/events/stall_reasons", "add up to more than all samples"


def _copies(events: Document) -> Broken:
    every = [(f"/events/copies/{number}", copies) for number, copies in enumerate(events["copies"])]
    yield from check_once((f"{at}/direction", copies["direction"]) for at, copies in every)
    for at, copies in every:
        if not close(copies["bytes_per_s"], ratio(copies["total_bytes"], copies["total_s"])):
            yield f"{at}/bytes_per_s", "is not total_bytes over total_s"


def _device_order(events: Document) -> Broken:
    numbers = [device["number"] for device in events["devices"]]
    for place, (before, after) in enumerate(pairwise(numbers), start=1):
        if after <= before:
            yield f"/events/devices/{place}/number", f"is not after {before}"


def _told_and_counted(document: Document) -> Broken:
    problems = document["derivation"]["problems"] if document["derivation"] is not None else None
    if problems is not None and len(problems["first"]) > problems["count"]:
        yield "/derivation/problems/count", f"is {problems['count']}, but {len(problems['first'])} are listed"


def _sampled(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for (events,) in _events(document):
        for part in ("devices", "hosts"):
            for number, one in enumerate(events[part]):
                for name, figures in one["metrics"].items():
                    yield pointer("events", part, number, "metrics", name), figures


def _texts(document: Document) -> Broken:
    texts = [(f"{at}/failure", lane["failure"]) for at, lane in _lanes(document)]
    texts += [(f"{at}/name", timing["name"]) for at, timing in _timings(document)]
    reasons = (document["events"] or {}).get("stall_reasons", [])
    texts += [(f"/events/stall_reasons/{number}/reason", reason["reason"]) for number, reason in enumerate(reasons)]
    yield from check_texts(texts)


_COMPARED = ("lanes", "comparison")
_EVENTS = ("events",)
GPU_PROFILE_RULES: tuple[Rule, ...] = (
    *HEADER_RULES,
    Rule("measured", ("lanes", "events"), _measured),
    Rule("lane_labels", ("lanes",), _lane_labels),
    Rule("lane_outcome", ("lanes",), each(_lane_outcome, _lanes)),
    Rule("lane_figures", ("lanes",), each(_lane_figures, _lanes)),
    Rule("lane_dispatch", ("lanes",), each(_lane_dispatch, _lanes)),
    Rule("compared_lanes", _COMPARED, _compared_lanes),
    Rule("matched_lanes", _COMPARED, _matched),
    Rule("comparison_figures", _COMPARED, _comparison_figures),
    Rule("derived_events", ("events", "derivation"), _derived_events),
    Rule("lossy_agrees", _EVENTS, each(_lossy, _events)),
    Rule("busy", _EVENTS, each(_busy, _events)),
    Rule("timing", _EVENTS, each(_timing, _timings)),
    Rule("largest_first", _EVENTS, _largest_first),
    Rule("kernel_totals", _EVENTS, each(_kernel_totals, _events)),
    Rule("launches", _EVENTS, each(_launches, _timings)),
    Rule("stall_reasons", _EVENTS, each(_stall_reasons, _events)),
    Rule("copies", _EVENTS, each(_copies, _events)),
    Rule("device_order", _EVENTS, each(_device_order, _events)),
    Rule("told_and_counted", ("derivation",), _told_and_counted),
    Rule("control_characters", ("lanes", "events"), _texts),
    *figure_rules(_EVENTS, _sampled),
)
"""The rules of a GPU profile in order of check and report."""
