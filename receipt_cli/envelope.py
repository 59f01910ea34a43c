"""What stands before an event on its line: the rank that printed it and the time it was printed."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from receipt_cli.columns import NO_RANK

_RANK = re.compile(
    rb"\[(?:default|rank|RANK|Rank)[ -]?(\d{1,7})[\]/]"  # [rank0]: [default7]: [rank-7/8] [Rank 0]
    rb"|RANK:(\d{1,7})\b|\brank=(\d{1,7})\b"  # actor logs, rich logs
    rb"|\[\d{1,4},(\d{1,7})\]<std(?:out|err)>"  # MPI: [1,0]<stdout>:
    rb"|^ {0,6}(\d{1,7}): |^(\d{1,7})/\d{1,7}: "  # srun --label; 1/8:
)
_TIME = re.compile(
    rb"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
    rb"|\b(20\d\d)(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\b"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_rank(prefix: bytes) -> int:
    """Return the rank that the last label in ``prefix`` names, or ``NO_RANK``."""
    rank = NO_RANK
    for found in _RANK.finditer(prefix):
        rank = int(next(g for g in found.groups() if g is not None))
    return rank


def read_clock(prefix: bytes) -> float:
    """Return the last timestamp in ``prefix`` as seconds since 1970, or NaN.

    With an offset the time is UTC; without one it is naive and only its difference to other naive times means
    anything. No clock, locale or time zone of this machine is consulted.
    """
    seconds = math.nan
    for found in _TIME.finditer(prefix):
        parts = found.groups()
        year, month, day, hour, minute, second = (int(p) for p in (parts[:6] if parts[0] else parts[8:14]))
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
        fraction = float("0." + parts[6].decode()) if parts[6] else 0.0
        seconds = (moment - _EPOCH).total_seconds() + fraction
        if parts[7] and parts[7] != b"Z":
            sign = -1 if parts[7].startswith(b"-") else 1
            digits = parts[7][1:].replace(b":", b"")
            seconds -= sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:])).total_seconds()
    return seconds
