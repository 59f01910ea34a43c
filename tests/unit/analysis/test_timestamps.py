"""Timestamps at both ends of a log, with their lines and zones."""

import pytest

from receipt_cli.analysis.goodput.timestamps import ClockBack, Edges, Life, Stamp, Stamps, find_life, is_zoned, read_edges
from receipt_cli.events.table import EventTable
from tests.tools.tables import table_of

HEAD = b"starting\n2026-01-31 12:00:00,000 INFO begin\n2026-01-31 12:00:05,500 INFO more\n"
NOON = 1769860800.0


def at(*clocks: tuple[int, float]) -> EventTable:
    """Return step records on these lines, at these times."""
    return table_of(*({} for _ in clocks), lines=[line for line, _ in clocks], clocks=[clock for _, clock in clocks])


def test_stamps_have_their_lines_in_the_whole_log() -> None:
    edges = read_edges(HEAD, HEAD, cut=False, lines=(10, 13))
    assert edges.head == Stamps.of([Stamp(12, NOON, False), Stamp(13, NOON + 5.5, False)])
    assert edges.tail == edges.head


def test_a_tail_that_is_cut_loses_its_first_line() -> None:
    tail = read_edges(b"", HEAD[3:], cut=True, lines=(0, 100)).tail
    assert tail.first is not None
    assert (tail.first.line, tail.last.line) == (99, 100)


def test_a_line_between_that_names_its_zone_counts() -> None:
    between = b"2026-01-31T12:00:01Z collected\n2026-31-31T12:00:01+01:00 is no time\n"
    first, *others = HEAD.splitlines(keepends=True)[1:]
    edges = read_edges(first + between + b"".join(others), b"", cut=False, lines=(0, 4))
    assert (edges.zones, is_zoned(edges)) == ({True, False}, None)
    assert is_zoned(read_edges(HEAD, b"", cut=False, lines=(0, 3))) is False


@pytest.mark.parametrize(
    ("line", "zoned"),
    [
        (b"2026-01-31T12:00:00Z x", True),
        (b"2026-01-31 12:00:00 x", False),
        (b"[x] datetime: 2026-01-31 12:00:00 ", False),
        (b"trainer-0  |  [2026-01-31 12:00:00] iteration 1", False),
    ],
)
def test_zones_are_told_apart(line: bytes, zoned: bool) -> None:
    assert read_edges(line, b"", cut=False, lines=(0, 1)).head == Stamps.of([Stamp(1, NOON, zoned)])


def test_a_job_lives_from_its_first_stamp_to_its_last() -> None:
    life = find_life(at(), 0, Edges(Stamps.of([Stamp(1, 100.0, False)]), Stamps.of([Stamp(9, 160.0, False)])), (2, 8))
    assert life is not None
    assert not isinstance(life, ClockBack)
    assert (life.seconds, life.grain, life.led, life.last_line) == (60.0, 1.0, True, 9)


def test_stamps_that_do_not_enclose_the_steps_prove_nothing() -> None:
    assert find_life(at(), 0, Edges(Stamps.of([Stamp(3, 100.0, False)]), Stamps.of([Stamp(9, 160.0, False)])), (2, 8)) is None
    assert find_life(at(), 0, Edges(), (2, 8)) is None


def test_edges_on_another_clock_are_left_out() -> None:
    events = at((2, 100.0), (8, 160.0))
    life = find_life(events, 0, Edges(Stamps.of([Stamp(1, 9000.0, True)]), Stamps.of([Stamp(9, 170.0, True)])), (2, 8))
    assert life is not None
    assert not isinstance(life, ClockBack)
    assert (life.start, life.end, life.led) == (100.0, 160.0, False)


def test_a_clock_that_goes_back_is_reported() -> None:
    assert find_life(at((2, 1000.0), (8, 100.0)), 0, Edges(), (2, 8)) == ClockBack(8, 900.0)


@pytest.mark.parametrize(("head", "tail", "seconds"), [(50.0, 1000.0, 950.0), (-86400.0, 1000.0, 900.0), (50.0, 86560.0, 110.0)])
def test_a_day_without_a_line_is_before_or_after_the_run(head: float, tail: float, seconds: float) -> None:
    edges = Edges(Stamps.of([Stamp(1, head, False)]), Stamps.of([Stamp(9, tail, False)]))
    life = find_life(at((2, 100.0), (8, 160.0)), 0, edges, (2, 8))
    assert isinstance(life, Life)
    assert life.seconds == seconds
