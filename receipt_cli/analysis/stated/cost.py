"""``cost/1``: the cost of a run in money and energy: device-hours × price, power × devices × time.

Prices are always stated (by the caller, or by the job's header), since no log prints them. The power of a device is the printed
mean, else the stated one. A figure with an unknown factor is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from receipt_cli.analysis.flops import Facts, world_size
from receipt_cli.analysis.goodput.model import Goodput, Wall
from receipt_cli.analysis.goodput.timestamps import LogTime
from receipt_cli.analysis.stated.completion import complete
from receipt_cli.analysis.stated.options import Options, StatedFact
from receipt_cli.numeric.statistics import Statistic

COST_RULE = "cost/1"
POWER = "power_w_per_device"
_PRICES = ("price_per_device_hour", "price_per_hour")
_HOUR_S = 3600.0


class Cost(NamedTuple):
    """The cost of a run. ``*_source``: ``stated``, ``header:POINTER``, a fact or a metric."""

    wall_time_s: float | None
    wall_evidence: str | None
    device_count: int | None
    device_count_source: str | None
    device_hours: float | None
    price_per_hour: float | None
    price_per_device_hour: float | None
    price_source: str | None
    currency: str | None
    amount: float | None
    power_w_per_device: float | None
    power_source: str | None
    energy_j: float | None


def find_cost(
    options: Options, known: Facts, metrics: Mapping[str, Statistic], goodput: Goodput | None, when: LogTime | None
) -> Cost | None:
    """Return the cost of a run; None if neither price nor power is known.

    ``known``: printed facts; ``metrics``: statistics of the primary phase. The time is the wall time of ``goodput``, else the
    stated one, else that between the log's first and last timestamps (``when``).
    """
    by_name = {fact.name: fact for fact in options.facts}
    price = next((by_name[name] for name in _PRICES if name in by_name), None)
    power, power_source = _power(metrics, by_name)
    if price is None and power is None:
        return None
    wall, evidence = _wall(goodput, options.wall, when)
    devices, devices_source = _devices(known, options.facts)
    hours = None if wall is None else wall / _HOUR_S
    device_hours = None if hours is None or devices is None else devices * hours
    rate = None if price is None else float(price.value)
    of_device = price is not None and price.name == "price_per_device_hour"
    time = device_hours if of_device else hours
    currency = by_name.get("currency")
    return Cost(
        wall_time_s=wall,
        wall_evidence=evidence,
        device_count=devices,
        device_count_source=devices_source,
        device_hours=device_hours,
        price_per_hour=None if of_device else rate,
        price_per_device_hour=rate if of_device else None,
        price_source=None if price is None else price.source,
        currency=None if currency is None else str(currency.value),
        amount=None if rate is None or time is None else rate * time,
        power_w_per_device=power,
        power_source=power_source,
        energy_j=None if power is None or device_hours is None else power * device_hours * _HOUR_S,
    )


def _power(metrics: Mapping[str, Statistic], stated: Mapping[str, StatedFact]) -> tuple[float | None, str | None]:
    printed = metrics.get(POWER)
    if printed is not None and printed.mean is not None and printed.mean >= 0:  # a negative power is a sensor error
        return printed.mean, f"metric:{POWER}"
    fact = stated.get(POWER)
    return (None, None) if fact is None else (float(fact.value), fact.source)


def _wall(goodput: Goodput | None, wall: Wall | None, when: LogTime | None) -> tuple[float | None, str | None]:
    if goodput is not None:
        return goodput.wall_time_s, goodput.evidence
    if wall is not None:
        return wall.seconds, wall.evidence
    if when is None:
        return None, None

    first, last = (datetime.fromisoformat(text.removesuffix("Z")) for text in (when.first, when.last))
    return (last - first).total_seconds(), "log_timestamps"


def _devices(known: Facts, stated: Sequence[StatedFact]) -> tuple[int | None, str | None]:
    done = complete(known, None, stated)
    found = world_size(done.facts)
    if found is None:
        return None, None
    return int(found[0]), done.used.get("world_size", found[1])
