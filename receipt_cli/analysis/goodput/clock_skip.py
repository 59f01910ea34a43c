"""The hour that a local clock leaves out on the Sunday on which summer time begins."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import NamedTuple


class ClockSkip(NamedTuple):
    """A gap of an hour or more between two stamps, and the line behind it. Of a change-over, no wall time is known."""

    line: int
    before: float
    after: float


HOUR_S, _DAY_S = 3600.0, 86400.0
MOST_GAPS = 16
"""Gaps that are looked at."""
_SPRING = (3, 4, 9, 10)
"""Months in which clocks are put forward, in the north and in the south."""
_HOURS = 4
"""They are put forward by 4 o'clock at the latest."""
_USUAL_S = 900.0
"""Seconds between records beyond which an hour more is no sign."""
_DATED = 1e11
"""Seconds since 1970 beyond which nothing is a date."""


def skips_hour(gap: ClockSkip, usual: float) -> bool:
    """Say whether a gap between stamps of a local clock is exactly the hour that summer time takes on a Sunday in spring.

    ``usual`` are the seconds between other stamps: the clock shows an hour more than such a gap, and of that hour nothing.
    """
    more = gap.after - gap.before - HOUR_S
    if not -1 <= more <= max(5.0, 3 * usual) or usual > _USUAL_S or gap.after >= _DATED:
        return False
    midnight = math.floor(gap.after / _DAY_S) * _DAY_S
    day = datetime(1970, 1, 1) + timedelta(seconds=midnight)
    hidden = any(gap.before < midnight + h * HOUR_S and gap.after >= midnight + (h + 1) * HOUR_S for h in range(_HOURS))
    return hidden and day.weekday() == 6 and day.month in _SPRING
