"""``receipt explain`` answers for every figure of every golden, with lines that have the figure in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.reasons import cells_of, explain_field, explain_metric, read_lines

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = sorted((ROOT / "fixtures/logs").glob("*/*.receipt.json"))
BLOCKS = ("summary", "phases", "checks", "failure", "goodput", "derivation")
SMALL = 60_000
"""Bytes of a log whose figures are looked up in its lines."""


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem.removesuffix('.receipt')}"


def leaves(value: Any, at: str = "") -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}")
    else:
        yield at


@pytest.mark.parametrize("path", GOLDENS, ids=name)
def test_every_derived_figure_has_an_answer(path: Path) -> None:
    document = json.loads(path.read_bytes())
    count = max(document["derivation"]["log"]["line_count"], document["derivation"]["log"]["record_count"])
    for block in BLOCKS:
        for pointer in leaves(document[block], f"/{block}"):
            reason = explain_field(document, pointer)
            assert reason.how and reason.lines, pointer
            assert all(1 <= line <= count for line in reason.lines), pointer


@pytest.mark.parametrize("path", [p for p in GOLDENS if p.with_name(p.name.replace(".receipt.json", ".log")).is_file()], ids=name)
def test_the_lines_of_a_figure_have_it(path: Path) -> None:
    log = path.with_name(path.name.replace(".receipt.json", ".log"))
    if log.stat().st_size > SMALL:
        return
    product = produce(Request(str(log)))
    grammars = [chosen.grammar for chosen in product.derivation.detection.chosen]
    if any(rule.table or rule.block for grammar in grammars for rule in grammar.rules):
        return  # whose cells another line names
    summary = product.document["summary"]
    for metric in (summary or {"metrics": ()})["metrics"]:
        for reason in explain_metric(product.document, metric)[:4]:
            if reason.value is None or metric in ("epoch", "val_loss"):
                continue
            (line,) = reason.lines
            values = [cell.value for cell in cells_of(product.derivation, read_lines(str(log), [line])[line])]
            assert reason.value in values, (reason, values)


def test_a_figure_by_hand() -> None:
    log = str(ROOT / "fixtures/logs/nanogpt/char-ok.log")
    document = produce(Request(log)).document
    for pointer, line, printed in [
        ("/summary/metrics/loss/first", 19, b"loss 4.2027"),
        ("/summary/metrics/loss/last", 37, b"loss 2.7690"),
        ("/summary/metrics/loss/max", 19, b"loss 4.2027"),
        ("/summary/metrics/step_time_s/first", 19, b"time 142.71ms"),
        ("/summary/metrics/step_time_s/last", 37, b"time 77.75ms"),
        ("/summary/metrics/mfu_ratio/last", 37, b"mfu 0.01%"),
        ("/summary/steps/first", 19, b"iter 0:"),
        ("/summary/steps/last", 37, b"iter 60:"),
        ("/checks/has_steps", 19, b"iter 0:"),
        ("/checks/finite_losses", 37, b"loss 2.7690"),
    ]:
        assert explain_field(document, pointer).lines == (line,), pointer
        assert printed in read_lines(log, [line])[line]
