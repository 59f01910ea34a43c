"""The table of a log's records: its columns, its figures, and what a pass makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from receipt_cli.derive import Options, read_log
from receipt_cli.events.table import place_of
from receipt_cli.io.source import Source, Stream
from receipt_cli.receipts.production import Request, produce
from tests.tools.pieces import small_pieces
from tests.tools.toy_trainer import GRAMMAR

pytestmark = pytest.mark.usefixtures("one_engine")


def test_where_a_figure_is() -> None:
    values = np.array([4.5, np.nan, 4.25, 4.5])
    with small_pieces():
        assert [place_of(values, value) for value in (4.5, 4.25, 77.0)] == [0, 2, None]


def modded_steps(total: int, more: str = "") -> str:
    """Return a run that prints no loss; the record in its middle prints ``more``."""
    lines = [f"step:0/{total} val_loss:10.8288 train_time:0ms step_avg:0.04ms"]
    for number in range(1, total + 1):
        beside = more if number == total // 2 else ""
        lines.append(f"step:{number}/{total} train_time:{45 * number}ms step_avg:45.00ms{beside}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("times", [1, 20])
def test_a_long_phase_prints_no_more_than_a_short_one(times: int, tmp_path: Path) -> None:
    """Names that only records of another phase print are none of a run's: what a phase lacks does not depend on its length."""
    between = "".join(f"iter {n}: loss {5 - n / 100:.4f}, time 21.00ms, mfu 2.00%\n" for n in range(40))
    log = tmp_path / "run.log"
    log.write_text(modded_steps(150 * times, " be:3.5") + between + modded_steps(200 * times))
    document = produce(Request(str(log))).document
    assert [problem["line_number"] for problem in document["derivation"]["problems"]["first"]] == [2]


@pytest.mark.parametrize("stamp", ["", "2026-01-01 {hours:02d}:{minutes:02d}:{seconds:02d} - "])
@pytest.mark.parametrize(
    "between",
    [
        "",
        "toy eval {epoch}: 0.{epoch}\n",
        "toy eval {epoch}: 0.5\ntoy test 2.5\ntoy saved\n",
        "toy room 4096\ntoy epoch {epoch}\n",
    ],
)
def test_steps_of_short_epochs_are_counted(between: str, stamp: str, tmp_path: Path) -> None:
    log, grammar = tmp_path / "run.log", tmp_path / "toy.yaml"
    grammar.write_text(GRAMMAR)
    lines = [
        f"{stamp}{line}".format(epoch=epoch, hours=epoch // 3600, minutes=epoch // 60 % 60, seconds=epoch % 60)
        for epoch in range(5000)
        for line in (*(f"toy pass {epoch} {n}/5 0.{n}\n" for n in range(1, 6)), *between.splitlines(keepends=True))
    ]
    log.write_text("".join(lines))
    reading = read_log([Stream((Source(str(log)),))], Options(grammar=str(grammar)))
    assert len(reading.events.of_sources(lambda source: source.is_step)) == 25_000
    [summary] = reading.derivation().summaries
    assert (summary.first, summary.last, summary.restart_count) == (1, 25_000, 0)
    assert list(summary.series["epoch"][-6:]) == [4999.0] * 6 if "scored" in between else [4998.0, *[4999.0] * 5]
