"""Count the verdicts of ``receipt compare --reproducibility`` and ``--resume`` on pairs of runs whose truth is known.

    python -m benchmarks.same_run [FOLDER] [--results benchmarks/results/same-run.md] [--details]

200 simulated pairs: 50 identical, 50 with another seed, 50 with another order of the data, 50 resumed (half of these lost the
position in the data). Half of the logs print a position in the data. In the simulation a loss depends on the batch and the
seed, so that another batch gives another loss.

20 pairs are made of real logs of FOLDER: a log and its copy, a copy that ends early, a copy with one digit changed, a copy with
fewer digits, and logs of two runs of one trainer.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from benchmarks.laws import logs_of
from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.comparison.load import load_side
from receipt_cli.comparison.rerun import SAME, Question, reproducibility
from receipt_cli.errors import ReceiptError

Form = Literal["nanochat", "megatron", "shards", "nanogpt", "torchtitan", "labels"]
FORMS: dict[Form, bool] = {
    "nanochat": True, "megatron": True, "shards": True, "nanogpt": False, "torchtitan": False, "labels": False,
}  # fmt: skip
"""Form of a simulated log → whether it prints a position in the data."""
COUNTS = frozenset({"megatron"})
"""Forms whose position counts samples: it shows how much data was used, and with the seed, which."""
EACH = 50
BATCHES = 4096


@dataclass(frozen=True, slots=True)
class Simulated:
    """A run: the seed of its numbers, that of the order of its data, the batch at step 0, and the steps that it prints."""

    seed: int
    order: int
    first: int = 0
    last: int = 119
    offset: int = 0
    digits: int = 4
    clock: int = 0


@lru_cache(maxsize=8)
def order_of(order: int, epoch: int) -> Sequence[int]:
    """Return the batches of an epoch in the order of their use."""
    return random.Random(f"{order}/{epoch}").sample(range(BATCHES), BATCHES)


def batch_of(run: Simulated, step: int) -> int:
    """Return the batch that a step trains."""
    epoch, place = divmod(step + run.offset, BATCHES)
    return order_of(run.order, epoch)[place]


def losses_of(run: Simulated) -> Iterator[tuple[int, int, float, float]]:
    """Yield step, batch, loss and gradient norm of each step: they depend on batch and seed only."""
    for step in range(run.first, run.last + 1):
        batch = batch_of(run, step)
        draw = random.Random(f"{batch}/{run.seed}/{step}")
        yield step, batch, 2.5 + 4 / (1 + step / 20) + draw.gauss(0, 0.05), 1 + abs(draw.gauss(0, 0.2))


def write(run: Simulated, form: Form) -> str:
    """Return the log of a run in one of the ``FORMS``; speed and time differ from run to run."""
    clock = random.Random(run.clock)
    head = {
        "nanochat": f"seed: {run.seed}\n",
        "megatron": f"  seed ............................................ {run.seed}\n",
        "shards": f"seed: {run.seed}\n",
        "labels": f"seed: {run.seed}\n",
    }.get(form, "")
    resumed = f"Resuming optimization from step {run.first}\n" if run.first and form == "nanochat" else ""
    return head + resumed + "".join(_line(form, run, clock, *values) for values in losses_of(run))


def _line(form: Form, run: Simulated, clock: random.Random, step: int, batch: int, loss: float, norm: float) -> str:
    passed, d = clock.uniform(300, 320), run.digits
    if form == "nanochat":
        return (
            f"step {step:05d}/01390 ({100 * step / 1390:.2f}%) | loss: {loss:.{d}f} | grad norm: {norm:.{d}f} | lrm: 1.00 | "
            f"dt: {passed:.2f}ms | tok/sec: {int(5e8 / passed):,} | bf16_mfu: 41.07 | epoch: 1 pq: {batch // 64} "
            f"rg: {batch % 64} | total time: {step / 200:.2f}m\n"
        )
    if form == "megatron":
        return (
            f" [2026-05-01 11:{step // 60:02d}:{step % 60:02d}] iteration {step + 1:8d}/     390 | consumed samples: "
            f"{8 * (step + run.offset + 1):12d} | elapsed time per iteration (ms): {passed:.1f} | learning rate: 1.000000E-04 | "
            f"global batch size:     8 | lm loss: {loss:.{d}E} | loss scale: 1.0 | grad norm: {norm:.3f} | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
    if form == "torchtitan":
        return (
            f"[titan] 2026-03-06 10:{step // 60:02d}:{step % 60:02d},000 - root - INFO - step: {step + 1:2d}  "
            f"loss: {loss:7.{d}f}  "
            f"grad_norm: {norm:7.{d}f}  memory: 10.00GiB(12.50%)  tps: {int(2.5e6 / passed):,}  tflops: 100.00  mfu: 32.05%\n"
        )
    if form == "nanogpt":
        return f"iter {step}: loss {loss:.{d}f}, time {passed:.2f}ms, mfu 21.00%\n"
    place = f" shard={batch // 64} shard_offset={batch % 64}" if form == "shards" else ""
    return f"step={step} loss={loss:.{d}f} grad_norm={norm:.{d}f}{place} step_time={passed / 1000:.4f}s\n"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two logs, the question about them, and the exact verdicts; ``wrong`` are those that would claim what is not so."""

    kind: str
    form: str
    a: str
    b: str
    question: Question
    exact: frozenset[str]
    printed: bool


