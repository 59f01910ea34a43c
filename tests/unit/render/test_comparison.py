"""The first screen of a comparison: comparable or not, what differs, what changed."""

from typing import Any

import pytest

from receipt_cli.render.comparison.terminal import render_comparison
from receipt_cli.render.style import Style


def compared(name: str, a: float | None, b: float | None, outcome: str = "different", **known: Any) -> dict[str, Any]:
    both = a is not None and b is not None
    return {
        "name": name, "a": a, "b": b, "figure": "last" if name == "loss" else "median", "better": "none", "outcome": outcome,
        "low": None, "high": None, "basis": "none", "reason": None, "records": [10, 10],
        "delta": b - a if a is not None and b is not None else None, "ratio": b / a if both and a and b else None, **known,
    }  # fmt: skip


def document(*metrics: dict[str, Any], verdict: str = "comparable", fields: Any = (), reasons: Any = ()) -> dict[str, Any]:
    ends = {"a": {"outcome": "finished", "step": 10, "planned": 10}, "b": {"outcome": "cut off", "step": 7, "planned": None}}
    contrast = {
        "runs": ["b.log"], "verdict": verdict, "reasons": list(reasons), "metrics": list(metrics), "stalls": None, "curves": [],
        "fields": [{"pointer": at, "severity": severity, "a": a, "b": b} for at, severity, a, b in fields], "notes": [],
        "outcome": {"checks": [], "failure": {"a": None, "b": None}, "ends": ends},
    }  # fmt: skip
    return {"baseline": {"runs": ["a.log"]}, "contrasts": [contrast], "targets": []}


BATCH = ("/header/flags/global_batch_size", "block", 1344, 1280)


@pytest.mark.parametrize(
    ("known", "line"),
    [
        ({"verdict": "not_comparable", "fields": [BATCH]}, "≠ not comparable  global batch size 1344 → 1280"),
        ({"verdict": "not_comparable", "fields": [("/header/git/branch", "warn", 1, 2), BATCH]},
         "≠ not comparable  global batch size 1344 → 1280"),
        ({"verdict": "not_comparable", "fields": [BATCH] * 6},
         "≠ not comparable  " + "global batch size 1344 → 1280, " * 4 + "2 more"),
        ({"verdict": "caveats", "reasons": ["/header/flags/precision is unknown on both sides", "read by other bytes"]},
         "! comparable, with caveats  unknown on both sides: precision, read by other bytes"),
        ({}, "✓ comparable"),
    ],
)  # fmt: skip
def test_the_first_line_says_whether_and_why(known: dict[str, Any], line: str) -> None:
    assert render_comparison(document(**known), Style(width=220)).splitlines()[0] == line


@pytest.mark.parametrize(
    ("metric", "verdict", "line"),
    [
        (compared("loss", 6.448, 5.906), "not_comparable", "loss 6.448 at step 10 5.906 at step 7 −0.5420, not comparable"),
        (compared("loss", 6.448, 6.448, "equal"), "comparable", "loss 6.448 at step 10 6.448 at step 7 same"),
        (compared("tokens_per_s_per_device", 11800.0, 10400.0, reason="no interval: fewer than 20 records"), "comparable",
         "speed 11.8 k tok/s/device 10.4 k tok/s/device −11.9 %, no interval: 10 steps each"),
        (compared("step_time_s", 1.0, 1.5, "worse", low=0.4, high=0.6), "comparable",
         "speed 1.00 s 1.50 s +50.0 % (+40.0 … +60.0 %)"),
        (compared("step_time_s", 1.0, 1.5, "no_evidence", low=-0.9, high=3.0), "comparable",
         "speed 1.00 s 1.50 s +50.0 %, too noisy to tell"),
        (compared("step_time_s", 1.0, 1.5, "no_evidence"), "comparable", "speed 1.00 s 1.50 s +50.0 %, too few records"),
        (compared("mfu_ratio", 0.443, 0.388, "incomparable", reason="definition differs: a, b"), "comparable",
         "MFU 44.3 % 38.8 % not compared: defined differently"),
        (compared("step_time_s", 1.0, None, "lost"), "comparable", "lost: step time"),
        (compared("grad_norm", 1.0, 2.0, "worse"), "comparable", "also worse: grad norm"),
    ],
)  # fmt: skip
def test_a_change_is_one_row(metric: dict[str, Any], verdict: str, line: str) -> None:
    shown = render_comparison(document(metric, verdict=verdict), Style(width=120)).splitlines()
    assert line in [" ".join(row.split()) for row in shown]
    assert "outcome finished 10/10 cut off 7 differs" in [" ".join(row.split()) for row in shown]
    narrow = render_comparison(document(metric, verdict=verdict), Style(width=60), full=True).splitlines()
    assert max(map(len, narrow)) <= 60
