"""Whatever figures a log prints, the receipt is valid, and neither block says more than its figures bear."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.analysis.bottleneck import FEEDING, PARTS, STEP
from receipt_cli.documents.validate import validate_document
from tests.tools.examples import costly
from tests.tools.logs import receipt_of

TIMES = (*FEEDING, STEP, *PARTS)
SIZES = (
    "memory_allocated_bytes",
    "memory_reserved_bytes",
    "peak_memory_allocated_bytes",
    "peak_memory_reserved_bytes",
    "inactive_split_bytes",
    "alloc_retry_count",
    "oom_count",
    "host_memory_bytes",
)
NUMBERS = st.one_of(
    st.sampled_from(["0", "0.0", "1", "1e+300", "1e-300", "nan", "inf", "-1"]),
    st.floats(0, 100, width=16).map(repr),
    st.integers(0, 2**40).map(str),
)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.lists(NUMBERS, min_size=20, max_size=20)), min_size=1, max_size=30)


def receipt(names: list[str], rows: list[tuple[int, list[str]]]) -> dict[str, Any]:
    step, lines = 0, []
    for forward, values in rows:
        step += forward - 1 if forward == 0 else forward  # now and then a restart
        cells = " ".join(f"{name}={value}" for name, value in zip(names, values, strict=False))
        lines.append(f"[receipt] step={max(0, step)} loss=1.5 {cells}\n")
    return receipt_of("".join(lines))


@settings(max_examples=costly(240))
@given(st.lists(st.sampled_from([*TIMES, *SIZES]), unique=True, max_size=20), ROWS)
def test_any_figures_make_a_valid_receipt(names: list[str], rows: list[tuple[int, list[str]]]) -> None:
    document = receipt(names, rows)
    assert validate_document(document) == []
    summary = document["summary"]
    if not set(names) & {*FEEDING, *PARTS}:
        assert summary["bottleneck"] is None
    if not set(names) & set(SIZES):
        assert summary["memory"] is None


@settings(max_examples=costly(120))
@given(st.lists(st.integers(1, 2**30), min_size=8, max_size=40), st.integers(1, 10))
def test_the_unit_of_memory_does_not_matter(sizes: list[int], power: int) -> None:
    names = ["memory_allocated_bytes", "memory_reserved_bytes"]
    stories = [
        receipt(names, [(1, [str(size * scale), str((size + i) * scale)]) for i, size in enumerate(sizes)])["summary"]["memory"]
        for scale in (1, 2**power)
    ]
    assert stories[0]["reading"] == stories[1]["reading"]
