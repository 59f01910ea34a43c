"""Attempts that follow one another in one run of rows give the receipt that an event for each of their records gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.analysis.goodput.model import Wall
from receipt_cli.derive import Options, read_log
from receipt_cli.events import banners, copies, rows
from receipt_cli.events.compact import regular
from receipt_cli.events.rows import HEAD, TAIL
from receipt_cli.io.joined_parts import Stream
from receipt_cli.io.source import Source
from receipt_cli.receipts.assembly import assemble
from tests.tools.examples import costly
from tests.tools.pieces import small_pieces
from tests.tools.told import told_of

GRAMMAR = r"""
grammar: toy
version: 1
title: A trainer that is restarted often
upstream: https://example.org/toy
trainer: toy
layer: trainer
completion: reliable
rules:
  train_step:
    event: step
    literal: 'toy step '
    pairs:
      start: 'toy step (?P<step>\d++)(?:/(?P<planned_steps>\d++))?(?= \|)'
      cell: '|'
      key: '='
      keys: {loss: loss, time: step_time_s, data: data_time_s, wait: dispatch_wait_s, mem: peak_memory_bytes}
      unknown: other
    fields:
      step: {type: integer}
      planned_steps: {type: integer}
      loss: {type: number}
      step_time_s: {type: number%s}
      data_time_s: {type: number}
      dispatch_wait_s: {type: number}
      peak_memory_bytes: {type: number}
  second_line:
    event: step
    literal: 'toy norm '
    pattern: 'toy norm (?P<step>\d++): (?P<grad_norm>[\d.]++)'
    fields: {step: {type: integer}, grad_norm: {type: number}}
  evaluation:
    event: eval
    literal: 'toy eval '
    pattern: 'toy eval (?P<step>\d++): (?P<val_loss>[\d.]++)(?: in (?P<eval_duration_s>[\d.]++))?'
    fields: {step: {type: integer}, val_loss: {type: number}, eval_duration_s: {type: number}}
  saved:
    event: checkpoint
    literal: 'toy saved '
    pattern: 'toy saved (?P<step>\d++)(?: in (?P<checkpoint_duration_s>[\d.]++))?'
    fields: {step: {type: integer}, checkpoint_duration_s: {type: number}}
  model:
    event: header
    literal: 'toy model '
    pattern: 'toy model (?P<parameter_count>\d++)'
    fields: {parameter_count: {type: integer}}
  seed:
    event: header
    literal: 'toy seed '
    pattern: 'toy seed (?P<seed>\d++)'
    fields: {seed: {type: integer}}
  done:
    event: end
    literal: 'toy done in '
    pattern: 'toy done in (?P<training_time_s>[\d.]++) s'
    fields: {training_time_s: {type: number}}
