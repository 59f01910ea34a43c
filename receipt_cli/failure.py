"""Marker hits and phases → how the run ended: completed, failed for a named reason, or not provable.

A marker convicts only a run that did not get over it: what followed decides. The most specific cause wins over the
noise that follows it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from receipt_cli.columns import POSITION_BITS
from receipt_cli.markers import Catalogue, Marker
from receipt_cli.phases import Phase
from receipt_cli.stretch import Body, Hits

CONVICTING = ("cause", "stop", "error", "consequence")
FATAL = ("cause", "stop", "error")
FAR = 1 << 62
QUIET_RECORDS = 200
"""Records after the last sign of trouble that a log without steps needs to show that its errors were got over."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A marker in a log: how often, where, and the text of the hit that counts."""

    marker: Marker
    count: int
    first_line: int
    last_line: int
    at: int
    line: int
    message: str
    exit_code: int | None
    open: bool
    """False when the run got over every hit."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. ``reason`` is a failure slug or None; ``completed`` is proof of success, or of its absence."""

    reason: str | None
    category: str | None
    line_number: int | None
    message: str | None
    completed: bool | None
    exit_code: int | None
    sightings: tuple[Sighting, ...]
    died: bool = False
    """An error or a stop that the run did not get over ended a process of it: its exit code was not zero."""


class _Progress:
    """What speaks for the run: positions of steps, of new attempts and of proofs of completion."""

    def __init__(self, body: Body, catalogue: Catalogue, phases: Sequence[Phase], exit_code: int | None) -> None:
        events = [e for p in phases for e in (*p.raw, *p.evals, *p.singles)]
        self.steps = sorted(e.at for p in phases for e in (*p.steps, *p.superseded))  # once each, however often printed
        self.attempts = [a[0].at for p in phases for a in p.attempts[1:] if a]
        self.ends = [e.at for e in events if e.rule.event == "end" and e.texts.get("status", "ok").lower() in ("ok", "success")]
        for marker in catalogue.markers:
            hits = body.markers.get(marker.id)
            if hits is not None and marker.role == "completion":
                self.ends += hits.at
            elif hits is not None and marker.role == "exit_code":
                self.ends += [at for at, _, code in hits.texts if code == 0]
        if exit_code == 0:
            self.ends.append(FAR)
        convicting = [h.at[-1] for m in catalogue.markers if m.role in CONVICTING and (h := body.markers.get(m.id)) and h.at]
        last = max(convicting, default=0) >> POSITION_BITS
        self.quiet_end = not self.steps and body.records - last > QUIET_RECORDS

    def got_over(self, at: int, marker: Marker) -> bool:
        """True when the run went on after ``at`` so far that the marker there was not its end."""
        if self.quiet_end and marker.role == "error" and marker.rank:
            return True
        later = len(self.steps) - bisect_right(self.steps, at)
        return any(end > at for end in self.ends) or any(a > at for a in self.attempts) or later >= marker.overcome_after


def judge(body: Body, catalogue: Catalogue, phases: Sequence[Phase], exit_code: int | None) -> Ending:
    """Return how the run ended. ``exit_code`` is the one that the caller knows, or None."""
    progress = _Progress(body, catalogue, phases, exit_code)
    sightings = [s for m in catalogue.markers if (s := _sight(m, body.markers.get(m.id), progress)) is not None]
    codes = [s for s in sightings if s.marker.role == "exit_code" and s.open and s.exit_code]
    guilty = sorted(
        (s for s in sightings if s.open and s.marker.role in CONVICTING and s.marker.reason),
        key=lambda s: (s.marker.rank, s.at >> POSITION_BITS),  # on one line the catalogue's order decides
    )
    stated = max(codes, key=lambda s: s.at, default=None)
    code = exit_code if exit_code is not None else stated.exit_code if stated else _zero(progress, sightings, guilty)
    last = phases[-1] if phases else None
    done = _completed(last, progress)
    if guilty and guilty[0].marker.rank <= 1:
        return _ending(guilty[0], code, sightings)
    nan = _nan_loss(phases)
    if nan is not None:
        return Ending(
            "nan_loss", "numerics", nan, "the loss is not a finite number from here to the end", done, code, tuple(sightings)
        )
    if guilty:
        return _ending(guilty[0], code, sightings)
    if code:
        line = stated.line if stated and exit_code is None else None
        return Ending("unknown", "unknown", line, f"exit code {code}", False, code, tuple(sightings))
    if last is not None and last.failed_end:
        event = [e for e in last.singles if e.rule.event == "end" and "status" in e.texts][-1]
        message = f"the run ended with status {event.texts['status']}"
        return Ending("unknown", "unknown", event.line, message, False, code, tuple(sightings))
    if last is None:
        return Ending("no_grammar_match", "unknown", None, "no grammar recognises this log", None, code, tuple(sightings))
    if done is False:
        message = "the log ends before the run does"
        return Ending("truncated", "unknown", None, message, False, code, tuple(sightings))
    return Ending(None, None, None, None, done, code, tuple(sightings))


