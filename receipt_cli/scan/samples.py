"""What the GPUs of a job did, from the file of samples beside its log (``io.samples_file``)."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from receipt_cli.io.samples_file import QUIET, read_samples
from receipt_cli.numeric.array_types import Array, Floats
from receipt_cli.numeric.statistics import exact_median

GAP = 2.5
"""Ordinary pauses between samples beyond which nobody knows what happened between two."""


class Samples:
    """The samples of a file: each says what the GPUs did since the one before it."""

    def __init__(self, data: bytes) -> None:
        """Take the bytes of the file. What is damaged, or back in time, counts as if it was not there."""
        self.sha256, self.size_bytes = sha256(data).hexdigest(), len(data)
        spans = _spans(data)
        begins, ends, known, idle = (np.array(column, np.float64) for column in zip(*spans, strict=True)) if spans else _NONE
        self._ends = ends
        self._busy = (known > 0) & (idle == 0)
        self._known = known > 0
        self._at = np.stack([begins, ends], 1).ravel()
        self._seconds = [self._sums(which * (ends - begins)) for which in (known, idle)]

    def _sums(self, seconds: Array) -> Floats:
        """Return the sum of ``seconds`` up to each begin and end."""
        after = np.cumsum(seconds)
        return np.stack([after - seconds, after], 1).ravel()

    def within(self, begins: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """Return the seconds of some stretches that were sampled, and of these the seconds in which no GPU did anything
        (float64 [n] each).

        ``begins`` and ``ends`` are in seconds since 1970.
        """
        if not len(self._at):
            return np.zeros(len(begins)), np.zeros(len(begins))
        known, idle = (np.interp(ends, self._at, sums) - np.interp(begins, self._at, sums) for sums in self._seconds)
        return known, idle

    def count_in(self, begin: float, end: float) -> tuple[int, int]:
        """Return how many samples there are of some time, and how many of them show a GPU that works."""
        inside = (self._ends > begin) & (self._ends <= end)
        return int(np.count_nonzero(inside & self._known)), int(np.count_nonzero(inside & self._busy))


_NONE = tuple(np.empty(0) for _ in range(4))


def _spans(data: bytes) -> list[tuple[float, float, bool, bool]]:
    """Return begin and end of what each sample is of, in seconds since 1970, whether it says what all GPUs did, and whether that
    was nothing."""
    spans: list[tuple[float, float, bool, bool]] = []
    try:
        for launch in read_samples(data)[0]["launches"]:
            samples = launch["samples"]
            clocks = (launch["started_ms"] + np.array([sample["ms"] for sample in samples], np.float64)) / 1000.0
            lengths = np.diff(clocks)
            usual = exact_median(lengths) if len(lengths) else None
            if usual is None or not (lengths >= 0).all() or (spans and clocks[0] < spans[-1][1]):
                continue
            for begin, length, sample in zip(clocks.tolist(), lengths.tolist(), samples[1:], strict=False):
                uses = [use for use, _, _ in sample["gpus"]]
                known = bool(uses) and None not in uses and length <= GAP * usual
                spans.append((begin, begin + length, known, known and max(uses) < QUIET))
    except (KeyError, TypeError, ValueError):  # a file that its schema refuses
        return []
    return spans
