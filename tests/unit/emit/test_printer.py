"""The lines of ``StepPrinter``: one write each, every value as it was."""

import io
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.emit import StepPrinter
from receipt_cli.emit.step_printer import NUMBER_FACTS, TEXT_FACTS
from receipt_cli.receipts.production import Request, produce

ROOT = Path(__file__).resolve().parents[3]
RULES = yaml.safe_load((ROOT / "grammars" / "receipt-emit" / "v2.yaml").read_text("utf-8"))["rules"]


class Log(io.StringIO):
    """Counts writes and flushes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []
        self.flushes = 0

    def write(self, text: str) -> int:
        self.writes.append(text)
        return super().write(text)

    def flush(self) -> None:
        self.flushes += 1


def plain(**options: Any) -> tuple[StepPrinter, Log]:
    log = Log()
    return StepPrinter(log, timestamps=False, **options), log


def test_each_kind_of_line() -> None:
    printer, log = plain(planned_steps=100)
    printer.header(seed=7, parameter_count=3, flops_per_token=8.5e8, model_name="toy model", precision=None)
    printer.compilation(duration_s=12.5)
    printer.step(12, loss=2.5, grad_norm=None, tokens_per_s=16384)
    printer.step_values(13, {"rewards/margin": -0.5})
    printer.eval(13, {"val_loss": 2.25}, duration_s=1.5)
    printer.checkpoint(13, path="out/step 13.pt")
    printer.end(13, training_time_s=60.0)
    assert log.getvalue().splitlines() == [
        "[receipt] run seed=7 parameter_count=3 flops_per_token=850000000.0",
        "[receipt] model_name: toy model",
        "[receipt] compile compile_duration_s=12.5",
        "[receipt] step=12/100 loss=2.5 tokens_per_s=16384",
        "[receipt] step=13/100 rewards/margin=-0.5",
        "[receipt] eval step=13 eval_duration_s=1.5 val_loss=2.25",
        "[receipt] checkpoint step=13 path=out/step 13.pt",
        "[receipt] end step=13 training_time_s=60.0",
    ]
    assert log.flushes == len(log.writes) == 8
    assert all(text.endswith("\n") for text in log.writes)


def test_a_line_may_begin_with_the_time_and_the_rank() -> None:
    log = io.StringIO()
    StepPrinter(log, rank=3, clock=lambda: 1_770_000_000.0625).step(1, loss=1.0)
    assert log.getvalue() == "2026-02-02T02:40:00.062Z [rank3]: [receipt] step=1 loss=1.0\n"


class Other(float):
    """A float that shows itself otherwise, as NumPy's does."""

    def __repr__(self) -> str:
        return f"other({float(self)})"


class Scalar:
    """What only ``float`` makes a number of, as a tensor."""

    def __float__(self) -> float:
        return 0.25


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.30000000000000004"),
        (1e-07, "1e-07"),
        (1e22, "1e+22"),
        (-0.0, "-0.0"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (True, "1"),
        (7, "7"),
        (2**53 + 1, "9007199254740992.0"),
        (Other(2.5), "2.5"),
        (Scalar(), "0.25"),
    ],
)
def test_numbers_are_printed_with_all_their_digits(value: Any, text: str) -> None:
    printer, log = plain()
    printer.step(1, loss=value)
    assert log.getvalue() == f"[receipt] step=1 loss={text}\n"


@pytest.mark.parametrize("name", ["", "a b", "a=b", "1st", "größe", "a\n", "step", "planned_steps", "x" * 201])
def test_a_name_stands_in_a_line_or_is_refused(name: str) -> None:
    printer, log = plain()
    with pytest.raises(ValueError, match="metric name"):
        printer.step_values(1, {"loss": 1.0, name: 1.0})
    assert log.writes == []


def test_other_mistakes_are_refused_and_print_nothing() -> None:
    printer, log = plain()
    for wrong in (
        lambda: printer.header(colour=1),
        lambda: printer.header(model_name=" x"),
        lambda: printer.header(model_name="a\nb"),
        lambda: printer.step(-1, loss=1.0),
        lambda: printer.step(1, loss="low"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        printer.step(1.5, loss=1.0)  # type: ignore[arg-type]
    assert log.writes == []


@pytest.mark.parametrize("path", ["", " out", "a\nb", "x" * 1001, "\ud800"])
def test_a_path_that_no_line_can_hold_is_left_out(path: str) -> None:
    printer, log = plain()
    printer.checkpoint(1, path=path)
    assert log.writes == ["[receipt] checkpoint step=1\n"]


def test_the_end_is_of_a_run_that_ends_well() -> None:
    printer, log = plain()
    with pytest.raises(KeyError), printer:
        raise KeyError
    assert log.writes == []
    with printer:
        pass
    assert log.writes == ["[receipt] end\n"]


def test_stdout_is_looked_up_at_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    StepPrinter(timestamps=False).step(1, loss=1.0)
    assert capsys.readouterr().out == "[receipt] step=1 loss=1.0\n"


def test_processes_do_not_mix_their_lines(tmp_path: Path) -> None:
    program = (
        "import sys; from receipt_cli.emit import StepPrinter\n"
        "p = StepPrinter(rank=int(sys.argv[1]), planned_steps=200)\n"
        "for n in range(200): p.step(n, loss=n / 7, grad_norm=n / 3)\n"
    )
    read, write = os.pipe()
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    jobs = [
        subprocess.Popen([sys.executable, "-c", program, str(rank)], stdout=write, env=environ, cwd=tmp_path) for rank in range(3)
    ]
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    assert [job.wait() for job in jobs] == [0, 0, 0]
    path = tmp_path / "ranks.log"
    path.write_bytes(data)
    document = produce(Request(path=str(path))).document
    assert document["derivation"]["lines"]["matched"] == 200  # the lines of the other two are exact copies
    assert document["summary"]["steps"]["record_count"] == 200


def test_the_grammar_knows_the_names_of_the_registry() -> None:
    names = set(load_registry().by_name)
    known = set(RULES["step"]["pairs"]["keys"]) | set(RULES["eval"]["pairs"]["keys"])
    assert known == names
    for rule in ("step", "eval"):
        assert all(key == field for key, field in RULES[rule]["pairs"]["keys"].items())


def test_the_grammar_knows_the_facts_of_the_header() -> None:
    assert tuple(RULES["run"]["pairs"]["keys"]) == NUMBER_FACTS
    assert set(RULES["named"]["fields"]) == set(TEXT_FACTS)
