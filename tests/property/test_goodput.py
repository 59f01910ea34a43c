"""Whatever a log's stamps, step times and marks say: the parts add up to the wall, none is negative, and how the log was
read changes nothing."""

from __future__ import annotations

import math
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.analysis.goodput.model import CLASSES, Wall
from receipt_cli.derive import Derivation, Options, read_log
from receipt_cli.io.source import Source, Stream
from receipt_cli.receipts.assembly import assemble, derived_bytes
from tests.tools.examples import costly
from tests.tools.pieces import small_pieces

pytestmark = pytest.mark.usefixtures("one_engine")

START = datetime(2026, 3, 8, 11, 0, 0, tzinfo=UTC)
ACTIONS = st.one_of(
    st.tuples(st.just("step"), st.floats(0.0, 30.0)),
    st.tuples(st.just("eval"), st.floats(0.0, 60.0)),
    st.tuples(st.just("save"), st.floats(0.0, 60.0)),
    st.tuples(st.just("back"), st.integers(1, 8)),
    st.tuples(st.just("words"), st.floats(-20.0, 20.0)),
)
WALLS = st.one_of(st.none(), st.floats(0.5, 5000.0).map(lambda seconds: Wall(seconds, "stated")))


def torchtitan(actions: list[tuple[str, float]], durations: bool) -> str:
    """A log in torchtitan's format: steps, evaluations, checkpoints that say how long they took or more, and restarts."""
    at, step, lines = START, 0, []

    def say(text: str, after: float) -> None:
        nonlocal at
        at += timedelta(seconds=after)
        lines.append(f"[titan] {at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} - root - INFO - {text}\n")

    say("Starting job: llama3", 0)
    for kind, value in actions:
        if kind == "step":
            step += 1
            say(f"step: {step:2}  loss:  8.6107  memory: 46.48GiB(58.76%)  tps: 6,847  tflops: 396.47  mfu: 40.09%", value)
        elif kind == "eval":
            say(f"validate step: {step}  loss:  6.7370  memory: 46.48GiB(58.76%)  tps: 21,585", value)
        elif kind == "save":
            took = f"in {2 * value:.2f} seconds" if durations else "in the background"
            say(f"Finished saving the checkpoint (or staging if async is enabled) {took}.", value)
        elif kind == "back":
            step = max(0, step - int(value))
            say("CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory", 5.0)
        else:
            say("words", value)
    return "".join(lines)


def megatron(times: list[float], stride: int, evals: list[int], stamped: bool, noise: float) -> str:
    """A log in Megatron's format: printed step times, which the stamps bear out but for ``noise``."""
    at, lines = START, []
    for index, seconds in enumerate(times):
        at += timedelta(seconds=seconds * stride * noise)
        number = (index + 1) * stride
        stamp = f"[{at:%Y-%m-%d %H:%M:%S}] " if stamped else ""
        lines.append(
            f" {stamp}iteration {number:8}/ {stride * len(times)} | consumed samples: {number} | "
            f"elapsed time per iteration (ms): {seconds * 1000:.1f} | learning rate: 2.8E-04 | global batch size: 1 | "
            "lm loss: 5.0E+00 | loss scale: 1.0 |\n"
        )
        if index in evals:
            at += timedelta(seconds=20)
            lines.append(f" validation loss at iteration {number} | lm loss value: 4.9E+00 | lm loss PPL: 1.3E+02 | \n")
    return "".join(lines)


def read(text: str, wall: Wall | None = None, workers: int | None = None) -> Derivation:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.log")
        path.write_text(text, "utf-8")
        return read_log([Stream((Source(str(path)),))], Options(wall=wall), workers=workers).derivation()


def check(derivation: Derivation) -> None:
    found = derivation.goodput
    if found is None:
        return
    assert 0 <= found.goodput_ratio <= 1 and found.goodput_ratio == min(1.0, found.step_time_s / found.wall_time_s)
    assert set(found.parts) == set(CLASSES) and found.parts["idle"].seconds is not None
    seconds = [part.seconds for part in found.parts.values() if part.seconds is not None]
    assert all(s >= 0 for s in (found.step_time_s, *seconds))
    assert math.isclose(math.fsum([found.step_time_s, *seconds]), found.wall_time_s, rel_tol=1e-9, abs_tol=1e-9)
    for part in found.parts.values():
        assert (part.seconds is None) == (part.how == "unknown")
        assert part.overlapped_s is None or part.overlapped_s > 0


@settings(max_examples=costly(100))
@given(st.lists(ACTIONS, max_size=60), st.booleans(), WALLS)
def test_parts_add_up(actions: list[tuple[str, float]], durations: bool, wall: Wall | None) -> None:
    check(read(torchtitan(actions, durations), wall))


@settings(max_examples=costly(100))
@given(
    st.lists(st.floats(0.05, 20.0), min_size=1, max_size=60), st.integers(1, 20), st.lists(st.integers(0, 59), max_size=6),
    st.booleans(), st.floats(0.5, 2.0), WALLS,
)  # fmt: skip
def test_printed_times_add_up(
    times: list[float], stride: int, evals: list[int], stamped: bool, noise: float, wall: Wall | None
) -> None:
    check(read(megatron(times, stride, evals, stamped, noise), wall))


