"""Step records that stay in their columns give the receipt that one event for each of them gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.analysis.steady import warmups
from receipt_cli.derive import Options
from receipt_cli.events import phases, rows
from receipt_cli.events.compact import regular
from receipt_cli.events.rows import HEAD, TAIL
from tests.tools.examples import costly
from tests.tools.pieces import small_pieces
from tests.tools.told import told_of
from tests.tools.toy_trainer import GRAMMAR

MARGINS = {"SPAN": HEAD + TAIL + 2, "LEAST": 1}
"""The shortest stretches that may have a run."""
LOGS = sorted((Path(__file__).parents[2] / "fixtures" / "logs").glob("*/*.log"), key=lambda path: path.stat().st_size)[-40:]
SINGLE = (
    "toy eval {n}: 2.5",
    "toy eval {n}: nan",
    "toy scored 0: 2.5",
    "toy saved {n}",
    "toy kept",
    "toy room 4096",
    "toy begins",
    "toy going 3",
    "toy laps of 6",
    "toy stage base",
    "toy stage tuning",
    "toy model 1000",
    "toy model 2000",
    "toy batch 8 x 128",
    "toy seed 1",
    "toy seed 2",
    "toy done in 12.5 s",
    "toy ended: failed",
    "toy norm {n}: 0.5",
    "toy memory 4096",
    "toy bar {n}/500",
    "toy step {n} | loss=2.5",
    "toy step {n}/900 | loss=2.5 | time=0.5",
    "[rank2]: toy step {n} | loss=2.5",
    "toy record epoch=0.{n} loss=2.0",
    "Traceback (most recent call last):\nRuntimeError: CUDA error: out of memory",
    "slurmstepd: error: *** JOB 1 ON node CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***",
    "",
)
LABELS = ("", "[rank0]: ", "[rank1]: ", "[rank3]: ")
VALUES = ("2.5", "1.25", "0.001", "9000", "nan", "inf", "0.3", "0", None, None)
BEHIND = (
    *[
        "",
        "\ntoy scored {epoch}: 2.{n}",
        "\ntoy scored {epoch}/9: 2.{n}",
        "\ntoy saved {n}",
        "\ntoy kept",
        "\ntoy kept in 0.5\ntoy eval {n}: 0.{n}",
    ],
    *[
        "\ntoy room 4{n}",
        "\ntoy room 4{n} on 0\ntoy room 5{n} on 1",
        "\ntoy room 4{n} on {epoch}",
        "\ntoy room of {n}: 4{n}\ntoy begins",
        "\ntoy going {epoch}",
        "\ntoy going {n}",
        "\ntoy begins",
    ],
)
"""What a trainer prints behind some records."""
REPORTED = ("forward", "data", "copied", "width")
NAMES = ("time", "mfu", "tps", "batch", "mem", "width", "depth")


@st.composite
def stretches(draw: st.DrawFn) -> list[str]:
    """Return the lines of many step records of one kind, some of them odd in one way or another."""
    first, count, stride = draw(st.sampled_from([0, 1, 2, 30, 60, 100])), draw(st.integers(1, 90)), draw(st.integers(1, 2))
    kind = draw(
        st.sampled_from(
            [
                *["step"] * 3,
                *["beside", "report", "pass", "evals", "tests", "joined", "saves", "turn", "lap"] * 2,
                "row",
                "norm",
                "record",
                "counted",
                "frames",
                "drawn",
                "bars",
            ]
        )
    )
    labels = draw(st.sampled_from([[""], [""], ["[rank1]: "], list(LABELS[1:3]), list(LABELS[1:])]))
    plan = draw(st.sampled_from(["", "", "/90", "/120", "/200"]))
    cells = draw(
        st.lists(st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)), max_size=4)
    )
    odd = draw(
        st.dictionaries(
            st.integers(0, 89),
            st.sampled_from(["drop", "twice", "label", "nan", "fewer", "norm", "eval", "memory", "plan"]),
            max_size=3,
        )
    )
    draws = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    whose = draw(st.sampled_from(["", "", " of rank 1"]))
    length = draw(st.sampled_from([1, 3, 7, 40, 40]))
    behind = draw(st.lists(st.sampled_from(BEHIND), min_size=1, max_size=4))
    figures = draw(st.lists(st.sampled_from(["", " in 3.5", " in 0.5 of 0.{n}", " of 0.{n}"]), min_size=1, max_size=2))
    lines: list[str] = []
    for i in range(count):
        n, what = first + i * stride, odd.get(i)
        loss = "nan" if what == "nan" else f"{9 - i / 50 + len(cells):.3f}"
        said = [(name, found[i % len(found)]) for name, found in (cells[:-1] if what == "fewer" else cells)]
        values = "".join(f" | {name}={value}" for name, value in said if value is not None)
        said_behind = behind[i // length % len(behind)].format(n=n, epoch=i // length) * (i % length == length - 1)
        line = {
            "step": f"toy step {n}{'/777' if what == 'plan' else plan} | loss={loss}{values}",
            "beside": f"toy step {n}{plan} | loss={loss}{values}\n" + f"toy memory {4096 + i}\n" * (draws[i % len(draws)] % 3),
            "report": f"toy step {n}{plan} | loss={loss}{values}\ntoy times{whose}:\n"
            + "".join(f" {name} ..: {4096 + i}\n" for name in REPORTED[: draws[i % len(draws)] + (what == "fewer")]),
            "row": f"{'STEP  TRAINER  LOSS' + '  NORM' * draws[0] if i % 9 == 0 or what == 'nan' else ''}\n{n}  toy x  {loss}"
            + f"  0.{n}" * (draws[0] - (what == "fewer")),
            "joined": f"toy step {n}{plan} | loss={loss}{values}\ntoy norm {n}: 0.{n}"
            + f"\ntoy lr {n}: 0.{n}" * (i % draws[0] == 0),
            "evals": f"toy step {n}{plan} | loss={loss}{values}"
            + f"\ntoy eval {n}: {loss}{figures[i % len(figures)]}".replace("{n}", str(n)) * (i % draws[0] == 0),
            "tests": f"toy record epoch={n / 25:.2f} loss=2.5"
            + f"\ntoy eval : {loss}{figures[i % len(figures)]}".replace("{n}", str(n)) * (i % draws[0] == 0),
            "norm": f"toy norm {n}: {loss if loss != 'nan' else '1'}",
            "record": f"toy record epoch={n / 25:.2f} loss={9 - i / 50:.3f}",
            "saves": f"toy step {n}{plan} | loss={loss}{values}{said_behind}" + f"\ntoy eval {n}: {loss}" * (i % draws[-1] == 0),
            "pass": f"toy pass {i // length} {i % length}/{90 if what == 'plan' else length} {9 - i / 50:.3f}{said_behind}",
            "turn": f"toy turn {n} in {i // length}, {i % length} {9 - i / 50:.3f}{said_behind}",
            "lap": f"{f'toy laps of {length}' * (i == 0 and draws[0] > 1)}\n"
            f"toy lap {first % 3 + i // length}, {i % length} {9 - i / 50:.3f}{said_behind}",
            "counted": f"toy epoch {1 + i // (5 + length)}{plan} {draws[-1] % 2 + i % (5 + length) // draws[0]}/{5 + length} "
            f"{9 - i / 50:.3f}{said_behind}",
            "frames": "\r".join(f"toy frame {n}/500 loss={9 - i / 50 + again:.3f}" for again in range(draws[i % len(draws)])),
            "drawn": f"toy frame {n}/500 loss={9 - i / 50:.3f}{said_behind}" + f"\ntoy memory {4096 + i}" * (draws[0] > 1),
            "bars": f"toy record epoch={n / 25:.2f} loss=2.5\ntoy bar {n}/500",
        }[kind]
        shown = ["[rank7]: "] if what == "label" else labels
        if what != "drop":
            other = kind == "pass" and draws[0] > 1  # each rank prints a loss of its own
            lines += [f"{label}{line}{n if other else ''}" for n, label in enumerate(shown)] * (2 if what == "twice" else 1)
        if what in ("norm", "eval", "memory"):
            lines.append(f"toy {what} {n}: 0.5")
    every = "\n".join(lines).split("\n")
    if kind in ("frames", "counted") or draw(st.sampled_from([True, True, False])):
        return every
    seconds = draw(st.lists(st.sampled_from([0, 1, 1, 2, 40]), min_size=1, max_size=4))
    times = accumulate((seconds[i % len(seconds)] for i in range(len(every))), initial=draw(st.integers(0, 3000)))
    return [
        f"2026-01-01 {at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d} - {line}" for at, line in zip(times, every, strict=False)
    ]


parts = st.one_of(
    stretches(),
    stretches(),
    st.builds(lambda text, n: [text.replace("{n}", str(n))], st.sampled_from(SINGLE), st.integers(0, 120)),
)
logs = st.lists(parts, min_size=1, max_size=8).map(lambda made: "\n".join(line for part in made for line in part) + "\n")


@contextmanager
def in_columns(wanted: bool) -> Iterator[None]:
    """Leave all records in their columns that may stay there, or none."""
    with small_pieces(), patch.multiple(regular, **MARGINS), patch.object(rows, "MANY", 0 if wanted else 1 << 40):
        yield


def told(path: Path, grammar: Path | None, wanted: bool) -> list[tuple[object, ...]]:
    """Return all that each run of a log gives, with NaN as text."""
    with in_columns(wanted):
        return told_of(path, Options(grammar=str(grammar) if grammar else None))


@settings(max_examples=costly(150))
@given(logs)
def test_runs_change_nothing(log: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, grammar = Path(folder, "run.log"), Path(folder, "v1.yaml")
        path.write_text(log)
        grammar.write_text(GRAMMAR)
        assert told(path, grammar, True) == told(path, grammar, False)


COPIES = {
    "two processes that print forty records at a time": "".join(
        f"toy step {n} | loss={9 - n / 50:.3f} | time=0.{process}{n}\n"
        for begin in range(0, 160, 40)
        for process in (1, 2)
        for n in range(begin, begin + 40)
    ),
    "two processes that take turns, a companion behind each record of one of them": "".join(
        f"toy step {10 * n} | loss={9 - n / 50:.3f}\ntoy memory {4096 + n}\n"
        + f"toy step {10 * n - 200} | loss={5 - n / 70:.3f}\n" * (n > 20)
        + f"toy memory {9000 + n}\n" * (n > 20 and n % 2)
        for n in range(120)
    ),
    "a start with other losses": "".join(f"toy step {n} | loss={10 - n / 50:.3f}\n" for n in range(40))
    + "".join(f"toy step {n} | loss={9 - n / 50:.3f}\n" for n in range(30)),
    "lines of a companion, and blocks": "".join(
        f"toy step {n} | loss={9 - n / 50:.3f}\ntoy memory {4096 + n}\ntoy times:\n forward ..: {n + 1}\n" for n in range(60)
    ),
    "three lines about each step, and a first step printed once more": "".join(
        f"toy step {n} | loss={9 - n / 50:.3f}\ntoy norm {n}: 0.{n}\ntoy lr {n}: 0.{n}\n" for n in range(90)
    )
    + "".join(f"toy step 90 | loss={n}\n\n\ntoy norm 90: 0.{n}\n" for n in (3, 4, 5)),
    "lines about each step behind many of their own": "".join(f"toy norm {n}: 0.{n}\n" for n in range(60))
    + "".join(f"toy step {n} | loss={9 - n / 50:.3f}\ntoy norm {n}: 0.{n}\n" for n in range(60)),
    "lines about steps with stamps": "".join(
        f"2026-01-01 00:{n // 60:02d}:{n % 60:02d} - toy step {n} | loss={9 - n / 50:.3f}\n"
        f"2026-01-01 00:{n // 60:02d}:{n % 60:02d}{'.5' if n == 50 else ''} - toy norm {n}: 0.{n}\n"
        for n in range(90)
    ),
    "stamps that are set back twice": "".join(
        f"2026-01-01 00:{m // 60:02d}:{m % 60:02d} - toy step {n} | loss={9 - n / 50:.3f}\n"
        for n in range(90)
        for m in [600 + n - 20 * (n > 5) - 20 * (n > 15)]
    ),
    "a companion with the last stamp before records without one, and stamps that begin anew": "".join(
        f"2026-01-01 00:{n // 20:02d}:{n % 20 * 3:02d} - toy step {n} | loss={9 - n / 50:.3f}\n"
        f"2026-01-01 00:{n // 20:02d}:{n % 20 * 3 + 1:02d} - toy memory {4096 + n}\n"
        for n in range(79)
    )
    + "toy step 0 | loss=9.000\ntoy step 0 | loss=9.000\n2026-01-01 00:00:00 - toy step 0 | loss=10.000 | time=2.5\n",
    "a companion behind the last of three processes that count in epochs": "".join(
        f"toy lap {n}, 0 {9 - n / 50:.3f}\n" * 3 for n in range(30)
    )
    + "toy lap 30, 0 8.4\n" * 2
    + "toy memory 4096\n",
    "a companion whose stamp is out of turn": "".join(
        f"2026-01-01 00:{n // 60:02d}:{n % 60:02d} - toy step {n} | loss={9 - n / 50:.3f}\n"
        f"2026-01-01 00:{m // 60:02d}:{m % 60:02d} - toy memory {4096 + n}\n"
        for n in range(90)
        for m in [n + 100 * (n == 40)]
    ),
    "an evaluation behind each record, some not finite, and a second attempt": "".join(
        f"toy step {n} | loss={9 - n / 50:.3f}\ntoy eval {n}: {'nan' if n % 31 == 7 else n} in 0.5 of {n / 25:.2f}\n"
        for n in (*range(80), *range(50, 120))
    ),
    "evaluations without a step that print the epoch, as records do": "".join(
        f"toy record epoch={n / 25:.2f} loss={9 - n / 50:.3f}\n" + f"toy eval : {n / 7} of {n / 25:.2f}\n" * (n % 3 == 0)
        for n in range(120)
    ),
    "a bar behind each record, and all of it once more": "".join(
        f"toy record epoch={n / 25:.2f} loss=2.5\ntoy bar {n}/500\n" for n in (*range(40), *range(40))
    ),
    "a run none of whose records is plausible": "".join(
        f"toy step {n} | loss={9 - n / 50:.3f} | time={2.5 if 51 < n < 73 else 9000}\n" + "toy seed 1\n" * (n < 40)
        for n in range(78)
    ),
    "evaluations printed twice": "".join(
        f"toy step {n} | loss={9 - n / 50:.3f}\ntoy eval {n // 2}: {n // 2}\n" for n in range(90)
    ),
    "eight ranks that count inside of epochs": "".join(
        f"[rank{rank}]: toy pass {n // 40} {n % 40}/40 {9 - n / 50:.3f}{rank}\n" for n in range(90) for rank in range(8)
    ),
    "epochs of three steps, a checkpoint and an evaluation behind each": "".join(
        f"2026-01-01 00:{n // 60:02d}:{n % 60:02d} - toy pass {n // 3} {n % 3}/3 {9 - n / 50:.3f}\n"
        + f"2026-01-01 00:{n // 60:02d}:{n % 60:02d} - toy kept\ntoy scored {n // 3}: 0.{n}\n" * (n % 3 == 2)
        for n in (*range(90), *range(60, 120))
    ),
    "epochs of other lengths than the first": "".join(
        f"toy pass {epoch} {n}/{length} {9 - n / 50:.3f}\n"
        for epoch, length in [*((e, 5) for e in range(10)), *((e, 7) for e in range(10, 30)), *((e, 5) for e in range(8, 30))]
        for n in range(length)
    ),
    **{
        f"epochs of {per} records, of more steps than an array can number": "".join(
            f"toy pass {9000 + n // per} {n % per}/{(1 << 53) - 2} {9 - n / 500:.3f}\n" for n in range(200)
        )
        for per in (3, 90, 1000)
    },
    "epochs whose number is left out at times": "".join(
        f"toy pass {epoch} {n}/4 {9 - n / 50:.3f}\n" for epoch in range(60) if epoch % 7 for n in range(4)
    ),
    "more steps in an epoch than its length": "".join(
        f"toy lap {n // 9}, {n % 9} {9 - n / 50:.3f}\n" + "toy laps of 4\n" * (n == 0) for n in range(120)
    ),
    "bars that begin where the last one ended": "".join(f"toy epoch {n // 5} {n % 5}/4 {9 - n / 50:.3f}\n" for n in range(120)),
    "bars that count the epochs themselves": "".join(f"toy epoch {n}/90 {n}/90 {9 - n / 50:.3f}\n" for n in range(1, 90)),
    "a rank that prints the first record of another one": "[rank0]: toy record epoch=0.00 loss=9.000\n"
    + "".join(f"[rank1]: toy record epoch={n / 25:.2f} loss={9 - n / 50:.3f}\n" for n in range(60)),
}


@pytest.mark.parametrize("log", COPIES.values(), ids=COPIES)
def test_runs_change_nothing_of_a_log(log: str, tmp_path: Path) -> None:
    path, grammar = tmp_path / "run.log", tmp_path / "v1.yaml"
    path.write_text(log)
    grammar.write_text(GRAMMAR)
    assert told(path, grammar, True) == told(path, grammar, False)


def test_the_margins_hold_what_is_compared() -> None:
    assert warmups(np.array([10**6]))[0] < HEAD and TAIL > phases.LATE_RECORDS


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_runs_change_nothing_of_a_real_log(path: Path) -> None:
    assert told(path, None, True) == told(path, None, False)
