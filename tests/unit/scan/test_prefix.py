"""Prefixes of records: what rank and clock those of one layout have."""

from __future__ import annotations

import math

import pytest

from receipt_cli.records.envelope import read_clock, read_rank
from receipt_cli.scan.layout import Prefix

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
def test_a_day_is_read_once(head: str) -> None:
    prefix = Prefix.of(head.format(TIMES[1]).encode())
    for time in TIMES:
        record = head.format(time).encode()
        rank, clock = prefix.read(record)
        wanted = read_clock(record)
        assert (rank, clock) == (read_rank(record), wanted) or (
            math.isnan(clock) and math.isnan(wanted) and rank == read_rank(record)
        )
    assert len(prefix.known) == 1


def test_a_time_of_twelve_hours_is_read_whole() -> None:
    prefix = Prefix.of(b"01/13/2026 03:04:05 PM ")
    assert prefix.read(b"01/13/2026 03:04:05 AM ")[1] == read_clock(b"01/13/2026 03:04:05 AM ")
    assert prefix.read(b"01/13/2026 03:04:05 PM ")[1] == read_clock(b"01/13/2026 03:04:05 PM ")
