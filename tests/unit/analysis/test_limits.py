"""Bounds of the ranks and phases in a receipt."""

from receipt_cli.analysis.limits import MAX_RANKS, left_out, lowest
from receipt_cli.events.ranks import RankFigures

FIGURES = RankFigures(1, 1, 1, None)


def test_the_lowest_ranks_are_kept() -> None:
    ranks = dict.fromkeys(range(MAX_RANKS + 3, -1, -1), FIGURES)
    assert list(lowest(ranks)) == list(range(MAX_RANKS))


def test_what_is_left_out_is_a_problem() -> None:
    many = dict.fromkeys(range(MAX_RANKS + 4), FIGURES)
    assert [(p.kind, p.detail) for p in left_out(2, [{}, many])] == [
        ("phases_dropped", "2 phases with the fewest step records were left out"),
        ("ranks_dropped", f"4 of {MAX_RANKS + 4} ranks were left out"),
    ]
    assert left_out(0, [dict.fromkeys(range(MAX_RANKS), FIGURES)]) == []
