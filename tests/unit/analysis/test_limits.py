"""Bounds of the ranks and phases in a receipt."""

import numpy as np
import pytest

from receipt_cli.analysis.omissions import FEW_PHASES, MAX_FIGURES, MAX_PHASES, MAX_RANKS, largest, left_out, lowest
from receipt_cli.events.phases import Phase
from receipt_cli.events.ranks import RankFigures
from tests.tools.tables import GRAMMAR, table_of

FIGURES = RankFigures(1, 1, 1, None)


def test_the_lowest_ranks_are_kept() -> None:
    ranks = dict.fromkeys(range(MAX_RANKS + 3, -1, -1), FIGURES)
    assert list(lowest(ranks)) == list(range(MAX_RANKS))


def test_what_is_left_out_is_a_problem() -> None:
    many = dict.fromkeys(range(MAX_RANKS + 4), FIGURES)
    assert [(p.kind, p.detail) for p in left_out([], 2, [{}, many])] == [
        ("phases_dropped", "2 phases with the fewest step records were left out"),
        ("ranks_dropped", f"4 of {MAX_RANKS + 4} ranks were left out"),
    ]
    assert left_out([], 0, [dict.fromkeys(range(MAX_RANKS), FIGURES)]) == []


@pytest.mark.parametrize(
    ("phases", "metrics", "shown"),
    [(60, 1, 60), (1003, 1, MAX_PHASES), (1003, 9, MAX_FIGURES // 9), (60, 500, FEW_PHASES), (FEW_PHASES, 500, FEW_PHASES)],
)
def test_phases_with_many_metrics_are_fewer(phases: int, metrics: int, shown: int) -> None:
    """The bytes of a receipt grow with the metrics of its phases."""
    steps = table_of({f"m{number}": 1.0 for number in range(metrics)})
    none = steps[:0]
    made = Phase(
        GRAMMAR, None, False, False, False, 0, steps, none, none, steps, np.zeros(1, np.int64), np.ones(1, np.bool_), none,
    )  # fmt: skip
    assert largest([made] * phases) == list(range(shown))
