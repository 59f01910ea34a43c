"""A log whose training is repeated goes on counting."""

from pathlib import Path

import pytest

import receipt_cli
from benchmarks.stretched import Engine, measure, stretch
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "logs"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(shipped(), load_catalogue())


@pytest.mark.parametrize("name", ["nanogpt/char-ok.log", "litgpt/pretrain-accumulated.log", "timm/complete-2024-ema.log"])
def test_steps_go_on(name: str, engine: Engine, tmp_path: Path) -> None:
    made = stretch(engine, (LOGS / name).read_bytes(), 60_000)
    assert made is not None
    log = tmp_path / "long.log"
    log.write_bytes(made[0])
    short, long = receipt_cli.read(str(LOGS / name)).receipt, receipt_cli.read(str(log)).receipt
    assert made[0].count(b"\n") + 1 == made[1]
    times = long["summary"]["steps"]["record_count"] / short["summary"]["steps"]["record_count"]
    assert times > 5 and long["summary"]["steps"]["restart_count"] == 0
    assert long["summary"]["steps"]["first"] == short["summary"]["steps"]["first"]
    assert long["summary"]["steps"]["last"] > 5 * short["summary"]["steps"]["last"]


def test_a_log_without_counters_is_left_out(engine: Engine, tmp_path: Path) -> None:
    log = tmp_path / "words.log"
    log.write_text("nothing counts here\n" * 50)
    assert stretch(engine, log.read_bytes(), 10_000) is None
    assert measure(engine, log, "words", (10_000, 20_000)) is None