@settings(max_examples=costly(100))
@given(st.lists(st.tuples(st.floats(0.5, 3.0), st.floats(0.0, 100.0)), min_size=3, max_size=8))
def test_what_is_printed_of_a_checkpoint_is_in_its_part_or_beside(spans: list[tuple[float, float]]) -> None:
    actions = [("step", 1.0)] * 8
    for _, wait in spans:
        actions += [("save", wait), *[("step", 1.0)] * 4]
    found = read(torchtitan(actions, durations=True)).goodput
    assert found is not None
    part = found.parts["checkpoint"]
    printed = math.fsum(round(2 * wait, 2) for _, wait in spans)
    assert part.seconds is not None
    slack = 1e-6 + 0.01 * len(spans)
    assert math.isclose(part.seconds + (part.overlapped_s or 0.0), printed, abs_tol=slack + 0.005 * found.wall_time_s)
    assert part.seconds <= math.fsum(wait for _, wait in spans) + slack


@settings(max_examples=8)
@given(st.integers(150, 400), st.integers(1, 5), st.lists(st.integers(20, 380), max_size=5), st.booleans(), st.booleans())
def test_neither_pieces_nor_workers_change_it(count: int, stride: int, evals: list[int], stamped: bool, even: bool) -> None:
    times = [1.0 + (0 if even else (index * 37 % 11) / 10) for index in range(count)]
    text = megatron(times, stride, evals, stamped, 1.0)
    wall = None if stamped else Wall(1e5, "stated")
    one = read(text, wall, workers=1)
    check(one)
    with small_pieces():
        columns = read(text, wall, workers=1)
    assert columns.goodput == one.goodput is not None
    many = read(text, wall, workers=3)
    assert derived_bytes(assemble(many, run={}, header={})) == derived_bytes(assemble(one, run={}, header={}))


def seconds_of(derivation: Derivation, name: str) -> float:
    assert derivation.goodput is not None
    seconds = derivation.goodput.parts[name].seconds
    assert seconds is not None
    return seconds


@settings(max_examples=costly(45))
@given(st.integers(20, 60), st.integers(1, 15), st.integers(1, 58), st.integers(60, 90_000), st.booleans())
def test_a_silence_is_idle_to_the_second(count: int, each: int, place: int, silence: int, printed: bool) -> None:
    place = min(place, count - 2)

    def log(pause: int) -> Derivation:
        if printed:
            lines = megatron([float(each)] * count, 1, [], stamped=True, noise=1.0).splitlines(keepends=True)
            late = [START + timedelta(seconds=each * (i + 1) + (pause if i > place else 0)) for i in range(count)]
            stamps = [f" [{at:%Y-%m-%d %H:%M:%S}]" for at in late]
            return read("".join(stamp + line.partition("]")[2] for stamp, line in zip(stamps, lines, strict=True)))
        actions = [("step", float(each))] * count
        return read(torchtitan([*actions[:place], ("step", float(each + pause)), *actions[place + 1 :]], durations=False))

    before, after = log(0), log(silence)
    assert before.goodput is not None and after.goodput is not None
    assert math.isclose(after.goodput.wall_time_s - before.goodput.wall_time_s, silence, abs_tol=1e-3)
    assert math.isclose(seconds_of(after, "idle") - seconds_of(before, "idle"), silence, abs_tol=1e-3)
    assert math.isclose(after.goodput.step_time_s, before.goodput.step_time_s, abs_tol=1e-3)


@settings(max_examples=costly(45))
@given(
    st.lists(st.tuples(st.sampled_from(["step", "step", "step", "eval", "save"]), st.integers(1, 20)), min_size=30, max_size=60),
    st.integers(2, 20),
)
def test_slower_clocks_scale_all_times(actions: list[tuple[str, int]], factor: int) -> None:
    found = []
    for scale in (1, factor):
        times = [("step", 60), *actions]  # the first line is a minute before the first step
        unit = 1.037 * scale  # no stamp but the first is of a whole second
        found.append(read(torchtitan([(kind, seconds * unit) for kind, seconds in times], durations=False)))
    quick, slow = (derivation.goodput for derivation in found)
    assert quick is not None and slow is not None
    assert math.isclose(slow.goodput_ratio, quick.goodput_ratio, rel_tol=1e-6)
    for name in ("wall_time_s", "step_time_s"):
        assert math.isclose(getattr(slow, name), getattr(quick, name) * factor, rel_tol=1e-6, abs_tol=1e-6)
    for name in CLASSES:
        one, other = quick.parts[name], slow.parts[name]
        assert one.how == other.how
        assert one.seconds is None or math.isclose(other.seconds or 0.0, one.seconds * factor, rel_tol=1e-6, abs_tol=1e-4)
    spans = [derivation.summaries[0].realised for derivation in found]
    if spans[0] is not None and spans[1] is not None:
        assert math.isclose(spans[1].duration_s, spans[0].duration_s * factor, rel_tol=1e-6)
