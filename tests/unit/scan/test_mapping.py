"""Objects on a line: their places are those of bytes, and which of them a mapping with a start reads."""

import pytest

from tests.tools.logs import receipt_of

TRAINED = "{{'loss': {loss}, 'grad_norm': 0.5291, 'learning_rate': 0.0001, 'epoch': {epoch}}}"
EVALUATED = (
    "{{'eval_loss': {loss}, 'eval_runtime': 30.2{n}, 'eval_note': '{note}', 'eval_steps_per_second': 2.47, 'epoch': {epoch}}}"
)


def log(head: str, note: str = "") -> str:
    lines = []
    for n in range(1, 6):
        lines.append(TRAINED.format(loss=1 - n / 10, epoch=n / 10))
        lines.append(head + EVALUATED.format(loss=2 - n / 10, n=n, note=note, epoch=n / 10))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("head", "note"),
    [
        (" 14%|█▍        | 300/2115 [10:37<57:54,  1.91s/it]", ""),
        ("████████████████████████████████████████| ", ""),
        ("验证: ", ""),
        ("🚀 ", "été"),
        ("", "précision 检查 🚀"),
    ],
)
def test_no_figure_is_kept_twice(head: str, note: str) -> None:
    plain, found = receipt_of(log("")), receipt_of(log(head, note))
    assert found["summary"]["metrics"] == plain["summary"]["metrics"]
    assert found["summary"]["other_metrics"] == plain["summary"]["other_metrics"] == {}
    assert found["summary"]["metrics"]["val_loss"]["record_count"] == 5


GRAMMAR = r"""
grammar: toy
version: 1
title: A trainer whose callback says each record once more
upstream: https://example.org/toy
trainer: toy
rules:
  record:
    event: step
    literal: "'loss': "
    mapping:
      syntax: python
      start: '(?<!again - )\{'
      requires: [loss]
      keys: {loss: loss}
    fields: {loss: {type: number}}
"""


@pytest.mark.parametrize("head", ["", "[rank0]: ", "2026-01-02 03:04:05 - INFO - x.y - ", "100%|###| 3/3 [00:01<00:00]  "])
def test_only_objects_behind_the_start_are_read(head: str) -> None:
    log = "".join(f"{head}again - {{'loss': 9.{n}}}\n{head}{{'loss': 1.{n}, 'more': {{'loss': 7}}}}\n" for n in range(3))
    summary = receipt_of(log, GRAMMAR)["summary"]
    assert summary["steps"]["record_count"] == 3
    assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (1.0, 1.2)


def test_groups_of_the_start_are_fields() -> None:
    start = r"start: '\{(?=[^{}]*?''at'': ''(?P<step>\d++)/(?P<planned_steps>\d++)'')'"
    grammar = GRAMMAR.replace(r"start: '(?<!again - )\{'", start)
    grammar = grammar.replace("fields: {", "fields: {step: {type: integer}, planned_steps: {type: integer}, ")
    log = "".join(f"[rank0]: é {{'loss': 1.{n}, 'at': '{n + 7}/50'}}\n{{'loss': 9.0}}\n" for n in range(3))
    summary = receipt_of(log, grammar)["summary"]
    steps = summary["steps"]
    assert (steps["record_count"], steps["first"], steps["last"], steps["planned"]) == (3, 7, 9, 50)
    assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (1.0, 1.2)
