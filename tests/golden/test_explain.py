"""``receipt explain`` answers for every figure of every golden, with lines that have the figure in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.reasons import ENDS, cells_of, explain_field, explain_metric, read_lines

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


def test_ten_figures_computed_from_their_lines() -> None:
    log = str(ROOT / "fixtures/logs/torchtitan/llama3-2026-ansi.log")
    document = produce(Request(log)).document

    def texts(pointer: str) -> list[str]:
        lines = explain_field(document, pointer).lines
        found = read_lines(log, list(lines))
        return [re.sub(r"\x1b\[[0-9;]*m", "", found[line].decode()) for line in lines]

    def number(text: str, pattern: str) -> float:
        found = re.search(pattern, text)
        assert found is not None, (pattern, text)
        return float(found[1].replace(",", ""))

    def clock(text: str) -> float:
        found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", text)
        assert found is not None, text
        return datetime.strptime(found[0], "%Y-%m-%d %H:%M:%S,%f").timestamp()

    first, last = texts("/summary/realised/duration_s")
    seconds = clock(last) - clock(first)
    steps = number(last, r"step: +(\d+)") - number(first, r"step: +(\d+)")
    saved = texts("/summary/checkpoints/duration_s")[:2]
    took = [number(line, r"in ([\d.]+) seconds") for line in saved]
    losses = {end: number(texts(f"/summary/metrics/loss/{end}")[0], r"loss: +([\d.]+)") for end in ENDS}
    computed = {
        **{f"/summary/metrics/loss/{end}": value for end, value in losses.items()},
        "/summary/realised/duration_s": seconds,
        "/summary/realised/step_count": steps,
        "/summary/realised/steps_per_s": steps / seconds,
        "/summary/checkpoints/duration_s": sum(took),
        "/summary/checkpoints/latest/0/duration_s": number(texts("/summary/checkpoints/latest/0")[0], r"in ([\d.]+) seconds"),
        "/summary/metrics/mfu_ratio/last": number(texts("/summary/metrics/mfu_ratio/last")[0], r"mfu: ([\d.]+)%") / 100,
    }
    assert len(computed) == 10
    for pointer, value in computed.items():
        assert explain_field(document, pointer).value == pytest.approx(value, rel=1e-6), pointer
