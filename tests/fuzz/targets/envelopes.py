"""Heads of lines: whatever they hold, the places, rank and time that are read from them are ones that can be."""

import itertools
import math
import re

from receipt_cli.records.envelope import (
    MASK,
    NO_RANK,
    before,
    plain,
    read_clock,
    read_moment,
    read_rank,
    starts,
    time_of_day,
    unwrap,
    without_count,
)
from receipt_cli.scan.layout import Prefix, read_day
from tests.fuzz.feed import Feed

_FIRST, _LAST = -62_135_683_200.0, 253_402_387_200.0
"""The years 1 and 9999, with a day for offsets."""


def target(data: bytes) -> None:
    feed = Feed(data)
    repeats = feed.pick((1, 1, 1, 40))
    raw = feed.rest() * repeats
    record = unwrap(raw)
    assert record == without_count(plain(raw))
    places = starts(record)
    assert all(0 <= place <= len(record) for place in places)
    at = feed.byte() if len(record) < 2 else len(record) * 2 // 3
    prefix = before(record, min(at, len(record)))
    assert record.startswith(prefix)
    rank, clock = read_rank(prefix), read_clock(prefix)
    assert rank == NO_RANK or 0 <= rank < 10**8
    assert math.isnan(clock) or _FIRST <= clock <= _LAST, clock
    whole, fraction, offset = read_moment(prefix)
    assert math.isnan(whole) == math.isnan(clock) and 0 <= fraction < 1 and abs(offset) < 86_400
    span = time_of_day(prefix)
    assert span is None or 0 <= span[0] < span[1] <= len(prefix)
    shaken = re.sub(rb"[0-9]", lambda found: b"%d" % ((found[0][0] * 7 + found.start() * 3 + len(prefix)) % 10), prefix)
    known = Prefix.of(prefix)
    for text in (prefix, shaken) if known is not None else ():
        got, want = read_by_day(known, text), (read_rank(text), read_clock(text))
        assert got[0] == want[0] and (got[1] == want[1] or (math.isnan(got[1]) and math.isnan(want[1]))), (text, got, want)


def read_by_day(prefix: Prefix, record: bytes) -> tuple[int, float]:
    """Return rank and clock of a record as the kernel reads them, from the day of its prefix and the time in it."""
    (start, end), text = prefix.time, record[: prefix.end]
    if start < 0:
        return read_day(text, prefix.time)[:2]
    rank, whole, offset, moves = read_day(text[:start] + text[start:end].translate(MASK) + text[end:], prefix.time)
    if not moves:
        return rank, whole
    hour, minute, second = (int(text[at : at + 2]) for at in (start, start + 3, start + 6))
    if hour > 23 or minute > 59 or second > 59:
        return rank, read_clock(text)
    fraction = text[start + 9 : end]
    return rank, whole + (3600 * hour + 60 * minute + second) + (
        int(fraction) / 10 ** len(fraction) if fraction else 0.0
    ) - offset


def seeds() -> list[bytes]:
    heads = (
        "[rank3]: ",
        "3: ",
        "[default7]:",
        "[1,mpirank:3,algo-1]<stdout>:",
        "2026-01-02 03:04:05,678 - INFO - ",
        "rank0[812][Main]: ",
        '<13>1 2026-01-02T03:04:05.678+02:00 host app 12 - [x y="z"] ',
        "Jan  2 03:04:05 host app[12]: ",
        "I0102 03:04:05.678901 12 a.py:3] ",
        "(worker pid=12, ip=1.2.3.4) ",
        "[INFO|trainer.py:12] 2026-01-02 03:04:05,678 >> ",
        "stdout F ",
        "1760000000.123 ",
        "trainer-0 | ",
        "[NeMo I 2026-01-02 03:04:05 a:1] ",
        "02/01/2026 03:04:05 ",
        "node1: ",
        "\x1b_bk;t=1760000000123\x07",
        "0001-01-01 00:00:00+14:00 ",
        "9999-12-31T23:59:59-14:00 ",
        "0000-00-00 00:00:00 ",
        "Sat Jan  2 03:04:05 UTC 2026 ",
        "(Worker rank=3, pid=1) ",
        "01/02 03:04:05 - mmengine - INFO - ",
        "20260102 03:04:05 INFO ",
        "1.5s\t12\t",
        *("01/13/2026 03:04:05 PM ", "[03:04:05] ", "2026-01-02 24:00:00 - INFO - ", "[rank3] 2026-01-02 12:60:00,123 - INFO - "),
    )
    line = "step 10 loss 2.5 [repeated 3x across cluster] (Ray deduplicates logs by default. See x for more options.)"
    return [b"\0" + (head + line).encode() for head in heads] + [b"\3" + (a + b).encode() for a, b in itertools.pairwise(heads)]
