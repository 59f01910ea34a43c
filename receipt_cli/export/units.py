"""Units and names of the registry, as other systems spell them."""

from __future__ import annotations

from typing import NamedTuple

from receipt_cli.definitions.metrics import Metric

UCUM = {
    "1": "1", "s": "s", "byte": "By", "bit/byte": "bit/By", "token": "{token}", "token/s": "{token}/s", "sample": "{sample}",
    "sample/s": "{sample}/s", "step/s": "{step}/s", "flop": "{flop}", "flop/s": "{flop}/s", "J": "J", "W": "W",
}  # fmt: skip
"""Unit of the registry → the Unified Code for Units of Measure; what it counts stands in braces."""

_ENDINGS = (
    ("_per_s", "_per_second", None), ("_s", "_seconds", "seconds"), ("_bytes", "_bytes", "bytes"), ("_ratio", "_ratio", "ratio"),
    ("_j", "_joules", "joules"), ("_w", "_watts", "watts"), ("tokens_total", "tokens", "tokens"),
    ("samples_total", "samples", "samples"), ("total_flops", "total_flops", "flops"),
)  # fmt: skip


class Family(NamedTuple):
    """What a metric is called in OpenMetrics, and its unit, with which the name ends; empty: none."""

    name: str
    unit: str


def family(metric: Metric) -> Family:
    """Return a metric's OpenMetrics name: base units written out, last in the name."""
    stem = metric.name.removesuffix("_per_device")
    device = "" if stem == metric.name else "device_"
    for ending, written, unit in _ENDINGS:
        if stem.endswith(ending):
            spelled = stem.removesuffix(ending) + written
            rate = "_".join(spelled.split("_")[-3:])  # what is counted, per second
            return Family(f"training_{device}{spelled}", unit or rate)
    return Family(f"training_{device}{stem}", "")
