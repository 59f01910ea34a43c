"""What contradicts itself is no headline: a rate against steps and time, a clock that skips an hour, an attempt overtaken."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.analysis.checks import contradicted_metrics
from receipt_cli.analysis.recompute import MEAN, of_session
from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.comparison.contrasts import Run, contrast
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.importers.importing import import_document
from receipt_cli.numeric.statistics import Statistic
from tests.tools.logs import receipt_of


def mean(value: float) -> Statistic:
    return Statistic("all", None, MEAN, 1, 0, value, value, value, value, value, value)


@given(st.integers(1, 50), st.integers(2, 400), st.integers(0, 400), st.floats(0.5, 1e6), st.integers(0, 1), st.floats(1.5, 50))
def test_a_mean_over_the_run_is_of_the_steps_of_the_log(
    stride: int, records: int, skipped: int, seconds: float, rest: int, times: float
) -> None:
    """It may be of steps behind the last record, but not of more than a stride of them."""
    first, last = stride * (skipped + 1), stride * (skipped + records)
    done = last - stride * skipped + rest * (stride - 1)
    metrics = {"steps_per_s": mean(done / seconds), "samples_per_s": mean(32 * done / seconds), "loss": mean(2.0)}
    assert of_session(first, last, records, metrics, seconds) == []
    counted = times * (done + stride) + 2
    metrics = {"steps_per_s": mean(counted / seconds), "samples_per_s": mean(32 * counted / seconds), "loss": mean(2.0)}
    found = {one.metric: one for one in of_session(first, last, records, metrics, seconds)}
    assert set(found) == {"steps_per_s", "samples_per_s"}
    assert not any(one.consistent for one in found.values())
    assert found["steps_per_s"].derived == pytest.approx(found["samples_per_s"].derived / 32)


def hugging_face(first: int, last: int, planned: int, seconds: float) -> str:
    lines = [f"{{'loss': {4 - s / planned:.4f}, 'learning_rate': 5e-05, 'epoch': {s / planned:.2f}}}\n{s}/{planned} [00:10<00:10]"
             for s in range(first, last + 1, 10)]  # fmt: skip
    rates = f"'train_samples_per_second': {planned * 16 / seconds:.3f}, 'train_steps_per_second': {planned / seconds:.3f}"
    return "\n".join([*lines, f"{{'train_runtime': {seconds:.4f}, {rates}, 'train_loss': 2.5, 'epoch': 1.0}}", ""])


@pytest.mark.parametrize(("first", "last", "named"), [(10, 1000, False), (510, 1000, True), (10, 400, True)])
def test_a_resume_and_an_early_stop_are_named_and_not_compared(first: int, last: int, named: bool) -> None:
    bars = [f"{100 * s // 1000:3d}%|# | {s}/1000 [00:10<00:10,  2.00it/s]" for s in range(first, last + 1, 10)]
    rows = hugging_face(first, last, 1000, 250.0).split("\n")
    losses = [row for row in rows if row.startswith("{'loss'")]
    text = "\n".join(line for pair in zip(losses, bars, strict=True) for line in pair) + "\n" + "\n".join(rows[-2:])
    document = receipt_of(text)
    kinds = [problem["kind"] for problem in document["derivation"]["problems"]["first"]]
    assert kinds.count("rate_contradicted") == 2 * named
    wanted = {"steps_per_s", "samples_per_s"} if named else set[str]()
    assert contradicted_metrics(document["summary"]) == wanted
    run = Run("a", document)
    compared = {one.name: one.outcome for one in contrast([run], [run], DEFAULT, load_registry()).metrics}
    assert {name for name, outcome in compared.items() if outcome == "incomparable"} == wanted


SPRING = st.sampled_from(
    [(2026, 3, 29, 2), (2026, 3, 29, 1), (2025, 3, 9, 2), (2026, 10, 4, 2), (2026, 9, 27, 2), (2024, 3, 31, 0)]
)
"""Sundays on which some country puts its clocks forward, and the hour that is left out."""


def stamped(begin: datetime, seconds: float, records: int, skip_at: datetime | None) -> str:
    lines = list[str]()
    for number in range(records):
        at = begin + timedelta(seconds=number * seconds)
        at += timedelta(hours=1) if skip_at is not None and at >= skip_at else timedelta()
        lines.append(
            f"{at:%Y-%m-%d %H:%M:%S} iter {number * 10}: loss {4 - number / 100:.4f}, time {seconds * 100:.2f}ms, mfu 30.00%"
        )
    return "\n".join([*lines, ""])


@given(SPRING, st.integers(1, 300), st.integers(3, 60), st.integers(2, 60), st.booleans())
def test_a_clock_that_skips_an_hour_gives_no_wall_time(
    day: tuple[int, int, int, int], seconds: int, before: int, after: int, weekday: bool
) -> None:
    change = datetime(*day) + timedelta(days=2 * weekday)
    begin = change - timedelta(seconds=seconds * before - seconds // 2)
    skipped, plain = (receipt_of(stamped(begin, seconds, before + after, at)) for at in (change, None))
    named = [[p["kind"] for p in d["derivation"]["problems"]["first"]].count("clock_skip") for d in (skipped, plain)]
    assert named == [int(not weekday), 0]
    assert (skipped["goodput"] is None, skipped["summary"]["realised"] is None) == (not weekday, not weekday)
    assert plain["goodput"]["wall_time_s"] == seconds * (before + after - 1)


def written(records: list[dict[str, Any]], form: str, folder: Path) -> Path:
    """Write records as a table or as JSON lines."""
    path = folder / f"metrics.{form}"
    names = list(dict.fromkeys(name for record in records for name in record))
    if form == "csv":
        rows = [",".join(names), *(",".join(str(record.get(name, "")) for name in names) for record in records)]
        path.write_text("\n".join(rows) + "\n")
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def attempt(first: int, last: int, every: int, value: float) -> Iterator[dict[str, Any]]:
    for step in range(first, last + 1):
        yield {"step": step, "loss": round(value + 1 / step, 6)}
        if step % every == 0:
            yield {"step": step, "val_loss": round(10 * value + 1 / step, 6)}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@given(st.integers(4, 30), st.data())
def test_evaluations_of_an_attempt_that_was_superseded_are_dropped(
    tmp_path_factory: pytest.TempPathFactory, form: str, last: int, data: st.DataObject
) -> None:
    again = data.draw(st.integers(2, last))
    end = data.draw(st.integers(again, last + 10))
    every = data.draw(st.integers(1, 5))
    records = [*attempt(1, last, every, 1.0), *attempt(again, end, every, 2.0)]
    summary = import_document(str(written(records, form, tmp_path_factory.mktemp("import"))))["summary"]
    stands = [*attempt(1, again - 1, every, 1.0), *attempt(again, end, every, 2.0)]
    for name in ("loss", "val_loss"):
        values = [record[name] for record in stands if name in record]
        found = summary["metrics"].get(name)
        assert (found is None) == (not values)
        if found is not None:
            kept = [found[key] for key in ("record_count", "first", "last", "min", "max")]
            assert kept == [len(values), values[0], values[-1], min(values), max(values)]


@given(
    st.integers(1, 9),
    st.integers(0, 12),
    st.sampled_from(["was not in top 1", "reached 0.5, saving model to '/run/a.ckpt' as top 1"]),
)
def test_a_notice_of_a_much_later_epoch_leaves_the_last_step_open(bars: int, later: int, what: str) -> None:
    notice = "Epoch {}, global step {}: 'val/acc' {}"
    lines = [
        line
        for n in range(bars + later)
        for line in (
            f"Epoch {n}: 100%|██████████| 20/20 [00:10<00:00,  2.00it/s, v_num=3, train_loss={3 - n / 50:.3f}]",
            notice.format(n, 20 * n + 20, what),
        )
        if n < bars or "%" not in line
    ]
    document = receipt_of(lines)
    summary, problems = document["summary"], document["derivation"]["problems"]["first"]
    known = later <= 1
    assert summary["steps"]["last"] == (20 * bars if known else None)
    named = [field for problem in problems if problem["kind"] == "training_unread" for field in problem["fields"]]
    assert ("/phases/0/summary/steps/last" in named) == (not known)
    assert (summary["checkpoints"] is not None) == (known and "saving" in what)


@given(st.integers(1, 6), st.integers(1, 9), st.sampled_from([9, 12]))
def test_a_torn_redraw_of_a_much_later_epoch_leaves_the_last_step_open(read: int, torn: int, total: int) -> None:
    epochs = [
        f"Epoch {n}/9\n90/90 [==============================] - 9s 11ms/step - loss: {3 - n / 50:.4f}" for n in range(1, read + 1)
    ]
    bar = f"Epoch {torn}/{total}====>......] - ETA: 4s - loss: 1.9000.4521 - val_loss: 0.7500"
    known = torn <= read + 1 or total != 9
    assert receipt_of([*epochs, bar])["summary"]["steps"]["last"] == (read if known else None)
