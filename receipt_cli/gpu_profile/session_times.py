"""Start and duration of a session, if its records agree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from receipt_cli.gpu_profile.problems import StreamProblems
from receipt_cli.gpu_profile.session import Session

_SLACK_NS = 10**8
"""Tolerance for converting event times from device clocks to the session's, in nanoseconds."""
_SLACK_PARTS = 1000
_LONGEST_NS = 10 * 366 * 86_400 * 10**9
"""Longest plausible session in nanoseconds, ten years."""
_EPOCH_FROM_NS = 1_262_304_000 * 10**9
"""The year 2010: earlier times are not counted from 1970."""


class SessionTimes(NamedTuple):
    """Nanoseconds; None if unknown or contradictory."""

    started: int | None
    duration: int | None
    complete: bool

    @property
    def started_at(self) -> str | None:
        """The exact start as RFC 3339 with Z; None if it is not counted from 1970."""
        if self.started is None or self.started < _EPOCH_FROM_NS:
            return None

        seconds, rest = divmod(self.started, 10**9)
        text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{text}{fraction}Z"


def times_of(session: Session, busy: int | None) -> SessionTimes:
    """Return start and duration of ``session``; ``busy``, the busiest device's time, is a lower bound of the duration."""
    problems = session.problems
    silent = sorted(name for name, (start, end) in session.lifecycle.items() if not (start and end))
    for name in silent:
        lacks = " and ".join(what for what, there in zip(("start", "end"), session.lifecycle[name], strict=True) if not there)
        problems.add("channel_not_complete", f"{name}: holds no {lacks} of the session")
    started = _only(session.starts, "start", problems)
    ended = _only(session.ends, "end", problems)
    duration = None if started is None else _duration(session, started, ended, problems)
    if duration is not None and not 0 <= duration <= _LONGEST_NS:
        problems.add("contradicting_times", "the session ends before it begins, or years after")
        duration = None
    if duration is not None and busy is not None and busy > duration:
        problems.add("contradicting_times", "a device was busy for longer than the session lasted")
        duration = None
    return SessionTimes(started, duration, not silent and bool(session.lifecycle) and not session.unread)


def _only(times: set[int], what: str, problems: StreamProblems) -> int | None:
    """Return the time on which all channels agree, or None."""
    if len(times) > 1:
        problems.add("contradicting_times", f"the session has {len(times)} times of its {what}")
        return None
    return next(iter(times), None)


def _duration(session: Session, started: int, ended: int | None, problems: StreamProblems) -> int | None:
    """Return the time from the start to the end or, without an end, to the last event."""
    spans = [span for span in session.kernels.spans.values() if span.first is not None and span.last is not None]
    first = min((span.first for span in spans if span.first is not None), default=None)
    last = max((span.last for span in spans if span.last is not None), default=None)
    if ended is None and session.ends:
        return None
    if first is None or last is None:
        until = ended if ended is not None else session.last_event
        return None if until is None else until - started
    if ended is None:
        if last < started - _SLACK_NS:  # on another clock
            return None if session.last_event is None else session.last_event - started
        until = max(last, session.last_event if session.last_event is not None else last)
    else:
        until = ended
    slack = _SLACK_NS + abs(until - started) // _SLACK_PARTS
    if last < started - slack or first > until + slack:
        problems.add("other_clock", "the kernels' times are from another clock than the session's: only their durations count")
    elif first < started - slack or last > until + slack:
        problems.add("contradicting_times", "kernels ran outside the session")
        return None
    return until - started
