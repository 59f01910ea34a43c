"""What stands before an event on its line: the rank that printed it and the time it was printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from receipt_cli.columns import NO_RANK

_RANK = re.compile(
    rb"\[(?:default|rank|RANK|Rank)[ -]?(\d{1,7})[\]/]"  # [rank0]: [default7]: [rank-7/8] [Rank 0]
    rb"|RANK:(\d{1,7})\b|\brank=(\d{1,7})\b"  # actor logs, rich logs
    rb"|\[\d{1,4},(\d{1,7})\]<std(?:out|err)>"  # MPI: [1,0]<stdout>:
    rb"|^ {0,6}(\d{1,7}): |^(\d{1,7})/\d{1,7}: "  # srun --label; 1/8:
)
_ENVELOPE = re.compile(
    rb"\[(?:default|rank)\d{1,7}\]: ?"  # torchrun
    rb"|\[\d{1,4},(?P<mpi>\d{1,7})\]<std(?:out|err)>: ?"
    rb"| {0,6}(?P<srun>\d{1,7}): |(?P<of>\d{1,7})/\d{1,7}: "
    rb"|[\w.-]{1,64} {1,16}\| "  # compose
    rb"|\([\w.:-]{1,64} (?:pid|rank)=[^()\r\n]{1,80}\) "  # Ray
    rb"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? "
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w./-]{1,64}(?:\[\d{1,10}\])?: "  # syslog
    rb"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,20} [\w./-]{1,200}:\d{1,7}\] "  # glog
    rb"|- [\w.]{1,80} - (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) - |(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]{1,80}:"
)
"""Heads that launchers and collectors put before a line, each with the blank that ends it."""
MAX_ENVELOPES = 6
_TIME = re.compile(
    rb"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
    rb"|\b(20\d\d)(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\b"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_rank(prefix: bytes) -> int:
    """Return the rank that the last label in ``prefix`` names, or ``NO_RANK``."""
    labels = [(0, NO_RANK)]
    for at, found in _peel(prefix):
        label = found["srun"] or found["of"] or found["mpi"]
        if label is not None:
            labels.append((at, int(label)))
    labels += [(f.end(), int(next(g for g in f.groups() if g is not None))) for f in _RANK.finditer(prefix)]
    return max(labels)[1]


def _peel(record: bytes) -> Iterator[tuple[int, re.Match[bytes]]]:
    at = 0
    for _ in range(MAX_ENVELOPES):
        found = _ENVELOPE.match(record, at)
        if found is None:
            return
        at = found.end()
        yield at, found


def starts(record: bytes) -> list[int]:
    """Return where the line itself may begin: behind the first envelope, behind the second, and so on.

    The blank that ends an envelope may belong to the line: both places count.
    """
    return [place for at, _ in _peel(record) for place in ((at, at - 1) if record[at - 1 : at] == b" " else (at,))]


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