OTHER, DATA, NUMBERS = "other_numbers_data_not_printed", "other_data", "same_data_other_numbers"


def simulated_pairs(draw: random.Random) -> Iterator[Pair]:
    """Yield the 200 pairs: 50 of each kind, the forms in turn."""
    forms = list(FORMS)
    for number in range(EACH):
        form = forms[number % len(forms)]
        printed, counted = FORMS[form], form in COUNTS
        seed, order = draw.randrange(1, 1 << 30), draw.randrange(1, 1 << 30)
        run = Simulated(seed, order, clock=draw.randrange(1 << 30), digits=draw.choice((3, 4, 6)))
        again = replace(run, clock=draw.randrange(1 << 30))
        yield _pair("identical", form, run, again, {"identical"})
        other = replace(again, seed=seed + 1)
        yield _pair("other seed", form, run, other, {NUMBERS if printed and not counted else OTHER})
        # where samples are counted, the seed decides their order
        shuffled = replace(again, order=order + 1, **({"seed": seed + 1} if counted else {}))
        yield _pair("other data", form, run, shuffled, {DATA if printed and not counted else OTHER})
        stopped, begin = replace(run, last=draw.randrange(60, 90)), draw.randrange(30, 55)
        lost = (number // len(forms)) % 2 == 1
        resumed = replace(again, first=begin, last=140, offset=draw.randrange(1, 500) if lost else 0)
        exact = {"identical"} if not lost else {DATA if printed else OTHER}
        yield _pair("resumed, position lost" if lost else "resumed", form, stopped, resumed, exact, "resume")


def _pair(kind: str, form: Form, a: Simulated, b: Simulated, exact: set[str], question: Question = "rerun") -> Pair:
    return Pair(kind, form, write(a, form), write(b, form), question, frozenset(exact), FORMS[form])


_NUMBER = re.compile(r"(?i)(loss[\"']?\s*[:=]?\s*)(\d+\.\d{2,})(?![\d.eE])")


def _changed(text: str) -> str | None:
    """Return a log with the last digit of one loss changed: of the middle one; None if too few losses have two decimals."""
    found = list(_NUMBER.finditer(text))
    if len(found) < 20:
        return None
    match = found[len(found) // 2]
    digit = str((int(match[2][-1]) + 5) % 10)
    return text[: match.end() - 1] + digit + text[match.end() :]


def _coarser(text: str) -> str | None:
    found = list(_NUMBER.finditer(text))
    if len(found) < 20 or len({len(match[2].partition(".")[2]) for match in found}) > 1 or len(found[0][2].partition(".")[2]) < 4:
        return None
    return _NUMBER.sub(lambda match: f"{match[1]}{float(match[2]):.{len(match[2].partition('.')[2]) - 1}f}", text)


def real_pairs(folder: Path, count: int = 20) -> Iterator[Pair]:
    """Yield pairs made of the logs below a folder, the kinds in turn; logs that a change does not fit are passed over."""
    changes: list[tuple[str, Callable[[str], str | None], set[str]]] = [
        ("copy", lambda text: text, {"identical"}),
        ("ends early", lambda text: "\n".join(text.split("\n")[: len(text.split("\n")) * 4 // 5]) + "\n", {"identical"}),
        ("one digit", _changed, {OTHER, NUMBERS}),
        ("fewer digits", _coarser, {"same_within_printed_precision"}),
    ]
    made, before = 0, dict[str, str]()
    for path in logs_of(folder):
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if made >= count or len(_NUMBER.findall(text)) < 40 or len(text) > 1_000_000:
            continue
        kind, change, exact = changes[made % len(changes)]
        family = path.parent.name
        if made % 5 == 4 and family in before and before[family] != text:
            made += 1
            yield Pair(
                "two runs", family, before[family], text, "rerun", frozenset({OTHER, NUMBERS, DATA, "not_comparable"}), False
            )
        elif (other := change(text)) is not None and family not in before:
            made += 1
            yield Pair(kind, family, text, other, "rerun", frozenset(exact), False)
        before[family] = text


def verdict_of(pair: Pair, folder: Path) -> dict[str, Any] | None:
    """Return the answer about a pair; None if a log cannot be read."""
    for name, text in (("a.log", pair.a), ("b.log", pair.b)):
        (folder / name).write_text(text, "utf-8")
    try:
        a, b = (load_side(str(folder / name), lambda file: nullcontext(None))[0] for name in ("a.log", "b.log"))
    except ReceiptError:
        return None
    return reproducibility(a, b, DEFAULT, question=pair.question)


def is_wrong(pair: Pair, verdict: str) -> bool:
    """Return whether a verdict claims what is not so: other runs are the same, the same are others, or unprinted data differs."""
    if verdict in pair.exact or verdict == "not_comparable":
        return False
    if verdict in SAME or pair.exact & set(SAME):
        return True
    return not pair.printed or verdict != OTHER


def count(pairs: Sequence[Pair], details: bool) -> tuple[list[str], int]:
    """Return the rows of the table, and how many verdicts are wrong."""
    found: dict[tuple[str, str], Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        for pair in pairs:
            answer = verdict_of(pair, Path(name))
            verdict = "unread" if answer is None else answer["verdict"]
            row = found.setdefault((pair.kind, "yes" if pair.printed else "no"), Counter())
            row["pairs"] += 1
            row["exact"] += verdict in pair.exact
            row["wrong"] += answer is not None and is_wrong(pair, verdict)
            row["open"] += verdict in ("unread", "not_comparable") and verdict not in pair.exact
            if details and verdict not in pair.exact:
                print(
                    f"{pair.kind}, {pair.form}: {verdict}, not {' or '.join(sorted(pair.exact))}: {answer and answer['because']}"
                )
    rows = [
        f"| {kind} | {printed} | {row['pairs']} | {row['exact']} | {row['open']} | {row['wrong']} |"
        for (kind, printed), row in sorted(found.items())
    ]
    return rows, sum(row["wrong"] for row in found.values())


HEAD = ("| kind | position printed | pairs | exact verdict | left open | wrong |", "|---|---|--:|--:|--:|--:|")


def main() -> int:
    """Print the tables; exit 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--details", action="store_true")
    options = parser.parse_args()
    rows, wrong = count(list(simulated_pairs(random.Random(7))), options.details)
    lines = [
        "# Is it the same run?",
        "",
        "`python -m benchmarks.same_run`: the verdicts on simulated pairs of runs.",
        "",
        *HEAD,
        *rows,
    ]
    if options.folder is not None:
        more, also = count(list(real_pairs(options.folder)), options.details)
        wrong += also
        lines += ["", "The same on pairs made of real logs.", "", *HEAD, *more]
    text = "\n".join([*lines, ""])
    print(text)
    if options.results is not None:
        options.results.write_text(text, "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
