"""Words for comparison documents, shared by the terminal and Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from receipt_cli.render.fields import UNKNOWN
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import count, duration, kind_of, measure, scale_for, signed, significant
from receipt_cli.render.style import Role

VERDICTS: dict[str, tuple[str, Role]] = {
    "comparable": ("✓ comparable", "good"),
    "caveats": ("! comparable, with caveats", "warn"),
    "not_comparable": ("≠ not comparable", "bad"),
}
OUTCOMES: dict[str, tuple[str, Role]] = {
    "better": ("better", "good"),
    "worse": ("worse", "bad"),
    "different": ("differs", "plain"),
    "no_evidence": ("no evidence", "dim"),
    "below_precision": ("below precision", "dim"),
    "equal": ("equal", "dim"),
    "incomparable": ("other meaning", "warn"),
    "noise": ("within noise", "dim"),
    "not_judged": ("no error known", "dim"),
    "lost": ("lost", "bad"),
    "gained": ("gained", "plain"),
}


def field_name(pointer: str) -> str:
    """Return a field's JSON pointer as words: ``hardware accelerators``."""
    return pointer.removeprefix("/header").removeprefix("/").replace("/", " ").replace("~1", "/").replace("~0", "~")


def field_value(value: object) -> str:
    """Return a field's value for people."""
    if value is None:
        return "unknown"
    if isinstance(value, list) and value and all(isinstance(item, dict) and item.get("name") for item in value):
        return ", ".join(f"{item['count']} × {item['name']}" if item.get("count") else str(item["name"]) for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def reason_text(reason: str) -> str:
    """Return a reason; if it begins with a JSON pointer, with the name of that field instead."""
    place, blank, rest = reason.partition(" ")
    return f"{field_name(place)}{blank}{rest}" if place.startswith("/") else reason


def figure_name(m: Mapping[str, Any]) -> str:
    """Return the name of a compared metric, with ``(last)`` if its last value is compared, not its median."""
    return f"{metric_label(m['name'])}{'' if m['figure'] == 'median' else ' (last)'}"


def figures(m: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the common unit of the two figures of a compared metric, and the figures."""
    scale = scale_for(m["name"], [value for value in (m["a"], m["b"]) if value is not None])
    a, b = (UNKNOWN if m[side] is None else scale.format(m[side]) for side in "ab")
    return scale.unit, a, b


def change(m: Mapping[str, Any]) -> str:
    """Return the difference from a to b."""
    return UNKNOWN if m["delta"] is None else _change(m["delta"], m)


def interval(m: Mapping[str, Any]) -> str:
    """Return the interval of the change, or in words why it is missing or too wide."""
    if m["low"] is None and m.get("outcome") == "no_evidence":
        return "too few records"
    if m["low"] is not None and m["a"] and m["low"] <= 0 <= m["high"] and max(-m["low"], m["high"]) > abs(m["a"]):
        return "too noisy to tell"  # open are both no change and one by over 100 %
    return UNKNOWN if m["low"] is None else f"{_change(m['low'], m, bare=True)} … {_change(m['high'], m)}"


def _change(delta: float, m: Mapping[str, Any], *, bare: bool = False) -> str:
    """Return a difference: in percent of a if a ratio is defined, else in the metric's unit."""
    if delta == 0:
        return "0"
    if m["ratio"] is None or kind_of(m["name"]) == "plain":
        return signed(delta, partial(measure, m["name"]))
    share = abs(delta / m["a"]) * 100
    digits = "<0.01" if share < 0.005 else f"{share:.2f}" if share < 9.995 else significant(share, 3)
    return signed(delta, lambda _: f"{digits}{'' if bare else ' %'}")


def curve_facts(c: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the label of a compared curve and its facts in words."""
    place = {"tokens": "token", "samples": "sample", "time": "second"}.get(c["axis"], "step")
    facts = [f"{count(c['common'])} common {'steps' if place == 'step' else 'places'}"]
    if c["first_difference"] is None:
        facts.append("identical as printed")
    else:
        facts.append(f"first difference at {place} {count(c['first_difference'])}")
        if c["departure"] is not None:
            facts.append(f"apart for good from {place} {count(c['departure'])}")
        form = partial(measure, c["metric"])
        end, low, high = (None if c[key] is None else signed(c[key], form) for key in ("end_delta", "low", "high"))
        facts.append(f"at the end {end}" + ("" if low is None else f" ({low} to {high})"))
    return metric_label(c["metric"]), facts


def stall_facts(stalls: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return a label for the stalled steps of both sides and the facts in words."""
    shares = [(name, _percent(stalls[name]["rate"]), _percent(stalls[name]["cost"])) for name in "ab"]
    sides = [f"{name}: {rate} of the steps, {cost} of the time" for name, rate, cost in shares]
    return "stalls", [*sides, OUTCOMES[stalls["outcome"]][0]]


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.2g} %"


TARGET_HEAD = ("run", "reached", "step", "held from", "tokens", "samples", "time", "best")
_REACHED = {True: "yes", False: "no", None: UNKNOWN}


def target_title(target: Mapping[str, Any]) -> str:
    """Return a target as a heading: ``val loss 2.5``."""
    return f"{metric_label(target['metric'])} {target['value']:g}"


def target_rows(target: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the cells of each run under ``TARGET_HEAD``."""
    for run in target["runs"]:
        counts = (UNKNOWN if run[key] is None else count(run[key]) for key in ("step", "held_step", "tokens", "samples"))
        time = UNKNOWN if run["time_s"] is None else duration(run["time_s"])
        best = UNKNOWN if run["best"] is None else significant(run["best"], 4)
        yield [run["run"], _REACHED[run["reached"]], *counts, time, best]
