"""Whether a call ends soon, told by the processor's time and the pace of the machine: other work may hold it up."""

import math
import time
from collections.abc import Callable

import regex

from receipt_cli.scan.extraction.model import PatternTimeout

TRIES = 3


def pace() -> float:
    """Return how many times longer than on the machine of the bounds a search takes here, at least 1."""
    begun = time.process_time()
    regex.compile(rb"b:[^\n]{0,200}?(?:xyz|zyx)").search(b"ab: c" * 13_107)
    return max(1.0, (time.process_time() - begun) / 0.06)


def takes_less(seconds: float, call: Callable[..., object], *arguments: object) -> bool:
    """Return whether one of three calls takes less than so many seconds at the machine's pace, the first where it does."""
    for _ in range(TRIES):
        begun, end = time.process_time(), math.inf
        try:
            call(*arguments)
            end = time.process_time()
        except (TimeoutError, PatternTimeout):
            pass
        if end - begun < seconds or end - begun < seconds * pace():
            return True
    return False
