"""Logs in the formats of many own scripts: each is read without a grammar, to the number."""

import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.logs import derived_of
from tests.tools.slow import one_in

TABLE: dict[str, dict[str, Any]] = {
    row["name"]: row for row in yaml.safe_load((Path(__file__).parent / "own_scripts.yaml").read_text("utf-8"))
}
LOSS = re.compile(r"\{loss(?::([^}]*))?\}")


def numbers(rng: random.Random, epoch: int, step: int, epochs: int, steps: int) -> dict[str, Any]:
    """Return what the table's formats may print at a step: counters, a falling loss, and numbers beside it."""
    done, total = epoch * steps + step, epochs * steps
    loss = 2.5 * math.exp(-2.5 * done / total) + 0.3 + 0.03 * rng.random()
    val = loss + 0.1 + 0.02 * rng.random()
    return {
        "e": epoch, "e1": epoch + 1, "E": epochs, "i": step, "i1": step + 1, "S": steps, "g": done, "g1": done + 1, "G": total,
        "n": 64 * step, "N": 64 * steps, "i10": 10 * (step + 1), "i100": 100 * (step + 1), "g10": 10 * (done + 1),
        "pct": 100 * step / steps, "pct1": 100 * (step + 1) / steps, "hms": f"0:{done // 60:02d}:{done % 60:02d}",
        "loss": loss, "val": val, "a": 0.4 * loss, "b": 0.6 * loss, "acc": 1 - loss / 4, "accp": 100 - 25 * loss,
        "vacc": 1 - val / 4, "vaccp": 100 - 25 * val, "lr": 1e-3 * (1 - done / total / 2), "t": 12.3 + rng.random(),
        "ms": 123.4 + 9 * rng.random(), "ga": 0.7 + 0.2 * rng.random(), "gb": 1.1 + 0.3 * rng.random(), "r": rng.random(),
        "w": 20 + 3 * done + 5 * rng.random(), "eps": 1 - 0.9 * done / total, "gn": 1.2 + rng.random(), "mem": 10 + rng.random(),
    }  # fmt: skip


def printed(row: dict[str, Any]) -> tuple[str, list[float]]:
    """Return the log of a row of the table, and its training losses as printed: those of the last run."""
    rng = random.Random(row["name"])
    inside = LOSS.search(row.get("step", ""))
    lines, losses = [row["first"]] if "first" in row else [], []
    for epoch in range(row["epochs"]):
        for key in ("head", "step", "tail"):
            found = LOSS.search(row.get(key, "")) if key == "step" or not inside else None
            for step in range(row["steps"]) if key == "step" else [0 if key == "head" else row["steps"] - 1]:
                values = numbers(rng, epoch, step, row["epochs"], row["steps"])
                lines += [row[key].format(**values)] if key in row else []
                losses += [float(format(values["loss"], found[1] or ""))] if found else []
    last = losses[-row["steps"] :] if "runs" in row else losses
    return "\n".join([*lines, row.get("end", "")]) + "\n", last


@pytest.mark.parametrize("name", one_in(2, TABLE))
def test_a_log_of_an_own_script_is_read(name: str) -> None:
    row = TABLE[name]
    text, losses = printed(row)
    derivation = derived_of(text)
    assert derivation.primary is not None, text[:2000]
    summary = derivation.summaries[derivation.primary]
    loss = summary.metrics.get("loss")
    read = (summary.record_count, *((loss.first, loss.last) if loss else ()))
    assert read == (row.get("records", len(losses)), *losses[:1], *losses[-1:]), text[:2000]
