"""Seconds by class of lost time: sums, doubts, and what makes a class unknown."""

from receipt_cli.analysis.goodput.model import Part, Tally


def test_spans_of_a_class_add_up() -> None:
    tally = Tally()
    tally.add("checkpoint", 1.5, measured=True)
    tally.add("checkpoint", 2.0, measured=True, overlapped=0.5, count=2)
    tally.add("eval", 4.0, measured=False)
    assert tally.part("checkpoint") == Part(3.5, "measured", 3, 0.5)
    assert tally.part("eval") == Part(4.0, "inferred", 1, None)
    assert tally.part("compilation") == Part(None, "unknown")


def test_one_unknown_span_makes_its_class_unknown() -> None:
    tally = Tally()
    tally.add("eval", 4.0, measured=True)
    tally.miss("eval")
    assert tally.part("eval") == tally.part("never seen") == Part(None, "unknown")


def test_a_negative_sum_within_the_grain_is_nothing_and_beyond_it_unknown() -> None:
    tally = Tally(grain=1.0)
    tally.add("eval", -0.5, measured=True)
    assert tally.part("eval") == Part(0.0, "measured", 1, None)
    tally.add("eval", -2.0, measured=True)
    assert tally.part("eval").how == "unknown"


def test_shared_time_that_leaves_nothing_is_unknown() -> None:
    tally = Tally()
    tally.add("eval", 0.0, measured=False, shared=True)
    assert tally.part("eval").how == "unknown"
