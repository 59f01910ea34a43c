"""Logs of different trainers one behind the other: each part is read as a log of its own."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.derive import read_log
from receipt_cli.io.source import Source, Stream
from receipt_cli.receipts.production import Request, produce_all
from tests.tools.logs import derived_of


def nanogpt(count: int = 6, loss: float = 2.5) -> str:
    return "".join(f"iter {n}: loss {loss - n / 100:.4f}, time 100.00ms, mfu 40.00%\n" for n in range(count))


def titan(count: int = 9) -> str:
    tail = "grad_norm: 1.5  memory: 1.00GiB(1.00%)  tps: 100  mfu: 42.44%"
    return "".join(f"step: {n}  loss:  6.5  {tail}\n" for n in range(1, count + 1))


def hf(count: int = 4) -> str:
    return "".join(
        f"{{'loss': 1.4872, 'grad_norm': 2.8125, 'learning_rate': 4.75e-05, 'epoch': 0.{n}}}\n" for n in range(1, count)
    )


def stamped(log: str) -> str:
    """Return a log with a time before each line, behind one that was printed two minutes before."""
    lines = "".join(f"2026-05-06 07:10:{n:02} {line}\n" for n, line in enumerate(log.splitlines()))
    return "2026-05-06 07:08:09 the data is loaded\n" + lines


def bars(begin: int, end: int, mark: str = "Epoch: [0]") -> str:
    """Return frames of a bar of tqdm."""
    figures = "1.50it/s, loss={:.4f}, lr=0.001]"
    return "".join(f"{mark}: {n:3}%|##  | {n}/99 [00:{n:02}<01:00,  {figures.format(3 - n / 99)}\n" for n in range(begin, end))


def drawn(count: int) -> str:
    """Return a trainer that draws ten frames before each of its records."""
    tail = "loss_mask: 0.5363 (0.6599)  time: 0.6055  data: 0.0002  max mem: 12238"
    record = "Epoch: [0]  [ {:4}/99]  eta: 0:03:19  lr: 0.001459  loss: {:.4f} (2.2752)  " + tail + "\n"
    return "".join(bars(10 * n, 10 * n + 10) + record.format(10 * n, 2.5 - n / 100) for n in range(count))


ERROR = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nRuntimeError: no data\n'
DASHES = "-" * 80 + "\n"
SLOW = "warning: the loader is slow\n"
SLOWLY = SLOW + nanogpt(3) + SLOW + nanogpt()[len(nanogpt(3)) :] + SLOW
LATE, SOON = "2026-05-08 10:00:00 no cache\n", "2026-05-06 07:11:00 saved\n"
BEGIN = "the seed is five\nloading the data\n"
OTHERS = "agent is up\nagent was told\n" + BEGIN
START = "$ torchrun --nproc_per_node 8 train.py\nloading the tokenizer\n"


def receipts(tmp_path: Path, log: str) -> list[dict[str, Any]]:
    path = tmp_path / "nohup.out"
    path.write_text(log)
    return [product.document for product in produce_all(Request(path=str(path), workers=1))]


def spread(document: dict[str, Any]) -> tuple[str, int, int]:
    launch = document["derivation"].get("launches", {"first_line": 1})
    return document["derivation"]["grammars"][0]["id"], document["summary"]["steps"]["record_count"], launch["first_line"]


PARTS = [
    ("two trainers", nanogpt() + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 7)]),
    ("three", nanogpt() + titan() + hf(8), [("nanogpt", 6, 1), ("torchtitan", 9, 7), ("hf-trainer", 7, 16)]),
    ("a command belongs to its launch", nanogpt() + "saved\n" + START + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 8)]),
    ("lines of others", OTHERS + nanogpt() + BEGIN + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 11)]),
    ("an error belongs to what it ends", nanogpt() + ERROR + "\n" + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 11)]),
    ("too few records for another trainer", nanogpt() + titan(2), [("nanogpt", 6, 1)]),
    ("a rule of dashes is nobody's", nanogpt() + "-" * 80 + "\nsaved\n" + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 8)]),
    ("an indented line goes on", nanogpt() + "      epoch 3 of 3\n" + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 8)]),
    ("dashes begin nothing", DASHES + nanogpt() + DASHES + ERROR + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 12)]),
    ("nor is a repeated one", SLOWLY + ERROR + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 13)]),
    ("days later it is another run", stamped(nanogpt()) + LATE + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 8)]),
    ("a time soon after is of the run before", stamped(nanogpt()) + SOON + titan(), [("nanogpt", 6, 1), ("torchtitan", 9, 9)]),
    ("a time is of the run whose lines have one", nanogpt() + stamped(titan()), [("nanogpt", 6, 1), ("torchtitan", 9, 7)]),
    ("bars among its records are a trainer's behind them, too", drawn(4) + bars(40, 59), [("torchvision", 4, 1)]),
    ("and before them", bars(0, 12) + drawn(4), [("torchvision", 4, 1)]),
    ("also where an error ends them", drawn(4) + bars(40, 59) + ERROR, [("torchvision", 4, 1)]),
    ("but not behind an error", drawn(4) + ERROR + bars(0, 20, "train"), [("torchvision", 4, 1), ("tqdm", 19, 48)]),
    ("records between those of the other", nanogpt(3) + titan() + nanogpt(9)[len(nanogpt(3)) :], [("nanogpt", 9, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("log", "expected"), [part[1:] for part in PARTS], ids=[part[0] for part in PARTS])
def test_each_trainer_has_a_launch(tmp_path: Path, log: str, expected: list[tuple[str, int, int]]) -> None:
    assert [spread(document) for document in receipts(tmp_path, log)] == expected


def test_an_error_is_that_of_the_launch_before_it(tmp_path: Path) -> None:
    first, second = receipts(tmp_path, nanogpt() + ERROR + titan())
    assert (first["failure"]["reason"], first["failure"]["line_number"]) == ("traceback", 9)
    assert second["failure"] is None or second["failure"]["reason"] == "truncated"


def test_a_start_that_failed_is_a_launch(tmp_path: Path) -> None:
    log = Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "mmengine" / "crash-before-steps-console.log"
    failed, whole = receipts(tmp_path, log.read_text() + nanogpt())
    assert (failed["failure"]["reason"], spread(whole)[:2]) == ("traceback", ("nanogpt", 6))


def test_the_lines_of_all_parts_add_up(tmp_path: Path) -> None:
    for document in receipts(tmp_path, nanogpt() + "unread\n" + titan()):
        derivation = document["derivation"]
        assert sum(derivation["lines"].values()) == derivation["log"]["record_count"] == 16


def test_a_pipe_has_the_same_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = nanogpt() + titan() + hf(8)
    path = tmp_path / "run.log"
    path.write_text(log)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log.encode())))
    piped = read_log([Stream((Source("-"),))])
    filed = read_log([Stream((Source(str(path)),))])
    assert [launch.line for launch in piped.launches] == [launch.line for launch in filed.launches] == [1, 7, 16]


def test_one_grammar_that_is_asked_for_reads_its_part_alone() -> None:
    derivation = derived_of(nanogpt() + titan(), "nanogpt")
    assert (derivation.launch.count, derivation.summaries[0].record_count) == (1, 6)


def several_models() -> list[str]:
    """Return the lines of three trainings with two optimisers each, whose losses have more digits before the point, or fewer."""
    lines = ["=== Log of the training of three models ===", "", ""]
    for model, scale, more in (("fixed", 0.085232, 1), ("of simple form", 26.68598, 9), ("of parameters", 26.809387, 30)):
        lines += ["=" * 60, f" START: training of the model {model}", "=" * 60, ">>> STAGE 1: Adam..."]
        for name, numbers, first in (
            ("Epoch", [1, *range(100, 2100, 100)], scale),
            ("L-BFGS iteration", range(0, 10 * more, 10), scale / 30),
        ):
            lines += [
                f"{name}: {n:4} | Train Phys Loss: {first / (1 + n / 99):.6f} | Test RMSE: {first / (9 + n):.6e}" for n in numbers
            ]
            lines += ["", ">>> STAGE 2: L-BFGS..."] if name == "Epoch" else [f"Training of {model} is done!", "", ""]
    return lines


@pytest.mark.parametrize("every", [7, 9, 11])
def test_numbers_of_other_lengths_do_not_hide_the_opening_of_a_launch(tmp_path: Path, every: int) -> None:
    lines = "".join(f"{line}\n" + SLOW * (at % every == every - 1) for at, line in enumerate(several_models()))
    steps = [document["summary"]["steps"] for document in receipts(tmp_path, lines)]
    assert [(each["first"], each["last"], each["record_count"]) for each in steps] == [
        (1, 2000, 21),
        (1, 2000, 21),
        (0, 290, 30),
    ]
