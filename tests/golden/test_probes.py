"""Short logs made for one question each, where they are there: what a run is, and why it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce_all

PROBES = Path(__file__).resolve().parents[3] / "shared" / "probes"
Truth = dict[str, Any]
RUNS: dict[str, tuple[int, Truth]] = {  # launches, and what the receipt of the last one contains
    "two.log": (2, {"metrics.val_loss.first": 9.0, "metrics.val_loss.last": 8.0, "metrics.loss.first": 5.0}),
    "other-b.log": (2, {"steps.planned": 280, "steps.last": 276, "steps.record_count": 20, "steps.restart_count": 0}),
    "other-c.log": (1, {"steps.record_count": 1, "steps.superseded_count": 5, "metrics.loss.last": 1.6589}),
    "other-c2.log": (2, {"steps.record_count": 60, "metrics.loss.first": 3.16261}),
    "repro-W5.log": (1, {"steps.record_count": 1, "steps.superseded_count": 4, "metrics.loss.last": 1.5}),
    "other-d.log": (1, {"steps.record_count": 199}),
    "repro-W6.log": (1, {"steps.record_count": 3}),
    "other-f.log": (1, {"steps.planned": 3070, "steps.last": 3070, "steps.record_count": 310}),
    "repro-W2.log": (1, {"steps.planned": 400, "steps.last": 400, "steps.record_count": 40, "metrics.loss.last": 0.2}),
    "repro-W3.log": (1, {"steps.record_count": 11, "metrics.loss.first": 2.3}),
    "other-g.log": (1, {"steps.record_count": 18}),
    "repro-W1.log": (1, {"steps.record_count": 30, "phases": 2}),
    "sem-vs.log": (1, {"steps.record_count": 60}),
    "sem-eval_before.log": (1, {"steps.record_count": 60}),
    "end.log": (1, {"steps.record_count": 2}),
    "features-hole.log": (1, {"problem": "steps_missing"}),
    "features-nonl.log": (1, {"steps.record_count": 13, "metrics.loss.last": 2.769}),
    "other-j.log": (1, {"checks.has_steps": True}),
}
ENDINGS: dict[str, Truth] = {
    "caught.log": {"reason": None},
    "z.log": {"reason": "truncated"},
    "ray.log": {"message": "ray.exceptions.ActorUnavailableError: The actor d5 is unavailable"},
    "imp.log": {"reason": "import_error", "line_number": 4},
    "other-e.log": {"reason": "killed", "line_number": 204},
    "other-h.log": {"reason": "killed", "line_number": 13},
    "other-i.log": {"reason": None},
    "sem-dk1.log": {"reason": "traceback", "message": "ValueError: bad batch"},
    "sem-oom_in_help.log": {"reason": None},
    "sem-traceback_in_sample.log": {"reason": None},
}
pytestmark = pytest.mark.skipif(not PROBES.is_dir(), reason="the probes are not beside this checkout")


def receipts(name: str) -> list[dict[str, Any]]:
    return [product.document for product in produce_all(Request(path=str(PROBES / name), workers=1))]


def found(document: dict[str, Any], where: str) -> Any:
    if where == "phases":
        return len(document["phases"])
    value: Any = document if where.startswith("checks") else document["summary"]
    for name in where.split("."):
        value = value[name]
    return value


@pytest.mark.parametrize("name", sorted(RUNS))
def test_what_a_run_is(name: str) -> None:
    launches, truth = RUNS[name]
    documents = receipts(name)
    problem = truth.get("problem")
    assert len(documents) == launches
    assert problem is None or problem in [p["kind"] for p in documents[-1]["derivation"]["problems"]["first"]]
    wanted = {where: value for where, value in truth.items() if where != "problem"}
    assert {where: found(documents[-1], where) for where in wanted} == wanted


@pytest.mark.parametrize("name", sorted(ENDINGS))
def test_why_it_ended(name: str) -> None:
    failure = receipts(name)[-1]["failure"] or dict.fromkeys(ENDINGS[name])
    assert {key: failure[key] for key in ENDINGS[name]} == ENDINGS[name]