"""
DEFINITIONS = (
    "",
    ", definition: mean_since_last_record",
    ", definition: mean_since_start",
    ", definition: mean_since_timing_began",
)
BETWEEN = {
    "nothing": "",
    "a few lines": "what is said\nbefore\n",
    "a banner": "".join(
        f"loading {name} of the model\n" for name in ("weights", "states", "data", "words", "maps", "rules", "ends")
    ),
    "another": "".join(f"shard of {name}\n" for name in ("paper", "wood", "stone", "cloth", "silk", "wool", "glass")),
    "an evaluation": "toy eval {n}: 2.5\n",
    "an evaluation that takes long": "toy eval {n}: 2.5 in 3.5\n",
    "a checkpoint": "toy saved {n}\n",
    "a checkpoint that takes long": "toy saved {n} in 2.25\n",
    "a model": "toy model 1000\n",
    "a seed": "toy seed 1\n",
    "another seed": "toy seed 2\n",
    "an end": "toy done in 12.5 s\n",
    "a line about the last step": "toy norm {n}: 0.5\n",
    "an error": "Traceback (most recent call last):\nRuntimeError: CUDA error: out of memory\n",
    "a preemption": "slurmstepd: error: *** JOB 1 ON node CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n",
    "another plan": "",
    "another rank": "",
}
CELLS = st.lists(
    st.tuples(
        st.sampled_from(["time", "time", "data", "wait", "mem", "width"]),
        st.lists(
            st.sampled_from(["0.5", "0.5", "0.25", "0.001", "3.5", "9000", "nan", "1e10", "0", "t", None]), min_size=1, max_size=4
        ),
    ),
    max_size=4,
)
ATTEMPTS = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 40), st.integers(8, 40), st.integers(8, 40)),
        st.sampled_from(["again"] * 60 + ["skips", "anew", "from one", "from the first"]),
        st.one_of(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.integers(0, 45)),
        st.sampled_from(["nothing"] * 50 + sorted(BETWEEN)),
        st.sampled_from([0.0, 0.0, 0.0, 40.0, 4000.0, -20.0]),
        st.sampled_from([None] * 30 + ["slow", "drop", "loss", "nothing", "twice", "stamp", "norm"]),
    ),
    min_size=4,
    max_size=16,
)


def log_of(
    attempts: list[tuple[int, str, int, str, float, str | None]],
    first: int,
    stride: int,
    cells: list[tuple[str, list[str | None]]],
    stamped: bool,
    same: bool,
    copies: int,
    evaluated: tuple[int, str, float],
) -> str:
    """Return the log of attempts: how many records, from where, what is before them, after how many seconds, and what is odd."""
    now, n, lines, label, plan = datetime(2026, 1, 1), first, [], "", ""
    for number, (count, begin, back, between, pause, odd) in enumerate(attempts):
        if number:
            n = {"again": max(1, n - back * stride), "skips": n + back * stride, "anew": 0, "from one": 1}.get(begin, first)
            now += timedelta(seconds=pause)
        lines += BETWEEN[between].replace("{n}", str(max(0, n - stride))).splitlines()
        label = "[rank1]: " if between == "another rank" else label
        plan = "/900" if between == "another plan" else plan
        for i in range(count):
            here = odd is not None and i == count // 2
            now += timedelta(seconds=30.0 if here and odd == "slow" else 0.5 + i % 3 / 100)
            loss = f"{9 - n / 500 + (0 if same else number / 7):.3f}"
            said = [(name, found[(n + i) % len(found)]) for name, found in (cells[:-1] if here and odd == "nothing" else cells)]
            values = "".join(f" | {name}={f'{n / 2}' if value == 't' else value}" for name, value in said if value is not None)
            stamp = (
                f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d} - " if stamped and not (here and odd == "stamp") else ""
            )
            line = f"{label}{stamp}toy step {n}{plan} | loss={'nan' if here and odd == 'loss' else loss}{values}"
            lines += [line] * (0 if here and odd == "drop" else 2 if here and odd == "twice" else 1)
            lines += [f"{label}{stamp}toy norm {n}: 0.5"] if here and odd == "norm" else []
            if evaluated[0] and n % (evaluated[0] * stride) == 0:
                now += timedelta(seconds=evaluated[2])
                stamp = _stamp(now) if stamped and not (here and odd == "stamp") else ""
                lines.append(f"{label}{stamp}toy eval {n}: 2.{n % 7}{evaluated[1]}")
            n += stride
    return ("\n".join(lines) + "\n") * (copies if n - stride >= first else 1)


def _stamp(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d} - "


LOGS = st.builds(
    log_of,
    ATTEMPTS,
    st.sampled_from([0, 1, 30, 100, 1000]),
    st.sampled_from([1, 1, 1, 2, 10]),
    CELLS,
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 1, 1, 1, 2]),
    st.one_of(
        st.just((0, "", 0.0)),
        st.just((0, "", 0.0)),
        st.tuples(st.integers(1, 5), st.sampled_from(["", " in 3.5", " in 0.1"]), st.sampled_from([0.0, 0.1, 3.5, 40.0])),
    ),
)
WALLS = st.sampled_from([None, None, Wall(5000.0, "stated"), Wall(60.0, "stated")])


@contextmanager
def in_columns(wanted: bool, longest: int, most: int) -> Iterator[None]:
    """Leave all records in their columns that may stay there, or none; ``longest`` and ``most`` are limits of relays."""
    with (
        small_pieces(),
        patch.multiple(regular, SPAN=HEAD + TAIL + 2, LEAST=1, FEWEST=2, LONGEST=longest),
        patch.object(rows, "MANY", 0 if wanted else 1 << 40),
        patch.object(banners, "MOST_STARTS", most),
        patch.object(copies, "MOST_LANES", most),
    ):
        yield


def told(path: Path, grammar: Path, wanted: bool, limits: tuple[int, int], wall: Wall | None = None) -> list[tuple[object, ...]]:
    """Return all that each run of a log gives, with NaN as text."""
    with in_columns(wanted, *limits):
        return told_of(path, Options(grammar=str(grammar), wall=wall))


def compared(log: str, definition: str, limits: tuple[int, int], wall: Wall | None, folder: Path) -> None:
    path, grammar = folder / "run.log", folder / "v1.yaml"
    path.write_text(log)
    grammar.write_text(GRAMMAR % definition)
    assert told(path, grammar, True, limits, wall) == told(path, grammar, False, limits, wall)


@settings(max_examples=costly(150))
@given(LOGS, st.sampled_from(DEFINITIONS), st.tuples(st.sampled_from([15, 4096]), st.sampled_from([2, 100])), WALLS)
def test_relays_change_nothing(log: str, definition: str, limits: tuple[int, int], wall: Wall | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compared(log, definition, limits, wall, Path(folder))


@pytest.mark.parametrize("begin", ["again", "from the first", "from one"])
def test_short_attempts_are_few_events(begin: str, tmp_path: Path) -> None:
    """Only attempts that go on from a step of the one before stay together: another start may be another launch's."""
    again = (64, begin, 16, "nothing", 0.0, None)
    log = log_of([again] * 300, 1, 1, [("time", ["0.5"])], True, False, 1, (0, "", 0.0))
    path, grammar = tmp_path / "run.log", tmp_path / "v1.yaml"
    path.write_text(log)
    grammar.write_text(GRAMMAR % "")
    reading = read_log([Stream((Source(str(path)),))], Options(grammar=str(grammar)), workers=1)
    assert sum(event.records for event in reading.events if event.is_step) == 300 * 64
    assert (len(reading.events) < 64 * 4) == (begin == "again")
    with patch.object(rows, "MANY", 1 << 40):
        plain = read_log([Stream((Source(str(path)),))], Options(grammar=str(grammar)), workers=1)
    assert len(plain.events) == 300 * 64
    one, other = (repr(assemble(each.derivation(), run={}, header={}, attachments=[])) for each in (reading, plain))
    assert one == other
