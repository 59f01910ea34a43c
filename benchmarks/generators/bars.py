"""A training loop under a tqdm bar: every frame redraws the bar behind a carriage return, a line is a whole epoch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.facts import Facts
from benchmarks.generators.numbers import ROWS, decimal, noise
from benchmarks.generators.stream import in_blocks

FRAME = "Epoch %d/%d: %3d%%|%s| %d/%d [%s<%s, %5.2fit/s, loss=%.4f, lr=%.2e]"
EPOCH_BLOCKS = 40
FRAMES = EPOCH_BLOCKS * ROWS
EPOCHS = 20_000
_PARTS = " ▏▎▍▌▋▊▉"


def _bar(share: float) -> str:
    eighths = int(share * 80)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_PARTS[rest] if rest else "")).ljust(10)


_BARS = [_bar(share / 1000) for share in range(1001)]


def _time(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute:02d}:{second:02d}"


_TIMES = [_time(second) for second in range(FRAMES)]


@in_blocks
def blocks(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield the frames of one epoch after the other."""
    for done in itertools.count(0, ROWS):
        epoch, within = divmod(done, FRAMES)
        steps = np.arange(within + 1, within + ROWS + 1)
        loss = decimal(0.4 + 2.0 / (1.0 + (done + steps) / 1e5) + np.abs(noise(random, 0.0, 0.05)), 4)
        rate = np.rint(noise(random, 550.0, 40.0)) / 1e7  # d.dde-05
        speed = noise(random, 2.5, 0.1)
        shares = (steps * 1000 // FRAMES).tolist()
        seconds = (steps / 2.5).astype(int).tolist()
        rest = ((FRAMES - steps) / 2.5).astype(int).tolist()
        rows = zip(
            *([epoch + 1] * ROWS, [EPOCHS] * ROWS, (steps * 100 // FRAMES).tolist(), map(_BARS.__getitem__, shares)),
            *(steps.tolist(), [FRAMES] * ROWS, map(_TIMES.__getitem__, seconds), map(_TIMES.__getitem__, rest)),
            *(speed.tolist(), loss.tolist(), rate.tolist()),
            strict=True,
        )
        if facts is not None:
            facts.steps(done + 1, ROWS)
            facts.add("loss", loss)
            facts.add("learning_rate", rate)
        yield "\r" + "\r".join(map(FRAME.__mod__, rows)) + ("\n" if within + ROWS == FRAMES else "")
