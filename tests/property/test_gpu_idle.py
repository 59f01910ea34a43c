"""Whatever samples say of GPUs: the parts of the time add up, no second is lost twice, nothing is claimed without samples."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from benchmarks.timeless import Piece
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import validate_document
from receipt_cli.io.samples_file import QUIET, head_line, sample_line
from receipt_cli.receipts.production import Request, produce
from tests.cli.test_times import WALL, play
from tests.tools.examples import costly

pytestmark = pytest.mark.usefixtures("one_engine")

WORK = st.one_of(
    *[st.tuples(st.just("step"), st.sampled_from([0.2, 0.25, 0.3]))] * 4,
    st.tuples(st.just("step"), st.floats(0.15, 4.0)),
    st.tuples(st.just("save"), st.floats(0.0, 3.0)),
    st.tuples(st.just("eval"), st.floats(0.0, 3.0)),
    st.tuples(st.just("back"), st.integers(1, 6)),
)
USE = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.0, QUIET, 1.0]))
USES = st.one_of(st.lists(USE, min_size=2, max_size=9), st.lists(USE | st.none(), min_size=1, max_size=9))


def script(work: list[tuple[str, float]]) -> Iterator[Piece]:
    """Pieces of a log without times: steps, which may go back, evaluations and checkpoints."""
    step = 0
    yield Piece("initialization", 0.5, "model has 124000000 parameters\n")
    for kind, value in [*work, *[("step", 0.25)] * 4]:
        if kind == "back":
            step = max(0, step - int(value))
        elif kind == "step":
            step += 1
            yield Piece("step", value, f"step {step} loss {0.5 + 3 / (1 + 0.1 * step):.4f}\n")
        else:
            text = f"Saving checkpoint to out/step_{step}.pt\n" if kind == "save" else f"step {step} val_loss 2.3456\n"
            yield Piece(kind, value, text)


def samples(uses: list[float | None], period_ms: int, until_s: float, devices: int) -> str:
    """A file of samples from the start of the command on, which shows ``uses`` again and again."""
    lines = [head_line(round(1000 * WALL))]
    for number in range(round(1000 * until_s) // period_ms + 2):
        use = uses[number % len(uses)]
        lines.append(sample_line(number * period_ms, None, [[use, 1 << 30, 200.0]] * devices))
    return "".join(lines)


def derived(folder: Path) -> dict[str, Any]:
    document = produce(Request(path=str(folder / "job.log"))).document
    assert [found for found in validate_document(document) if found.severity == "error"] == []
    return document


@settings(max_examples=costly(60), deadline=None)
@given(st.lists(WORK, min_size=16, max_size=40), USES, st.sampled_from([20, 50, 130, 300]), st.integers(1, 2))
def test_idle_time_of_gpus_is_time_of_steps(
    work: list[tuple[str, float]], uses: list[float | None], period_ms: int, devices: int
) -> None:
    """A valid receipt adds up; the class takes nothing but time of steps, and no more than the samples show."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wall = sum(play(folder, script(work)).values())
        before = derived(folder)
        shown = samples(uses, period_ms, wall, devices)
        (folder / "job.log.gpu").write_text(shown)
        after = derived(folder)
    event("claimed" if "samples" in after["derivation"] else "no goodput" if before["goodput"] is None else "not claimed")
    if "samples" not in after["derivation"]:
        assert canonical_bytes(after) == canonical_bytes(before)
        return
    old, new = before["goodput"], after["goodput"]
    idle = new["badput_s"].pop("gpu_idle")
    new["parts"].pop("gpu_idle")
    assert old["step_time_s"] == pytest.approx(new["step_time_s"] + idle, abs=1e-6)
    assert new["badput_s"] == pytest.approx(old["badput_s"], abs=1e-6)
    assert (new["parts"], new["stalls"], new["wall_time_s"]) == (old["parts"], old["stalls"], old["wall_time_s"])
    quiet = sum(use is not None and use < QUIET for use in uses)
    whole_rounds = round(1000 * wall) // (period_ms * len(uses)) + 2
    assert 0 <= idle <= whole_rounds * quiet * period_ms / 1000
    assert after["summary"] == before["summary"]


@pytest.mark.parametrize(
    ("uses", "period_ms", "until_s", "share"),
    [
        pytest.param([0.0, 0.9, 0.9, 0.9], 100, 99.0, 0.25, id="a quarter"),
        pytest.param([1.0], 100, 99.0, 0.0, id="always busy"),
        pytest.param([QUIET, 0.9], 100, 99.0, 0.0, id="busy at five percent"),
        pytest.param([0.0], 100, 99.0, None, id="a GPU that is not used"),
        pytest.param([0.0, None], 100, 99.0, None, id="a driver that often says nothing"),
        pytest.param([0.0, 0.9], 2000, 99.0, None, id="too few samples"),
        pytest.param([0.0, 0.9], 100, 5.0, None, id="samples that end early"),
    ],
)
def test_what_samples_prove(
    tmp_path: Path, uses: list[float | None], period_ms: int, until_s: float, share: float | None
) -> None:
    wall = sum(play(tmp_path, script([("step", 0.25)] * 40)).values())
    (tmp_path / "job.log.gpu").write_text(samples(uses, period_ms, min(until_s, wall), 1))
    document = derived(tmp_path)
    lost = document["goodput"]["badput_s"]
    assert ("samples" in document["derivation"], "gpu_idle" in lost) == (share is not None, share is not None)
    if share is not None:
        assert lost["gpu_idle"] == pytest.approx(share * 43 * 0.25, abs=0.1)


def test_idle_time_of_a_checkpoint_and_of_a_stall_is_lost_once(tmp_path: Path) -> None:
    """The GPU does nothing but steps: the seconds of the checkpoint and of the stall have their classes."""
    pieces = list(script([("step", 0.25)] * 20))
    pieces.insert(10, Piece("idle", 5.0))
    pieces.insert(18, Piece("save", 4.0, "Saving checkpoint to out/step_16.pt\n"))
    wall = sum(play(tmp_path, pieces).values())
    before = derived(tmp_path)["goodput"]
    ends = list(accumulate(piece.seconds for piece in pieces))
    lines = [head_line(round(1000 * WALL))]
    for number in range(round(20 * wall) + 1):
        works = pieces[min(bisect_left(ends, number / 20), len(ends) - 1)].kind == "step"
        lines.append(sample_line(50 * number, None, [[0.9 if works else 0.0, 1, 1.0]]))
    (tmp_path / "job.log.gpu").write_text("".join(lines))
    after = derived(tmp_path)["goodput"]
    assert before["stalls"]["count"] == 1
    assert before["badput_s"]["checkpoint"] == pytest.approx(4.0, abs=0.3)
    assert after["badput_s"]["gpu_idle"] == pytest.approx(0.0, abs=0.1)
    assert after["badput_s"] == pytest.approx({**before["badput_s"], "gpu_idle": after["badput_s"]["gpu_idle"]}, abs=1e-6)
