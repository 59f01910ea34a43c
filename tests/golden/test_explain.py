"""``receipt explain`` answers for every figure of every golden, with lines that have the figure in them."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.reasons import ENDS, at_companions, cells_of, explain_field, explain_metric, read_lines
from tests.tools.fixture_receipts import product_of
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = sorted((ROOT / "fixtures/logs").glob("*/*.receipt.json"))
LOGS = [golden.with_suffix("").with_suffix(".log") for golden in GOLDENS]
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


@pytest.mark.parametrize("log", one_in(3, (log for log in LOGS if log.stat().st_size <= SMALL)), ids=name)
def test_the_lines_of_a_figure_have_it(log: Path) -> None:
    product = product_of(log)
    grammars = [chosen.grammar for chosen in product.derivation.detection.chosen]
    if any(rule.table or rule.block for grammar in grammars for rule in grammar.rules):
        return  # whose cells another line names
    summary = product.document["summary"]
    for metric in (summary or {"metrics": ()})["metrics"]:
        for reason in at_companions(product.derivation, str(log), explain_metric(product.document, metric)[:4]):
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


MEGATRON = (
    " iteration {n:8d}/    2000 | consumed samples: {s:12d} | elapsed time per iteration (ms): 812.5 | learning rate: 4.500E-05 |"
    " lm loss: {loss:.6E} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    "time (ms) | forward: {v}.50 | backward: 240.75 | optimizer: 12.25 | batch generator: 2.50\n"
)
CAFFE = (
    "I1121 10:00:{s:02d}.000000  9000 solver.cpp:228] Iteration {n}, loss = {loss:.4f}\n"
    "I1121 10:00:{s:02d}.000000  9000 sgd_solver.cpp:106] Iteration {n}, lr = 0.0{v}\n"
)
DEEPSPEED = (
    "[2024-01-02 03:04:{s:02d},005] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, skipped=0, lr=[8.5e-06],"
    " mom=[[0.9, 0.95]]\n"
    "[2024-01-02 03:04:{s:02d},006] [INFO] [timer.py:215:stop] epoch=0/micro_step={n}/global_step={n},"
    " RunningAvgSamplesPerSec=123.25, CurrSamplesPerSec={v}.5, MemAllocated=2.5GB, MaxMemAllocated=10.25GB\n"
)


@pytest.mark.parametrize("count", [12, 2000])  # records that are events, and rows of columns
@pytest.mark.parametrize(
    ("text", "metric"),
    [(MEGATRON, "forward"), (CAFFE, "learning_rate"), (DEEPSPEED, "samples_per_s")],
    ids=["megatron-lm", "caffe", "deepspeed"],
)
def test_what_a_companion_prints_is_explained_by_its_line(tmp_path: Path, text: str, metric: str, count: int) -> None:
    log = tmp_path / "run.log"
    values = [100 + (37 * n) % 61 for n in range(count)]
    log.write_text("".join(text.format(n=10 * n + 10, s=n % 60, loss=9 - n / 500, v=v) for n, v in enumerate(values)))
    product = produce(Request(str(log)))
    known = {**product.document["summary"]["metrics"], **product.document["summary"]["other_metrics"]}
    (name,) = [name for name in known if metric in name]
    for reason in at_companions(product.derivation, str(log), explain_metric(product.document, name)[:4]):
        (line,) = reason.lines
        assert line % 2 == 0, reason
        assert str(values[line // 2 - 1]) in read_lines(str(log), [line])[line].decode(), reason


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
