"""Rules of the wall time, of stated facts and of the cost: parts add up, and values agree with their sources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, close, each, summaries
from receipt_cli.problems import pointer, split_pointer, value_at

_SLACK = 1e-9
"""Largest relative error of a sum: each part is rounded once."""
_LISTED = 10
"""Most stalls that a receipt lists."""


def _with_parts(document: Document) -> Iterator[tuple[Document, Document]]:
    """Yield the document and its block if that states the evidence of each part, which it does since receipt/1.2."""
    if document["goodput"] is not None and "parts" in document["goodput"]:
        yield document, document["goodput"]


def _ratio(document: Document, goodput: Document) -> Broken:
    wall, steps = float(goodput["wall_time_s"]), float(goodput["step_time_s"])
    if wall and abs(float(goodput["goodput_ratio"]) - min(1.0, steps / wall)) > _SLACK:
        yield "/goodput/goodput_ratio", "is not step_time_s over wall_time_s"


def _add_up(document: Document, goodput: Document) -> Broken:
    lost = [float(seconds) for seconds in goodput["badput_s"].values() if seconds is not None]
    total, wall = math.fsum([float(goodput["step_time_s"]), *lost]), float(goodput["wall_time_s"])
    rest = 0.0 if goodput["badput_s"]["idle"] is None else wall - total  # unknown time is in no class
    if max(abs(rest), total - wall) > _SLACK * max(wall, 1.0):
        yield "/goodput/badput_s", f"with step_time_s adds up to {total:g} s of a wall time of {wall:g} s"


def _known(document: Document, goodput: Document) -> Broken:
    sampled, has = document["derivation"].get("samples") is not None, "gpu_idle" in goodput["badput_s"]
    if has is not sampled or has is not ("gpu_idle" in goodput["parts"]):
        what = "though no file of samples is named" if has else "is missing: a file of samples is named"
        yield "/goodput/badput_s/gpu_idle", what
        return
    for name, part in goodput["parts"].items():
        at = pointer("goodput", "parts", name)
        unknown = goodput["badput_s"][name] is None
        if unknown != (part["how"] == "unknown"):
            yield f"{at}/how", f"is {part['how']} though its seconds are {'null' if unknown else 'known'}"
        elif unknown and (part["count"] is not None or part["overlapped_s"] is not None):
            yield at, "is unknown, so its count and overlap must be null"


def _stated(document: Document, goodput: Document) -> Broken:
    wall = document["derivation"]["options"].get("wall")
    stamps = "arrival" if document["derivation"].get("times") is not None else "log_timestamps"
    if wall is None:
        if goodput["evidence"] != stamps:
            yield "/goodput/evidence", f"is not {stamps}, but no option states a wall time"
        elif goodput["phase"] is not None:
            yield "/goodput/phase", "is not null, but no option states a wall time"
        return
    if goodput["evidence"] not in (wall["evidence"], stamps):
        yield "/goodput/evidence", f"is not {wall['evidence']}, which the options state"
    elif goodput["evidence"] == wall["evidence"]:
        for key, stated in (("wall_time_s", wall["seconds"]), ("phase", wall["phase"])):
            if goodput[key] != stated:
                yield f"/goodput/{key}", f"is not {stated}, which the options state"


def _range(document: Document, goodput: Document) -> Broken:
    if "range" not in goodput:
        return
    low, high, ratio = goodput["range"]["low"], float(goodput["range"]["high"]), float(goodput["goodput_ratio"])
    if low is not None and float(low) > high + _SLACK:
        yield "/goodput/range/low", f"is above the high end, {high:g}"
    elif not float(low or 0) - _SLACK <= ratio <= high + _SLACK:
        yield "/goodput/range", f"does not contain the goodput, {ratio:g}"


def _stalls(document: Document, goodput: Document) -> Broken:
    stalls = goodput.get("stalls")
    if stalls is None:
        return
    longest, total = stalls["longest"], float(stalls["total_s"])
    lengths = [float(stall["duration_s"]) for stall in longest]
    if len(longest) != min(stalls["count"], _LISTED):
        yield "/goodput/stalls/longest", f"lists {len(longest)} of {stalls['count']} stalls"
    if lengths != sorted(lengths, reverse=True):
        yield "/goodput/stalls/longest", "is not sorted by duration"
    if math.fsum(lengths) > total * (1 + _SLACK) + _SLACK:
        yield "/goodput/stalls/total_s", f"is less than the listed stalls, {math.fsum(lengths):g} s"
    limit = max(document["derivation"]["log"]["line_count"], document["derivation"]["log"]["record_count"])
    for number, stall in enumerate(longest):
        if not stall["after_line"] <= stall["line_number"] <= limit:
            between = f"is between lines {stall['after_line']} and {stall['line_number']}"
            yield pointer("goodput", "stalls", "longest", number), between


def _time(at: str, summary: Document) -> Broken:
    time = summary.get("time")
    if time is None:
        return
    if (time["zone"] is not None) is not (time["first"].endswith("Z") and time["last"].endswith("Z")):
        yield f"{at}/time/zone", "does not agree with the timestamps"
    elif time["first"].rstrip("Z") > time["last"].rstrip("Z"):
        yield f"{at}/time/last", f"is before the first timestamp, {time['first']}"


GOODPUT_RULES: tuple[Rule, ...] = (
    Rule("goodput_ratio", ("goodput",), each(_ratio, _with_parts)),
    Rule("goodput_adds_up", ("goodput",), each(_add_up, _with_parts)),
    Rule("goodput_known", ("goodput", "derivation"), each(_known, _with_parts)),
    Rule("goodput_range", ("goodput",), each(_range, _with_parts)),
    Rule("goodput_stalls", ("goodput", "derivation"), each(_stalls, _with_parts)),
    Rule("time_in_order", PHASES, each(_time, summaries)),
    Rule("goodput_stated", ("goodput", "derivation"), each(_stated, _with_parts)),
)


_TEXTS = ("accelerator_name", "currency")
_PRICES = ("price_per_hour", "price_per_device_hour")
_DEVICE_KEYS = {"accelerator_name": "name", "world_size": "count"}
_HOUR_S = 3600.0


def _facts(document: Document) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = document["derivation"]["options"].get("facts", [])
    return facts


def _stated_facts(document: Document) -> Broken:
    facts = _facts(document)
    names = [fact["name"] for fact in facts]
    if names != sorted(set(names)):
        yield "/derivation/options/facts", "does not list each fact once, sorted by name"
    if set(_PRICES) <= set(names):
        yield "/derivation/options/facts", "states both the price of the job and of a device"
    for number, fact in enumerate(facts):
        at, value = pointer("derivation", "options", "facts", number, "value"), fact["value"]
        if (fact["name"] in _TEXTS) is not isinstance(value, str) or (not isinstance(value, str) and value <= 0):
            yield at, f"is not a valid {fact['name']}"
        elif fact["source"].startswith("header:") and not _same(_of_header(document, fact), value):
            yield at, f"is not the value at {fact['source'].removeprefix('header:')} in the header"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str) or one is None:
        return bool(one == other)
    return not isinstance(one, bool) and float(one) == float(other)


def count_devices(visible: object) -> int:
    """Return the number of devices in a value of ``CUDA_VISIBLE_DEVICES``; devices after -1 are hidden."""
    names = [name.strip() for name in str(visible).split(",")]
    return len(names[: names.index("-1")] if "-1" in names else list(filter(None, names)))


def _of_header(document: Document, fact: dict[str, Any]) -> Any:
    """Return the header's value that is the source of a fact, or None."""
    value = value_at(document["header"], split_pointer(fact["source"].removeprefix("header:")))
    if isinstance(value, list):  # accelerators, of one kind
        value = value[0].get(_DEVICE_KEYS.get(fact["name"], "")) if len(value) == 1 else None
    elif fact["source"].endswith("/cuda_visible_devices"):
        value = count_devices(value)
    elif isinstance(value, dict):
        value = value.get("currency" if fact["name"] == "currency" else "hourly_rate")
    return value


