"""Lines that look like metrics or steps: found where one of their words stands, and nowhere else found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.records.heuristics import METRIC_LINE, STEP_LINE, count_step_lines, metric_lines
from receipt_cli.scan.presence import load_kernel

NATIVE = load_kernel()
PIECES = [
    *("step", "Steps", "ITER", "iteration", "epoch", "batch", "loss", "lr", "already", "acc", "Accuracy", "ppl", "tok/s"),
    *("tokens/sec", "mfu", "steploss", "losslr", " ", "  ", ":", "=", "1", "12.5", "nan", "\n", "\r", "-", ".", "_", "x", "é"),
    *("learning rate", "learning_rate", "eta", "(", "[", "#", "/s", "\t", "\f", "+", "N", "y" * 190),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(lambda pieces: "".join(pieces).encode())


@given(TEXTS)
def test_the_words_find_what_the_patterns_alone_would(text: bytes) -> None:
    assert count_step_lines(text, 1000) == len(STEP_LINE.findall(text))
    found = list(METRIC_LINE.finditer(text))
    starts = [max(text.rfind(b"\n", 0, hit.start()), text.rfind(b"\r", 0, hit.start())) + 1 for hit in found]
    records = [(start, text[start : hit.end()]) for start, hit in zip(starts, found, strict=True)]
    assert metric_lines(text, 1000) == [r for r in records if r[1].isascii() or r[1].decode().isprintable()]


@pytest.mark.skipif(NATIVE is None, reason="there is no compiled kernel")
@given(TEXTS)
def test_the_kernel_leaves_out_no_place_where_they_match(text: bytes) -> None:
    assert count_step_lines(text, 1000, NATIVE.likely) == count_step_lines(text, 1000)
    assert metric_lines(text, 1000, NATIVE.likely) == metric_lines(text, 1000)
