"""Fit the weights by which the reading of unknown logs weighs its evidence, and score them on logs that they did not see.

    python -m benchmarks.fit_reading [--collect] [--seed 1] [--write]

``--collect`` reads every log once by each of its explanations (``receipt_cli/learn/evidence.py``), compares the figures with the
truth, and writes ``benchmarks/data/reading.txt``: numbers only. The logs are those of ``benchmarks.own_scripts`` from another
seed than it publishes, the rows of ``tests/unit/learn/own_scripts.yaml``, and the fixtures without the grammar of their trainer.
The first line of the table names the measures. Of each explanation it has the number of the source (a form, a row, a family of
fixtures), that of the log, 1 if its figures are right, 0 if one is wrong and -1 if some are missing and the others right, the
first and the last of its records, and the measures that are not 0, each as ``place:value``.

Without ``--collect`` the weights are fitted to the committed table: the logistic regression of right or wrong, drawn towards
``PRIOR``, so that evidence which no log of the table shows keeps its sign. ``--write`` writes them to the vocabulary. Printed are
the logs read right, refused and read wrong: by the weights of all logs, and in five folds over the sources, each by the weights
of the other four.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks import own_scripts
from benchmarks.generators.own_scripts import dealt, script
from benchmarks.leave_one_out import FIELDS, Figures, expected, full, read_without, verdict
from receipt_cli.detect.generic import WHERE, load_generic
from receipt_cli.learn import learned
from receipt_cli.learn.evidence import EVIDENCE, Decision, Explanation, Log, Weighed, stages, weigh
from receipt_cli.learn.reading import FIGURES

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).resolve().parent / "data" / "reading.txt"
GENERIC = ROOT / WHERE
AGAINST, SURE = -8.0, 30.0
PRIOR = {
    **dict.fromkeys(EVIDENCE, (AGAINST, SURE)),
    **{name: (weight, SURE) for name, weight in zip(FIGURES, (4.0, 3.0, 3.0, 2.0, 1.0, 1.0, 1.0), strict=True)},
    **dict.fromkeys(("losses_elsewhere", "shown_before"), (-1.0, 1.0)),
    **{"records": (0.2, 1.0), "metrics": (0.1, 1.0), "uncounted": (-2.5, SURE), "notice": (-2.5, SURE)},
}
"""The weight of each measure without a log, and how much that counts: as so many logs. Figures of a training speak for records;
all else speaks against them, and is rare in logs that are written to be read."""
DEAR = 4.0
"""A wrong reading weighs as much as so many right ones."""
FOLDS = 5


class Row(NamedTuple):
    """One explanation of a log."""

    source: int
    log: int
    right: int
    begin: int
    end: int
    measures: dict[int, float]


Judge = Callable[[], str]
"""Reads a log; returns ``right``, ``missing`` or ``wrong``."""


def explanations_of(judge: Judge) -> Iterator[tuple[str, Weighed, tuple[int, int]]]:
    """Yield each explanation of a log, weighed, with the verdict on its figures and its first and last record."""
    asked: list[int] = []
    found: list[Weighed] = []

    def pick(explanations: Sequence[Explanation], log: Log) -> Decision:
        found[:] = [weigh(each, log) for each in explanations]
        at = asked[-1]
        chosen = tuple(explanations[at : at + 1])
        others = [w.explanation for w in found if w.explanation not in chosen and w.score > 0]
        return Decision((*chosen, *(stages(chosen[0], others) if chosen else ())), tuple(found))

    with mock.patch.object(learned, "decide", pick):
        while not asked or len(asked) < len(found):
            asked.append(len(asked))
            said = judge()
            if found:
                yield said, found[asked[-1]], found[asked[-1]].explanation.span


def logs(seed: int, folder: Path) -> Iterator[tuple[str, Judge]]:
    """Yield the logs of the table: the name of the source, and how the log is read and judged."""
    from tests.unit.learn import test_own_scripts as rows  # needs the tests

    def generated(path: Path, readings: Sequence[own_scripts.Reading]) -> Judge:
        return lambda: own_scripts.verdict(readings, own_scripts.read(path))[0]

    def listed(name: str) -> Judge:
        text, losses = rows.printed(rows.TABLE[name])
        path = folder / "row.log"

        def judge() -> str:
            path.write_text(text, "utf-8")
            wanted = (rows.TABLE[name].get("records", len(losses)), *losses[:1], *losses[-1:], None, None)[:3]
            return verdict(dict(zip(FIELDS, wanted, strict=True)), plain(path), True)

        return judge

    def recorded(path: Path) -> Judge | None:
        read, names = full(path)
        wanted, removed = expected(None, read), {*names, path.parent.name}
        if wanted is None or isinstance(read_without(path, removed), str):
            return None
        return lambda: verdict(wanted, got if not isinstance(got := read_without(path, removed), str) else None, False)

    for number, names in enumerate(dealt(seed, own_scripts.COUNT)):
        made = script(seed, number, *names)
        path = folder / f"{number:03d}.log"
        path.write_text(made.text, "utf-8", newline="")
        yield f"form {names[0]}", generated(path, made.readings)
    for name in rows.TABLE:
        yield f"row {name}", listed(name)
    for path in sorted((ROOT / "fixtures" / "logs").glob("*/*")):
        judge = recorded(path) if path.suffix in (".log", ".txt") else None
        if judge is not None:
            yield f"fixture {path.parent.name}", judge


def plain(path: Path) -> Figures:
    """Return the step count and the first and last loss of a log."""
    got = own_scripts.read(path)
    return (got["record_count"] or 0, got["loss_first"], got["loss_last"])


def collect(seed: int) -> list[str]:
    """Return the lines of the table."""
    lines, sources = [" ".join(EVIDENCE)], dict[str, int]()
    places = {name: place for place, name in enumerate(EVIDENCE)}
    with tempfile.TemporaryDirectory() as folder:
        for number, (source, judge) in enumerate(logs(seed, Path(folder))):
            of = sources.setdefault(source, len(sources))
            for said, found, (begin, end) in explanations_of(judge):
                right = {"right": 1, "more": 1, "wrong": 0}.get(said, -1)
                shown = (f"{places[name]}:{round(value, 3):g}" for name, value in found.measures.items())
                lines.append(f"{of} {number} {right} {begin} {end} {' '.join(shown)}")
    return lines


def read_table(text: str) -> list[Row]:
    """Return the rows of the table. Raises ``ValueError`` if it is of other measures than the code has."""
    head, *lines = text.splitlines()
    if head.split() != [*EVIDENCE]:
        raise ValueError("the table is of other measures: make fit-reading COLLECT=1")
    rows = []
    for line in lines:
        *numbers, rest = line.split(" ", 5)
        pairs = (pair.split(":") for pair in rest.split())
        rows.append(Row(*map(int, numbers), {int(place): float(value) for place, value in pairs}))
    return rows


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Return the weights of the measures, rounded to hundredths: the same on any machine."""
    solved = {row.log for row in rows if row.right == 1}
    told = [row for row in rows if row.right >= 0 or row.log in solved]  # where another is right, what misses figures is not
    matrix = np.zeros((len(told), len(EVIDENCE)))
    for number, row in enumerate(told):
        matrix[number, [*row.measures]] = [*row.measures.values()]
    labels = np.array([row.right == 1 for row in told], float)
    costs = np.where(labels > 0, 1.0, DEAR)
    prior, trust = np.array([PRIOR[name] for name in EVIDENCE]).T
    weights = prior.copy()

    def loss(weights: np.ndarray[Any, Any]) -> float:
        sums = matrix @ weights
        return float(costs @ (np.logaddexp(0, sums) - labels * sums) + trust @ (weights - prior) ** 2 / 2)

    for _ in range(60):  # Newton's method, with shorter steps where the loss would rise
        chance = np.exp(-np.logaddexp(0, -(matrix @ weights)))
        slope = matrix.T @ (costs * (chance - labels)) + trust * (weights - prior)
        bend = (matrix * (costs * chance * (1 - chance))[:, None]).T @ matrix + np.diag(trust)
        step = np.linalg.solve(bend, slope)
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-9:
            step /= 2
        weights = weights - step
    return {name: round(float(weight), 2) + 0.0 for name, weight in zip(EVIDENCE, weights, strict=True)}


