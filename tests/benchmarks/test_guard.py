"""Work that a kilobyte of log costs, counted and not timed, stays within the bounds that are kept."""

import pytest

from benchmarks.guard import SOURCES, beyond, count, load_bounds
from receipt_cli.scan.presence import has_kernel


@pytest.mark.skipif(not has_kernel(), reason="the bounds are those of the kernel")
def test_a_dense_log_costs_no_more_calls() -> None:
    assert beyond("dense", count("dense"), load_bounds()) == []


def test_every_input_has_bounds() -> None:
    assert set(load_bounds()) == set(SOURCES)
