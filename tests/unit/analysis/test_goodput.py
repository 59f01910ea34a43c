"""Where the wall time of a run went: the stamps of its log, its step times, and what a caller states."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.analysis.goodput.model import Wall
from receipt_cli.errors import InputError, UsageError
from receipt_cli.importers.wall_time import read_wall
from receipt_cli.receipts.production import Product, Request, produce, produce_all
from receipt_cli.verification.verifier import verify

pytestmark = pytest.mark.usefixtures("one_engine")

ROOT = Path(__file__).resolve().parents[3]
START = datetime(2026, 3, 8, 11, 0, 0, tzinfo=UTC)


class Titan:
    """A torchtitan log that is written line by line; ``at`` is the time of the next line."""

    def __init__(self) -> None:
        self.at, self.lines = START, list[str]()

    def say(self, text: str, after: float = 0.0) -> Titan:
        self.at += timedelta(seconds=after)
        stamp = f"{self.at:%Y-%m-%d %H:%M:%S},{self.at.microsecond // 1000:03d}"
        self.lines.append(f"[titan] {stamp} - root - INFO - {text}\n")
        return self

    def step(self, number: int, after: float) -> Titan:
        loss = 8 - number / 100
        return self.say(
            f"step: {number:2}  loss:  {loss:.4f}  memory: 46.48GiB(58.76%)  tps: 6,847  tflops: 396.47  mfu: 40.09%", after
        )

    def steps(self, numbers: range, each: float) -> Titan:
        for number in numbers:
            self.step(number, each)
        return self

    def saved(self, seconds: float, after: float) -> Titan:
        return self.say(f"Finished saving the checkpoint (or staging if async is enabled) in {seconds} seconds.", after)

    def evaluated(self, number: int, after: float) -> Titan:
        return self.say(f"validate step: {number}  loss:  6.7370  memory: 46.48GiB(58.76%)  tps: 21,585", after)


def megatron(number: int, at: datetime | None, ms: float) -> str:
    stamp = f"[{at:%Y-%m-%d %H:%M:%S}] " if at is not None else ""
    return (
        f" {stamp}iteration {number:8}/     500 | consumed samples: {number * 128:12} | "
        f"elapsed time per iteration (ms): {ms:.1f} | learning rate: 2.883286E-04 | global batch size:   128 | "
        f"lm loss: {8 - number / 100:.6E} | loss scale: 1.0 | grad norm: 0.986 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def made(folder: Path, text: str, wall: Wall | None = None) -> Product:
    path = folder / "run.log"
    path.write_text(text, "utf-8")
    return produce(Request(str(path), wall=wall))


def goodput(folder: Path, text: str, wall: Wall | None = None) -> dict[str, Any]:
    found = made(folder, text, wall).document["goodput"]
    assert isinstance(found, dict)
    total = math.fsum([found["step_time_s"], *(s for s in found["badput_s"].values() if s is not None)])
    assert total == pytest.approx(found["wall_time_s"], rel=1e-12)
    return found


def problems(product: Product) -> list[str]:
    return [problem.kind for problem in product.derivation.problems[1]]


def test_stamps_alone_tell_steps_start_evaluations_and_checkpoints(tmp_path: Path) -> None:
    log = Titan().say("Starting job: llama3").say("Building llama3 8B", 5.0).step(1, 17.0).steps(range(2, 21), 2.0)
    log.saved(7.5, 8.0).evaluated(20, 4.0).steps(range(21, 31), 2.0).say("Training completed", 3.0)
    found = goodput(tmp_path, "".join(log.lines))
    assert (found["evidence"], found["step_evidence"], found["phase"]) == ("log_timestamps", "log_timestamps", None)
    assert found["wall_time_s"] == pytest.approx(5 + 17 + 38 + 12 + 20 + 3)
    assert found["step_time_s"] == pytest.approx(30 * 2.0)
    lost = found["badput_s"]
    assert (lost["checkpoint"], lost["eval"]) == (7.5, pytest.approx(4.5))  # of the 12 s beyond the steps
    assert lost["initialization"] == pytest.approx(20.0)
    assert lost["idle"] == pytest.approx(3.0)
    assert (lost["compilation"], lost["data_loading"], lost["wasted_progress"]) == (None, None, 0.0)
    how = {name: (part["how"], part["count"]) for name, part in found["parts"].items()}
    assert how["checkpoint"] == ("measured", 1) and how["eval"] == ("inferred", 1) and how["compilation"] == ("unknown", None)
    assert found["goodput_ratio"] == found["step_time_s"] / found["wall_time_s"]


def test_what_a_checkpoint_wrote_beside_the_steps_is_not_lost(tmp_path: Path) -> None:
    log = Titan().say("Starting job").steps(range(1, 11), 2.0).saved(30.0, 0.5).steps(range(11, 21), 2.0)
    found = goodput(tmp_path, "".join(log.lines))
    assert found["badput_s"]["checkpoint"] == pytest.approx(0.5)
    assert found["parts"]["checkpoint"]["overlapped_s"] == pytest.approx(29.5)
    assert found["step_time_s"] == pytest.approx(40.0)


def test_overtaken_steps_are_wasted_and_the_way_back_is_initialization(tmp_path: Path) -> None:
    at = START
    text = ""
    for number in range(10, 210, 10):
        at += timedelta(seconds=10)
        text += megatron(number, at, 1000.0)
    at += timedelta(seconds=300)
    text += "Traceback (most recent call last):\nRuntimeError: NCCL error\n"
    for number in range(110, 310, 10):
        at += timedelta(seconds=10)
        text += megatron(number, at, 1000.0)
    product = made(tmp_path, text)
    found = product.document["goodput"]
    assert product.document["summary"]["steps"]["restart_count"] == 1
    assert found["step_evidence"] == "step_times"
    assert found["badput_s"]["wasted_progress"] == pytest.approx(100.0)  # steps 101 to 200, once
    assert found["badput_s"]["initialization"] == pytest.approx(300.0)
    assert found["step_time_s"] == pytest.approx(290.0)  # the first ten steps lie before the first stamp
    assert found["wall_time_s"] == pytest.approx(690.0)
    assert found["badput_s"]["idle"] == pytest.approx(0.0)


def test_the_excess_of_the_warm_up_is_compilation(tmp_path: Path) -> None:
    text = "".join(megatron(n, None, 41000.0 if n == 1 else 1000.0) for n in range(1, 31))
    found = goodput(tmp_path, text, Wall(100.0, "stated"))
    assert found["badput_s"]["compilation"] == pytest.approx(40.0)
    assert (found["step_time_s"], found["badput_s"]["idle"]) == (pytest.approx(30.0), pytest.approx(30.0))
    assert found["badput_s"]["initialization"] is None  # without stamps nobody knows when the first step began


def test_printed_times_that_the_clock_has_no_room_for_are_not_believed(tmp_path: Path) -> None:
    at, text = START, ""
    for number in range(1, 31):
        at += timedelta(seconds=1)
        text += megatron(number, at, 2500.0)
    found = goodput(tmp_path, text)
    assert found["step_evidence"] == "log_timestamps"
    assert found["step_time_s"] == pytest.approx(29.0)


def test_waiting_for_data_is_a_part_of_the_step_that_is_lost(tmp_path: Path) -> None:
    at, text = START, ""
    for number in range(1, 31):
        at += timedelta(seconds=10)
        text += (
            f"{at:%Y/%m/%d %H:%M:%S} - mmengine - INFO - Epoch(train)  [1][{number * 10}/300]  lr: 1.0000e-01  eta: 0:00:00  "
            "time: 1.0000  data_time: 0.2500  loss: 0.7141\n"
        )
    found = goodput(tmp_path, text)
    assert found["badput_s"]["data_loading"] == pytest.approx(0.25 * 290)
    assert found["step_time_s"] == pytest.approx(0.75 * 290)


def test_a_timer_that_runs_on_through_evaluations_says_how_long_they_were(tmp_path: Path) -> None:
    found = goodput(tmp_path, (ROOT / "fixtures/logs/nanogpt/char-ok.log").read_text("utf-8"), Wall(2.0, "stated"))
    assert found["badput_s"]["eval"] is None and found["badput_s"]["checkpoint"] is None  # both stand before one step line
    text = "tokens per iteration will be: 768\n"
    for number in range(0, 200):
        text += f"step {number}: train loss 3.2, val loss 3.3\n" if number and number % 50 == 0 else ""
        time = 510.0 if number and number % 50 == 0 else 10.0
        text += f"iter {number}: loss {4 - number / 100:.4f}, time {time}ms, mfu 0.02%\n"
    found = goodput(tmp_path, text, Wall(60.0, "stated"))
    assert found["badput_s"]["eval"] == pytest.approx(1.5)
    assert found["step_time_s"] == pytest.approx(2.0)


def test_a_clock_that_goes_back_proves_nothing(tmp_path: Path) -> None:
    log = Titan().say("Starting job").steps(range(1, 11), 2.0)
    log.at -= timedelta(hours=1)
    product = made(tmp_path, "".join(log.steps(range(11, 21), 2.0).lines))
    assert product.document["goodput"] is None
    assert problems(product) == ["clock_goes_back"]
    assert product.derivation.problems[1][0].line_number == 12


def test_late_lines_of_other_ranks_are_no_broken_clock(tmp_path: Path) -> None:
    log = Titan().say("Starting job").steps(range(1, 11), 2.0)
    log.say("Rank 3 is late", -1.5).steps(range(11, 21), 2.0)
    assert goodput(tmp_path, "".join(log.lines))["wall_time_s"] == pytest.approx(38.5)


def test_stamps_that_do_not_enclose_the_steps_are_of_a_part_of_the_job(tmp_path: Path) -> None:
    text = "".join(megatron(n, None, 1000.0) for n in range(1, 31))
    stamped = "[2026-03-08 11:00:00,000] [INFO] [runner.py:415:main] Using IP address of 10.0.0.1\n"
    assert made(tmp_path, stamped + text).document["goodput"] is None
    assert goodput(tmp_path, stamped + text + stamped.replace("11:00:00", "11:01:00"))["wall_time_s"] == 60.0


def test_lines_that_no_rule_reads_count_at_both_ends(tmp_path: Path) -> None:
    log = Titan().say("nobody reads this").steps(range(1, 11), 2.0).say("nor this", 100.0)
    found = goodput(tmp_path, "".join(log.lines))
    assert (found["wall_time_s"], found["badput_s"]["idle"]) == (pytest.approx(120.0), pytest.approx(100.0))


def test_a_moment_that_megatron_says_is_a_stamp(tmp_path: Path) -> None:
    text = "[after model, optimizer, and learning rate scheduler are built] datetime: 2026-03-08 11:00:00 \n"
    text += "".join(megatron(n, None, 1000.0) for n in range(1, 31))
    text += "[after training is done] datetime: 2026-03-08 11:00:40 \n"
    found = goodput(tmp_path, text)
    assert (found["wall_time_s"], found["step_time_s"], found["badput_s"]["idle"]) == (
        40.0,
        pytest.approx(30.0),
        pytest.approx(10.0),
    )


def test_stamps_in_a_zone_and_without_one_are_not_mixed(tmp_path: Path) -> None:
    log = Titan().say("Starting job").steps(range(1, 11), 2.0)
    text = "2026-03-08T04:00:00Z pulled the image\n" + "".join(log.lines)
    assert goodput(tmp_path, text)["wall_time_s"] == pytest.approx(18.0)  # from the first line that a rule reads


def test_the_files_of_two_ranks_have_the_wall_of_the_leading_one(tmp_path: Path) -> None:
    for rank, late in ((0, 0.0), (1, 0.75)):
        log = Titan()
        log.at += timedelta(seconds=late)
        log.say("Starting job").steps(range(1, 31), 2.0).say("gone", 5.0)
        (tmp_path / f"rank{rank}.log").write_text("".join(log.lines), "utf-8")
    document = produce(Request(str(tmp_path / "rank0.log"), more=(str(tmp_path / "rank1.log"),))).document
    assert document["goodput"]["wall_time_s"] == pytest.approx(65.0)


def test_the_time_of_an_earlier_run_in_the_same_log_is_none_of_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    first = Titan().say("Starting job: a").say("Building llama3 8B with X(dim=1)").steps(range(1, 21), 2.0)
    first.say("Training completed")
    first.at += timedelta(days=3)
    first.say("Starting job: b").say("Building llama3 70B with X(dim=2)").steps(range(1, 11), 2.0).say("Training completed")
    path.write_text("".join(first.lines), "utf-8")
    walls = [p.document["goodput"]["wall_time_s"] for p in produce_all(Request(str(path)))]
    assert walls == [pytest.approx(40.0), pytest.approx(20.0)]  # the second begins behind the silence


@pytest.mark.parametrize("seconds", [10.0, 25.0])
def test_a_stated_wall_that_has_no_room_for_the_steps_is_contradicted(tmp_path: Path, seconds: float) -> None:
    product = made(tmp_path, "".join(megatron(n, None, 1000.0) for n in range(1, 31)), Wall(seconds, "stated"))
    assert product.document["goodput"] is None
    assert problems(product) == ["wall_without_step_times"]


def test_what_is_stated_counts_before_the_stamps(tmp_path: Path) -> None:
    log = Titan().say("Starting job").steps(range(1, 11), 2.0)
    found = goodput(tmp_path, "".join(log.lines), Wall(50.0, "receipt_run"))
    assert (found["evidence"], found["wall_time_s"], found["step_time_s"]) == ("receipt_run", 50.0, pytest.approx(20.0))


def test_a_wall_of_a_phase_that_the_log_has_not_is_told(tmp_path: Path) -> None:
    product = made(tmp_path, "".join(megatron(n, None, 1000.0) for n in range(1, 31)), Wall(60.0, "nanochat_report", "mid_train"))
    assert product.document["goodput"] is None
    assert problems(product) == ["wall_of_no_phase"]


def test_a_stated_wall_is_recorded_and_verified(tmp_path: Path) -> None:
    product = made(tmp_path, "".join(megatron(n, None, 1000.0) for n in range(1, 31)), Wall(60.0, "stated"))
    assert product.document["derivation"]["options"]["wall"] == {"seconds": 60.0, "evidence": "stated", "phase": None}
    assert not verify(product.document, [str(tmp_path / "run.log")]).differences


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("11431", 11431.0), ("11431.5", 11431.5), ("90s", 90.0), ("3h10m", 11400.0), ("1d2h", 93600.0), ("45m", 2700.0)),
        *(("3:10:31", 11431.0), ("1-03:10:31", 97831.0), ("1h30m0.25s", 5400.25)),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert read_wall(text) == Wall(seconds, "stated")


@pytest.mark.parametrize("text", ["0", "0s", "-5", "nan", "inf", "1e3", "3 hours", "h", "", "m5", "3:99:00", "9999999999"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_wall(text)


def test_files_that_say_the_wall(tmp_path: Path) -> None:
    def wall(name: str, content: str) -> Wall:
        (tmp_path / name).write_text(content, "utf-8")
        return read_wall(str(tmp_path / name))

    assert wall("wandb-summary.json", '{"_runtime": 11431, "_step": 3}') == Wall(11431.0, "wandb_summary")
    assert wall("a.receipt.json", '{"run": {"wall_time_s": 12.5}}') == Wall(12.5, "receipt_run")
    times = '{"run": {"started_at": "2026-03-08T11:00:00Z", "finished_at": "2026-03-08T11:00:30.5Z"}}'
    assert wall("b.json", times) == Wall(30.5, "started_and_finished")
    stamps = ["## Base model training\ntimestamp: 2025-10-16 20:16:58\n", "## Midtraining\ntimestamp: 2025-10-16 20:31:20\n"]
    report = "# nanochat training report\n\nRun started: 2025-10-16 17:10:00\n\n" + "\n".join(stamps)
    assert wall("report.md", report) == Wall(11218.0, "nanochat_report", "base_train")
    for name, content in {"c.json": '{"_step": 1}', "d.json": "[]", "e.json": '{"run": {"wall_time_s": true}}'}.items():
        with pytest.raises(UsageError):
            wall(name, content)
    with pytest.raises(InputError):
        wall("f.json", "no json")


def plain_lines(lines: list[tuple[float, str]]) -> str:
    """Lines of no known trainer, each some seconds after the one before."""
    at, text = START, ""
    for after, line in lines:
        at += timedelta(seconds=after)
        text += f"{at:%Y-%m-%d %H:%M:%S} {line}\n"
    return text


def test_an_evaluation_ends_with_its_line(tmp_path: Path) -> None:
    lines: list[tuple[float, str]] = []
    for number in range(0, 2100, 100):
        after = 55.0 if number % 200 else 50.0
        lines.append((after, f"Step [{number}]  train Loss : {2.0 - number / 2000:.6f}, train acc : 0.5"))
        lines += [(13.0, f"Step [{number}]  val Loss : {2.1 - number / 2000:.6f}, val acc : 0.4")] * (number % 200 == 0)
    found = goodput(tmp_path, plain_lines(lines))
    assert (found["badput_s"]["eval"], found["badput_s"]["idle"]) == (11 * 13.0, 0.0)
    assert found["step_time_s"] == 10 * 105.0


def once_an_epoch(*last: tuple[float, str]) -> str:
    lines: list[tuple[float, str]] = []
    for n in range(20):
        lines.append((2.0 if n else 9.0, f"Epoch: {n:3} [{n * 90 + 1:8}/10000000], loss: {2 - n / 50:.4f}, LR: 0.0{n + 10}"))
        lines += [(30.0, f"*** Training summary for epoch {n}"), (15.0, "*** Validation summary"), (9.0, "saved: a.pt")]
    return plain_lines([*lines, *last])


def test_records_once_an_epoch_give_no_step_time(tmp_path: Path) -> None:
    document = made(tmp_path, once_an_epoch()).document
    assert (document["summary"]["steps"]["last"], document["summary"]["realised"]["step_count"]) == (1711, 1710)
    assert document["summary"]["step_times"] is document["goodput"] is None


@pytest.mark.parametrize(("between", "seconds"), [("evaluating the images", None), ("all as usual", 450.0)])
def test_work_before_the_last_checkpoint_is_none_of_its_time(tmp_path: Path, between: str, seconds: float | None) -> None:
    lines: list[tuple[float, str]] = [(60.0, f"Epoch {n} train loss {2 / n:.4f}") for n in range(1, 15)]
    found = goodput(tmp_path, plain_lines([*lines, (0.0, between), (450.0, "Saving checkpoint to out/a.pt")]))
    assert found["badput_s"]["checkpoint"] == seconds


def test_the_start_before_a_loop_without_stamps_is_not_idle(tmp_path: Path) -> None:
    lines = [f"{START:%Y-%m-%d %H:%M:%S} - INFO - reading the data"]
    lines += [f"{{'loss': {3 / n:.4f}, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': {n / 20:.2f}}}" for n in range(1, 21)]
    lines += ["{'train_runtime': 900.5, 'train_samples_per_second': 2.5, 'train_steps_per_second': 0.5, 'train_loss': 1.5, "
              "'epoch': 1.0}"]  # fmt: skip
    lines += [f"{START + timedelta(seconds=3600):%Y-%m-%d %H:%M:%S} - INFO - saved"]
    found = made(tmp_path, "\n".join([*lines, ""])).document["goodput"]
    assert (found["step_evidence"], found["badput_s"]["initialization"], found["badput_s"]["idle"]) == (
        "trainer_loop",
        None,
        None,
    )


EPOCHS = [
    line
    for n in range(1, 21)
    for line in ((0.0, f"Train Epoch: {n}/20 ..."), (90.0 if n == 1 else 60.0, f"    total_loss: {9 - n / 10:.4f} time: 60"))
]


@pytest.mark.parametrize(
    ("lines", "idle", "high"),
    [
        ([], 0.0, 1200.0),
        ([(70.0, "all results are in out/")], 70.0, 1200.0),
        ([(0.0, "Test Epoch: 20 ..."), (70.0, "    ave: 95.5")], None, 1270.0),
        ([(70.0, "user@host:~$ python infer.py")], None, 1270.0),
        ([(70.0, "Training completed")], 70.0, 1200.0),
        ([(0.0, "the model is in out/"), (9000.0, "----"), (0.0, "Reading the images")], 0.0, 1200.0),  # another start
    ],
)
def test_time_in_which_unread_lines_show_work_is_neither_idle_nor_a_start(
    tmp_path: Path, lines: list[tuple[float, str]], idle: float | None, high: float
) -> None:
    document = made(tmp_path, plain_lines([(0.0, "----"), (0.0, "Reading the images"), *EPOCHS, *lines])).document
    found = document["goodput"]
    assert document["summary"]["steps"]["record_count"] == 20
    assert (found["badput_s"]["initialization"], found["badput_s"]["idle"]) == (0.0, idle)
    assert found["step_time_s"] == 1230.0 and found["parts"]["idle"]["how"] == ("unknown" if idle is None else "inferred")
    assert found["range"]["high"] == pytest.approx((high + 30.0) / found["wall_time_s"])


def forgather(numbers: range, at: datetime, each: float) -> tuple[str, datetime]:
    """Step lines of Forgather's console, ``each`` seconds apart."""
    lines = []
    for number in numbers:
        at += timedelta(seconds=each)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S}   {number}  0.1   train-loss: {4 - number / 5000:.5f}   learning-rate: 1.00e-04\n")
    return "".join(lines), at