def decided(rows: Sequence[Row], weights: dict[str, float], margin: float) -> str:
    """Return ``right``, ``missing`` or ``wrong``: what the explanation is that is chosen for a log with these ``rows``."""
    known = [*weights.values()]
    scored = sorted(((sum(known[place] * value for place, value in row.measures.items()), row) for row in rows), reverse=True)
    best, row = scored[0]
    rivals = (score for score, other in scored[1:] if other.begin <= row.end and row.begin <= other.end)
    if best <= 0 or best - max(rivals, default=-99.0) < margin:
        return "missing"
    return {1: "right", 0: "wrong"}.get(row.right, "missing")


def by_log(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each log."""
    return [list(found) for _, found in groupby(sorted(rows, key=lambda row: row.log), key=lambda row: row.log)]


def score(rows: Sequence[Row], weights: Callable[[int], dict[str, float]], margin: float) -> dict[str, int]:
    """Return how many logs are read right, not at all and wrong, each by the weights of its fold."""
    found = [decided(each, weights(each[0].source % FOLDS), margin) for each in by_log(rows)]
    return {said: found.count(said) for said in ("right", "missing", "wrong")}


def main() -> int:
    """Fit the weights; return 1 if a log of a fold is read wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", action="store_true", help="read the logs and write the table")
    parser.add_argument("--seed", type=int, default=1, help="of the generated logs (default: 1)")
    parser.add_argument("--write", action="store_true", help="write the weights to the vocabulary")
    options = parser.parse_args()
    if options.collect:
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text("\n".join(collect(options.seed)) + "\n", "utf-8")
    rows = read_table(TABLE.read_text("utf-8"))
    weights, margin = fit(rows), load_generic().margin
    folds = [fit([row for row in rows if row.source % FOLDS != fold]) for fold in range(FOLDS)]
    best = sum(any(row.right == 1 for row in each) for each in by_log(rows))
    print(f"{len(by_log(rows))} logs, {len(rows)} explanations; {best} logs have one that is right; margin {margin}")
    print("all logs:", score(rows, lambda _: weights, margin))
    held_out = score(rows, lambda fold: folds[fold], margin)
    print("five folds over sources:", held_out)
    if options.write:
        text = GENERIC.read_text("utf-8")
        begin, end = text.index("\nevidence:\n") + 11, text.index("# Why an explanation")
        shown = "".join(f"  {name}: {weight:g}\n" for name, weight in weights.items())
        GENERIC.write_text(text[:begin] + shown + text[end:], "utf-8")
    else:
        print(*(f"  {name}: {weight:g}" for name, weight in weights.items()), sep="\n")
    return 1 if held_out["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
