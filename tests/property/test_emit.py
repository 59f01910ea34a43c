"""Any use of ``receipt_cli.emit``: instants counted once, documents that are valid, lines that read back exactly."""

import io
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.invariants.goodput import GOODPUT_RULES
from receipt_cli.documents.validate import has_errors, validate_document
from receipt_cli.emit import AblationReceipt, GoodputTracker, StepPrinter, TemporalPerformanceTracker
from receipt_cli.emit.document import check_document
from receipt_cli.emit.goodput_tracker import CATEGORIES
from receipt_cli.problems import split_pointer
from receipt_cli.receipts.production import Request, produce
from tests.tools.examples import costly

THREADS = 3
NANOSECONDS = 10**9
MOVES = st.lists(st.tuples(st.integers(0, THREADS - 1), st.sampled_from(["end", *CATEGORIES]), st.integers(0, 3)), max_size=60)


def expected(moves: list[tuple[int, str, int]]) -> tuple[dict[str, int], dict[str, int]]:
    """Return what counts and what is overlapped, instant by instant."""
    stacks: list[list[str]] = [[] for _ in range(THREADS)]
    counted, beside = dict.fromkeys(CATEGORIES, 0), dict.fromkeys(CATEGORIES, 0)
    for thread, what, ticks in moves:
        if what != "end":
            stacks[thread].append(what)
        elif stacks[thread]:
            stacks[thread].pop()
        at_work = sorted((stack[-1] for stack in stacks if stack), key=CATEGORIES.index)
        for place, category in enumerate(at_work):
            (beside if place else counted)[category] += ticks
    return counted, beside


@given(MOVES, st.integers(1, 8), st.sets(st.integers(0, 59)))
@settings(max_examples=60)
def test_every_instant_counts_once(moves: list[tuple[int, str, int]], kept: int, looks: set[int]) -> None:
    now = 0
    tracker = GoodputTracker(lambda: now)
    tracker.record("job_start")
    pools = [ThreadPoolExecutor(1) for _ in range(THREADS)]
    stacks: list[list[Any]] = [[] for _ in range(THREADS)]
    with patch("receipt_cli.emit.goodput_tracker._KEPT", kept):
        for number, (thread, what, ticks) in enumerate(moves):
            if what != "end":
                stacks[thread].append(tracker.span(what))
                pools[thread].submit(stacks[thread][-1].__enter__).result()
            elif stacks[thread]:
                pools[thread].submit(stacks[thread].pop().__exit__).result()
            now += ticks * NANOSECONDS
            if number in looks:
                tracker.summary()
        counted, beside = expected(moves)
        told = tracker.compute_badput_breakdown()
        assert {name: told[name] for name in ("step", "checkpoint", "eval", "compilation", "data_loading")} == {
            name: counted[name] for name in ("step", "checkpoint", "eval", "compilation", "data_loading")
        }
        assert tracker.overlapped() == beside
        assert told["wall_time"] == now / NANOSECONDS
        assert told["idle"] == told["wall_time"] - sum(v for n, v in told.items() if n not in ("idle", "wall_time")) >= 0
        block = tracker.to_receipt_goodput()
        if block is not None:
            rules = [rule for rule in GOODPUT_RULES if rule.parts == ("goodput",)]
            assert len(rules) == 3
            assert [broken for rule in rules for broken in rule.check({"goodput": block})] == []
    for pool in pools:
        pool.shutdown()


NUMBERS = st.floats() | st.integers(-(2**70), 2**70) | st.none()
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), min_size=1, max_size=20)
RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.dictionaries(NAMES, NUMBERS, max_size=4),
        st.none() | st.integers(0, 2**40),
        st.none() | st.integers(0, 2**40),
    ),
    max_size=12,
)


@given(RECORDS, st.integers(1, 4), st.booleans())
@settings(max_examples=costly(200))
def test_an_evaluation_is_valid(records: list[tuple[int, dict[str, Any], Any, Any]], waiting: int, finished: bool) -> None:
    with patch("receipt_cli.emit.temporal_performance._PENDING", waiting):
        tracker = TemporalPerformanceTracker()
        tracker.start_run()
        for step, metrics, commits, tokens in records:
            tracker.record_step(step, metrics, commits=commits, tokens=tokens)
        if finished:
            tracker.finish_run()
        document = tracker.to_json()
    assert [f for f in validate_document(document) if f.severity == "error"] == []
    assert check_document(document, "evaluation") == []
    assert document["series"]["steps"] == [step for step, *_ in records]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
CURVES = st.lists(st.floats() | st.none() | st.integers(-5, 5), max_size=4)
ABLATIONS = st.fixed_dictionaries(
    {
        "kind": st.just("attention_sink") | st.text(max_size=5),
        "variant": st.just("small") | st.text(max_size=5),
        "baseline": st.sampled_from([None, "base", "small", ""]),
        "changes": st.just({}) | st.dictionaries(st.text(max_size=3), st.booleans() | st.none() | st.floats(), max_size=2),
        "architecture": st.just("gpt") | st.text(max_size=3),
        "config": st.just({"n_layer": 2}) | st.dictionaries(st.sampled_from(["n_layer", "width"]), JSON, max_size=2),
        "layer_count": st.sampled_from([None, 1, 2, 0]),
        "from_step": st.sampled_from([None, 0, 2, 9]),
    }
)


