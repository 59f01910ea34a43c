"""Columns of printed numbers become the float64s that reading them one by one gives."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.definitions.units import MAX_TEXT, UNITS, find_factor, read_number
from receipt_cli.scan.bulk.decimals import CHUNK, MAX_DIGITS, DecimalFields, DecimalPlan

EXACT = Context(prec=120)
PER_SPELLING = 25_000
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


def by_layout(texts: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        found.setdefault(layout(text), []).append(text)
    return found


def matrix_of(texts: list[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.frombuffer("".join(texts).encode("ascii"), np.uint8).reshape(len(texts), len(texts[0]))


def bits(values: Iterable[float]) -> list[int]:
    return np.array(list(values), np.float64).view(np.int64).tolist()


def the_decimal(text: str, unit: str | None) -> float:
    """The printed decimal times its unit's factor, rounded once by ``Decimal``."""
    number = re.sub(r"[^-+.\deE]", "", text.replace("GiB", "").replace("GB", "").replace("TFLOP/s", "").rstrip("sBK%m "))
    factor = find_factor(re.sub(r"^[-+.,\deE]*(?=[^\deE]|$)\s*", "", text), unit)
    assert factor is not None
    return float(EXACT.multiply(Decimal(number), factor))


@pytest.mark.parametrize(("form", "unit", "draw"), SPELLINGS, ids=[f"{f}-{u}-{d.__name__}" for f, u, d in SPELLINGS])
def test_a_million_printed_numbers(form: str, unit: str | None, draw: Draw) -> None:
    rng = random.Random(f"{form} {unit}")
    texts = [form.format(draw(rng)).strip() for _ in range(PER_SPELLING)]
    converted = 0
    for rows in by_layout(texts).values():
        plan = DecimalPlan.of(rows[0].encode(), unit)
        if plan is None:
            assert sum(map(str.isdigit, rows[0].partition("e")[0])) > MAX_DIGITS
            continue
        converted += len(rows)
        assert bits(plan.convert(matrix_of(rows))) == bits(the_decimal(text, unit) for text in rows), rows[0]
    assert converted > 0.99 * PER_SPELLING


NUMBERS = st.from_regex(
    r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{0,22})(?:\.[0-9]{0,20})?(?:[eE][-+]?[0-9]{1,2})?(?: ?(?:ms|GiB|%|K))?",
    fullmatch=True,
)
UNIT_NAMES = st.sampled_from([None, "si", "suffix", "hms", *UNITS])


@given(NUMBERS, UNIT_NAMES, st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_any_layout_reads_as_its_texts_do(sample: str, unit: str | None, rng: random.Random) -> None:
    rows = [sample] + [re.sub(r"\d", lambda _: rng.choice("00123456789"), sample) for _ in range(7)]
    plan = DecimalPlan.of(sample.encode(), unit)
    want = [read_number(text, unit) for text in rows]
    if plan is None:
        digits = sum(map(str.isdigit, re.split("[eE]", sample)[0]))
        assert digits > MAX_DIGITS or len(sample) > MAX_TEXT or not any(value is not None for value in want)
        return
    assert bits(plan.convert(matrix_of(rows))) == bits(math.nan if value is None else value for value in want)


@pytest.mark.parametrize(
    "sample",
    [b"", b".", b"-", b"nan", b"1.2.3", b"1e", b"1e5.0", b"1e+100", b"0x10", b"1,23", b"1,2345", b"12ms", b"1-2", b" 1", b"\xb2",
     b"1" * (MAX_DIGITS + 1), b"1" * (MAX_TEXT + 1)],
)  # fmt: skip
def test_no_plan_for_what_is_no_plain_number(sample: bytes) -> None:
    assert DecimalPlan.of(sample) is None


def test_the_middle_between_two_floats() -> None:
    rng = random.Random(7)
    exact = Context(prec=200)
    texts = []
    for _ in range(3000):
        odd = 2 * rng.getrandbits(52) + 2**53 + 1  # between two float64s
        middle = exact.multiply(Decimal(odd), exact.power(Decimal(2), rng.randint(-6, 4)))
        last = Decimal((0, (rng.choice([0, 1, 1]),), middle.as_tuple().exponent))  # type: ignore[arg-type]
        texts.append(f"{exact.add(middle, last):f}")
    for rows in by_layout(texts).values():
        plan = DecimalPlan.of(rows[0].encode())
        assert plan is not None
        assert bits(plan.convert(matrix_of(rows))) == bits(map(float, rows))


@pytest.mark.parametrize(
    "text", ["0.00", "-0.00", "-0", "-0e-99", "0e+99", "999999999999999", "9007199254740992", "9007199254740993",
             "9223372036854775807", "9223372036854775808", "999999999999999999999999", "-18446744073709551616",
             "123456789012345e+22", "123456789012345e-22", "1e+22", "1e+23", "1e-23", "9.9e+99", "1.0e-99"]
)  # fmt: skip
@pytest.mark.parametrize("unit", [None, "ms", "T", "h", "TiB"])
def test_edges_of_the_exact_routes(text: str, unit: str | None) -> None:
    plan = DecimalPlan.of(text.encode(), unit)
    assert plan is not None
    assert bits(plan.convert(matrix_of([text]))) == bits([read_number(text, unit) or 0.0 * (-1 if text[0] == "-" else 1)])


def test_many_fields_of_a_record_in_one_go() -> None:
    rng = random.Random(3)
    count = 2 * CHUNK + 17
    records = [
        f"7 {rng.randrange(10**8):8d} t={rng.random():.3f} lr={rng.random():.6E} g={rng.random():.17f}".replace(" ", "0")
        for _ in range(count)
    ]
    records = by_layout(records)[layout(records[0])]
    matrix = matrix_of(records)
    spans = [(0, 1, None), (2, 10, None), (records[0].index("t=") + 2, records[0].index("lr=") - 1, "ms")]
    spans += [(records[0].index("lr=") + 3, records[0].index("g=") - 1, None), (records[0].index("g=") + 2, len(records[0]), "h")]
    plans = [(a, DecimalPlan.of(records[0][a:b].encode(), unit)) for a, b, unit in spans]
    fields = DecimalFields([(a, plan) for a, plan in plans if plan is not None])
    assert len(fields.fields) == len(spans)
    got = fields.convert(matrix)
    for row, (a, b, unit) in zip(got, spans, strict=True):
        assert bits(row) == bits(read_number(text[a:b], unit) or 0.0 for text in records)
    out = np.zeros_like(got)
    assert fields.convert(matrix, out) is out
    wider = np.concatenate([matrix, matrix], axis=1)[:, : matrix.shape[1]]  # rows further apart than they are long
    assert np.array_equal(fields.convert(wider), got)
    assert fields.convert(matrix[:0]).shape == (len(spans), 0)
