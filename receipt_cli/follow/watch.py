"""When the figures of a followed log are made anew, and when they are shown: as often as that costs next to nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from receipt_cli.follow.growth import Growth
from receipt_cli.follow.snapshot import Figures, SoFar, figures

LEAST_S = 0.25
"""Seconds between two pictures at least."""
SHARE = 20
"""Figures are made anew once so many times the seconds have gone by that it took the last time: a twentieth of one core."""
SEEN_S = 5.0
"""Seconds for which steps must have come before their pace says anything."""


class Picture(Protocol):
    """What a person looks at."""

    def show(self, state: SoFar) -> None:
        """Show ``state`` instead of what was shown."""

    def leave(self, message: str) -> None:
        """Leave what is shown as it stands, say ``message`` below it and show nothing more."""


class Watch:
    """Shows what is known of a growing log; nothing is shown again before something came."""

    def __init__(self, name: str, picture: Picture, ends: str) -> None:
        """``ends`` says what ends the following."""
        self._name = name
        self._picture = picture
        self._ends = ends
        self._begin()

    def _begin(self) -> None:
        self._figures: Figures | None = None
        self._heard_at: float | None = None
        self._drawn = self._due = 0.0
        self._waiting = True
        self._paced: list[tuple[float, int]] = []

    def again(self) -> None:
        """Forget what was seen: the log begins anew."""
        self._begin()

    def leave(self, message: str) -> None:
        """Say ``message`` and show nothing more: others may be writing to the terminal now."""
        self._picture.leave(message)

    def look(self, growth: Growth, came_at: float | None, warnings: Sequence[str], *, hurried: bool = False) -> None:
        """Take note that ``growth`` was looked at, and show what is due.

        ``came_at`` is when what it took came (seconds since 1970), None where nothing did; ``hurried``: more waits to be read.
        """
        now = time.monotonic()
        if came_at is not None:
            self._heard_at = came_at
            self._waiting = True
        if not self._waiting or now < self._drawn + LEAST_S:
            return
        behind = growth.size_bytes != (0 if self._figures is None else self._figures.size_bytes)
        if behind and now >= self._due and not hurried:
            self._fold(growth, now)
            behind = False
        self._picture.show(self._so_far(growth, warnings))
        self._drawn = time.monotonic()
        self._waiting = behind

    def _fold(self, growth: Growth, now: float) -> None:
        self._figures = None  # not two of them at once: they hold every value of the run
        self._figures = figures(growth.so_far().derivation())
        done = time.monotonic()
        self._due = done + SHARE * (done - now)
        step = self._figures.last_step
        if step is not None and (not self._paced or step < self._paced[-1][1]):
            self._paced = [(now, step)]
        elif step is not None and step > self._paced[-1][1]:
            self._paced = [self._paced[0], (now, step)]

    def _so_far(self, growth: Growth, warnings: Sequence[str]) -> SoFar:
        return SoFar(
            name=self._name,
            size_bytes=growth.size_bytes,
            line_count=growth.line_count,
            heard_at=self._heard_at,
            figures=self._figures,
            step_time_s=self._pace(),
            ends=self._ends,
            warnings=tuple(warnings),
        )

    def _pace(self) -> float | None:
        """Return the seconds a step took while we looked on, or None where that was too short."""
        if len(self._paced) < 2:
            return None
        (began, first), (ended, last) = self._paced
        return (ended - began) / (last - first) if ended - began >= SEEN_S else None
