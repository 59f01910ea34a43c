"""Bars lose the cells that are more than two of a kind; nothing else of a record changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.records.split import short_bars


@pytest.mark.parametrize(
    ("printed", "short"),
    [
        (" 60%|██████    | 6/10", " 60%|██  | 6/10"),
        ("100%|██████████| 10/10", "100%|██| 10/10"),
        ("  3%|▎         | 3/99", "  3%|▌  | 3/99"),
        (" 95%|█████████▌| 19/20", " 95%|██▌| 19/20"),
        ("a:  5%|█▎   | 1/9 b: 50%|████    | 4/8", "a:  5%|█▌  | 1/9 b: 50%|██  | 4/8"),
        ("10%|█ | 1/10", "10%|█ | 1/10"),
    ],
)
def test_cells_are_left_out(printed: str, short: str) -> None:
    assert short_bars(printed.encode()).decode() == short


@pytest.mark.parametrize(
    "record",
    ["  0%|          | 0/9", "50%|#####     | 5/10", "50%|█████", "50% |█████     |", "50%|█ x |", "|█████|", "", "5%|", "%||"],
)
def test_what_is_no_bar_of_blocks_stays(record: str) -> None:
    assert short_bars(record.encode()) == record.encode()


@given(st.lists(st.sampled_from(["%|", "|", "█", "███", "▎", "▌", " ", "   ", "7", "\udce2"]), max_size=30))
def test_a_short_bar_is_not_shortened_again(parts: list[str]) -> None:
    short = short_bars("".join(parts).encode("utf-8", "surrogateescape"))
    assert short_bars(short) == short