def silent(kind: str, seconds: float) -> str:
    """A log with an ordinary pace and ``seconds`` of silence in the middle, in three formats."""
    if kind == "torchtitan":
        log = Titan().say("Starting job").steps(range(1, 21), 2.0)
        log.at += timedelta(seconds=seconds)
        return "".join(log.steps(range(21, 41), 2.0).lines)
    if kind == "forgather":
        first, at = forgather(range(100, 2100, 100), START, 12.0)
        return first + forgather(range(2100, 4100, 100), at + timedelta(seconds=seconds), 12.0)[0]
    at, text = START, ""
    for number in range(1, 41):
        at += timedelta(seconds=5.0 + (seconds if number == 21 else 0.0))
        text += megatron(number, at, 5000.0)
    return text


KINDS = ("torchtitan", "forgather", "megatron")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seconds", [60.0, 3600.0, 86400.0])
def test_a_silence_is_idle_to_the_second_and_listed(tmp_path: Path, kind: str, seconds: float) -> None:
    before, found = goodput(tmp_path, silent(kind, 0.0)), goodput(tmp_path, silent(kind, seconds))
    assert found["badput_s"]["idle"] - before["badput_s"]["idle"] == pytest.approx(seconds, abs=1e-6)
    assert found["step_time_s"] == pytest.approx(before["step_time_s"], abs=1e-6)
    assert before["stalls"] == {"count": 0, "total_s": 0.0, "doubtful": False, "longest": []}
    stalls = found["stalls"]
    assert (stalls["count"], stalls["total_s"]) == (1, pytest.approx(seconds))
    (stall,) = stalls["longest"]
    assert stall["line_number"] == stall["after_line"] + 1 == {"torchtitan": 22}.get(kind, 21)
    assert found["range"] == {"low": found["goodput_ratio"], "high": found["goodput_ratio"]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_of_the_stamps_scales_all_times(tmp_path: Path, kind: str) -> None:
    def scaled(factor: int) -> dict[str, Any]:
        log, lines = START, []
        for line in silent(kind, 600.0).splitlines(keepends=True):
            stamp = line[line.index("2026") :][:19]
            at = log + (datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) - log) * factor
            line = line.replace(stamp, f"{at:%Y-%m-%d %H:%M:%S}")
            lines.append(line.replace("(ms): 5000.0", f"(ms): {5000 * factor}.0"))
        return goodput(tmp_path, "".join(lines))

    one, three = scaled(1), scaled(3)
    assert three["goodput_ratio"] == pytest.approx(one["goodput_ratio"])
    for name, seconds in one["badput_s"].items():
        assert three["badput_s"][name] == (None if seconds is None else pytest.approx(3 * seconds))


