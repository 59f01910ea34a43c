"""How often the 95 % interval of one run's figure holds the truth, on simulated steps that depend on one another.

``python -m benchmarks.coverage --trials 1000`` prints a row for each length and dependence. The series is autoregressive
of the first order, plus, in the rows called *stalls*, rare slow stretches as a noisy neighbour makes them; of both the
true mean and median are known, or taken from a series of two million steps.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray

from receipt_cli.numeric.intervals import Estimate, half_width, spread

LENGTHS = (100, 300, 1000, 3000)
DEPENDENCE = (0.0, 0.3, 0.6, 0.9)
_LONG = 2_000_000


def autoregressive(count: int, trials: int, phi: float, draw: np.random.Generator) -> NDArray[np.float64]:
    """Return series (trials, count) of mean 0 and variance 1."""
    noise = draw.standard_normal((count, trials)) * math.sqrt(1 - phi * phi)
    made = np.empty((count, trials))
    made[0] = draw.standard_normal(trials)
    for i in range(1, count):
        made[i] = phi * made[i - 1] + noise[i]
    return made.T.copy()


def stalls(count: int, trials: int, phi: float, draw: np.random.Generator) -> NDArray[np.float64]:
    """Return step times (trials, count) around 1, with stretches of ten slow steps that begin once in two hundred."""
    slow = np.zeros((trials, count))
    begin = draw.random((trials, count)) < 1 / 200
    for age in range(10):
        slow[:, age:] += begin[:, : count - age]
    return 1 + 0.02 * autoregressive(count, trials, phi, draw) + 0.5 * np.minimum(slow, 1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--steps", type=int, action="append", help="length of the runs; can be repeated")
    chosen = parser.parse_args()
    trials = chosen.trials
    print(f"{'series':<8} {'steps':>6} {'phi':>4} {'mean':>7} {'median':>7}   share of {trials} intervals that hold the truth")
    for name, make in (("normal", autoregressive), ("stalls", stalls)):
        for count in chosen.steps or LENGTHS:
            for phi in DEPENDENCE:
                draw = np.random.default_rng(count * 1000 + int(phi * 10))
                long = make(_LONG, 1, phi, draw)[0] if name == "stalls" else np.zeros(1)
                shown = [_share(make(count, trials, phi, draw), estimate, long) for estimate in ("mean", "median")]
                print(f"{name:<8} {count:>6} {phi:>4} {shown[0]:>7.1%} {shown[1]:>7.1%}", flush=True)


def _share(series: NDArray[np.float64], estimate: Estimate, long: NDArray[np.float64]) -> float:
    truth = float(long.mean() if estimate == "mean" else np.median(long))
    found = [spread(one, estimate) for one in series]
    return sum(abs(one.value - truth) <= half_width([one]) for one in found if one is not None) / len(found)


if __name__ == "__main__":
    main()
