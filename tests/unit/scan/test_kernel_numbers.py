"""The kernel makes of printed numbers the float64s that the definition gives, or leaves them to it."""

import random
import re
import struct
from collections.abc import Callable
from decimal import Context, Decimal

import pytest

from receipt_cli.definitions.units import MAX_TEXT, find_factor, read_number
from receipt_cli.scan.number_forms import scale_of
from receipt_cli.scan.presence import load_kernel
from tests.tools.examples import costly

NATIVE = load_kernel()
if NATIVE is None:
    pytest.skip("the kernel is not compiled", allow_module_level=True)

EXACT = Context(prec=120)
PER_SPELLING = costly(4_000)
Draw = Callable[[random.Random], float]


def small(rng: random.Random) -> float:
    return rng.lognormvariate(0, 2)


def share(rng: random.Random) -> float:
    return rng.random()


def tiny(rng: random.Random) -> float:
    return 10 ** rng.uniform(-12, -2)


def wide(rng: random.Random) -> float:
    return rng.choice([1, -1]) * 10 ** rng.uniform(-40, 40)


def large(rng: random.Random) -> float:
    return 10 ** rng.uniform(0, 12)


# What trainers print: format, unit that the grammar declares, what is drawn.
SPELLINGS: list[tuple[str, str | None, Draw]] = [
    ("{:.0f}", None, large),
    ("{:8.0f}", None, large),
    ("{:05.0f}", None, large),
    ("{:,.0f}", None, large),
    ("{:,.2f}", None, large),
    ("{:,.1f}ms", "ms", large),
    ("{:.1f}", "ms", large),
    ("{:.2f}ms", "ms", large),
    ("{:.3f} ms", "ms", small),
    ("{:.4f}s", "s", small),
    ("{:.6f}", None, small),
    ("{:.7f}", None, small),
    ("{:+.4f}", None, small),
    ("-{:.3f}", None, small),
    ("{:.3f}", "min", small),
    ("{:.4f}", "h", small),
    ("{:.1f}", "us", large),
    ("{:.0f}", "ns", large),
    ("{:.6E}", None, wide),
    ("{:.3E}", None, wide),
    ("{:.2e}", None, wide),
    ("{:.16e}", None, wide),
    ("{:.3e}", "ms", tiny),
    ("{!r}", None, small),
    ("{!r}", None, tiny),
    ("{!r}", None, wide),
    ("{!r}", "ms", small),
    ("{:.16f}", None, share),
    ("{:.18g}", None, share),
    ("{:.4f}", "TFLOPS", large),
    ("{:.1f}TFLOP/s", "TFLOPS", large),
    ("{:.16g}", None, large),
    ("{:.4f}", None, large),
    ("{:.2f}%", "percent", small),
    ("{:.4f}%", "percent", share),
    ("{:.2f}GiB", "GiB", small),
    ("{:.2f}GB", "GiB", small),
    ("{:.5f}", "MiB", small),
    ("{:.1f}K", "si", small),
    ("{:.2f}B", "si", small),
]


def layout(text: str) -> str:
    return re.sub(r"\d", "0", text)


def convert(text: str, unit: str | None) -> float | None:
    """Return what the kernel makes of a number; None where it leaves it to Python. Raises ``LookupError`` without a scale."""
    scale = scale_of(layout(text).encode(), unit)
    if scale is None:
        raise LookupError(text)
    found: float | None = NATIVE.decimal(text[: scale.length].encode(), *scale[1:])
    return found


def has_scale(sample: str, unit: str | None) -> bool:
    return scale_of(layout(sample).encode("latin-1"), unit) is not None


def bits(value: float) -> int:
    return struct.unpack("q", struct.pack("d", value))[0]


def the_decimal(text: str, unit: str | None) -> float:
    """The printed decimal times its unit's factor, rounded once by ``Decimal``."""
    number = re.sub(r"[^-+.\deE]", "", text.replace("GiB", "").replace("GB", "").replace("TFLOP/s", "").rstrip("sBK%m "))
    factor = find_factor(re.sub(r"^[-+.,\deE]*(?=[^\deE]|$)\s*", "", text), unit)
    assert factor is not None
    return float(EXACT.multiply(Decimal(number), factor))


@pytest.mark.parametrize(("form", "unit", "draw"), SPELLINGS, ids=[f"{f}-{u}-{d.__name__}" for f, u, d in SPELLINGS])
def test_printed_numbers_of_every_spelling(form: str, unit: str | None, draw: Draw) -> None:
    rng = random.Random(f"{form} {unit}")
    converted = 0
    for _ in range(PER_SPELLING):
        text = form.format(draw(rng)).strip()
        value = convert(text, unit)
        if value is not None:
            converted += 1
            assert bits(value) == bits(the_decimal(text, unit)), text
    assert converted > (0.99 if draw is not wide else 0.5) * PER_SPELLING


@pytest.mark.parametrize(
    "sample",
    ["", ".", "-", "nan", "1.2.3", "1e", "1e5.0", "1e+100", "0x10", "1,23", "1,2345", "12ms", "1-2", " 1", "\xb2",
     "1" * (MAX_TEXT + 1)],
)  # fmt: skip
def test_no_scale_for_what_is_no_plain_number(sample: str) -> None:
    assert not has_scale(sample, None)


DOUBTFUL = ["", "-", ".", "1e", "1e+", "1x", "x", "1..2", "1e1e1", "0,5", ",5", "1.5,000", "1" * 20, "1e9999"]


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_is_in_doubt_is_left_to_python(text: str) -> None:
    assert NATIVE.decimal(text.encode(), 1, 0, 1.0) is None


def test_the_middle_between_two_floats() -> None:
    rng = random.Random(7)
    exact = Context(prec=200)
    certain = 0
    for _ in range(3000):
        odd = 2 * rng.getrandbits(52) + 2**53 + 1  # between two float64s
        middle = exact.multiply(Decimal(odd), exact.power(Decimal(2), rng.randint(-6, 4)))
        last = Decimal((0, (rng.choice([0, 1, 1]),), middle.as_tuple().exponent))  # type: ignore[arg-type]
        text = f"{exact.add(middle, last):f}"
        value = convert(text, None)
        if value is not None:
            certain += 1
            assert bits(value) == bits(float(text)), text
    assert certain > 300


@pytest.mark.parametrize(
    "text", ["0.00", "-0.00", "-0", "-0e-99", "0e+99", "999999999999999", "9007199254740992", "9007199254740993",
             "9223372036854775807", "9223372036854775808", "999999999999999999999999", "-18446744073709551616",
             "123456789012345e+22", "123456789012345e-22", "1e+22", "1e+23", "1e-23", "9.9e+99", "1.0e-99"]
)  # fmt: skip
@pytest.mark.parametrize("unit", [None, "ms", "T", "h", "TiB"])
def test_edges_of_the_exact_routes(text: str, unit: str | None) -> None:
    value = convert(text, unit)
    assert value is None or bits(value) == bits(read_number(text, unit) or 0.0 * (-1 if text[0] == "-" else 1))


@pytest.mark.parametrize("text", ["0.00", "-0", "123.456", "1e-05", "0.12345678901234567", "9007199254740993", "1,234,567.5"])
def test_what_trainers_print_is_not_left_to_python(text: str) -> None:
    assert convert(text, None) is not None