def test_steps_that_slow_down_for_good_are_no_stall(tmp_path: Path) -> None:
    log = Titan().say("Starting job").steps(range(1, 61), 2.0).steps(range(61, 91), 20.0)
    found = goodput(tmp_path, "".join(log.lines))
    assert found["stalls"]["count"] <= 1  # the first slow step alone
    assert found["step_time_s"] == pytest.approx(120 + 600, abs=20)


def test_where_many_gaps_are_long_goodput_is_a_range(tmp_path: Path) -> None:
    log = Titan().say("Starting job")
    for number in range(1, 61):
        log.step(number, 30.0 if number % 5 == 0 else 2.0)
    found = goodput(tmp_path, "".join(log.lines))
    assert found["stalls"]["doubtful"] and found["stalls"]["count"] == 12 and len(found["stalls"]["longest"]) == 10
    assert found["range"]["low"] == found["goodput_ratio"] < 0.3
    assert found["range"]["high"] == pytest.approx(1.0)


def test_an_evaluation_that_is_reported_late_is_no_stall(tmp_path: Path) -> None:
    log = Titan().say("Starting job").steps(range(1, 21), 2.0).step(21, 62.0).evaluated(20, 0.1).steps(range(22, 41), 2.0)
    found = goodput(tmp_path, "".join(log.lines))
    assert found["badput_s"]["eval"] == pytest.approx(60.1, abs=0.2)
    assert found["stalls"]["count"] == 0


