"""Whether a call ends, told by the processor's time: bounds lie far beyond what it takes, for other work may hold it up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from receipt_cli.scan.extraction import PatternTimeout

TRIES = 3


def takes_less(seconds: float, call: Callable[..., object], *arguments: object) -> bool:
    """Return whether one of three calls takes less than so many seconds, the first where it does."""
    for _ in range(TRIES):
        begun, end = time.process_time(), math.inf
        try:
            call(*arguments)
            end = time.process_time()
        except (TimeoutError, PatternTimeout):
            pass
        if end - begun < seconds:
            return True
    return False