def _ending(guilty: Sighting, code: int | None, sightings: Sequence[Sighting]) -> Ending:
    marker = guilty.marker
    died = marker.role in FATAL
    return Ending(marker.reason, marker.category, guilty.line, guilty.message, False, code, tuple(sightings), died)


def _zero(progress: _Progress, sightings: Sequence[Sighting], guilty: Sequence[Sighting]) -> int | None:
    """Return a printed exit code of zero, unless another run follows it in the log, or an error that ended one."""
    last_step = progress.steps[-1] if progress.steps else -1
    zero = any(s.marker.role == "exit_code" and s.exit_code == 0 and s.at > last_step for s in sightings)
    return 0 if zero and not guilty else None


def _sight(marker: Marker, hits: Hits | None, progress: _Progress) -> Sighting | None:
    """Return what counts of a marker's hits: the first that the run did not get over, else the first."""
    if hits is None or not hits.at:
        return None
    chosen = next((i for i, at in enumerate(hits.at) if not progress.got_over(at, marker)), None)
    if marker.role == "exit_code":
        chosen = len(hits.at) - 1 if chosen is not None else None
    index = chosen or 0
    at = hits.at[index]
    text, code = next(((t, c) for a, t, c in hits.texts if a >= at), (hits.texts[-1][1], hits.texts[-1][2]))
    return Sighting(marker, len(hits.at), hits.line[0], hits.line[-1], at, hits.line[index], text, code, chosen is not None)


def _completed(last: Phase | None, progress: _Progress) -> bool | None:
    """True: the log shows that the last phase ended well. False: it shows or must have shown that it did not."""
    if last is None:
        return None
    if last.failed_end:
        return False
    last_step = progress.steps[-1] if progress.steps else -1
    if last.ended or any(end > last_step and end >= last.first_at for end in progress.ends):
        return True
    numbers = [e.step for e in last.steps if e.step is not None]
    planned = last.planned
    if numbers and planned is not None and numbers[-1] >= planned - 1 and not _within_epoch(last, planned):
        return True
    if any(end >= last.first_at for end in progress.ends):
        return None  # steps follow: written late, or of a part of the run that is over
    if numbers and planned is not None:
        stride = numbers[-1] - numbers[-2] if len(numbers) > 1 else 1
        if numbers[-1] + stride < planned:
            return False  # another record would have been printed
    if not last.steps:
        return False
    return False if last.grammar.completion == "reliable" else None


def _within_epoch(phase: Phase, planned: int) -> bool:
    """True when the last record counts by epoch and stands in an epoch that goes on, or before the last one."""
    last = phase.steps[-1]
    if last.rule.counts != "epoch" and (last.counters is None or "epoch_step" in last.counters):
        return False
    counters = last.counters or {}
    inside, length = counters.get("epoch_step"), counters.get("epoch_steps")
    early = last.step is not None and last.step < planned - 1 + last.rule.epochs_from
    return early or (inside is not None and length is not None and inside < length)


def _nan_loss(phases: Sequence[Phase]) -> int | None:
    """Return the line from which on no loss that stands is finite, or None when the last one is."""
    for phase in reversed(phases):
        losses = [(e.metrics["loss"], e.line) for e in phase.steps if "loss" in e.metrics]
        if losses:
            bad = list(takewhile(lambda loss: not math.isfinite(loss[0]), reversed(losses)))
            return bad[-1][1] if bad else None
    return None
