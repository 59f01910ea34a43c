"""A plain training loop that uses ``receipt_cli.emit``: a linear model of three weights, fitted by gradient descent.

Run by tests, and once for ``fixtures/logs/receipt-emit``. ``--values FILE`` keeps what was printed, as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time

from receipt_cli.emit import GoodputTracker, StepPrinter, TemporalPerformanceTracker

SIZE, BATCH = 3, 16


def batch(source: random.Random, truth: list[float]) -> list[tuple[list[float], float]]:
    """Return inputs with what the true weights make of them, and some noise."""
    rows = [[source.gauss(0, 1) for _ in truth] for _ in range(BATCH)]
    return [(row, sum(x * w for x, w in zip(row, truth, strict=True)) + source.gauss(0, 0.01)) for row in rows]


def gradient(weights: list[float], rows: list[tuple[list[float], float]]) -> tuple[float, list[float]]:
    """Return the mean squared error and its gradient."""
    errors = [sum(x * w for x, w in zip(row, weights, strict=True)) - y for row, y in rows]
    slope = [2 * sum(e * row[n] for e, (row, _) in zip(errors, rows, strict=True)) / BATCH for n in range(SIZE)]
    return sum(e * e for e in errors) / BATCH, slope


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--fail-at", type=int)
    parser.add_argument("--values")
    parser.add_argument("--evaluation")
    options = parser.parse_args()

    source = random.Random(options.seed)
    truth, weights = [0.5, -1.25, 2.0], [0.0] * SIZE
    goodput, record = GoodputTracker(), TemporalPerformanceTracker(run={"name": "emit-loop"})
    kept: dict[str, list[dict[str, float]]] = {"step": [], "eval": []}
    goodput.record("job_start")
    record.start_run({"steps": options.steps, "seed": options.seed})
    with StepPrinter(planned_steps=options.steps, rank=options.rank) as printer:
        printer.header(seed=options.seed, parameter_count=SIZE, samples_per_step=BATCH, model_name="linear model")
        for step in range(options.steps):
            if step == options.fail_at:
                raise FloatingPointError(f"nothing good comes of step {step}")
            with goodput.span("data_loading"):
                rows = batch(source, truth)
            begun = time.perf_counter()
            with goodput.span("step"):
                loss, slope = gradient(weights, rows)
                rate = 0.05 * (1 + math.cos(math.pi * step / options.steps))
                weights = [w - rate * s for w, s in zip(weights, slope, strict=True)]
                time.sleep(0.002)
            took = time.perf_counter() - begun
            values = {
                "loss": loss,
                "grad_norm": math.hypot(*slope),
                "learning_rate": rate,
                "step_time_s": took,
                "samples_per_s": BATCH / took,
                "weights/first": weights[0],
            }
            printer.step_values(step, values)
            record.record_step(step, values)
            kept["step"].append({"step": step, **values})
            if step % 10 == 9:
                with goodput.span("eval"):
                    begun = time.perf_counter()
                    measured = {"val_loss": gradient(weights, batch(source, truth))[0]}
                    took = time.perf_counter() - begun
                printer.eval(step, measured, duration_s=took)
                kept["eval"].append({"step": step, **measured, "eval_duration_s": took})
            if step % 20 == 19:
                with goodput.span("checkpoint"):
                    begun = time.perf_counter()
                    time.sleep(0.003)
                printer.checkpoint(step, duration_s=time.perf_counter() - begun, path=f"out/step {step}.json")
    record.finish_run()
    print(f"goodput: {goodput.summary()}")
    if options.values:
        with open(options.values, "w", encoding="utf-8") as file:
            json.dump(kept, file)
    if options.evaluation:
        record.write(options.evaluation)


if __name__ == "__main__":
    main()
