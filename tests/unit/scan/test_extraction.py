"""One record and one rule: which texts are which fields, for every kind of rule."""

import math
from typing import Any

import pytest

from receipt_cli.grammar.model import Grammar
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.scan.extraction import extract
from receipt_cli.scan.extraction.mapping import lookup
from receipt_cli.scan.extraction.model import MAX_EVENTS, convert, read_unregistered
from receipt_cli.scan.extraction.table import bind_cells

HEAD = "grammar: small\nversion: 1\ntitle: small\ntrainer: small\nrules:\n  rule:\n    event: step\n    literal: 'loss'\n"


def grammar(body: str) -> Grammar:
    return load_grammar((HEAD + body).encode(), "small/v1.yaml")


def read(body: str, record: bytes) -> list[tuple[dict[str, str], dict[str, float]]]:
    return [(e.texts, e.unregistered) for e in extract(grammar(body).rules[0], record)]


PATTERN = r"""
    pattern: 'iter (?P<step>\d++): loss (?P<loss>[^ ,\[]++)(?:, mfu (?P<mfu>-?[\d.]++)%)?(?=[ ,\[]|$)'
    fields:
      step: {type: integer}
      loss: {type: number}
      mfu: {type: number, printed_in: percent, metric: mfu_ratio, null_if: ['-100.00']}
"""
BARS = r"""
    pairs:
      start: 'iteration +(?P<step>\d++)/ *(?P<planned_steps>\d++) *\|'
      cell: '|'
      key: ':'
      keys: {lm loss: loss, lm-loss: loss, 'elapsed (ms)': step_time_s}
      ignore: [eta]
      stop: ' END'
    fields:
      step: {type: integer}
      planned_steps: {type: integer}
      loss: {type: number}
      step_time_s: {type: number, printed_in: ms}
"""
BLANKS = r"""
    pairs: {start: 'train: ', cell: ' ', key: '=', keys: {step: step, loss: loss}}
    fields: {step: {type: integer}, loss: {type: number}}
"""
WIDE = r"""
    pairs: {start: '\[train\]', cell: '  ', key: ':', keys: {step: step, train loss: loss}}
    fields: {step: {type: integer}, loss: {type: number}}
"""
COMMAS = r"""
    pairs: {start: 'train: ', cell: ', ', key: ': ', keys: {step: step, loss: loss}, unknown: ignore}
    fields: {step: {type: integer}, loss: {type: number}}
"""
MAPPING = r"""
    mapping:
      syntax: python
      requires: [loss]
      forbids: [eval_loss]
      where: {kind: train, level: [1, 2]}
      keys: {loss: loss, metadata.step: step}
      ignore: [epoch, level]
    fields: {step: {type: integer}, loss: {type: number}}
"""
OPEN_MAPPING = r"""
    mapping: {syntax: json, requires: [loss], keys: {loss: loss, model: model_name}}
    fields: {loss: {type: number}, model_name: {type: string}}
"""

