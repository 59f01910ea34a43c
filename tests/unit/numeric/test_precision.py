"""The printed precision of figures: the decimals that their shortest text has."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.numeric.precision import resolution

PRINTED = st.builds(lambda digits, power: float(f"{digits}e{power}"), st.integers(-(10**17), 10**17), st.integers(-30, 20))


def decimals(value: float) -> int:
    """Return how many decimals the shortest text of a number has, 0 for a whole one."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


@given(st.lists(PRINTED | st.floats(), max_size=12))
def test_the_finest_of_the_figures_counts(values: list[float]) -> None:
    most = max(map(decimals, values), default=0)
    assert resolution(values) == (float(Decimal(1).scaleb(-most)) if most else 0.0)
