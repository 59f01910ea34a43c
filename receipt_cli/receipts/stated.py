"""Read stated facts about a run: from the option ``--fact NAME=VALUE``, and from the job's header."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from receipt_cli.analysis.stated import StatedFact
from receipt_cli.definitions.units import read_number
from receipt_cli.documents.invariants.goodput import count_devices
from receipt_cli.errors import UsageError
from receipt_cli.header.values import text
from receipt_cli.patterns import compile_later
from receipt_cli.redaction.mask import mask_secrets

_MONEY = compile_later(r"(?:([A-Z]{3}|[$€£])\s*)?([0-9][0-9,.]*)(?:\s*([A-Z]{3}|[$€£]))?(?:\s*/\s*h(?:our)?)?\Z")
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}
_FLOPS = ("si", "GFLOPS", "TFLOPS", "PFLOPS")
_WATTS = {"": 1.0, "W": 1.0, "kW": 1e3}
_POWER = compile_later(r"([0-9.,eE+-]+)\s*(k?W)?\Z")
"""A power with its unit; ``definitions.units`` has no watt because no grammar reads a power."""


def _count(value: str) -> float | None:
    return read_number(value, "si")


def _whole(value: str) -> float | None:
    number = read_number(value, "si")
    return number if number is not None and math.isfinite(number) and number.is_integer() else None


def _flops(value: str) -> float | None:
    """Return FLOP/s of a text such as ``989e12``, ``989T`` or ``989 TFLOP/s``, or None."""
    return next((number for unit in _FLOPS if (number := read_number(value, unit)) is not None), None)


def _power(value: str) -> float | None:
    found = _POWER.match(value)
    number = None if found is None else read_number(found[1])
    return None if found is None or number is None else number * _WATTS[found[2] or ""]


Read = Callable[[str], float | None]

FACTS: Mapping[str, tuple[str, Read, str]] = {
    "devices": ("world_size", _whole, "8"),
    "peak_flops": ("peak_flops_per_s_per_device", _flops, "989e12 or 989 TFLOP/s"),
    "params": ("parameter_count", _whole, "124_439_808, 124M"),
    "flops_per_token": ("flops_per_token", _count, "5.53e9 or 5.53G"),
    "tokens_per_step": ("tokens_per_step", _count, "524288 or 0.5M"),
    "samples_per_step": ("samples_per_step", _count, "512"),
    "sequence_length": ("sequence_length", _whole, "2048"),
    "power": ("power_w_per_device", _power, "700 W, of one device"),
    "price_per_hour": ("price_per_hour", read_number, "24, '24 USD' or $24, of the whole job"),
    "price_per_device_hour": ("price_per_device_hour", read_number, "3, '3 USD' or $3"),
}
"""Name in the option → name in receipts, reader, example. ``accelerator``, a string, is read separately."""
ACCELERATOR = "accelerator"
NAMES = (ACCELERATOR, *FACTS)


def read_facts(options: Sequence[str]) -> tuple[StatedFact, ...]:
    """Return the facts of ``NAME=VALUE`` options, sorted by name; a price may include its currency.

    Names are those in ``NAMES`` or in receipts. Raises ``UsageError``.
    """
    found: dict[str, StatedFact] = {}
    for option in options:
        name, separator, value = option.partition("=")
        name, value = name.strip(), value.strip()
        if not separator or not value:
            raise UsageError(f"--fact needs NAME=VALUE, not {ascii(option)[:100]}", try_="--fact peak_flops=989e12")
        for fact in _read(name, value):
            if fact.name in found and found[fact.name].value != fact.value:
                raise UsageError(f"--fact states {fact.name} twice", why=f"{found[fact.name].value} and {fact.value}")
            found[fact.name] = fact
    if {"price_per_hour", "price_per_device_hour"} <= found.keys():
        raise UsageError("--fact states both the price of the job and of a device", why="one follows from the other")
    return _ordered(found.values())


def _read(name: str, value: str) -> list[StatedFact]:
    name = next((known for known, (fact, _, _) in FACTS.items() if fact == name), name)
    if name in (ACCELERATOR, "accelerator_name"):
        try:
            return [StatedFact("accelerator_name", mask_secrets(text(value)))]
        except ValueError as error:
            raise UsageError(f"--fact {name} {error}") from None
    if name not in FACTS:
        raise UsageError(f"--fact {ascii(name)[:60]} is not known", why=f"must be one of {', '.join(NAMES)}")
    fact, read, example = FACTS[name]
    more: list[StatedFact] = []
    if name.startswith("price_"):
        money = _MONEY.match(value)
        sign = None if money is None else money[1] or money[3]
        more = [] if sign is None else [StatedFact("currency", _SIGNS.get(sign, sign))]
        value = value if money is None else money[2]
    number = read(value.replace("_", ""))
    if number is None or not 0 < number < math.inf:
        raise UsageError(f"--fact {name} cannot be {ascii(value)[:60]}", why=f"must be a number above 0, such as {example}")
    return [StatedFact(fact, number), *more]


def header_facts(header: Mapping[str, Any] | None) -> tuple[StatedFact, ...]:
    """Return the facts of a collected header: devices, batch, model size, hourly price.

    Several kinds of devices give no accelerator. With several nodes, the devices of one node do not give the job's number
    of devices. An hourly rate of 0 is not a price.
    """
    if header is None:
        return ()
    found: list[StatedFact] = []
    for pointer, name in _OF_HEADER.items():
        section, _, key = pointer[1:].partition("/")
        _add(found, name, (header.get(section) or {}).get(key), pointer)
    flags = header.get("flags") or {}
    devices: list[Any] = (header.get("hardware") or {}).get("accelerators") or []
    if len(devices) == 1:
        _add(found, "accelerator_name", devices[0].get("name"), _DEVICES)
        nodes, visible = flags.get("node_count", 1), flags.get("cuda_visible_devices")
        if nodes == 1 and not any(fact.name == "world_size" for fact in found):
            if visible is None:
                _add(found, "world_size", devices[0].get("count"), _DEVICES)
            else:
                _add(found, "world_size", count_devices(visible), _VISIBLE)
    cost = header.get("cost") or {}
    _add(found, "price_per_hour", cost.get("hourly_rate"), _COST)
    if found and found[-1].name == "price_per_hour":
        _add(found, "currency", cost.get("currency"), _COST)
    return _ordered(found)


_DEVICES, _VISIBLE, _COST = "/hardware/accelerators", "/flags/cuda_visible_devices", "/cost"
_OF_HEADER: Mapping[str, str] = {
    "/parallelism/world_size": "world_size",
    "/model/parameter_count": "parameter_count",
    "/flags/tokens_per_step": "tokens_per_step",
    "/flags/global_batch_size": "samples_per_step",
    "/flags/sequence_length": "sequence_length",
}


def _add(found: list[StatedFact], name: str, value: object, pointer: str) -> None:
    if isinstance(value, str) and value:
        found.append(StatedFact(name, value, f"header:{pointer}"))
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        found.append(StatedFact(name, float(value), f"header:{pointer}"))


def merge_facts(stated: Sequence[StatedFact], of_header: Sequence[StatedFact]) -> tuple[tuple[StatedFact, ...], list[str]]:
    """Return the ``stated`` facts, then the header's other facts, and a note for each contradiction."""
    found = {fact.name: fact for fact in stated}
    priced = any(name.startswith("price_") for name in found)
    notes: list[str] = []
    for fact in of_header:
        own = found.get(fact.name)
        if own is not None and own.value != fact.value:
            notes.append(f"{fact.name} is stated as {own.value}, but {fact.value} in the header: used the stated value")
        if own is None and not (priced and fact.name in ("currency", "price_per_hour")):
            found[fact.name] = fact
    return _ordered(found.values()), notes


def _ordered(facts: Iterable[StatedFact]) -> tuple[StatedFact, ...]:
    return tuple(sorted(facts, key=lambda fact: fact.name))
