import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.render import scale

N = ""  # narrow no-break space between groups of digits

DURATIONS = [
    (0, "0 s"),
    (2.5e-7, "0.250 µs"),
    (0.0009996, "1.00 ms"),  # rounds up into the next unit
    (0.13197, "132 ms"),
    (0.9996, "1.00 s"),
    (99.94, "99.9 s"),
    (99.96, "1 min 40 s"),
    (3599.4, "59 min 59 s"),
    (3599.6, "1 h"),
    (1e7, f"2{N}777 h 47 min"),
    (1e300, "1.00e300 s"),
    (5e-324, "4.94e-324 s"),
    (-0.476, "-476 ms"),
]
SIZES = [
    (0, "0 B"),
    (1023, f"1{N}023 B"),
    (1024, "1 KiB"),
    (1048575, "1.000 MiB"),
    (79081029632, "73.65 GiB"),
    (3.5 * 1024**4, "3.500 TiB"),
    (1e300, "1.00e300 B"),
]
RATIOS = [(0, "0 %"), (1, "100 %"), (0.485, "48.5 %"), (0.03125, "3.12 %"), (1e-5, "0.00100 %")]
RATES = [
    (0, "0 tok/s"),
    (0.25, "0.250 tok/s"),
    (999.4, "999 tok/s"),
    (999.6, "1.00 k tok/s"),
    (1.1e6, "1.10 M tok/s"),
    (7e12, "7.00 T tok/s"),
    (1e-9, "1.00e-9 tok/s"),
]
FLOPS = [(0, "0 FLOP/s"), (312.4e12, "312 TFLOP/s"), (1e15, "1.00 PFLOP/s"), (989e12, "989 TFLOP/s")]
COUNTS = [(0, "0"), (1000, f"1{N}000"), (560988160, f"560{N}988{N}160"), (-12345, f"-12{N}345"), (1e18, "1.00e18")]
PARAMETERS = [(560988160, "561 M"), (14768307200, "14.8 B"), (1.04e12, "1.04 T"), (512, "512")]
NUMBERS = [
    (0, "0"),
    (2.719005, "2.719"),
    (65536, f"65{N}536"),
    (0.0299, "0.02990"),
    (3e-4, "3.00e-4"),
    (123456789, "1.23e8"),
    (9.99996, "10.00"),
]
MEASURES = [
    ("tokens_per_s_per_device", 1.4e5, "140 k tok/s"),
    ("eval_steps_per_s", 2.5, "2.50 steps/s"),
    ("total_flops", 4.33e19, "43.3 EFLOP"),
    ("mfu_ratio", 0.485, "48.5 %"),
    ("peak_memory_allocated_bytes", 79081029632, "73.65 GiB"),
    ("tokens_total", 11219763200, f"11{N}219{N}763{N}200"),
    ("loss", 2.719005, "2.719"),
    ("loss_scale", 65536, f"65{N}536"),
]
ROWS = [  # metric, values (the first gives the unit), unit, want
    ("tokens_per_s", [1.1e6, 13239.0, 1.0995e6], "M tok/s", ["1.10", "0.013", "1.10"]),
    ("step_time_s", [0.476, 39.6, 0.4721], "ms", ["476", f"39{N}600", "472"]),
    ("elapsed_time_s", [5400.0, 60.0], "min", ["90.0", "1.0"]),
    ("mfu_ratio", [0.485, 0.0058], "%", ["48.5", "0.58"]),
    ("peak_memory_bytes", [79081029632.0, 0.0], "GiB", ["73.65", "0"]),
    ("loss", [2.8013, 11.090355, 0.00001], "", ["2.801", "11.09", "1.00e-5"]),
    ("learning_rate", [2.9e-4, 0.0, 3e-6], "", ["2.90e-4", "0", "3.00e-6"]),
    ("grad_norm", [0.3301, 812.3, 0.00012], "", ["0.3301", "812.3", "0.00012"]),
    ("skipped_step_count", [0.0, 3.0, 0.34], "", ["0", "3", "0.34"]),
    ("tokens_total", [11219763200.0], "G", ["11.2"]),
    ("loss", [], "", []),
]


SCALES = {
    scale.duration: DURATIONS, scale.byte_size: SIZES, scale.percent: RATIOS, scale.rate: RATES, scale.flops: FLOPS,
    scale.count: COUNTS, scale.parameters: PARAMETERS, scale.number: NUMBERS,
}  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "value", "want"), [(shown, *row) for shown, rows in SCALES.items() for row in rows], ids=lambda part: str(part)[:20]
)
def test_a_number_in_its_unit(shown: Callable[[float], str], value: float, want: str) -> None:
    assert shown(value) == want


@pytest.mark.parametrize(("metric", "value", "want"), MEASURES)
def test_measure_takes_the_unit_from_the_name(metric: str, value: float, want: str) -> None:
    assert scale.measure(metric, value) == want


@pytest.mark.parametrize(("metric", "values", "unit", "want"), ROWS)
def test_a_row_has_one_unit(metric: str, values: list[float], unit: str, want: list[str]) -> None:
    found = scale.scale_for(metric, values)
    assert (found.unit, [found.format(value) for value in values]) == (unit, want)


METRICS = ["loss", "step_time_s", "peak_memory_bytes", "mfu_ratio", "tokens_per_s", "flops_per_s", "tokens_total"]


@given(st.sampled_from(METRICS), st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_not_zero_never_reads_as_zero(metric: str, value: float) -> None:
    texts = [scale.measure(metric, value), scale.scale_for(metric, [value]).format(value)]
    texts.append(scale.scale_for(metric, [1.0]).format(value))
    for text in texts:
        assert len(text) < 30
        assert any(digit in text for digit in "123456789") == (value != 0), text


@given(st.floats(min_value=1e-6, max_value=1e12), st.integers(1, 4))
def test_significant_digits_are_right(value: float, digits: int) -> None:
    text = scale.significant(value, digits).replace(N, "")
    assert math.isclose(float(text), value, rel_tol=0.500001 * 10 ** (1 - digits))
