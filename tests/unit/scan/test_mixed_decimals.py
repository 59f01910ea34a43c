"""Numbers of one field, printed in many layouts, become the float64s that reading them one by one gives."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.definitions.units import read_number
from receipt_cli.scan.bulk.decimals import DecimalPlan
from receipt_cli.scan.bulk.mixed_decimals import LEAD, MixedDecimals


def convert(texts: Sequence[str], unit: str | None) -> list[float | None]:
    """Read all texts in one go, as they stand one behind the other in a block; None where there is no plan."""
    forms = [re.sub(r"\d", "0", text) for text in texts]
    found = {form: DecimalPlan.of(form.encode(), unit) for form in forms}
    plans = list(dict.fromkeys(plan for plan in found.values() if plan is not None))
    head = "x" * LEAD
    buffer = head + "".join(f"{text}|" for text in texts)
    places = np.cumsum([len(head), *(len(text) + 1 for text in texts)])[:-1]
    held = [index for index, form in enumerate(forms) if found[form] is not None]
    values: list[float | None] = [None] * len(texts)
    if held:
        which = np.array([plans.index(found[forms[index]]) for index in held])  # type: ignore[arg-type]
        for index, value in zip(held, MixedDecimals(plans).convert(buffer.encode(), places[held], which).tolist(), strict=True):
            values[index] = value
    return values


def bits(value: float | None) -> int:
    return int(np.float64(math.nan if value is None else value).view(np.int64))


NUMBERS = st.from_regex(
    r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{0,22})(?:\.[0-9]{0,20})?(?:[eE][-+]?[0-9]{1,2})?(?: ?(?:ms|GiB|%|K))?",
    fullmatch=True,
)


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.sampled_from([None, "si", "ms", "GiB", "percent", "h"]), st.randoms())
@settings(max_examples=150, deadline=None)
def test_any_layouts_read_as_their_texts_do(samples: list[str], unit: str | None, rng: random.Random) -> None:
    texts = [re.sub(r"\d", lambda _: rng.choice("00123456789"), sample) for sample in samples for _ in range(4)]
    rng.shuffle(texts)
    for text, value in zip(texts, convert(texts, unit), strict=True):
        if value is not None:
            assert bits(value) == bits(read_number(text, unit)), text


@pytest.mark.parametrize("unit", [None, "ms"])
def test_floats_as_they_are_printed(unit: str | None) -> None:
    rng = random.Random(11)
    texts = [repr(rng.choice([1, -1]) * 10 ** rng.uniform(-18, 18)) for _ in range(20_000)]
    texts += [f"{rng.lognormvariate(0, 3):.{rng.randrange(18)}f}" for _ in range(20_000)]
    values = convert(texts, unit)
    assert sum(value is None for value in values) < len(texts) / 100
    for text, value in zip(texts, values, strict=True):
        if value is not None:
            assert bits(value) == bits(read_number(text, unit)), text


def test_the_middle_between_two_floats_and_what_fits_no_integer() -> None:
    texts = [
        "9007199254740993",
        "9007199254740993.0",
        "18014398509481985e-1",
        "1",
        "0.5",
        "99999999999999999999",
        "-0",
        "-0.0e-9",
    ]
    texts += ["1e22", "1e23", "123456789012345678901234", "9.9e-99", "1,234", "0,123", "12,345.5"]
    for text, value in zip(texts, convert(texts, None), strict=True):
        assert bits(value) == bits(read_number(text, None)), text


def test_nothing_to_read() -> None:
    assert MixedDecimals([]).convert(b"x" * LEAD, np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