READ: list[tuple[str, str, bytes, list[tuple[dict[str, str], dict[str, float]]]]] = [
    ("pattern", PATTERN, b"iter 10: loss 3.25, mfu 29.53%", [({"step": "10", "loss": "3.25", "mfu": "29.53"}, {})]),
    ("pattern without its option", PATTERN, b"iter 10: loss nan", [({"step": "10", "loss": "nan"}, {})]),
    ("pattern behind an envelope", PATTERN, b"[rank0]: iter 1: loss 2", [({"step": "1", "loss": "2"}, {})]),
    ("two writers glued", PATTERN, b"x tau=1.04]iter 1: loss 2[INFO] y", [({"step": "1", "loss": "2"}, {})]),
    (
        "two events on one line",
        PATTERN,
        b"iter 1: loss 2 iter 2: loss 1",
        [({"step": "1", "loss": "2"}, {}), ({"step": "2", "loss": "1"}, {})],
    ),
    ("pattern that fails", PATTERN, b"iter ten: loss 2", []),
    (
        "pairs",
        BARS,
        b" iteration  5/ 10 | lm loss: 2.5E+00 | elapsed (ms): 131.97 |",
        [({"step": "5", "planned_steps": "10", "loss": "2.5E+00", "step_time_s": "131.97"}, {})],
    ),
    (
        "pairs in another order, other keys",
        BARS,
        b" iteration 5/10 | elapsed (ms): 7 | grad norm: 0.5 | eta: 9 | note: fine | lm-loss: 2 |",
        [({"step": "5", "planned_steps": "10", "loss": "2", "step_time_s": "7"}, {"grad norm": 0.5})],
    ),
    (
        "pairs stop",
        BARS,
        b"iteration 5/10 | lm loss: 2 | a: 1 END b: 2 | c: 3",
        [({"step": "5", "planned_steps": "10", "loss": "2"}, {"a": 1.0})],
    ),
    (
        "pairs glued",
        BARS,
        b"iteration 1/9 | lm loss: 3 |iteration 2/9 | lm loss: 2 |",
        [({"step": "1", "planned_steps": "9", "loss": "3"}, {}), ({"step": "2", "planned_steps": "9", "loss": "2"}, {})],
    ),
    ("pairs, first value wins", BARS, b"iteration 1/9 | lm loss: 3 | lm loss: 4", [({"step": "1", "planned_steps": "9", "loss": "3"}, {})]),  # noqa: E501
    ("blanks", BLANKS, b"train: step=1 loss = 2.5\t lr=1e-3 note=x", [({"step": "1", "loss": "2.5"}, {"lr": 0.001})]),
    (
        "two blanks",
        WIDE,
        b"[train] step: 1  train loss: 2.5   grad norm: inf",
        [({"step": "1", "loss": "2.5"}, {"grad norm": math.inf})],
    ),
    ("commas, others ignored", COMMAS, b"train: step: 1, loss: 1.5, lr: 3", [({"step": "1", "loss": "1.5"}, {})]),
    (
        "mapping",
        MAPPING,
        b"x {'loss': 2.50, 'kind': 'train', 'level': 1, 'metadata': {'step': 7}, 'epoch': 1, 'lr': 0.1} y",
        [({"loss": "2.50", "step": "7"}, {"lr": 0.1})],
    ),
    ("mapping, a required key is missing", MAPPING, b"{'kind': 'train', 'level': 1}", []),
    ("mapping, a required key is null", MAPPING, b"{'loss': None, 'kind': 'train', 'level': 1}", []),
    ("mapping, forbidden key", MAPPING, b"{'loss': 1, 'eval_loss': 1, 'kind': 'train', 'level': 1}", []),
    ("mapping, where differs", MAPPING, b"{'loss': 1, 'kind': 'eval', 'level': 1}", []),
    ("mapping, where in no choice", MAPPING, b"{'loss': 1, 'kind': 'train', 'level': 3}", []),
    ("mapping, where is a text", MAPPING, b"{'loss': 1, 'kind': 'train', 'level': '1'}", []),
    (
        "two mappings on one line",
        MAPPING,
        b"{x} {'loss': 1, 'kind': 'train', 'level': 1}{'loss': 2, 'kind': 'train', 'level': 2.0}",
        [({"loss": "1"}, {}), ({"loss": "2"}, {})],
    ),
    ("mapping, texts are other values where numbers", OPEN_MAPPING, b'{"loss": 1, "a": "2.5", "b": true, "c": null, "d": [1]}',
     [({"loss": "1"}, {"a": 2.5})]),
    ("mapping, UTF-8", OPEN_MAPPING, '{"loss": 1, "model": "modèle", "größe": 2}'.encode(),
     [({"loss": "1", "model_name": "modèle"}, {"größe": 2.0})]),
    ("mapping, escapes", OPEN_MAPPING, rb'{"loss": 1, "model": "mod\u00e8le \u4e2d \ud83d\ude00"}',
     [({"loss": "1", "model_name": "modèle 中 \U0001f600"}, {})]),
    ("mapping, invalid UTF-8", OPEN_MAPPING, b'{"loss": 1, "model": "\xff"}', [({"loss": "1", "model_name": "�"}, {})]),
    ("mapping cut off", OPEN_MAPPING, b'{"loss": 1, "model": "x', []),
]  # fmt: skip


