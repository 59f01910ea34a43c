"""Stalled steps: their rate, what they cost, and when two runs differ in them."""

import random

import pytest

from receipt_cli.comparison.contrasts import compare_stalls, find_stalls


def times(seed: int, *, every: int = 0, length: int = 1, count: int = 600) -> list[float]:
    """Return step times around 1 s, of which ``length`` in a row take 3 s longer, one time in ``every`` steps."""
    draw = random.Random(seed)
    slow = {place + off for place in range(10, count - 10, every) for off in range(length)} if every else set()
    return [draw.gauss(1, 0.01) + (3.0 if i in slow else 0.0) for i in range(count)]


class TestStalls:
    def test_rate_cost_and_episodes_are_those_that_were_planted(self) -> None:
        found = find_stalls(times(1, every=100, length=3))
        assert (found.records, found.stalled, found.episodes) == (600, 18, 6)
        assert found.rate == pytest.approx(0.03)
        assert found.cost == pytest.approx(54 / 654, rel=0.01)

    def test_a_long_tail_below_a_fifth_is_no_stall(self) -> None:
        found = find_stalls([1.1 if i % 50 == 25 else 1.0 + i % 3 * 1e-3 for i in range(500)])
        assert found.stalled == 0

    def test_few_steps_have_none(self) -> None:
        assert find_stalls([1.0] * 10) is None

    def test_more_stalls_are_worse_and_fewer_better(self) -> None:
        rare, often = times(1, every=200), times(2, every=20)
        for a, b, outcome in ((rare, often, "worse"), (often, rare, "better"), (often, times(3, every=22), "no_evidence")):
            found = compare_stalls([a], [b])
            assert found["outcome"] == outcome

    def test_runs_without_stalls_are_not_compared(self) -> None:
        assert compare_stalls([times(1)], [times(2)]) is None
        assert compare_stalls([times(1, every=20)], [()]) is None

    def test_many_stalls_agree_with_the_exact_count_of_few(self) -> None:
        """From 500 episodes on the normal limit is taken: just below it both give one answer."""
        for episodes, outcome in ((1.0, "no_evidence"), (1.5, "worse")):
            for count in (10_000, 16_000):
                found = compare_stalls([times(5, every=24, count=count)], [times(6, every=int(24 / episodes), count=count)])
                assert found["outcome"] in (outcome, "equal")
