"""Goodput of a running job: milestones, spans, overlaps, and what is told of them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from jsonschema import Draft202012Validator

from receipt_cli.analysis.goodput import model as classes
from receipt_cli.documents.schemas import find_entry, get_json_schema
from receipt_cli.emit import GoodputTracker
from receipt_cli.emit.goodput_tracker import CLASSES

SECOND = 10**9


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000 * SECOND

    def __call__(self) -> int:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tracker(clock: Clock) -> GoodputTracker:
    return GoodputTracker(clock)


def test_the_worked_example(tracker: GoodputTracker, clock: Clock) -> None:
    tracker.record("job_start")
    clock.passes(5)
    for seconds in (2, 1, 1):
        with tracker.span("data_loading"):
            clock.passes(0.25)
        with tracker.span("step"):
            clock.passes(seconds)
    with tracker.span("checkpoint"):
        clock.passes(1.5)
    clock.passes(0.123)
    figures = {"goodput": round(4 / 11.373, 4), "wall_time_s": 11.37, "step_time_s": 4.0, "step_count": 3, "avg_step_s": 1.3333}
    assert tracker.summary() == figures
    assert tracker.compute_goodput() == 4_000 / 11_373
    told = {"step": 4.0, "checkpoint": 1.5, "eval": 0.0, "compilation": 0.0, "data_loading": 0.75, "idle": 5.123}
    assert tracker.compute_badput_breakdown() == {**told, "wall_time": 11.373}


def test_without_steps_or_without_time_it_is_zero(tracker: GoodputTracker, clock: Clock) -> None:
    assert tracker.compute_goodput() == 0.0
    assert tracker.compute_badput_breakdown()["wall_time"] == 0.0
    assert tracker.to_receipt_goodput() is None
    tracker.record("job_start")
    assert tracker.compute_goodput() == 0.0
    clock.passes(3)
    assert tracker.compute_goodput() == 0.0
    assert tracker.summary() == {"goodput": 0.0, "wall_time_s": 3.0, "step_time_s": 0.0, "step_count": 0, "avg_step_s": 0.0}


def test_the_wall_begins_at_job_start_else_at_the_earliest_milestone(tracker: GoodputTracker, clock: Clock) -> None:
    tracker.record("tpu_init_start")
    clock.passes(2)
    tracker.record("tpu_init_end")
    clock.passes(2)
    assert tracker.compute_badput_breakdown()["wall_time"] == 4.0
    tracker.record("job_start")
    clock.passes(1)
    tracker.record("job_start")
    assert tracker.compute_badput_breakdown()["wall_time"] == 1.0
    tracker.record("job_end")
    clock.passes(7)
    assert tracker.compute_badput_breakdown()["wall_time"] == 1.0


def test_goodput_is_at_most_one(tracker: GoodputTracker, clock: Clock) -> None:
    with tracker.span("step"):
        clock.passes(5)
    tracker.record("job_start")
    clock.passes(1)
    assert tracker.compute_goodput() == 1.0
    assert tracker.compute_badput_breakdown()["idle"] == 0.0


def test_milestones_of_a_category_are_its_span(tracker: GoodputTracker, clock: Clock) -> None:
    tracker.record("step_start")
    clock.passes(3)
    tracker.record("step_end")
    tracker.record("eval_end")
    clock.passes(1)
    assert tracker.compute_badput_breakdown()["step"] == 3.0
    assert tracker.summary()["step_count"] == 1


@pytest.mark.parametrize(
    ("event", "category"), [("", ""), ("epoch", "job"), ("step_begin", "idle"), ("start", "Step"), ("job_start_end", "epoch")]
)
def test_other_milestones_and_categories_are_refused(tracker: GoodputTracker, event: str, category: str) -> None:
    with pytest.raises(ValueError, match="not a milestone"):
        tracker.record(event)
    with pytest.raises(ValueError, match="not a category"):
        tracker.span(category)


def test_a_span_that_is_open_counts_up_to_now(tracker: GoodputTracker, clock: Clock) -> None:
    with tracker.span("step"):
        clock.passes(1)
        assert tracker.compute_badput_breakdown()["step"] == 1.0
        clock.passes(1)
        with tracker.span("eval"):
            clock.passes(4)
            assert tracker.compute_badput_breakdown()["eval"] == 4.0
            assert tracker.compute_badput_breakdown()["step"] == 2.0
        clock.passes(1)
    assert tracker.compute_badput_breakdown()["step"] == 3.0
    assert tracker.compute_badput_breakdown()["eval"] == 4.0


def test_a_span_ends_with_an_exception_too(tracker: GoodputTracker, clock: Clock) -> None:
    with pytest.raises(KeyError), tracker.span("eval"):
        clock.passes(1)
        raise KeyError
    clock.passes(5)
    assert tracker.compute_badput_breakdown()["eval"] == 1.0


def test_a_checkpoint_beside_steps_is_overlapped_and_idle_is_never_negative(tracker: GoodputTracker, clock: Clock) -> None:
    tracker.record("job_start")
    with ThreadPoolExecutor(1) as other:
        saving = tracker.span("checkpoint")
        other.submit(saving.__enter__).result()
        with tracker.span("step"):
            clock.passes(8)
        clock.passes(2)
        other.submit(saving.__exit__).result()
    told = tracker.compute_badput_breakdown()
    assert (told["step"], told["checkpoint"], told["idle"], told["wall_time"]) == (8.0, 2.0, 0.0, 10.0)
    assert tracker.overlapped()["checkpoint"] == 8.0
    block = tracker.to_receipt_goodput()
    assert block is not None
    assert block["parts"]["checkpoint"] == {"how": "measured", "count": 1, "overlapped_s": 8.0}


def test_the_block_of_a_receipt(tracker: GoodputTracker, clock: Clock) -> None:
    tracker.record("job_start")
    with tracker.span("tpu_init"):
        clock.passes(1)
    with tracker.span("training_preparation"):
        clock.passes(2)
    with tracker.span("step"):
        clock.passes(5)
    clock.passes(2)
    block = tracker.to_receipt_goodput()
    assert block is not None
    assert tuple(CLASSES) == classes.CLASSES == tuple(block["badput_s"]) == tuple(block["parts"])
    schema = get_json_schema(find_entry("receipt/1.2"))
    assert Draft202012Validator({**schema["properties"]["goodput"], "$defs": schema["$defs"]}).is_valid(block)
    assert block["goodput_ratio"] == 0.5
    assert block["badput_s"] == {**dict.fromkeys(CLASSES), "initialization": 3.0, "idle": 2.0}
    known = {name: part["how"] for name, part in block["parts"].items() if part["how"] != "unknown"}
    assert known == {"initialization": "measured", "idle": "inferred"}


def test_many_threads_at_once() -> None:
    tracker = GoodputTracker()
    tracker.record("job_start")
    begin = threading.Barrier(4)

    def work(category: str) -> None:
        begin.wait()
        for _ in range(3000):
            with tracker.span(category), tracker.span("eval"):
                pass

    workers = [threading.Thread(target=work, args=(name,)) for name in ("step", "step", "checkpoint", "data_loading")]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        tracker.summary()
    for worker in workers:
        worker.join()
    told = tracker.compute_badput_breakdown()
    assert tracker.summary()["step_count"] == 6000
    assert sum(told[name] for name in told if name not in ("idle", "wall_time")) <= told["wall_time"]
    assert told["idle"] >= 0


def test_spans_may_end_out_of_order(tracker: GoodputTracker, clock: Clock) -> None:
    first, second = tracker.span("checkpoint"), tracker.span("eval")
    first.__enter__()
    clock.passes(1)
    second.__enter__()
    clock.passes(2)
    first.__exit__()
    clock.passes(4)
    second.__exit__()
    told = tracker.compute_badput_breakdown()
    assert (told["checkpoint"], told["eval"], told["idle"]) == (1.0, 6.0, 0.0)


def test_a_span_ends_in_the_thread_in_which_it_began(tracker: GoodputTracker, clock: Clock) -> None:
    span = tracker.span("eval")
    with ThreadPoolExecutor(1) as other:
        other.submit(span.__enter__).result()
        with pytest.raises(RuntimeError, match="in this thread"):
            span.__exit__()
        with tracker.span("step"), pytest.raises(RuntimeError, match="in this thread"):
            span.__exit__()
        clock.passes(1)
        other.submit(span.__exit__).result()
    assert tracker.compute_badput_breakdown()["eval"] == 1.0
