"""How a log is cut into pieces, and when it is read in bulk."""

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.scan.bulk import schedule
from receipt_cli.scan.bulk.schedule import Schedule

LINE = b"x" * 99 + b"\n"


def pieces(log: bytes, one: Schedule) -> list[bytes]:
    """Return the pieces that a log is read in."""
    return [piece for piece, _ in one.pieces(log)]


def test_pieces_grow_until_they_are_whole_blocks() -> None:
    one = Schedule()
    sizes = [len(piece) for piece in pieces(LINE * 20_000, one)]
    assert [round(size / schedule.FIRST) for size in sizes[:4]] == [1, 2, 4, 8]
    assert sum(sizes) == 2_000_000 and len(sizes) == 5
    assert pieces(LINE * 20_000, one) == [LINE * 20_000]  # from then on a block is one piece


def test_a_short_rest_belongs_to_the_piece_before() -> None:
    assert len(pieces(LINE * ((schedule.FIRST + schedule.LEAST) // 100), Schedule())) == 1


def test_a_record_longer_than_a_piece_is_not_cut() -> None:
    log = b"y" * 3 * schedule.FIRST + b"\n" + LINE * 1000
    assert pieces(log, Schedule())[0].startswith(b"y" * 3 * schedule.FIRST + b"\n")


@given(st.lists(st.sampled_from([b"ab", b"\r", b"\n", b"\r\n", b"c" * 9]), min_size=1).map(lambda parts: b"".join(parts) + b"\n"))
def test_pieces_end_where_records_do(log: bytes) -> None:
    one = Schedule()
    one._piece = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "LEAST", 1)
        found = pieces(log, one)
    assert b"".join(found) == log
    for before, after in itertools.pairwise(found):
        assert before.endswith((b"\r", b"\n")) and not (before.endswith(b"\r") and after.startswith(b"\n"))


def begun(size: int | None, taken: int, *lengths: int) -> bool:
    """Return whether the last of pieces of these lengths is read in bulk; each gave ``taken`` records."""
    one, bulk = Schedule(), False
    if size is not None:
        one.expect(size)
    for length in lengths:
        bulk = one.begin(length)
        one.taken += taken
    return bulk


def test_a_log_is_read_in_bulk_when_that_saves_more_than_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    piece, many = 64 << 10, schedule.WORTH_IMPORT
    assert not begun(10 * piece, many, piece)  # of the first piece nothing is known
    assert begun(11 * piece, many // 10, piece, piece)
    assert not begun(11 * piece, many // 10 - 1, piece, piece)
    assert begun(schedule.LARGE, 0, piece, piece)
    assert not begun(None, many - 1, piece, piece)
    assert begun(None, many, piece, piece)
    assert not begun(None, many, piece, schedule.LEAST - 1)


def test_it_takes_fewer_records_once_numpy_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", sys)
    assert begun(None, schedule.WORTH_CALL, 64 << 10, 64 << 10)
    assert schedule.WORTH_CALL < schedule.WORTH_IMPORT
