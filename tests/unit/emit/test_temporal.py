"""What ``TemporalPerformanceTracker`` records, keeps within bounds and writes."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from receipt_cli.documents.validate import has_errors, validate_bytes, validate_document
from receipt_cli.emit import NotConforming, TemporalPerformanceTracker
from receipt_cli.emit.temporal_performance import peak_memory

SECOND = 10**9


class Clock:
    """Whole seconds, one more with every look."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += SECOND
        return self.now


def started(**options: object) -> TemporalPerformanceTracker:
    tracker = TemporalPerformanceTracker(clock_ns=Clock(), wall=lambda: 1_770_000_000.25, **options)  # type: ignore[arg-type]
    tracker.start_run({"model": "small"})
    return tracker


def test_a_whole_run() -> None:
    tracker = started(run={"name": "edits", "lane": "h100"})
    tracker.record_step(1, {"val_loss": 2.5, "val_accuracy": 0.5}, commits=3, tokens=400)
    tracker.record_step(2, {"val_loss": math.nan, "val_accuracy": None}, tokens=600)
    tracker.record_step(5, {"val_loss": 1.5, "late": 7})
    tracker.finish_run()
    document = tracker.to_json()
    assert validate_document(document) == []
    assert document["complete"] is True
    assert document["run"]["started_at"] == document["run"]["finished_at"] == "2026-02-02T02:40:00.250Z"
    assert document["config"] == {"model": "small"}
    series, summary = document["series"], document["summary"]
    assert series["steps"] == [1, 2, 5]
    assert series["elapsed_s"] == [1.0, 2.0, 3.0]
    assert series["commit_counts"] == [3, None, None]
    assert series["token_counts"] == [400, 600, None]
    assert series["metrics"] == {"val_loss": [2.5, None, 1.5], "val_accuracy": [0.5, None, None], "late": [None, None, 7.0]}
    assert (summary["duration_s"], summary["commit_count"], summary["token_count"]) == (4.0, 3, 1000)
    assert (summary["commits_per_s"], summary["tokens_per_s"]) == (0.75, 250.0)
    assert summary["metrics"]["val_loss"] == {
        "record_count": 3, "nonfinite_count": 1, "first": 2.5, "last": 1.5, "min": 1.5, "max": 2.5, "mean": 2.0, "median": 2.0,
    }  # fmt: skip
    assert summary["metrics"]["val_accuracy"]["record_count"] == 1
    assert document["memory"]["source"] == "vm_hwm"


def test_it_has_its_order() -> None:
    tracker = TemporalPerformanceTracker()
    for early in (lambda: tracker.record_step(1, {}), tracker.finish_run, tracker.to_json):
        with pytest.raises(RuntimeError):
            early()
    tracker.start_run()
    tracker.record_step(1, {"loss": 1})
    tracker.finish_run()
    tracker.finish_run()
    with pytest.raises(RuntimeError, match="between"):
        tracker.record_step(2, {"loss": 1})
    tracker.start_run()
    assert tracker.to_json()["series"]["steps"] == []


@pytest.mark.parametrize(
    ("step", "metrics", "counts", "error"),
    [
        pytest.param(1.5, {}, {}, TypeError, id="a step is whole"),
        pytest.param(2**63, {}, {}, ValueError, id="a step has 64 bits"),
        pytest.param(1, {"loss": []}, {}, TypeError, id="a value is a number"),
        pytest.param(1, {"loss": "low"}, {}, ValueError, id="a text is none"),
        pytest.param(1, {"": 1}, {}, ValueError, id="a name is not empty"),
        pytest.param(1, {"a\nb": 1}, {}, ValueError, id="a name has no control character"),
        pytest.param(1, {"a\ud800": 1}, {}, ValueError, id="nor half a surrogate pair"),
        pytest.param(1, {}, {"tokens": -1}, ValueError, id="tokens are counted"),
        pytest.param(1, {}, {"commits": 0.5}, TypeError, id="commits are whole"),
    ],
)
def test_what_is_no_record_is_refused_and_leaves_nothing(
    step: int, metrics: dict[str, float], counts: dict[str, int], error: type[Exception]
) -> None:
    tracker = started()
    with pytest.raises(error):
        tracker.record_step(step, metrics, **counts)
    tracker.record_step(1, {"loss": 1.0})
    assert tracker.to_json()["series"]["metrics"] == {"loss": [1.0]}
    assert validate_document(tracker.to_json()) == []


