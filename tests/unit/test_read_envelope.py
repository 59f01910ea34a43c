"""What stands before an event on its line names the rank and the time."""

import math
from datetime import datetime

import pytest

from receipt_cli.columns import NO_RANK
from receipt_cli.envelope import read_clock, read_rank

RANKS = [
    (b"[rank0]: ", 0),
    (b"[rank12]:", 12),
    (b"[rank 3] ", 3),
    (b"[RANK 3] ", 3),
    (b"[Rank 5] ", 5),
    (b"[rank-7/8] ", 7),
    (b"[default7]:", 7),
    (b"0: ", 0),
    (b" 3: ", 3),
    (b"15: ", 15),
    (b"1/8: ", 1),
    (b"[1,0]<stdout>:", 0),
    (b"[1,6]<stderr>:", 6),
    (b"RANK:4 ", 4),
    (b"INFO rank=2 ", 2),
    (b"0: [rank3]: ", 3),
    (b"2026-07-07T22:20:44.123456789Z [rank1]: ", 1),
    (b"(RayTrainWorker pid=1, ip=10.0.0.1) [rank2]: ", 2),
    (b"trainer-0  | [rank1]: ", 1),
    (b"", NO_RANK),
    (b"host: ", NO_RANK),
    (b"10.0.0.1: ", NO_RANK),
    (b"(Worker pid=1, ip=10.0.0.1) ", NO_RANK),
    (b"step 3: ", NO_RANK),
    (b"22:20:44: ", NO_RANK),
    (b"[ranked]: ", NO_RANK),
    (b"lora_rank=", NO_RANK),
    (b"lora_rank=8 ", NO_RANK),
]


@pytest.mark.parametrize(("prefix", "want"), RANKS)
def test_rank(prefix: bytes, want: int) -> None:
    assert read_rank(prefix) == want


def utc(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


CLOCKS = [
    (b"2026-07-07T22:20:44Z ", utc("2026-07-07T22:20:44+00:00")),
    (b"2026-07-07T22:20:44.5Z ", utc("2026-07-07T22:20:44.5+00:00")),
    (b"2026-07-07T22:20:44.1234567Z ", utc("2026-07-07T22:20:44.123456+00:00") + 7e-7),
    (b"2026-07-07T22:20:44.123456789Z stdout F ", utc("2026-07-07T22:20:44.123456+00:00") + 7.89e-7),
    (b"2026-07-07T22:20:44+02:00 ", utc("2026-07-07T20:20:44+00:00")),
    (b"2026-07-07T22:20:44-0730 ", utc("2026-07-08T05:50:44+00:00")),
    (b"2026-07-07T22:20:44+05:45 ", utc("2026-07-07T16:35:44+00:00")),
    (b"2026-07-07 22:20:44,123 INFO ", utc("2026-07-07T22:20:44.123+00:00")),
    (b"2026-07-07 22:20:44.123 | INFO     | x:y:1 - ", utc("2026-07-07T22:20:44.123+00:00")),
    (b"[2026-07-07 22:20:44,123] [INFO] ", utc("2026-07-07T22:20:44.123+00:00")),
    (b"[2026/07/07 22:20:44] ", utc("2026-07-07T22:20:44+00:00")),
    (b"20260707 22:20:44 ", utc("2026-07-07T22:20:44+00:00")),
    (b"[rank0]: 2024-02-29 00:00:00 ", utc("2024-02-29T00:00:00+00:00")),
    (b"2026-07-07T22:20:44Z 2026-07-07 22:20:45 ", utc("2026-07-07T22:20:45+00:00")),
    (b"1969-12-31T23:59:59Z ", -1.0),
    (b"2026-02-30 22:20:44 ", math.nan),
    (b"2025-02-29 22:20:44 ", math.nan),
    (b"2026-13-01 22:20:44 ", math.nan),
    (b"2026-07-07 24:20:44 ", math.nan),
    (b"2026-07-07 22:60:44 ", math.nan),
    (b"0000-07-07 22:20:44 ", math.nan),
    (b"20261307 22:20:44 ", math.nan),
    (b"2026-07-07 ", math.nan),
    (b"22:20:44 ", math.nan),
    (b"", math.nan),
    (b"\xff\xfe", math.nan),
]


@pytest.mark.parametrize(("prefix", "want"), CLOCKS)
def test_clock(prefix: bytes, want: float) -> None:
    assert read_clock(prefix) == pytest.approx(want, abs=1e-6, rel=0, nan_ok=True)


def test_an_impossible_time_does_not_hide_a_possible_one() -> None:
    assert read_clock(b"2026-07-07 22:20:44 2026-99-99 22:20:44 ") == utc("2026-07-07T22:20:44+00:00")


def test_naive_times_ignore_the_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_clock(b"2026-07-07 22:20:44 ")
    monkeypatch.setenv("TZ", "America/New_York")
    assert read_clock(b"2026-07-07 22:20:44 ") == before == utc("2026-07-07T22:20:44+00:00")
