"""Short logs made for one question each, where they are there: what a run is, why it ended, what its figures are."""

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
VALUES: dict[str, Truth] = {  # JSON pointers of the receipt; None where there is nothing
    "gap.log": {"goodput.goodput_ratio": 468 / 4068, "goodput.stalls.count": 1, "goodput.badput_s.idle": 3600.0},
    "gap2.log": {"goodput.goodput_ratio": 708 / 4308, "goodput.badput_s.idle": 3600.0},
    "gap3.log": {"goodput.stalls.count": 1, "goodput.range.high": 295 / 3895},
    "mfubig.log": {"summary.metrics.tokens_per_s.record_count": 190, "summary.flags.0.kind": "mfu_above_one"},
    "f4big.log": {"summary.metrics.tokens_per_s.record_count": 36, "summary.flags.0.kind": "mfu_above_one"},
    "mega-gpu.log": {"summary.derived.mfu_ratio.record_count": 190},
    "mega-slow.log": {"summary.training_time_s": 25.2},
    "fg-lit.log": {"summary.metrics.mfu_ratio.last": 0.386, "summary.metrics.tokens_per_s.last": 142957.0},
    "fg-toks.log": {"summary.metrics.tokens_per_s.last": 142857.0, "summary.other_metrics.tokens.last": 1638400.0},
    "f4.log": {"goodput.goodput_ratio": 480 / 540, "summary.realised.duration_s": 528.0},
    "fo-final.log": {"summary.metrics.total_flops.last": 3.82e16, "summary.training_time_s": 120.5},
    "g2.log": {"summary.other_metrics.foo.last": 80.0, "summary.other_metrics.bar.last": 0.045},
    "meg-pct.log": {"summary.other_metrics.newthing.last": 0.385, "derivation.cells.dropped.count": 0},
    "pack.log": {"summary.other_metrics.pq.last": 11.0},
    "t17.log": {"summary.bottleneck.verdict": "inference"},
    "tb-wait-bal.log": {"summary.bottleneck.verdict": "inference"},
    "ts-perf.jsonl": {"summary.metrics.data_time_s.last": 0.9, "summary.metrics.infer_capacity_samples_per_s.last": 25.0},
    "ts-perfdict.log": {"summary.metrics.compute_time_s.last": 0.25, "summary.metrics.train_capacity_samples_per_s.last": 13.333},
    "end.log": {"summary.metrics.loss.last": 0.4, "derivation.cells.dropped.count": 0},
    "olmo.log": {"summary.metrics.loss.record_count": 37, "summary.metrics.peak_memory_allocated_bytes.record_count": 34},
    "sem-dk3.log": {"summary.metrics.loss.record_count": 60, "summary.metrics.loss.last": 2.41},
    "features-meg-r.log": {"summary.metrics.loss": None, "derivation.problems.first.0.kind": "loss_missing"},
    "swift.log": {"summary.steps.planned": 2353, "summary.metrics.step_time_s.last": 3.916},
    "other-a.log": {"summary.metrics.loss": None, "summary.steps.record_count": 12},
    "other-a2.log": {"summary.metrics.loss": None, "summary.metrics.step_time_s.last": 10.39},
    "sem-cl.log": {"summary.metrics.tokens_per_s": None},
    "sem-nt.log": {"summary.metrics.tokens_total": None},
    "sem-mem_bare.log": {"header.software.trainer": None},
    "fg-seed.log": {"summary.metrics.mfu_ratio.last": 0.385, "derivation.cells.dropped.count": 0},
    "features-meg.log": {"summary.metrics.loss.record_count": 50, "derivation.problems.count": 0},
    "rep-a.log": {"header.seeds.seed": 42, "header.sources./seeds/seed": "log:1"},
    "rep-c.log": {"header.seeds.seed": 43, "header.sources./seeds/seed": "log:1"},
    "ranks.log": {"summary.ranks.3.peak_memory_bytes": 4300 * 2**20},
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


@pytest.mark.parametrize("name", sorted(VALUES))
def test_what_its_figures_are(name: str) -> None:
    document = receipts(name)[-1]
    for where, truth in VALUES[name].items():
        value: Any = document
        for part in where.split("."):
            value = None if value is None else value[int(part)] if isinstance(value, list) else value.get(part)
        assert value == (truth if not isinstance(truth, float) else pytest.approx(truth, rel=1e-9)), (where, value)


def test_a_closing_line_is_no_record() -> None:
    found = receipts("end.log")[-1]["summary"]["other_metrics"]["rewards/acc"]
    assert (found["record_count"], found["last"]) == (2, 0.9)