def test_a_number_beyond_float64_is_infinite() -> None:
    tracker = started()
    tracker.record_step(1, {"huge": 10**400, "low": -(10**400), "fine": 2})
    figures = tracker.to_json()["summary"]["metrics"]
    assert [figures[name]["nonfinite_count"] for name in ("huge", "low", "fine")] == [1, 1, 0]


@pytest.mark.parametrize(
    ("options", "config", "error"),
    [
        *(
            (options, {}, NotConforming)
            for options in ({"header": {"git": {}}}, {"run": {"name": ""}}, {"run": {"exit_code": "0"}})
        ),
        ({"run": {"colour": "red"}}, {}, ValueError),  # a run has no other fields
        *(({}, {"a": value}, ValueError) for value in (math.nan, object(), {1, 2}, "\ud800")),  # a configuration is JSON
    ],
)
def test_what_was_stated_wrongly_shows_at_the_start(
    options: dict[str, object], config: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        TemporalPerformanceTracker(**options).start_run(config)  # type: ignore[arg-type]


def test_after_the_bound_nothing_is_kept_and_the_document_says_so() -> None:
    tracker = started(max_steps=300)
    for step in range(1000):
        tracker.record_step(step, {"loss": float(step)}, tokens=2)
        if step == 150:
            tracker.to_json()
    tracker.finish_run()
    document = tracker.to_json()
    assert tracker.dropped_step_count == 700
    assert document["series"]["steps"] == list(range(300))
    assert document["complete"] is False
    assert document["summary"]["duration_s"] == document["series"]["elapsed_s"][-1]
    assert document["summary"]["tokens_per_s"] == 600 / document["summary"]["duration_s"]
    assert validate_document(document) == []


def test_several_threads_lose_nothing() -> None:
    tracker = TemporalPerformanceTracker()
    tracker.start_run()

    def work() -> None:
        for step in range(2000):
            tracker.record_step(step, {"loss": 1.0}, tokens=1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: work(), range(4)))
    document = tracker.to_json()
    assert document["summary"]["token_count"] == 8000
    assert document["series"]["elapsed_s"] == sorted(document["series"]["elapsed_s"])
    assert validate_document(document) == []


def test_the_document_is_written_whole(tmp_path: Path) -> None:
    tracker = started()
    tracker.record_step(1, {"loss": 0.1 + 0.2, "größe": 1e-300})
    artefact = tmp_path / "profile.json"
    artefact.write_bytes(b"{}")
    tracker.attach("torch_profile", str(artefact))
    tracker.attach("trace", "s3://bucket/trace.gz")
    tracker.finish_run()
    path = tmp_path / "evaluation.json"
    tracker.write(path)
    data = path.read_bytes()
    assert not has_errors(validate_bytes(data, "evaluation.json"))
    document = json.loads(data)
    assert document["series"]["metrics"] == {"loss": [0.1 + 0.2], "größe": [1e-300]}
    assert [a["size_bytes"] for a in document["attachments"]] == [2, None]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_attachment_has_a_kind_and_an_address() -> None:
    with pytest.raises(ValueError, match="kind"):
        started().attach("", "x")


def test_peak_memory_of_linux_and_of_others(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmPeak:\t  9000 kB\nVmHWM:\t  1234 kB\n")
    assert peak_memory(str(status)) == {"peak_memory_bytes": 1234 * 1024, "source": "vm_hwm"}
    status.write_text("Name:\tpython\n")
    other = peak_memory(str(status))
    assert other["source"] == "getrusage"
    assert other == peak_memory(str(tmp_path / "nowhere"))
    assert int(other["peak_memory_bytes"]) > 1 << 20