@pytest.mark.parametrize(("body", "record", "want"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_extract(body: str, record: bytes, want: list[tuple[dict[str, str], dict[str, float]]]) -> None:
    assert read(body, record) == want


def test_spans_are_bytes() -> None:
    record = 'é {"loss": 1, "model": "è"} ü'.encode()
    (event,) = extract(grammar(OPEN_MAPPING).rules[0], record)
    assert record[event.start : event.end] == '{"loss": 1, "model": "è"}'.encode()
    record = "é iter 1: loss 2 ü".encode()
    (event,) = extract(grammar(PATTERN).rules[0], record)
    assert record[event.start : event.end] == b"iter 1: loss 2"


@pytest.mark.parametrize(("body", "piece"), [(PATTERN, b"iter 1: loss 2 "), (BARS, b"iteration 1/2 | lm loss: 2 |")])
def test_events_of_one_record_are_bounded(body: str, piece: bytes) -> None:
    assert len(read(body, piece * 500)) == MAX_EVENTS


def test_hostile_openings_end() -> None:
    for record in (b"{" * 60_000, b"{'loss': " * 8_000, b"{'loss': [" + b"1," * 30_000):
        assert read(OPEN_MAPPING, record) == []


TABLE = r"""
    table:
      header: 'step +epoch +loss'
      row: '^\d{4}-\d\d-\d\d [\d:]++ +[\d,]+ '
      skip_cells: 2
      keys: {step: step, loss: loss, mem: peak_memory_allocated_bytes}
      ignore: [epoch]
    fields:
      step: {type: integer}
      loss: {type: number}
      peak_memory_allocated_bytes: {type: number, printed_in: GiB}
"""


def test_a_table_is_bound_by_its_latest_header() -> None:
    rule = grammar(TABLE).rules[0]
    assert rule.table is not None
    (first,) = extract(rule, b"2026-07-07 10:00:00 step  epoch  loss  lr")
    (second,) = extract(rule, b"step epoch loss tok/s mem")
    (short,) = extract(rule, b"2026-07-07 10:00:01 1,000  0.5  2.25 1e-3")
    (long,) = extract(rule, b"2026-07-07 10:00:02 1,001  0.5  2.00 99 71.1 GiB")
    assert (first.cells, second.cells) == (("step", "epoch", "loss", "lr"), ("step", "epoch", "loss", "tok/s", "mem"))
    assert short.cells == ("2026-07-07", "10:00:01", "1,000", "0.5", "2.25", "1e-3")
    assert [event.column for event in (first, second, short, long)] == ["headers", "headers", "cells", "cells"]
    assert bind_cells(rule.table, first.cells, short.cells) == ({"step": "1,000", "loss": "2.25"}, {"lr": 0.001})
    assert bind_cells(rule.table, second.cells, long.cells) == (
        {"step": "1,001", "loss": "2.00", "peak_memory_allocated_bytes": "71.1 GiB"},
        {"tok/s": 99.0},
    )
    assert bind_cells(rule.table, second.cells, short.cells) is None
    assert bind_cells(rule.table, (), short.cells) is None
    assert extract(rule, b"saving loss to disk") == []


CONVERTED: list[tuple[str, str, Any]] = [
    ("{type: number, printed_in: ms, metric: step_time_s}", "131.97", (0.13197, True)),
    ("{type: number, printed_in: percent, metric: mfu_ratio, null_if: ['-100.00']}", "-100.00", (None, True)),
    ("{type: number, printed_in: percent, metric: mfu_ratio, null_if: ['-100.00']}", "-100.0", (-1.0, True)),
    ("{type: number, metric: other}", "1,5", (None, False)),
    ("{type: number, metric: other}", "x", (None, False)),
    ("{type: number, metric: other}", "-inf", (-math.inf, True)),
    ("{type: integer, metric: other}", "1,000", (1000.0, True)),
    ("{type: integer, metric: other}", "10.0", (10.0, True)),
    ("{type: integer, metric: other}", "1.5", (None, False)),
    ("{type: integer, metric: other}", "9007199254740991", (9007199254740991.0, True)),
    ("{type: integer, metric: other}", "9007199254740993", (None, False)),  # as a float it would be ...992
    ("{type: integer, metric: other}", "-1e22", (None, False)),
    ("{type: integer, metric: other}", "nan", (None, False)),
    ("{type: integer, metric: other}", "inf", (None, False)),
    ("{type: string, fact: model_name}", "gpt2", ("gpt2", True)),
    ("{type: string, fact: model_name}", "", ("", False)),
    ("{type: number, metric: other, value: \"'([^/]+)/'\"}", "x", (None, False)),
    ("{type: number, metric: other, value: '^([^/]+)/'}", "495.6/497.1", (495.6, True)),
    ("{type: number, metric: other, value: '^([^/]+)/'}", "495.6", (None, False)),
    ("{type: number, metric: other, value: '^a(b)?c'}", "ac", (None, False)),
]


@pytest.mark.parametrize(("field", "text", "want"), CONVERTED)
def test_convert(field: str, text: str, want: object) -> None:
    body = f"    pattern: 'loss (?P<v>.++)'\n    fields:\n      v: {field}\n"
    assert convert(grammar(body).rules[0].fields["v"], text) == want


def test_a_value_part_has_a_time_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.scan.extraction.model.TIME_BOX_S", 0.05)
    body = "    pattern: 'loss (?P<v>.++)'\n    fields:\n      v: {metric: other, value: '((?:a+)+)$'}\n"
    assert convert(grammar(body).rules[0].fields["v"], "a" * 5_000 + "!") == (None, False)


def test_other_values_are_numbers_only() -> None:
    texts = ["1.5", "-1", "nan", "Infinity", "none", "", "1e3", "12ms", "38.5%", "12 apples", "info"]
    assert [read_unregistered(t) is not None for t in texts] == [True] * 4 + [False] * 2 + [True] * 3 + [False] * 2


def test_lookup_of_dotted_keys() -> None:
    data: Any = {"a": {"b": {"c": "1"}}, "a.b": "2", "n": None}
    assert [lookup(data, key) for key in ("a.b", "a.b.c", "a.x", "n.x", "n")] == ["2", "1", None, None, None]
