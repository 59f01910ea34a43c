"""Printed numbers become base units exactly, and what is not surely one number is not read."""

import math
from decimal import Decimal

import pytest

from receipt_cli.definitions.units import MAX_TEXT, read_number

EXACT = [
    ("131.97", "ms", 0.13197),
    ("0.1", "ms", 0.0001),
    ("1.5", "min", 90.0),
    ("29.53%", "percent", 0.2953),
    ("312.4TFLOP/s", "TFLOPS", 312.4e12),
    ("71.14GB", "GiB", float(Decimal("71.14") * 2**30)),
    ("80GB", "GB", 80e9),
    ("124M", "si", 124e6),
    ("1.3B", "si", 1.3e9),
    ("250ms", "suffix", 0.25),
    ("2.5MiB", "suffix", 2621440.0),
    ("15m 1s", "suffix", 901.0),
    ("0h  2min  3s   4ms", "suffix", 123.004),
    ("22h  2min 18s  13ms", "suffix", 79338.013),
    ("1h2m3.5s", "suffix", 3723.5),
    ("2 days, 3 hours", "suffix", 183600.0),
    ("1 min and 2 sec", "hms", 62.0),
    ("1.5", "million", 1.5e6),
    (".5", None, 0.5),
    ("12%", None, 0.12),
    ("3.2e-4", None, 0.00032),
    ("1,234,567.25", None, 1234567.25),
    ("12,345.6ms", "ms", 12.3456),
    ("1,000", "K", 1e6),
]

REFUSED = [
    ("", None),
    ("0,123", None),  # a decimal comma: no group of thousands begins with a zero
    ("{loss:.4f}", None),
    ("1,5", None),
    ("1,23,456", None),
    ("1.2.3", None),
    ("12ms", None),
    ("512MB", "GiB"),
    ("512MiB", "GiB"),
    ("71.1GiB", "GB"),
    ("12s", "ms"),
    ("12ms", "s"),
    ("12GB", "si"),
    ("12", "hms"),
    ("12furlongs", "suffix"),
    ("15m 1s", "min"),
    ("1s 15m", "suffix"),
    ("1m 2m", "suffix"),
    ("9" * 10_000, None),
    ("1e400", None),
    ("-1e400", "ms"),
    ("1e308", "T"),
]

HMS = [
    ("1:02:03.5", 3723.5),
    ("00:12", 12.0),
    ("02:03", 123.0),
    ("1:00:00", 3600.0),
    ("120:00:01", 432001.0),
    ("1 day, 2:03:04", 93784.0),
    ("2 days, 0:00:00", 172800.0),
    ("1:02:03:04", None),
    ("1:", None),
    ("-1:02", None),
    ("?", None),
    ("1:02:03 h", None),
    ("1:02:75", None),
    ("1:75:00", None),
]


@pytest.mark.parametrize(
    ("text", "unit", "want"), [*EXACT, *((*row, None) for row in REFUSED), *((text, "hms", want) for text, want in HMS)]
)
def test_a_number_is_scaled_exactly_or_not_read(text: str, unit: str | None, want: float | None) -> None:
    assert read_number(text, unit) == want


NANS = [(text, unit) for text in ("nan", "NaN", "NAN", "-nan", "Nan") for unit in (None, "ms", "percent", "si", "GiB")]


@pytest.mark.parametrize(("text", "unit"), [*NANS, ("nan%", "percent"), ("nanms", "ms"), ("NaNs", "s")])
def test_nan_in_any_case(text: str, unit: str | None) -> None:
    assert math.isnan(read_number(text, unit) or 0)


@pytest.mark.parametrize("unit", [None, "ms", "percent", "si"])
@pytest.mark.parametrize(
    ("text", "want"),
    [("inf", math.inf), ("INF", math.inf), ("Inf", math.inf), ("+inf", math.inf), ("Infinity", math.inf), ("-inf", -math.inf),
     ("-INF", -math.inf), ("-Infinity", -math.inf)],
)  # fmt: skip
def test_infinity_in_any_case(text: str, unit: str | None, want: float) -> None:
    assert read_number(text, unit) == want


def test_the_longest_number() -> None:
    assert read_number("1" * MAX_TEXT) == float("1" * MAX_TEXT)
    assert read_number("1" * (MAX_TEXT + 1)) is None
