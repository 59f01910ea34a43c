"""Prefixes of records: what rank and clock those of one layout have, by the day that is read of them."""

import math

import pytest

from receipt_cli.records.envelope import read_clock, read_rank
from receipt_cli.scan.layout import Prefix
from tests.fuzz.targets.envelopes import read_by_day

HEADS = [
    "2026-01-02 {} - INFO - ",
    "[rank3] 2026-01-02 {},123 - INFO - ",
    "01/02 {} - mmengine - INFO - ",
    "[{}] ",
    "I0102 {}.123456 77 x.py:3] ",
    "20260102 {} INFO ",
    "Fri Jan 02 {} 2026 ",
    "Fri Jan  2 {} UTC 2026: ",
]
TIMES = ["00:00:00", "03:04:05", "23:59:59", "24:00:00", "12:60:00"]


@pytest.mark.parametrize("head", HEADS)
def test_a_day_and_the_time_in_it_are_the_clock(head: str) -> None:
    prefix = Prefix.of(head.format(TIMES[1]).encode())
    assert prefix is not None
    for time in TIMES:
        record = head.format(time).encode()
        rank, clock = read_by_day(prefix, record)
        wanted = read_clock(record)
        assert rank == read_rank(record)
        assert clock == wanted or (math.isnan(clock) and math.isnan(wanted))


def test_a_time_of_twelve_hours_is_read_whole() -> None:
    prefix = Prefix.of(b"01/13/2026 03:04:05 PM ")
    assert prefix is not None
    for record in (b"01/13/2026 03:04:05 AM ", b"01/13/2026 03:04:05 PM "):
        assert read_by_day(prefix, record)[1] == read_clock(record)
