"""A log as text in, its receipt out: what the tests of the fold share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce

Receipt = Callable[..., dict[str, Any]]


@pytest.fixture
def receipt_of(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return the receipt document of a log given as text or bytes.

    ``grammar`` names a grammar or is the YAML text of one; ``exit_code`` is what the caller knows.
    """

    def make(log: str | bytes, grammar: str | None = None, exit_code: int | None = None) -> dict[str, Any]:
        path = tmp_path / "run.log"
        path.write_bytes(log.encode() if isinstance(log, str) else log)
        if grammar is not None and "\n" in grammar:
            (tmp_path / "v1.yaml").write_text(grammar)
            grammar = str(tmp_path / "v1.yaml")
        return produce(Request(path=str(path), grammar=grammar, exit_code=exit_code, workers=1)).document

    return make


TOY = r"""
grammar: toy
version: 1
title: A trainer with one line for everything
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
      keys: {loss: loss, time: step_time_s, mfu: mfu_ratio, tps: tokens_per_s}
    fields:
      step: {type: integer}
      planned_steps: {type: integer}
      loss: {type: number}
      step_time_s: {type: number}
      mfu_ratio: {type: number}
      tokens_per_s: {type: number}
  second_line:
    event: step
    literal: 'toy norm '
    pattern: 'toy norm (?P<step>\d++): (?P<grad_norm>[\d.]++)'
    fields: {step: {type: integer}, grad_norm: {type: number}}
  beside:
    event: step
    companion: true
    literal: 'toy memory '
    pattern: 'toy memory (?P<peak_memory_bytes>\d++)'
    fields: {peak_memory_bytes: {type: number}}
  bar:
    event: step
    redraw: true
    literal: 'toy bar '
    pattern: 'toy bar (?P<step>\d++)/(?P<planned_steps>\d++) loss=(?P<loss>[\d.]++)'
    fields: {step: {type: integer}, planned_steps: {type: integer}, loss: {type: number}}
  evaluation:
    event: eval
    literal: 'toy eval '
    pattern: 'toy eval (?P<step>\d++): (?P<val_loss>[\d.]++)'
    fields: {step: {type: integer}, val_loss: {type: number}}
  stage:
    event: phase
    literal: 'toy stage '
    pattern: 'toy stage (?P<phase>\w++)'
    fields: {phase: {type: string}}
  model:
    event: header
    literal: 'toy model '
    pattern: 'toy model (?P<parameter_count>\d++)'
    fields: {parameter_count: {type: integer}}
  batch:
    event: header
    literal: 'toy batch '
    pattern: 'toy batch (?P<samples_per_step>\d++) x (?P<sequence_length>\d++)'
    fields: {samples_per_step: {type: integer}, sequence_length: {type: integer}}
  done:
    event: end
    literal: 'toy done in '
    pattern: 'toy done in (?P<training_time_s>[\d.]++) s'
    fields: {training_time_s: {type: number}}
  stopped:
    event: end
    literal: 'toy ended: '
    pattern: 'toy ended: (?P<status>\w++)'
    fields: {status: {type: string}}
ignore:
  saving: {literal: 'toy saving', pattern: 'toy saving', samples: ['toy saving']}
"""


@pytest.fixture
def toy_receipt(receipt_of: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return the receipt document of a log in the format of ``TOY``."""

    def make(log: str | bytes, exit_code: int | None = None) -> dict[str, Any]:
        return receipt_of(log, TOY, exit_code)

    return make
