"""Measure how often ``receipt compare`` calls two equal runs different, and how often it finds a run that is 2 % slower.

``python -m benchmarks.calibration --results benchmarks/results/calibration.json`` simulates pairs: step times around 1 s
with a spread of 2 %, each depending on the previous one (autoregressive, coefficient *phi*), with a share of stalls, single
or five in a row. Real runs in a folder of logs are cut in halves, unchanged and rotated by a random number of steps. Each
pair is compared by ``compare_metrics``. The verdict *better* or *worse* for an equal pair is wrong; each cell may have at
most ``MOST`` wrong verdicts of a hundred.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from receipt_cli.comparison.contrasts import STALLING, compare_stalls
from receipt_cli.comparison.metrics import WANDER, Figures, compare_metrics
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import ReceiptError
from receipt_cli.numeric.intervals import INTERVAL_RULE
from receipt_cli.receipts.production import Request, produce

Floats = NDArray[np.float64]

STEPS = (100, 300, 2000)
DEPENDENCE = (0.0, 0.5, 0.9, 0.97)
STALLS = ((0.0, 1), (0.02, 1), (0.05, 1), (0.05, 5))
"""(share of stalled steps, number of stalls in a row)."""
MOST = 7.0
SLOWER = 1.02
_SPREAD = 0.02
_SHIFTS = 8
_LARGE = 6 << 20
_LEAST_REAL = 40


def autoregressive(count: int, trials: int, phi: float, draw: np.random.Generator) -> Floats:
    """Return autoregressive series [trials, count] of mean 0 and variance 1."""
    noise = draw.standard_normal((count, trials)) * math.sqrt(1 - phi * phi)
    made = np.empty((count, trials))
    made[0] = draw.standard_normal(trials)
    for i in range(1, count):
        made[i] = phi * made[i - 1] + noise[i]
    return made.T.copy()


def step_times(count: int, trials: int, phi: float, share: float, row: int, draw: np.random.Generator) -> Floats:
    """Return step times [trials, count] in seconds; a stall adds 0.2 s and an exponential time of mean 1 s."""
    begin = draw.random((trials, count)) < share / row
    slow = np.zeros((trials, count), np.bool_)
    for age in range(row):
        slow[:, age:] |= begin[:, : count - age]
    return 1 + _SPREAD * autoregressive(count, trials, phi, draw) + slow * (0.2 + draw.exponential(1.0, (trials, count)))


def outcome(a: Floats, b: Floats) -> str:
    """Return the verdict of ``receipt compare`` on two runs with these step times."""
    sides = [[{STALLING: Figures(_statistic(values), values.tolist())}] for values in (a, b)]
    (found,) = compare_metrics(sides[0], sides[1], load_registry())
    return found.outcome


def _statistic(values: Floats) -> dict[str, Any]:
    figures = {"first": values[0], "last": values[-1], "min": values.min(), "max": values.max(), "median": np.median(values)}
    return {name: float(value) for name, value in figures.items()}


def simulated(trials: int) -> Iterator[dict[str, Any]]:
    """Yield the cells of simulated pairs, in percent."""
    for count in STEPS:
        for phi in DEPENDENCE:
            for share, row in STALLS:
                draw = np.random.default_rng([count, int(phi * 100), int(share * 100), row])
                a, b = (step_times(count, trials, phi, share, row, draw) for _ in "ab")
                equal = [outcome(x, y) for x, y in zip(a, b, strict=True)]
                slower = [outcome(x, SLOWER * y) for x, y in zip(a, b, strict=True)]
                stalls = [compare_stalls([x.tolist()], [y.tolist()]) for x, y in zip(a, b, strict=True)]
                told = sum(found is not None and found["outcome"] in ("better", "worse") for found in stalls)
                yield {
                    "steps": count,
                    "phi": phi,
                    "stalls": share,
                    "in_a_row": row,
                    "pairs": trials,
                    "wrong": _percent(sum(word in ("better", "worse") for word in equal), trials),
                    "found": _percent(slower.count("worse"), trials),
                    "wrong_stalls": _percent(told, trials),
                }


def real_series(folder: Path) -> Iterator[Floats]:
    """Yield the distinct series of steady step times in the logs of a folder."""
    seen: set[bytes] = set()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.stat().st_size > _LARGE or path.suffix in (".md", ".tsv", ".jsonl"):
            continue
        try:
            product = produce(Request(path=str(path), workers=1))
        except ReceiptError:
            continue
        summary = product.document["summary"] or {"metrics": {}}
        values = np.array(product.series.steady(STALLING) if STALLING in summary["metrics"] else [], np.float64)
        key = values[:_LEAST_REAL].tobytes()
        if len(values) >= _LEAST_REAL and key not in seen:
            seen.add(key)
            yield values


def real(series: Sequence[Floats]) -> Iterator[dict[str, Any]]:
    """Yield the cells of real runs: halves of the run, and of the rotated run."""
    draw = np.random.default_rng(1)
    turned = [np.roll(values, draw.integers(len(values))) for values in series for _ in range(_SHIFTS)]
    for name, runs in (("halves", series), ("circular shifts", turned)):
        halves = [(values[: len(values) // 2], values[len(values) // 2 :]) for values in runs]
        wrong = sum(outcome(a, b) in ("better", "worse") for a, b in halves)
        yield {"series": name, "pairs": len(halves), "wrong": _percent(wrong, len(halves))}


def _percent(count: int, whole: int) -> float:
    return round(100 * count / max(whole, 1), 1)


def main(arguments: list[str]) -> int:
    """Print both tables; return 1 if a cell has more than ``MOST`` wrong verdicts of 100."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--trials", type=int, default=400, help="pairs of a cell")
    parser.add_argument("--folder", type=Path, help="a folder with real logs")
    parser.add_argument("--results", type=Path, help="write the tables as JSON")
    options = parser.parse_args(arguments)
    print(f"{'steps':>5} {'phi':>5} {'stalls':>7} {'in a row':>8} {'wrong':>7} {'found':>7} {'wrong on stalls':>15}   of 100")
    columns = {"steps": 5, "phi": 5, "stalls": 7, "in_a_row": 8, "wrong": 7, "found": 7, "wrong_stalls": 15}
    cells = _shown(simulated(options.trials), lambda c: " ".join(f"{c[name]:>{width}}" for name, width in columns.items()))
    folder = options.folder
    series = list(real_series(folder)) if folder is not None and folder.is_dir() else []
    runs = _shown(real(series) if series else iter(()), lambda c: f"{c['series']:>20} {c['pairs']:>5} pairs {c['wrong']:>7}")
    if options.results is not None:
        document = {"rule": INTERVAL_RULE, "wander": WANDER, "slower": SLOWER, "simulated": cells, "real": runs}
        options.results.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(any(cell["wrong"] > MOST for cell in [*cells, *runs]))


def _shown(cells: Iterator[dict[str, Any]], line: Callable[[dict[str, Any]], str]) -> list[dict[str, Any]]:
    made = []
    for cell in cells:
        print(line(cell), flush=True)
        made.append(cell)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
