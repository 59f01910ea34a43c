"""Doubt records that look like those of training, by what the other records of the log show."""

from __future__ import annotations

import re
from collections.abc import Sequence

from receipt_cli.learn.counting import EPOCHS, drawn_steps, open_steps
from receipt_cli.learn.metric_names import STEP, counter_of
from receipt_cli.learn.readings import Reading, without
from receipt_cli.learn.vocabulary import Vocabulary


def doubt(readings: Sequence[Reading], vocabulary: Vocabulary) -> None:
    """Doubt bars beyond their total, notices of checkpoints, and first batches beside whole epochs."""
    _doubt_overrun(readings)
    _doubt_notices(readings)
    _doubt_first_batches(readings, vocabulary)


def _doubt_overrun(readings: Sequence[Reading]) -> None:
    """Doubt bars that go on beyond their total (``14/14``, ``15it``): no rule reads both kinds of frames."""
    ends: dict[bytes, list[tuple[float, Reading]]] = {}
    overs: dict[bytes, list[tuple[float, Reading]]] = {}
    for reading in readings:
        shape = reading.shape
        for at in open_steps(shape) if reading.roles else ():
            overs.setdefault(shape.literals[0], []).append((shape.columns[at].lowest, reading))
        for at in drawn_steps(shape) if reading.roles else ():
            totals = shape.columns[at].totals
            if totals is not None:
                ends.setdefault(shape.literals[0], []).append((totals[0], reading))
    for head in overs.keys() & ends.keys():
        least, most = min(total for total, _ in ends[head]), max(lowest for lowest, _ in overs[head])
        for total, reading in ends[head]:
            reading.doubted = reading.doubted or total < most
        for lowest, reading in overs[head]:
            reading.doubted = reading.doubted or least < lowest


_SAVES = frozenset(["checkpoint", "checkpoints", "ckpt", "saved", "saving", "save", "saves"])


def _doubt_notices(readings: Sequence[Reading]) -> None:
    """Doubt lines that tell of a checkpoint and its loss, where others are as sure: ``Saved x.pt (epoch 3, loss 2.1)``."""
    told: list[Reading] = []
    for reading in readings:
        first = min(reading.roles, default=0)
        text = b" ".join(reading.shape.literals[: first + 1]).lower().decode("utf-8", "replace")
        if reading.tier and not _SAVES.isdisjoint(re.findall(r"[a-z]+", text)):
            told.append(reading)
    best = max((r.tier for r in without(readings, told)), default=0)
    for reading in told:
        reading.doubted = reading.doubted or reading.tier <= best


def _doubt_first_batches(readings: Sequence[Reading], vocabulary: Vocabulary) -> None:
    """Doubt the records of the first batch of each epoch, where others are of whole epochs: ``Epoch 3 Batch 0 Loss 2``."""
    whole = [r for r in readings if r.tier and r.counter.mode == EPOCHS and not _first_batch(r, vocabulary)]
    for reading in readings if whole else ():
        word = _first_batch(reading, vocabulary) if reading.tier and reading.counter.mode == EPOCHS else ""
        twins = (r for r in whole if word and r.family == reading.family and r.loss is not None)
        if any(reading.shape.count <= 2 * r.shape.count for r in twins):
            reading.doubted, reading.told_by = True, word


def _first_batch(reading: Reading, vocabulary: Vocabulary) -> str:
    """Return what a counter of steps is called that never counts, since it is 0, or 1, in each record; empty without one."""
    for name, column in zip(reading.names, reading.shape.columns, strict=True):
        counter = counter_of(name.words.split(), vocabulary) if name.words and column.integer else None
        if counter is not None and counter.kind == STEP and column.count > 2 and not column.rises and column.lowest < 2:
            return name.words.split()[-1]
    return ""
