"""Step records with something else after each, or after a few: blocks, evaluations, other ranks, frames, headers, restarts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.facts import Facts
from benchmarks.generators import huggingface, megatron
from benchmarks.generators.numbers import ROWS, decimal, noise, scaled
from benchmarks.generators.stream import in_blocks

TIMERS = "(min, max) time across ranks (ms):\n" + "".join(
    f"    {name} {'.' * (47 - len(name))}: (%.2f, %.2f)\n" for name in ("forward-compute", "backward-compute", "optimizer")
)
EVALUATE_EVERY = 4
"""Records of training between two evaluations."""
RANKS = 8
OF_RANK = "[default%d]:Epoch: [%d][%5d/50000]\tTime %6.3f (%6.3f)\tLoss %.4e (%.4e)\tAcc@1 %6.2f (%6.2f)\n"
EPOCH = 50_000
FRAMES = 3
"""Frames of the bar at a step."""
FRAME = "\r%3d%%|%s| %d/%d [%s<%s, %5.2fit/s]"
HEADER = "E    #       LOSS TOK2VEC  LOSS TAGGER  TAG_ACC  SCORE \n---  ------  ------------  -----------  -------  ------\n"
ROW = "%3d  %6d  %12.2f  %11.2f  %7.2f  %6.2f\n"
SPACY = "============================= Training pipeline =============================\n"
ATTEMPT, KEPT = 64, 48
"""Steps of an attempt, and those before its last checkpoint: the others are run again."""


@in_blocks
def timers(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield step lines of Megatron-LM, a block of timers with a heading behind each."""
    for first in itertools.count(1, ROWS):
        steps = megatron.step_lines(random, first, ROWS, facts)
        largest = [decimal(np.abs(noise(random, mean, spread)) + 0.01, 2) for mean, spread in ((400, 9), (900, 9), (30, 1))]
        least = [decimal(values * 0.98, 2) for values in largest]
        columns = (values.tolist() for pair in zip(least, largest, strict=True) for values in pair)
        if facts is not None:
            for name, values in zip(("forward", "backward", "optimizer"), largest, strict=True):
                facts.add(f"{name}_time_s", scaled(values, 2, -3), steady=True)
        yield megatron.alternating(steps, map(TIMERS.__mod__, zip(*columns, strict=True)))


@in_blocks
def evaluations(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield dicts of the Hugging Face Trainer, an evaluation after every fourth."""
    for done in itertools.count(0, ROWS):
        lines = huggingface.dicts(random, done, facts)
        scores = decimal(noise(random, 2.0, 0.05, ROWS // EVALUATE_EVERY), 4).tolist()
        text = []
        for number, score in enumerate(scores):
            part = lines[number * EVALUATE_EVERY : (number + 1) * EVALUATE_EVERY]
            epoch = round((done + (number + 1) * EVALUATE_EVERY) / huggingface.STEPS_PER_EPOCH, 2)
            text += [*part, huggingface.EVALUATION % (score, 31.25, 290.3, 32.3, epoch)]
        if facts is not None:
            facts.add("val_loss", np.array(scores))
        yield "".join(text)


@in_blocks
def fleet(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield the records of eight ranks in turn, each with a loss of its own; they count inside an epoch. Facts are of rank 0."""
    done = 0
    while True:
        count = min(ROWS, EPOCH - done % EPOCH)
        steps = done + np.arange(count)
        losses, times = (decimal(np.abs(noise(random, m, s, count * RANKS)) + 0.01, 4) for m, s in ((2.0, 0.1), (0.3, 0.02)))
        times, scores = decimal(times, 3), decimal(np.abs(noise(random, 60, 5, count * RANKS)), 2)
        places = zip(*(np.repeat(values, RANKS).tolist() for values in (steps // EPOCH, steps % EPOCH)), strict=True)
        rows = zip(places, losses.tolist(), times.tolist(), scores.tolist(), strict=True)
        text = "".join(
            OF_RANK % (number % RANKS, *place, time, time, loss, loss, score, score)
            for number, (place, loss, time, score) in enumerate(rows)
        )
        if facts is not None:
            facts.steps(done, count)
            facts.add("loss", losses[::RANKS])
            facts.add("step_time_s", times[::RANKS], steady=True)
        yield text
        done += count


@in_blocks
def frames(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield dicts of the Hugging Face Trainer among the frames of its bar, which is drawn several times a step."""
    for done in itertools.count(0, ROWS):
        lines = huggingface.dicts(random, done, facts, numbered=True)
        text = []
        for number, line in enumerate(lines, done + 1):
            clock = f"{number // 3600}:{number // 60 % 60:02d}:{number % 60:02d}"
            bar = FRAME % (number * 100 // huggingface.PLANNED, " " * 10, number, huggingface.PLANNED, clock, "99:59:59", 1.0)
            text.append(f"\r{' ' * 60}\r{line}" + bar * FRAMES)
        yield "".join(text)


def tables(size: int, seed: int, facts: Facts | None) -> Iterator[bytes]:
    """Yield rows of spaCy's table, its header again before each."""
    yield SPACY.encode()
    yield from _table_rows(size, seed, facts)


@in_blocks
def _table_rows(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    for first in itertools.count(0, ROWS):
        steps = np.arange(first, first + ROWS)
        losses = [decimal(np.abs(noise(random, mean, 1.0)), 2) for mean in (20.0, 90.0)]
        scores = [decimal(np.abs(noise(random, mean, 1.0)), 2) for mean in (75.0, 75.0)]
        epochs = steps // 10_000
        rows = zip(*(values.tolist() for values in (epochs, steps, *losses, scores[0], scores[1] / 100)), strict=True)
        if facts is not None:
            facts.steps(first, ROWS)
            facts.add("epoch", epochs.astype(np.float64))
            facts.add("val_accuracy", scaled(scores[0], 2, -2))
        yield "".join(HEADER + ROW % row for row in rows)


def restarts(size: int, seed: int, facts: Facts | None) -> Iterator[bytes]:
    """Yield attempts of Megatron-LM, each from the last checkpoint of the one before; facts are of what is not run again."""
    random = np.random.default_rng(seed)
    first, made = 1, 0
    while made < size:
        if facts is not None:
            facts.begin()
        kept = megatron.step_lines(random, first, KEPT, facts)
        state = random.bit_generator.state
        again = megatron.step_lines(random, first + KEPT, ATTEMPT - KEPT, None)
        block = "".join([*kept, *again]).encode()
        made += len(block)
        if made >= size and facts is not None:  # nobody runs these steps again
            random.bit_generator.state = state
            megatron.step_lines(random, first + KEPT, ATTEMPT - KEPT, facts)
        yield block
        first += KEPT
