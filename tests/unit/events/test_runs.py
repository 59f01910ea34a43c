"""Step records that stay in their columns: what a run says of them, and how it is cut."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from receipt_cli.derive import Options, read_log
from receipt_cli.events.model import Event, cut, expand
from receipt_cli.events.rows import TAIL, RowRun, count_distinct, steps_among
from receipt_cli.events.table import EventTable, place_of, positions
from receipt_cli.grammar.model import Rule
from receipt_cli.io.joined_parts import Stream
from receipt_cli.io.source import Source
from receipt_cli.receipts.production import Request, produce
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import NumberColumn, RuleColumns, place
from tests.tools.toy_trainer import GRAMMAR

pytestmark = pytest.mark.usefixtures("one_engine")

RULE = Rule("train", "step", ())
ROWS = 40


def column(values: dict[int, float]) -> NumberColumn:
    made = NumberColumn()
    for row, value in values.items():
        made.append(row, value)
    return made


@pytest.fixture
def event() -> Event:
    """The first of forty records, steps 10, 12, 14 … on the lines 1, 2, 3 …; a norm in every third, no loss in the last two."""
    columns = RuleColumns()
    for row in range(ROWS):
        columns.open_row(place(row), row + 1, NO_RANK, math.nan)
    step = column({row: 10.0 + 2 * row for row in range(ROWS)})
    loss = column({row: 5 - row / 10 if row != 20 else math.nan for row in range(ROWS - 2)})
    norm = column({row: float(row) for row in range(0, ROWS, 3)})
    run = RowRun(
        columns,
        slice(1, ROWS),
        ROWS - 1,
        {"loss": [loss], "grad_norm": [norm]},
        {"width": [norm, loss]},
        step=step,
        drawn=ROWS - 1,
    )
    return Event(place(0), 1, NO_RANK, math.nan, cast(Any, None), RULE, 10, metrics={"loss": 5.0, "grad_norm": 0.0}, run=run)


def test_a_run_reads_as_its_events_do(event: Event) -> None:
    events = list(expand(event))
    assert [e.step for e in events] == list(range(10, 90, 2))
    assert [e.line for e in events] == list(range(1, ROWS + 1))
    for name in ("loss", "grad_norm"):
        one, other = EventTable([event]).metric(name), EventTable(events).metric(name)
        assert one.values.tobytes() == other.values.tobytes() != b""
        assert [one.row(place) for place in range(len(one.values))] == [other.row(place) for place in range(len(one.values))]
    assert list(positions([event])) == list(positions(events))
    assert (event.records, event.last_step, event.last_at) == (ROWS, 88, place(ROWS - 1))


def test_the_first_of_two_columns_counts(event: Event) -> None:
    assert event.run is not None
    found = event.run.unregistered_metric("width")
    assert found is not None and (found[0][2], found[0][3]) == (3.0, 5 - 4 / 10)
    assert found[1] is not None and found[1].tolist().index(False) == ROWS - 3  # row 38 has neither


def test_a_run_is_cut_before_a_step(event: Event) -> None:
    parts = cut(event, 41)
    assert [e.step for e in parts] == [10, *range(40 - 2 * (TAIL - 1), 41, 2), 42]
    assert [e.step for part in parts for e in expand(part)] == list(range(10, 90, 2))
    assert parts[-2].run is None and parts[-1].last_step == 88
    for step in (0, 10, 89, math.inf):
        assert cut(event, step) == [event]
    assert [e.step for e in cut(event, 12)][:2] == [10, 12]


def test_where_a_figure_stands(event: Event) -> None:
    table = EventTable([event])
    column = table.metric("loss")
    at = place_of(column.values, 5 - 7 / 10)
    assert at is not None and (table.at[column.row(at)], table.line_of("loss", column.row(at))) == (place(7), 8)
    assert place_of(column.values, 77.0) is None
    norms = table.metric("grad_norm").chosen(np.arange(14) > 10)
    assert [(table.line[norms.row(n)], table.steps_of(norms)[n]) for n in range(3)] == [(34, 76.0), (37, 82.0), (40, 88.0)]


def test_numbers_beyond_an_array() -> None:
    steps = np.array([1, 2, 3], np.int64)
    assert count_distinct([3, 4, 1 << 70], [steps]) == 5
    assert steps_among([2, 9, 1 << 70], [steps]) == {2}


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
def test_steps_of_short_epochs_are_rows(between: str, stamp: str, tmp_path: Path) -> None:
    log, grammar = tmp_path / "run.log", tmp_path / "toy.yaml"
    grammar.write_text(GRAMMAR)
    lines = [
        f"{stamp}{line}".format(epoch=epoch, hours=epoch // 3600, minutes=epoch // 60 % 60, seconds=epoch % 60)
        for epoch in range(5000)
        for line in (*(f"toy pass {epoch} {n}/5 0.{n}\n" for n in range(1, 6)), *between.splitlines(keepends=True))
    ]
    log.write_text("".join(lines))
    reading = read_log([Stream((Source(str(log)),))], Options(grammar=str(grammar)))
    steps = [event for event in reading.events if event.is_step]
    assert sum(event.records for event in steps) == 25_000 and len(steps) < 50
    [summary] = reading.derivation().summaries
    assert (summary.first, summary.last, summary.restart_count) == (1, 25_000, 0)
    assert list(summary.series["epoch"][-6:]) == [4999.0] * 6 if "scored" in between else [4998.0, *[4999.0] * 5]
