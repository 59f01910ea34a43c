"""Rules of stated facts: each is unique and agrees with its source in the header and with the values derived from it."""

from __future__ import annotations

from typing import Any

from receipt_cli.documents.invariants.figures import close
from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, pointer, pointer_parts, summaries

_TEXTS = ("accelerator_name", "currency")
_PRICES = ("price_per_hour", "price_per_device_hour")
_DEVICE_KEYS = {"accelerator_name": "name", "world_size": "count"}
_HOUR_S = 3600.0


def _facts(document: Document) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = document["derivation"]["options"].get("facts", [])
    return facts


def _stated(document: Document) -> Broken:
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
    value: Any = document["header"]
    for key in pointer_parts(fact["source"].removeprefix("header:")):
        value = value.get(key) if isinstance(value, dict) else None
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
    Rule("facts_stated", ("derivation", "header"), _stated),
    Rule("facts_used", (*PHASES, "derivation"), _inputs),
    Rule("cost_follows", ("cost", "derivation", "goodput"), _cost),
)
