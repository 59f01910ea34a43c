"""Work that a kilobyte of log costs, counted and not timed, stays within the bounds that are kept."""

import sys
import threading

import pytest

from benchmarks.counting import C_CALLS, CALLS, PATTERNS, Counts
from benchmarks.guard import SOURCES, beyond, count, load_bounds
from receipt_cli.scan.presence import has_kernel


@pytest.mark.skipif(not has_kernel(), reason="the bounds are those of the kernel")
def test_a_dense_log_costs_no_more_calls() -> None:
    assert beyond("dense", count("dense"), load_bounds()) == []


def test_every_input_has_bounds() -> None:
    assert set(load_bounds()) == set(SOURCES)


def test_only_the_package_is_counted() -> None:
    counts = Counts()
    space = {"__name__": "receipt_cli.made_up"}
    exec("import re\nPATTERN = re.compile('b')\ndef inner(): PATTERN.search('abc'); len('abc')", space)
    threading.setprofile(counts.see)
    sys.setprofile(counts.see)
    try:
        space["inner"]()  # type: ignore[operator]
        thread = threading.Thread(target=space["inner"])  # type: ignore[arg-type]
        thread.start()
        thread.join()
        len("not ours")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    assert counts.total() == {CALLS: 2, C_CALLS: 4, PATTERNS: 2}
