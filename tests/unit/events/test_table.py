"""The table of a log's records: its columns, its figures, and what a pass makes of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from receipt_cli.derive import Options, read_log
from receipt_cli.events.table import NO_STEP, EventTable, place_of, values_at
from receipt_cli.grammar.model import Rule
from receipt_cli.io.joined_parts import Stream
from receipt_cli.io.source import Source
from receipt_cli.receipts.production import Request, produce
from tests.tools.pieces import small_pieces
from tests.tools.tables import column, table_of
from tests.tools.toy_trainer import GRAMMAR

pytestmark = pytest.mark.usefixtures("one_engine")

ROWS = 40
STEPS = np.arange(10.0, 10.0 + 2 * ROWS, 2)


@pytest.fixture
def table() -> EventTable:
    """Forty records, steps 10, 12, 14 … on the lines 1, 2, 3 …; a norm in every third, no loss in the last two, one is NaN."""
    losses = [{"loss": math.nan if row == 20 else 5 - row / 10} if row < ROWS - 2 else {} for row in range(ROWS)]
    norms = [{"grad_norm": float(row)} if row % 3 == 0 else {} for row in range(ROWS)]
    return table_of(*(loss | norm for loss, norm in zip(losses, norms, strict=True))).having(step=STEPS)


def test_a_table_reads_as_its_rows_do(table: EventTable) -> None:
    with small_pieces():
        for part in (table, table[3:35], table.where(np.arange(ROWS) % 7 > 2), table.chosen(np.array([0, 5, 39]))):
            rows = list(part)
            assert len(rows) == len(part)
            assert [row.step for row in rows] == part.steps.tolist() == part.step.tolist()
            assert [(row.line, row.at) for row in rows] == list(zip(part.line.tolist(), part.at.tolist(), strict=True))
            for name in ("loss", "grad_norm", "other"):
                found = part.metric(name)
                values = [row.metrics[name] for row in rows if name in row.metrics]
                assert found.values.tobytes() == np.array(values, np.float64).tobytes()
                assert [part[found.row(place)].line for place in range(len(values))] == [
                    row.line for row in rows if name in row.metrics
                ]


def test_no_column_can_be_changed(table: EventTable) -> None:
    for name in ("at", "line", "rank", "clock", "step", "planned", "epoch", "source"):
        with pytest.raises(ValueError, match="read-only"):
            table.log.column(name)[:1] = 0
    other = table.having(step=STEPS + 1)
    assert (table[0].step, other[0].step, other.log.column("at") is table.log.column("at")) == (10, 11, True)


def test_where_a_figure_is(table: EventTable) -> None:
    found = table.metric("loss")
    at = place_of(found.values, 5 - 7 / 10)
    assert at is not None and (table.at[found.row(at)], table[found.row(at)].line_of("loss")) == (table[7].at, 8)
    assert place_of(found.values, 77.0) is None
    norms = table.metric("grad_norm").chosen(np.arange(14) > 10)
    assert [(table.line[norms.row(n)], table.steps_of(norms)[n]) for n in range(3)] == [(34, 76.0), (37, 82.0), (40, 88.0)]


def test_a_step_that_no_integer_holds_is_none_there() -> None:
    table = table_of({}, {}, {}).having(step=np.array([1.0, 1e30, math.nan]))
    assert table.step.tolist() == [1, NO_STEP, NO_STEP]
    assert [row.step for row in table] == [1, int(1e30), None]


def test_what_another_line_adds_has_its_line() -> None:
    table = table_of({"loss": 1.0}, {"loss": 2.0, "grad_norm": 3.0}, {"loss": 4.0, "grad_norm": 5.0})
    joined = table.joining(np.array([0, 0]), np.array([1, 2]), noted=True)
    assert (joined[0].metrics, joined[0].rules) == ({"loss": 1.0, "grad_norm": 3.0}, ("train_step", "train_step"))
    assert (joined[0].line_of("loss"), joined[0].line_of("grad_norm")) == (1, 2)
    assert table.joining(np.array([0]), np.array([2]), last=True)[0].metrics == {"loss": 4.0, "grad_norm": 5.0}
    assert table[0].metrics == {"loss": 1.0}


def test_rows_read_as_another_rule_s() -> None:
    table = table_of({"loss": 1.0}, {"loss": 2.0})
    other = table.read_as(
        np.array([1]), lambda source: type(source)(source.grammar, Rule("x", "eval", ()), source.columns, source.metrics, {}, {})
    )
    assert [(row.rule.event, row.metrics) for row in other] == [("step", {"loss": 1.0}), ("eval", {"loss": 2.0})]
    assert other.of_sources(lambda source: not source.is_step).metric("loss").values.tolist() == [2.0]


@pytest.mark.parametrize("rows", [slice(1, 4), np.array([0, 2, 3]), np.array([3, 0]), np.array([1])])
@pytest.mark.parametrize("values", [{0: 1.0, 1: 2.0, 2: 3.0}, {1: 2.0, 3: 4.0}, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}, {}])
def test_the_values_at_some_rows(rows: slice | np.ndarray, values: dict[int, float]) -> None:  # type: ignore[type-arg]
    asked = list(range(1, 4)) if isinstance(rows, slice) else rows.tolist()
    index, found = values_at(column(values), rows)
    places = range(len(asked)) if index is None else index.tolist()
    assert dict(zip(places, found.tolist(), strict=True)) == {n: values[row] for n, row in enumerate(asked) if row in values}


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