def test_a_line_without_a_time_divides_no_gap(tmp_path: Path) -> None:
    """How long the evaluation took is unknown, and so what is left for the checkpoint."""
    times = [START + timedelta(seconds=2.0 * n + (30.0 if n > 10 else 0.0)) for n in range(1, 21)]
    lines = [megatron(number, at, 2000.0) for number, at in enumerate(times, 1)]
    evaluation = " validation loss at iteration 10 | lm loss value: 7.0E+00 | lm loss PPL: 1.1E+03 |\n"
    saved = f"{times[9] + timedelta(seconds=25):%Y-%m-%d %H:%M:%S},000 - INFO - successfully saved checkpoint at iteration 10\n"
    lost = goodput(tmp_path, "".join([*lines[:10], evaluation, saved, *lines[10:]]))["badput_s"]
    assert (lost["eval"], lost["checkpoint"]) == (None, None)


def test_days_between_two_attempts_are_no_initialization(tmp_path: Path) -> None:
    at, text = START, ""
    for number in range(10, 210, 10):
        at += timedelta(seconds=10)
        text += megatron(number, at, 1000.0)
    at += timedelta(days=2)
    text += "Traceback (most recent call last):\nRuntimeError: NCCL error\n"
    for number in range(110, 310, 10):
        at += timedelta(seconds=10)
        text += megatron(number, at, 1000.0)
    found = goodput(tmp_path, text)
    assert found["badput_s"]["initialization"] is None
    assert found["badput_s"]["idle"] == pytest.approx(2 * 86400.0, abs=10)


