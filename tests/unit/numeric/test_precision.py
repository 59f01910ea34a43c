"""The printed precision of figures: the decimals that their shortest text has."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.numeric.precision import Printing, resolution

PRINTED = st.builds(lambda digits, power: float(f"{digits}e{power}"), st.integers(-(10**17), 10**17), st.integers(-30, 20))


def decimals(value: float) -> int:
    """Return how many decimals the shortest text of a number has, 0 for a whole one."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


@given(st.lists(PRINTED | st.floats(), max_size=12))
def test_the_finest_of_the_figures_counts(values: list[float]) -> None:
    most = max(map(decimals, values), default=0)
    assert resolution(values) == (float(Decimal(1).scaleb(-most)) if most else 0.0)


FOUR = [3.25, 3.125, 3.0625, 3.9]


@pytest.mark.parametrize(
    ("digits", "values", "wanted"),
    [
        ((4, 4), FOUR, Printing(decimals=4)),
        ((4, 4), [3.9, 3.9], Printing(decimals=4)),  # zeros behind 3.9 were printed: so many decimals are fixed
        ((2, 2), [0.01, 0.01], Printing(decimals=2, exact=True)),  # perhaps only as many as needed
        ((1, 4), FOUR, Printing(significant=5)),
        (None, FOUR, Printing(significant=5)),
        (None, [1e-4, 1e-4], Printing(exact=True)),
    ],
)
def test_how_values_were_printed(digits: tuple[int, int] | None, values: list[float], wanted: Printing) -> None:
    shown = None if digits is None else {"least": digits[0], "greatest": digits[1]}
    assert Printing.of({"printed_digits": shown}, np.array(values)) == wanted


@pytest.mark.parametrize(
    ("printing", "values", "units", "texts"),
    [
        (Printing(decimals=4), [3.25, 0.0], [1e-4, 1e-4], ["3.2500", "0.0000"]),
        (Printing(decimals=2, exact=True), [0.01], [0.0], ["0.01"]),
        (Printing(significant=3), [123.0, 0.00456, 0.0, float("nan")], [1.0, 1e-5, 0.0, 0.0], ["123", "0.00456", "0", "nan"]),
        (Printing(exact=True), [2.5], [0.0], ["2.5"]),
    ],
)
def test_the_unit_of_the_last_digit(printing: Printing, values: list[float], units: list[float], texts: list[str]) -> None:
    assert printing.units(np.array(values)) == pytest.approx(units)
    assert [printing.text(value) for value in values] == texts