def _inputs(document: Document) -> Broken:
    facts = {fact["name"]: fact for fact in _facts(document)}
    for at, summary in summaries(document):
        for metric, figure in summary["derived"].items():
            inputs = figure["inputs"]
            for key, source in inputs.items():
                name = "peak_flops_per_s_per_device" if key == "peak_source" else key.removesuffix("_source")
                if key == name or not isinstance(source, str) or not (source == "stated" or source.startswith("header:")):
                    continue
                fact = facts.get(name)
                if fact is None or fact["source"] != source:
                    yield f"{at}/derived/{metric}/inputs/{key}", f"is {source}, but the options have no {name} from there"
                elif name in inputs and not _same(inputs[name], fact["value"]):
                    yield f"{at}/derived/{metric}/inputs/{name}", f"is not the stated {fact['value']}"


def _cost(document: Document) -> Broken:
    cost = document["cost"]
    facts = {fact["name"]: fact for fact in _facts(document)}
    for name, source, value in (
        *((name, cost["price_source"], cost[name]) for name in _PRICES),
        ("currency", None, cost["currency"]),
        ("power_w_per_device", cost["power_source"], cost["power_w_per_device"]),
    ):
        fact = facts.get(name)
        printed = name == "power_w_per_device" and str(source).startswith("metric:")
        if printed or (fact is None and value is None):
            continue
        if fact is None or value is None or not _same(fact["value"], value) or source not in (None, fact["source"]):
            yield f"/cost/{name}", "is not the value that the options state"
    hours = None if cost["wall_time_s"] is None else cost["wall_time_s"] / _HOUR_S
    devices = cost["device_count"]
    device_hours = None if hours is None or devices is None else hours * devices
    job, device = cost["price_per_hour"], cost["price_per_device_hour"]
    amount = _product(job, hours) if device is None else _product(device, device_hours)
    energy = _product(cost["power_w_per_device"], None if device_hours is None else device_hours * _HOUR_S)
    for name, wanted in (("device_hours", device_hours), ("amount", amount), ("energy_j", energy)):
        if not close(cost[name], wanted):
            yield f"/cost/{name}", f"is {cost[name]}, but {wanted} by its factors"
    goodput = document["goodput"]
    if goodput is not None and cost["wall_time_s"] != goodput["wall_time_s"]:
        yield "/cost/wall_time_s", "is not the wall time of goodput"


def _product(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other


STATED_RULES: tuple[Rule, ...] = (
    Rule("facts_stated", ("derivation", "header"), _stated_facts),
    Rule("facts_used", (*PHASES, "derivation"), _inputs),
    Rule("cost_follows", ("cost", "derivation", "goodput"), _cost),
)
