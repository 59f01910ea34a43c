"""Printed numbers become base units exactly, and what is not surely one number is not read."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.definitions.units import MAX_TEXT, SPECIAL_UNITS, UNITS, read_number

EXACT = [
    ("131.97", "ms", 0.13197),
    ("131.97 ms", "ms", 0.13197),
    ("131.97ms", "ms", 0.13197),
    ("0.1", "ms", 0.0001),
    ("7", "us", 0.000007),
    ("3", "ns", 3e-9),
    ("1.5", "min", 90.0),
    ("0.1", "h", 360.0),
    ("29.53%", "percent", 0.2953),
    ("29.53 %", "percent", 0.2953),
    ("-100.00", "percent", -1.0),
    ("0.07", "percent", 0.0007),
    ("312.4", "TFLOPS", 312.4e12),
    ("312.4TFLOP/s", "TFLOPS", 312.4e12),
    ("71.14", "GiB", float(Decimal("71.14") * 2**30)),
    ("71.14GiB", "GiB", float(Decimal("71.14") * 2**30)),
    ("71.14GB", "GiB", float(Decimal("71.14") * 2**30)),
    ("512", "MiB", 536870912.0),
    ("80GB", "GB", 80e9),
    ("124M", "si", 124e6),
    ("12.5k", "si", 12500.0),
    ("1.3B", "si", 1.3e9),
    ("17", "si", 17.0),
    ("3.2G", "suffix", 3.2e9),
    ("250ms", "suffix", 0.25),
    ("4h", "suffix", 14400.0),
    ("2.5MiB", "suffix", 2621440.0),
    ("1.5", "million", 1.5e6),
    ("12", None, 12.0),
    ("-0.5", None, -0.5),
    ("+3", None, 3.0),
    (".5", None, 0.5),
    ("5.", None, 5.0),
    ("12%", None, 0.12),
    ("-73.65%", None, -0.7365),
    ("3.2e-4", None, 0.00032),
    ("6E+05", None, 600000.0),
    ("1,234", None, 1234.0),
    ("1,234,567.25", None, 1234567.25),
    ("12,345.6ms", "ms", 12.3456),
    ("1,000", "K", 1e6),
    ("-1,234", None, -1234.0),
]

REFUSED = [
    ("", None),
    ("0,123", None),  # a decimal comma: no group of thousands begins with a zero
    ("00,123", None),
    (" ", None),
    ("-", None),
    (".", None),
    ("e5", None),
    ("1e", None),
    ("abc", None),
    ("{loss:.4f}", None),
    ("1,5", None),
    ("1,5", "ms"),
    ("1,23,456", None),
    ("1234,567", None),
    ("1,2345", "ms"),
    (",123", None),
    ("1.2.3", None),
    ("1-2", None),
    ("1/2", None),
    ("0x1f", None),
    ("12ms", None),
    ("12K", None),
    ("512MB", "GiB"),
    ("512MiB", "GiB"),
    ("71.1GiB", "GB"),
    ("12s", "ms"),
    ("12ms", "s"),
    ("12GB", "ms"),
    ("12ms", "si"),
    ("12GB", "si"),
    ("12", "hms"),
    ("12", "suffix"),
    ("512B", "suffix"),
    ("12furlongs", "suffix"),
    ("9" * 10_000, None),
    ("9" * 10_000, "ms"),
    ("0." + "1" * 10_000, None),
    ("1e9999", None),
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
    ("text", "unit", "want"),
    [*EXACT, *((*row, None) for row in REFUSED), *((text, "hms", want) for text, want in HMS)],
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


def test_declared_units_and_special_ones_are_apart() -> None:
    assert SPECIAL_UNITS and not SPECIAL_UNITS & UNITS.keys()


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9),
    st.sampled_from(sorted(UNITS)),
)
def test_every_unit_is_rounded_once(number: Decimal, unit: str) -> None:
    text = f"{number:f}"
    assert read_number(text, unit) == float(number * UNITS[unit].factor)
    assert read_number(f"{text}{unit}", unit) == float(number * UNITS[unit].factor)


@given(st.floats(allow_nan=False))
def test_floats_come_back(value: float) -> None:
    assert read_number(repr(value)) == value


@given(st.integers(-(10**15), 10**15))
def test_thousands_commas_come_back(value: int) -> None:
    assert read_number(f"{value:,}") == float(value)


@given(st.text(max_size=80), st.sampled_from([None, *sorted(UNITS), *sorted(SPECIAL_UNITS)]))
def test_any_text_is_a_float_or_nothing(text: str, unit: str | None) -> None:
    value = read_number(text, unit)
    assert value is None or isinstance(value, float)