def test_what_a_step_waits_for_is_no_goodput() -> None:
    document = produce(Request(str(ROOT / "fixtures/logs/torchspec/waits-for-inference-2026.log"))).document
    found = document["goodput"]
    assert document["summary"]["bottleneck"]["verdict"] == "inference"
    assert 0.40 < found["range"]["low"] < found["range"]["high"] < 0.48  # 52 % of a cycle are waited for samples


@pytest.mark.parametrize(
    ("kind", "zone", "last"), [("torchtitan", None, "2026-03-08T11:01:20"), ("zoned", "utc", "2026-03-08T09:00:29Z")]
)
def test_the_receipt_says_when_the_run_was(tmp_path: Path, kind: str, zone: str | None, last: str) -> None:
    text = silent("torchtitan", 0.0)
    if kind == "zoned":
        text = "".join(f"2026-03-08T11:00:{n:02}+02:00 {megatron(n, None, 1000.0)}" for n in range(1, 30))
    document = made(tmp_path, text).document
    first = "2026-03-08T11:00:00" if zone is None else "2026-03-08T09:00:01Z"
    assert document["summary"]["time"] == {"first": first, "last": last, "zone": zone, "source": "log_lines"}
    log = "".join(megatron(n, None, 1000.0) for n in range(1, 31))
    assert made(tmp_path, log).document["summary"]["time"] is None