@given(
    ABLATIONS,
    st.just([0, 1]) | st.lists(st.integers(-2, 5), max_size=4),
    st.dictionaries(st.sampled_from(["loss", "", "a\nb"]), CURVES, max_size=2),
    st.dictionaries(st.just("sink_mass"), st.dictionaries(st.integers(-1, 3), CURVES, max_size=3), max_size=1),
    st.booleans(),
)
@settings(max_examples=costly(400))
def test_an_ablation_is_judged_as_receipt_validate_judges(
    stated: dict[str, Any], steps: list[int], curves: dict[str, Any], layers: dict[str, Any], fitted: bool
) -> None:
    receipt = AblationReceipt(**stated)
    receipt.steps = steps
    receipt.curves, receipt.layer_curves = curves, layers
    if fitted:  # what is likely to be valid
        receipt.steps = sorted(set(steps))
        receipt.curves = {name: (curve + [None] * 9)[: len(receipt.steps)] for name, curve in curves.items() if name == "loss"}
        receipt.layer_curves = {"sink_mass": {0: [0.5] * len(receipt.steps), 1: [None] * len(receipt.steps)}}
    document = receipt.to_json()
    findings = [(f.pointer, f.rule) for f in validate_document(document) if f.severity == "error"]
    problems = receipt.validate()
    assert (problems == []) is (findings == []), (problems, findings)
    if not problems:
        again = AblationReceipt.from_json(document)
        assert again.layer_curves == receipt_without_nonfinite(receipt)
        assert again.validate() == []


def receipt_without_nonfinite(receipt: AblationReceipt) -> dict[str, dict[int, list[float | None]]]:
    return {
        name: {
            layer: [None if value is not None and not math.isfinite(value) else value for value in curve]
            for layer, curve in layers.items()
        }
        for name, layers in receipt.layer_curves.items()
    }


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, Any]:
    """Return a valid document in which one value is another, or is gone."""
    kind = draw(st.sampled_from(["evaluation", "ablation"]))
    if kind == "evaluation":
        tracker = TemporalPerformanceTracker()
        tracker.start_run({"a": [1, {"b": None}]})
        tracker.record_step(1, {"loss": 2.0}, tokens=3)
        document = tracker.to_json()
    else:
        receipt = AblationReceipt(kind="sink", variant="v", architecture="gpt", config={"n_layer": 2})
        receipt.record(1, {"loss": 2.0}, {"mass": [0.5, 0.25]})
        document = receipt.to_json()
    at: Any = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and draw(st.integers(0, 3)):
            at = at[key]
            continue
        change = draw(st.sampled_from(["put", "drop", "add"]))
        if change == "put" or isinstance(at, list):
            at[key] = draw(JSON)
        elif change == "drop":
            del at[key]
        else:
            at[draw(st.text(max_size=3))] = draw(JSON)
        return kind, document


@given(mutated())
@settings(max_examples=costly(400))
def test_a_document_is_judged_as_receipt_validate_judges(case: tuple[str, Any]) -> None:
    kind, document = case
    if document.get("schema_version") != f"{kind}/1.0":
        return  # another kind is not judged here
    assert (check_document(document, kind) == []) is not has_errors(validate_document(document))


METRICS = [metric.name for metric in load_registry().by_name.values() if not metric.name.startswith(("test_", "eval_"))]
PRINTED = st.dictionaries(
    st.sampled_from([name for name in METRICS if name != "core_metric_ratio"])
    | st.from_regex(r"[a-z_][a-zA-Z0-9_./-]{0,12}", fullmatch=True),
    st.floats() | st.integers(-(2**60), 2**60),
    min_size=1,
    max_size=6,
)
"""Metrics that a step line may hold, under the names of the registry, and others."""


@given(st.lists(PRINTED, min_size=1, max_size=8), st.booleans(), st.none() | st.integers(0, 9))
@settings(max_examples=costly(100))
def test_every_printed_value_reads_back(
    tmp_path_factory: Any, records: list[dict[str, float]], timestamps: bool, rank: int | None
) -> None:
    reserved = {"step", "planned_steps", "path", "status"}
    records = [{name: value for name, value in record.items() if name not in reserved} for record in records]
    log = io.StringIO()
    printer = StepPrinter(log, planned_steps=len(records), timestamps=timestamps, rank=rank, clock=lambda: 1_770_000_000.5)
    for step, record in enumerate(records):
        printer.step_values(step, record)
    printer.end(len(records))
    path: Path = tmp_path_factory.mktemp("emit") / "a.log"
    path.write_text(log.getvalue(), "utf-8")
    product = produce(Request(path=str(path), grammar="receipt-emit"))
    document = product.document
    problems = document["derivation"]["problems"]["first"]
    assert {problem["kind"] for problem in problems} <= {"loss_missing", "record_cut"}
    open_ones = {tuple(split_pointer(field)[-2:]) for problem in problems for field in problem["fields"]}
    assert document["summary"]["steps"]["record_count"] == len(records)
    known, others = document["summary"]["metrics"], document["summary"]["other_metrics"]
    names = list(dict.fromkeys(name for record in records for name in record))
    assert set(names) == set(known) | set(others)
    for name in names:
        told = [float(record[name]) for record in records if name in record]
        figures = known.get(name) or others[name]
        finite = [value for value in told if math.isfinite(value)]
        wanted = {"first": told[0] if math.isfinite(told[0]) else None, "last": told[-1] if math.isfinite(told[-1]) else None}
        if figures.get("window", "all") == "all":
            wanted |= {"min": min(finite, default=None), "max": max(finite, default=None)}
        wanted |= dict.fromkeys(key for key in wanted if (name, key) in open_ones)  # a whole number may be cut
        assert {key: figures[key] for key in wanted} == wanted
