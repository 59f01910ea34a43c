"""The quick ways to read a number give what its definition gives: the exact decimal times the unit's factor, rounded once."""

import math
import re
from decimal import Context, Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.definitions.units import MAX_TEXT, SPECIAL_UNITS, UNITS, find_factor, read_number
from tests.tools.examples import costly

EXACT = Context(prec=200)
NUMBER = re.compile(r"([-+]?(?:[0-9][0-9,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?)[ \t\n\r\f\v]*([A-Za-z%/]*)")
GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")
NONFINITE = re.compile(r"([-+]?)(nan|inf|infinity)", re.IGNORECASE)


def by_definition(text: str, unit: str | None) -> float | None:
    found = NONFINITE.fullmatch(text) or NONFINITE.fullmatch(text.lower().rstrip("%ms"))
    if found is not None and len(text) <= MAX_TEXT:
        return math.nan if found[2][0].lower() == "n" else -math.inf if found[1] == "-" else math.inf
    found = NUMBER.fullmatch(text)
    if found is None or len(text) > MAX_TEXT or unit == "hms":
        return None
    number, suffix = found.groups()
    factor = find_factor(suffix, unit)
    if factor is None or ("," in number and not GROUPED.fullmatch(number)):
        return None
    value = float(EXACT.multiply(Decimal(number.replace(",", "")), factor))
    return None if math.isinf(value) else value


ATOMS = [
    "1",
    "0",
    "23",
    ".",
    ",",
    "e",
    "E",
    "-",
    "+",
    "%",
    "ms",
    "s",
    "nan",
    "inf",
    "Infinity",
    " ",
    "GiB",
    "GB",
    "MB",
    "K",
    "B",
    "_",
]
ATOMS += [
    "1,234",
    "0,123",
    "12,345.6",
    "e-05",
    "E+03",
    "e400",
    "e-400",
    "9" * 20,
    "\u0663",
    "\u00b2",
    "\u00a0",
    "\n",
    "min",
    "TFLOPS",
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(ATOMS), max_size=5).map("".join),
    st.builds("{}{}".format, st.floats(), st.sampled_from(["", "%", "ms", "GB", " s", "K"])),
    st.builds("{:,.{}f}".format, st.floats(-1e15, 1e15), st.integers(0, 6)),
    st.builds("{:.{}e}".format, st.floats(), st.integers(0, 18)),
)


@given(TEXTS, st.sampled_from([None, *sorted(UNITS), *sorted(SPECIAL_UNITS - {"hms"})]))
@settings(max_examples=costly(2000))
def test_every_way_gives_what_the_definition_gives(text: str, unit: str | None) -> None:
    assert repr(read_number(text, unit)) == repr(by_definition(text, unit))
