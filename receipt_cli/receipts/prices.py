"""Take the price of a job from a table of prices: ``prices.yaml``, dated and with its source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from receipt_cli.definitions.accelerators import normalise
from receipt_cli.errors import DataError, UsageError
from receipt_cli.header.values import cost

VARIABLE = "RECEIPT_PRICES"
"""Environment variable with the path of the table."""
_KEYS = ("currency", "as_of", "source", "per_device_hour")


def add_price(header: dict[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Add the hourly price of the job's accelerators to ``header``, if the table has one, and return notes.

    A stated cost stays. Nothing is added if the accelerators, or the number of nodes, leave the price open. Raises
    ``UsageError`` for a table that cannot be read and ``DataError`` for one that is wrong.
    """
    path = environ.get(VARIABLE, "").strip()
    if not path or header["cost"] is not None:
        return []
    table = read_prices(path)
    devices = header["hardware"]["accelerators"] or []
    if len(devices) != 1 or not devices[0]["name"] or not devices[0]["count"]:
        return ["price: the accelerators of the job are not of one known kind; no price is taken from the table"]
    if (header["flags"] or {}).get("node_count", 1) != 1:
        return ["price: the job has several nodes, whose accelerators are not counted here; no price is taken from the table"]
    [device] = devices
    price = table["per_device_hour"].get(normalise(device["name"]))
    if price is None:
        return [f"price: the table has none for {device['name']}"]
    stated = {"hourly_rate": price * device["count"], "currency": table["currency"], "source": table["source"]}
    header["cost"] = cost(stated)
    header["sources"]["/cost"] = f"env:{VARIABLE}"
    return []


def read_prices(path: str) -> dict[str, Any]:
    """Return the table in the file ``path``: ``currency``, ``source`` with its date, and ``per_device_hour`` by normalised name.

    Raises as ``add_price``.
    """
    from receipt_cli.definitions.strict_yaml import read_yaml  # a start reads no YAML

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{VARIABLE}: the table of prices cannot be read", where=path, why=error.strerror or "it is no file"
        ) from None
    data = read_yaml(text, path)
    if set(data) != set(_KEYS):
        raise DataError(f"a table of prices has the keys {', '.join(_KEYS)}", where=path)
    for key in ("currency", "source"):
        if not isinstance(data[key], str) or not data[key].strip():
            raise DataError(f"{key} must be a text", where=path)
    try:
        day = date.fromisoformat(str(data["as_of"])).isoformat()
    except ValueError:
        raise DataError("as_of must be a date such as 2026-11-30", where=path) from None
    prices = data["per_device_hour"]
    if not isinstance(prices, dict) or not all(isinstance(name, str) and _is_price(value) for name, value in prices.items()):
        raise DataError("per_device_hour must give a number above 0 for each name of a device", where=path)
    named = {normalise(name): float(value) for name, value in prices.items()}
    if len(named) < len(prices):
        raise DataError("per_device_hour has a device twice, in two spellings", where=path)
    return {"currency": data["currency"], "source": f"{data['source']}, {day}", "per_device_hour": named}


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