@pytest.mark.parametrize("length", [10, 4000])
def test_the_latest_stamp_counts_however_much_follows_it(tmp_path: Path, length: int) -> None:
    log = "2026-03-08 11:00:00 start\n2026-03-08 11:00:07 loaded\n" + "".join(megatron(n, None, 1000.0) for n in range(1, 9))
    document = made(tmp_path, log + "no moment in this line\n" * length).document
    assert document["summary"]["time"]["last"] == "2026-03-08T11:00:07"


def test_a_crashed_run_has_the_training_time_of_its_last_line(tmp_path: Path) -> None:
    line = "step {0:05d}/30000 (0.00%) | loss: 9.1 | lrm: 0.01 | dt: 500.00ms | tok/sec: 4,700 | total time: {1:.2f}m\n"
    text = "".join(line.format(n, max(0, n - 10) / 120) for n in range(60))
    assert made(tmp_path, text).document["summary"]["training_time_s"] == pytest.approx(0.41 * 60)
    again = text + "".join(line.format(n, max(0, n - 40) / 120) for n in range(30, 60))
    assert made(tmp_path, again).document["summary"]["training_time_s"] is None  # of the last attempt alone


@pytest.mark.parametrize(
    ("line", "first", "zone"),
    [
        ("START TIME: Wed Jun 24 18:53:14 CEST 2026", "2026-06-24T18:53:14", None),
        ("[Wed Jun 24 18:53:14 CEST 2026] loading", "2026-06-24T18:53:14", None),
        ("STARTING TIMING RUN AT 2023-07-30 11:09:25 AM", "2023-07-30T11:09:25", None),
        ("STARTING TIMING RUN AT 2023-07-30 12:09:25 AM", "2023-07-30T00:09:25", None),
        ("ENDING TIMING RUN AT 2023-07-30 11:09:25 PM", "2023-07-30T23:09:25", None),
        ("  time      : 2026-07-27_22:35:38", "2026-07-27T22:35:38", None),
        ("Start time of running main: 2026-04-25 06:11:51.3", "2026-04-25T06:11:51", None),
        ("> 2023-01-25 21:58:01.068233: I tensorflow/core/x.cc:193] on", "2023-01-25T21:58:01", None),
        ("the job started at 2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "utc"),
        ("slurmstepd: error: *** JOB 25 ON n3 CANCELLED AT 2021-05-24T09:50:34 ***", "2021-05-24T09:50:34", None),
        ("compiled at 2023-07-30 11:09:25", None, None),
        ("Build time: Tue Jun 13 19:16:58 2023", None, None),
        ("Python 3.9.12 (main, Apr  5 2022, 06:56:58) [GCC 7.5.0]", None, None),
        ("reading the hours 2006-12-11 12:00:00 to 2006-12-12 12:00:00", None, None),
        ("expires at: 2030-01-01 00:00:00", None, None),
    ],
)
def test_a_log_without_a_dated_run_has_the_time_of_its_ends(
    tmp_path: Path, line: str, first: str | None, zone: str | None
) -> None:
    document = made(tmp_path, f"a job\n{line}\nno record\n").document
    found = document["derivation"]["log"].get("time")
    assert (None if found is None else (found["first"], found["zone"], found["source"])) == (
        None if first is None else (first, zone, "log_ends")
    )


@pytest.mark.parametrize(
    ("head", "zone"),
    [
        ("2026-01-31 12:00:%02d,355 - INFO - ", None),
        ("2026-01-31T12:00:%02d.1234567Z ", "utc"),
        ("[2026-01-31 12:00:%02d,020] [INFO] ", None),
    ],
)
def test_a_dated_log_that_nothing_reads_has_the_time_of_its_lines(tmp_path: Path, head: str, zone: str | None) -> None:
    """A run without a summary has no place for the time of its lines."""
    lines = "".join(head % second + "loading a model\n" for second in range(5, 25, 5))
    document = made(tmp_path, lines).document
    assert document["summary"] is None or document["summary"]["time"] is None
    found = document["derivation"]["log"]["time"]
    assert (found["first"].rstrip("Z"), found["last"].rstrip("Z")[:19]) == ("2026-01-31T12:00:05", "2026-01-31T12:00:20")
    assert found["zone"] == zone


def test_a_dated_run_has_no_other_time(tmp_path: Path) -> None:
    assert "time" not in made(tmp_path, silent("torchtitan", 0.0)).document["derivation"]["log"]
