"""Which records are of one launch, stage and attempt: epochs of other lengths, steps printed again, batches on two lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce_all
from tests.tools.logs import learned_of

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]


def spread(document: dict[str, Any]) -> tuple[int | None, int | None, int | None, int]:
    steps = document["summary"]["steps"]
    return steps["first"], steps["last"], steps["planned"], steps["record_count"]


def yolox(epochs: int, length: int, of: int = 20) -> str:
    stamp = "2023-01-13 19:41:10.803 | INFO     | yolox.core.trainer:after_iter:253"
    tail = "mem: 4538Mb, iter_time: 0.219s, data_time: 0.002s, total_loss: 8.8, iou_loss: 0.6, lr: 1.250e-04"
    records = [(epoch, inside) for epoch in range(1, epochs + 1) for inside in range(10, length + 1, 10)]
    return "".join(f"{stamp} - epoch: {epoch}/{of}, iter: {inside}/{length}, {tail}\n" for epoch, inside in records)


DONE = "2023-01-13 19:49:26 | INFO | yolox.core.trainer:after_train:1 - Training of experiment is done and the best AP is 9\n"
RUNS = [
    ("another batch after the end", yolox(20, 112) + DONE + yolox(20, 14) + DONE, (10, 276, 280, 20)),
    ("longer epochs after the end", yolox(20, 14) + DONE + yolox(20, 112) + DONE, (10, 2238, 2240, 220)),
    ("three launches", yolox(20, 30) + DONE + yolox(20, 112) + DONE + yolox(20, 14) + DONE, (10, 276, 280, 20)),
    ("one launch", yolox(20, 112) + DONE, (10, 2238, 2240, 220)),
]


@pytest.mark.parametrize(("log", "expected"), [run[1:] for run in RUNS], ids=[run[0] for run in RUNS])
def test_the_length_of_an_epoch_is_that_of_its_launch(
    receipt_of: Receipt, log: str, expected: tuple[int | None, int | None, int | None, int]
) -> None:
    assert spread(receipt_of(log)) == expected


def dino(epochs: Iterable[int], length: int, of: str = "") -> str:
    tail = "eta: 0:01:17  lr: 0.000448  loss: 2.5878 (2.6063)  time: 0.173907  data: 0.003133  max mem: 3000"
    places = [(epoch, inside) for epoch in epochs for inside in range(0, length, 20)]
    return "".join(f"Epoch: [{epoch}{of}]  [{inside:4}/{length}]  {tail}\n" for epoch, inside in places)


@pytest.mark.parametrize("lengths", [(1562, 782), (782, 1562), (100, 300)])
def test_a_second_stage_counts_by_its_own_epochs(receipt_of: Receipt, lengths: tuple[int, int]) -> None:
    steps = receipt_of(dino(range(6), lengths[0], "/6") + dino(range(4), lengths[1]))["summary"]["steps"]
    alone = receipt_of(dino(range(4), lengths[1]))["summary"]["steps"]
    assert steps["last"] == alone["last"] == 3 * lengths[1] + (lengths[1] - 1) // 20 * 20


def test_epochs_of_changing_length_go_on(receipt_of: Receipt) -> None:
    steps = receipt_of(dino([0], 100) + dino([1], 140) + dino([2], 120))["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["restart_count"]) == (0, 100 + 140 + 100, 0)


def test_of_a_first_step_printed_again_the_last_one_counts(receipt_of: Receipt) -> None:
    one = "Parameters: x\nIter 0 Done. | loss: {} | lr: 0.01\nTraining epoch 1\n"
    document = receipt_of("".join(one.format(2.5 - n / 4) for n in range(5)))
    steps = document["summary"]["steps"]
    assert (steps["record_count"], steps["restart_count"], steps["superseded_count"]) == (1, 4, 4)
    assert document["summary"]["metrics"]["loss"]["last"] == 1.5


def test_copies_of_each_step_are_no_restarts(receipt_of: Receipt) -> None:
    lines = "".join(
        f"starting\niter {n}: loss {2 + n / 10 + copy / 100:.4f}, time 30.00ms, mfu 12.00%\n" for n in range(9) for copy in (0, 1)
    )
    assert receipt_of(lines)["summary"]["steps"]["restart_count"] == 0


def test_one_batch_on_two_lines_is_one_record(receipt_of: Receipt) -> None:
    head = "INFO:root:Epoch[{}] Batch [{}]\tSpeed: 652.68 samples/sec\tTrain-"
    pair = head + "accuracy=0.0050\n" + head + "top_k_accuracy_5=0.0150\n"
    log = "".join(pair.format(epoch, batch, epoch, batch) for epoch in (0, 1) for batch in range(50, 500, 50))
    assert receipt_of(log)["summary"]["steps"]["record_count"] == 18


def all_receipts(tmp_path: Path, log: str) -> list[dict[str, Any]]:
    path = tmp_path / "run.log"
    path.write_text(log)
    return [product.document for product in produce_all(Request(path=str(path), workers=1))]


def test_every_launch_counts_its_own_epochs(tmp_path: Path) -> None:
    documents = all_receipts(tmp_path, yolox(20, 112) + DONE + yolox(20, 14) + DONE)
    assert [spread(document) for document in documents] == [(10, 2238, 2240, 220), (10, 276, 280, 20)]


def hf(*values: str) -> str:
    kinds = {
        "e": "{{'eval_loss': {0}, 'eval_runtime': 1.0, 'epoch': {1}}}",
        "t": "{{'loss': {0}, 'learning_rate': 1e-05, 'epoch': {1}}}",
    }
    end = "{'train_runtime': 10.0, 'train_samples_per_second': 1.0, 'train_steps_per_second': 0.2, 'epoch': 2.0}"
    return "".join((end if value == "end" else kinds[value[0]].format(*value[1:].split("@"))) + "\n" for value in values)


FIRST_EVALUATIONS = [
    ("of the next launch", ("e9.0@0.0", "t5.0@0.5", "e8.0@1.0", "t4.0@1.5", "end"), [9.0, 8.0]),
    ("equal to the last one: of the launch before", ("e0.3@2.0", "t5.0@0.5", "e8.0@1.0", "t4.0@1.5", "end"), [8.0]),
    ("none", ("t5.0@0.5", "e8.0@1.0", "t4.0@1.5", "end"), [8.0]),
]


@pytest.mark.parametrize(
    ("second", "expected"), [one[1:] for one in FIRST_EVALUATIONS], ids=[one[0] for one in FIRST_EVALUATIONS]
)
def test_the_first_evaluation_of_a_launch_is_its_own(receipt_of: Receipt, second: tuple[str, ...], expected: list[float]) -> None:
    log = hf("t0.5@0.5", "e0.4@1.0", "t0.3@1.5", "e0.3@2.0", "end") + hf(*second)
    losses = receipt_of(log)["summary"]["metrics"]["val_loss"]
    assert (losses["record_count"], losses["first"], losses["last"]) == (len(expected), expected[0], expected[-1])


def iters(numbers: Iterable[int], loss: float = 2.5) -> str:
    return "".join(f"iter {n}: loss {loss + n / 1000:.4f}, time {30 + n % 7}.00ms, mfu 12.00%\n" for n in numbers)


def problems(document: dict[str, Any]) -> list[str]:
    return [problem["detail"] for problem in document["derivation"]["problems"]["first"] if problem["kind"] == "steps_missing"]


HOLES = [
    (
        "one",
        [*range(0, 200, 10), *range(260, 400, 10)],
        ["6 records are missing between regular steps: from step 200 to step 250"],
    ),
    (
        "two among thousands of records",
        [*range(0, 40_000, 10), *range(40_070, 90_000, 10), *range(90_100, 180_000, 10)],
        ["17 records in 2 places are missing between regular steps: from step 40000 to step 90090"],
    ),
    ("none", range(0, 400, 10), []),
    ("the first record before the stride", [0, *range(7, 100, 10)], []),
    ("another stride from here on", [*range(0, 100, 10), *range(100, 1000, 100)], []),
    ("few records", [0, 10, 20, 50, 60], []),
    ("no regular stride", [n * n for n in range(20)], []),
]


@pytest.mark.parametrize(("numbers", "expected"), [hole[1:] for hole in HOLES], ids=[hole[0] for hole in HOLES])
def test_steps_missing_from_a_regular_stride_are_reported(
    receipt_of: Receipt, numbers: Iterable[int], expected: list[str]
) -> None:
    assert problems(receipt_of(iters(numbers))) == expected


def without_lines(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a receipt without the lines that its figures are from."""
    kept = {key: value for key, value in part.items() if not key.endswith("_line")}
    return {key: without_lines(value) if isinstance(value, dict) else value for key, value in kept.items()}


def test_two_launches_of_a_log_appended_to_itself(tmp_path: Path) -> None:
    log = iters(range(0, 120, 10))
    once, twice = all_receipts(tmp_path, log), all_receipts(tmp_path, log * 2)
    alone, first, second = (without_lines(document["summary"]["metrics"]) for document in (*once, *twice))
    assert first == second == alone


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_two_processes_print_one_run(receipt_of: Receipt, size: int) -> None:
    lines = iters(range(0, 400, 10)).splitlines(keepends=True)
    other = [line.replace(".00ms", ".50ms") for line in lines]
    mixed = "".join("".join(lines[at : at + size] + other[at : at + size]) for at in range(0, len(lines), size))
    summary, alone = receipt_of(mixed)["summary"], receipt_of("".join(lines))["summary"]
    assert without_lines(summary["steps"]) == without_lines(alone["steps"])
    assert without_lines(summary["metrics"]["loss"]) == without_lines(alone["metrics"]["loss"])


def test_records_of_one_epoch_that_differ_in_their_rate_are_no_copies(receipt_of: Receipt) -> None:
    line = "INFO: [Epoch {}][Batch {}], Speed: {:.3f} samples/sec, CrossEntropy=1.69e+00, SmoothL1=3.28e-03\n"
    log = "".join(line.format(epoch, batch, 6 + epoch / 10 + batch / 70) for epoch in range(30) for batch in (0, 50))
    assert receipt_of(log)["summary"]["steps"]["record_count"] == 60


BANNER = (
    "Mon Jan {0} 05:11:27 2026\nNVIDIA-SMI 570.158.01 Driver {0}\nloading 18{0} images\nbuilding the vocabulary\n"
    "using {0} workers\nstart of training, pid 24{0}\n"
)
BANNERS = [
    ("with other losses: another launch", BANNER.format(5), BANNER.format(6), 2.25, [12, 9]),
    ("with the same losses: another attempt", BANNER.format(5), BANNER.format(6), 2.5, [9]),
    ("half of its lines: another launch", BANNER.format(5), BANNER.format(6) + "resized\nno cache\nslow\n", 2.25, [12, 9]),
    ("its first line, with other lines", "Started.\n[{x: 1}, {y: 2}]\n", "Started.\n[{y: 2}, {x: 1}]\n", 2.25, [12, 9]),
    ("other lines, the same losses", BANNER.format(5), "a\nb\nc\nd\ne\nf\ng\n", 2.5, [9]),
]


@pytest.mark.parametrize(("first", "second", "loss", "expected"), [one[1:] for one in BANNERS], ids=[one[0] for one in BANNERS])
def test_a_banner_that_no_rule_reads_begins_a_launch(
    tmp_path: Path, first: str, second: str, loss: float, expected: list[int]
) -> None:
    documents = all_receipts(tmp_path, first + iters(range(0, 120, 10)) + second + iters(range(0, 90, 10), loss))
    counts = [document["summary"]["steps"]["record_count"] for document in documents]
    assert counts == expected
    assert documents[-1]["summary"]["steps"]["restart_count"] == (1 if len(expected) == 1 else 0)


def test_a_first_line_that_stands_before_steps_that_go_on_begins_no_launch(tmp_path: Path) -> None:
    rounds = (range(0, 30, 10), range(30, 60, 10), range(60, 90, 10), range(0, 20, 10))
    log = "".join(f"Round.\nlength {len(numbers)}{numbers[0]}\n{iters(numbers, 2.5 - at)}" for at, numbers in enumerate(rounds))
    assert [document["summary"]["steps"]["restart_count"] for document in all_receipts(tmp_path, log)] == [1]


def test_records_without_a_number_are_of_the_start_before_them(tmp_path: Path) -> None:
    losses = [[977.75 - 9 * number for number in range(12)], [], [583.25], [], [], [198.75]]
    log = "".join("Loading.\nReady.\n" + "".join(f"Total train loss: {loss}\n" for loss in start) for start in losses)
    documents = all_receipts(tmp_path, log)
    assert [document["summary"]["steps"]["record_count"] for document in documents] == [12, 1, 1]
    assert documents[-1]["summary"]["metrics"]["loss"]["first"] == 198.75


DOUBTS = [
    ("other losses", iters(range(0, 60, 10)) + "crash\n" + iters(range(0, 60, 10), 2.25), [6, 6], 8),
    ("more, from the first step on", iters(range(0, 90, 10)) + iters(range(0, 120, 10), 2.25), [9, 12], None),
    ("more, but after few", iters(range(0, 60, 10)) + iters(range(0, 120, 10), 2.25), [6, 12], 7),
    ("another stride", iters(range(0, 60, 10)) + iters(range(5, 80, 5), 2.25), [6, 15], 7),
    ("too few to decide", iters(range(0, 60, 10)) + iters(range(0, 20, 10), 2.25), [2], 7),
    ("the same losses", iters(range(0, 60, 10)) + "crash\n" + iters(range(0, 120, 10)), [12], None),
    ("other losses behind the first step", iters(range(0, 60, 10)) + "crash\n" + iters(range(20, 120, 10), 2.25), [12], None),
    ("two processes, one ahead", iters(range(0, 60, 10)) + iters(range(0, 10, 10)) + iters(range(30, 120, 10)), [10], None),
]


@pytest.mark.parametrize(("log", "expected", "line"), [one[1:] for one in DOUBTS], ids=[one[0] for one in DOUBTS])
def test_launches_that_only_records_show_are_doubtful(tmp_path: Path, log: str, expected: list[int], line: int | None) -> None:
    documents = all_receipts(tmp_path, log)
    assert [document["summary"]["steps"]["record_count"] for document in documents] == expected
    problems = documents[-1]["derivation"]["problems"]["first"]
    assert [p["line_number"] for p in problems if p["kind"] == "launch_doubtful"] == ([] if line is None else [line])


ARGUMENTS = "Overriding: batch_size = {}\ntokens per iteration will be: {}\nnumber of parameters: 0.{}0M\n"
FAILED = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nRuntimeError: no data\n'


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_failed_starts_before_the_run_are_launches_of_their_own(tmp_path: Path, failures: int) -> None:
    start = ARGUMENTS.format(8, 128, 5)
    documents = all_receipts(tmp_path, (start + FAILED) * failures + start + iters(range(0, 60, 10)))
    reasons = [document["failure"] and document["failure"]["reason"] for document in documents]
    assert reasons == ["traceback"] * failures + [None]
    assert documents[-1]["summary"]["steps"]["record_count"] == 6


def prints(at: str, words: Iterable[str] = ("seed {0}", "the data is there", "a tokenizer", "model of {0}M", "optimizer")) -> str:
    """Return what a program prints first, each line behind its time (``HH:MM``)."""
    return "".join(f"{at}:{second:02} INFO {word.format(7)}\n" for second, word in enumerate(words))


def counts_on(at: str, number: int) -> str:
    return prints(at, (f"EPOCH {number} IS DONE @ {at}", "the data is there", "a sentence", "its translation", "saved"))


DAY = "2026-05-06 {}"
SOON = prints("10:09").replace(":0", ":2")
SILENT = [
    ("starts that end without a word", prints("10:00") + prints("10:04") + prints("11:30"), [1, 6, 11]),
    ("with dates", prints(DAY.format("10:00")) + prints(DAY.format("10:04")), [1, 6]),
    ("one of them printed little", prints("10:00") + prints("10:04", ["seed {0}"]) + prints("11:30"), [1, 7]),
    ("one of them soon after", prints("10:00") + prints("10:04") + prints("10:09") + SOON + prints("10:30"), [1, 6, 11, 16, 21]),
    ("several processes", prints("10:00") * 4, [1]),
    ("several processes, one late", prints("10:00") * 3 + prints("10:04"), [1]),
    ("too few lines", prints("10:00", "ab") + prints("10:04", "ab") + prints("10:09", "ab"), [1]),
    ("without a time", (prints("10:00") + prints("10:04")).replace(":", "h"), [1]),
    ("a loop", counts_on("10:00", 1) + counts_on("10:04", 2) + counts_on("10:09", 3), [1]),
    ("a loop of which some turns are left out", counts_on("10:00", 1) + counts_on("10:04", 3) + counts_on("10:09", 4), [1]),
]  # fmt: skip


@pytest.mark.parametrize(("log", "lines"), [one[1:] for one in SILENT], ids=[one[0] for one in SILENT])
def test_starts_that_take_no_step_are_launches_of_their_own(tmp_path: Path, log: str, lines: list[int]) -> None:
    documents = all_receipts(tmp_path, log + iters(range(0, 60, 10)))
    assert [document["derivation"].get("launches", {"first_line": 1})["first_line"] for document in documents] == lines
    assert documents[-1]["summary"]["steps"]["record_count"] == 6


def test_starts_between_two_runs_are_launches_of_their_own(tmp_path: Path) -> None:
    steps, begun = iters(range(0, 60, 10)), prints("10:00") + iters(range(0, 60, 10), 3.5)
    documents = all_receipts(tmp_path, begun + prints("10:20") + prints("10:30") + prints("10:40") + steps)
    assert [document["derivation"]["launches"]["first_line"] for document in documents] == [1, 12, 17, 22]
    assert [one["summary"] and one["summary"]["steps"]["record_count"] for one in documents] == [6, None, None, 6]


def test_tracebacks_of_worker_processes_are_no_starts(tmp_path: Path) -> None:
    log = "loading the table\n" + "".join(f"Process Worker-{number}:\n{FAILED}" for number in range(4))
    assert [document["failure"]["line_number"] for document in all_receipts(tmp_path, log)] == [5]


@pytest.mark.parametrize(("again", "restarts"), [(6, 1), (2, 0)])
def test_a_step_that_comes_again_behind_a_banner_is_a_restart(receipt_of: Receipt, again: int, restarts: int) -> None:
    """A run that was resumed at its last checkpoint may print just one of its steps again."""
    head = [f"{word} is ready\n" for word in ("config", "device", "tokenizer", "model", "data set", "optimizer")]
    steps = [f"Batch {n}/500 | Loss: {9 - n / 100:.4f} | Student: {3 + n / 70:.4f}\n" for n in range(10, 210, 10)]
    other = steps[9].replace("Loss: 8", "Loss: 7")
    document = receipt_of("".join([*head, *steps[:10], *head[:again], "resumed from batch 90\n", other, *steps[10:]]))
    shown = document["summary"]["steps"]
    assert (shown["restart_count"], shown["superseded_count"], shown["record_count"]) == (restarts, restarts, 20)
    assert (document["summary"]["metrics"]["loss"]["mean"] is None) is not bool(restarts)


def turns(of: dict[str, Iterable[str]], order: Iterable[str]) -> str:
    """Lines of several processes in the order in which they print; then what is left of each."""
    left = {name: iter(lines) for name, lines in of.items()}
    mixed = [next(left[name], "") for name in order]
    return "".join([*mixed, *(line for lines in left.values() for line in lines)])


def nanogpt(first: int, last: int, loss: float) -> list[str]:
    return [f"iter {n}: loss {loss - n / 1000:.4f}, time {40 + loss:.2f}ms, mfu 30.02%\n" for n in range(first, last)]


def titan(first: int, last: int, loss: float) -> list[str]:
    head = "[rank0]:[titan] 2026-05-09 21:25:14,651 - root - INFO - "
    tail = "grad_norm:  0.1009  memory:  9.19GiB(29.31%)  tps: 191  tflops: 1.43  mfu: 0.46%"
    return [f"{head}step: {n:2}  loss: {loss - n / 1000:.5f}  {tail}\n" for n in range(first, last)]


def llama2c(first: int, last: int, loss: float) -> list[str]:
    return [f"{n * 10} | loss {loss - n / 1000:.4f} | lr 1.0e-03 | {40 + loss:.2f}ms | mfu 30.02%\n" for n in range(first, last)]


@pytest.mark.parametrize("record", [nanogpt, titan, llama2c])
@pytest.mark.parametrize("order", ["ab", "aab", "aaabb", "abbaab", "abc", "aaaaaaaaabbbbb"])
@pytest.mark.parametrize("begins", [(20, 0, 50), (0, 60, 7), (300, 20, 100)])
def test_processes_that_take_turns_are_no_restarts(
    receipt_of: Receipt, record: Callable[[int, int, float], list[str]], order: str, begins: tuple[int, int, int]
) -> None:
    logs = {name: record(begin, 400, loss) for name, begin, loss in zip("abc", begins, (9.0, 6.0, 3.0), strict=True)}
    logs = {name: lines for name, lines in logs.items() if name in order}
    read = receipt_of(turns(logs, order * 40))
    own = receipt_of("".join(logs[max(logs)]))
    assert (*spread(read), read["summary"]["steps"]["restart_count"]) == (*spread(own), 0)
    assert read["summary"]["metrics"]["loss"]["mean"] == own["summary"]["metrics"]["loss"]["mean"]
    [problem] = [problem for problem in read["derivation"]["problems"]["first"] if problem["kind"] == "side_by_side"]
    assert f"{len(logs)} processes" in problem["detail"]


def test_processes_that_take_turns_inside_their_epochs_are_no_restarts(receipt_of: Receipt) -> None:
    def cyclegan(epochs: int, loss: float) -> list[str]:
        places = [(epoch, inside) for epoch in range(1, epochs + 1) for inside in range(100, 900, 100)]
        form = "(epoch: {}, iters: {}, time: 0.090, data: 0.001) G_GAN: {:.3f} G_L1: 3.000 D_real: 0.500 D_fake: 0.625 \n"
        return [form.format(epoch, inside, loss + inside / 1000) for epoch, inside in places]

    alone, beside = cyclegan(9, 2.0), cyclegan(12, 7.0)
    documents = [
        receipt_of("".join(lines)) for lines in (beside, [*alone[:12], turns({"a": alone[12:], "b": beside}, "ab" * 90)])
    ]
    steps, means = ([document["summary"][part] for document in documents] for part in ("steps", "other_metrics"))
    assert [(one["record_count"], one["restart_count"]) for one in steps] == [(96, 0)] * 2
    assert means[0]["g_gan"]["mean"] == means[1]["g_gan"]["mean"]


def test_a_model_that_each_run_prints_after_its_steps_is_not_that_of_the_next_run(tmp_path: Path) -> None:
    def fitted(parameters: str, loss: float) -> str:
        bars = [
            f"Epoch {epoch}/5\n285/285 [====] - 6s 22ms/step - loss: {loss / epoch:.4f} - acc: 0.9\n" for epoch in range(1, 6)
        ]
        return "".join(
            [*bars, f"Score for model: Test loss:  {loss / 7}\nTotal params: {parameters}\nTrainable params: {parameters}\n"]
        )

    documents = all_receipts(tmp_path, fitted("115,214", 2.0) + fitted("1,277,534", 3.0) + fitted("99,661", 4.0))
    assert len(documents) == 3
    assert documents[-1]["header"]["model"]["parameter_count"] is None is documents[-1]["summary"]["parameter_count"]
    [problem] = [one for one in documents[-1]["derivation"]["problems"]["first"] if one["kind"] == "launch_doubtful"]
    assert problem["fields"] == ["/header/model/parameter_count"]


def test_many_restarts_are_not_processes_side_by_side(receipt_of: Receipt) -> None:
    lines = [line for begin in range(0, 200, 10) for line in nanogpt(begin, begin + 25, 9.0 - begin / 100)]
    document = receipt_of("".join(lines))
    assert document["summary"]["steps"]["restart_count"] == 19
    assert document["summary"]["steps"]["last"] == 214


def test_a_second_failed_start_may_end_without_a_line_end(receipt_of: Receipt) -> None:
    head = "".join(f"{word} is ready\n" for word in ("config", "device", "tokenizer", "model", "data set", "optimizer"))
    crash = 'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n    main()\nValueError: bad batch 17'
    for end in ("", "\n"):
        document = receipt_of(f"{head}{crash}\n{head}{crash.replace('17', '18')}{end}")
        assert document["failure"]["message"] == "ValueError: bad batch 18"
        assert document["derivation"]["launches"] == {"count": 2, "used": 2, "first_line": 11}


def test_a_second_line_about_the_first_step_is_no_restart() -> None:
    lines = [
        f"I0401 08:05:{n // 20:02d}.{at}] {text}"
        for n in range(100, 500, 20)
        for at, text in (
            ("118290  5674 solver.cpp:218", f"Iteration {n} (2.95 iter/s, 6.77 s/20 iters), loss = {3 - n / 500:.4f}"),
            ("118345  5674 solver.cpp:237", f"    Train net output #0: loss_bbox = {n / 9000:.6f} (* 1)"),
            ("118367  5674 sgd_solver.cpp:105", f"Iteration {n}, lr = 1e-05"),
        )
        if n not in (300, 320) or text.endswith("lr = 1e-05")  # of two steps only the second line is left
    ]
    [summary] = learned_of(lines).summaries
    assert (summary.record_count, summary.restart_count, summary.superseded_count) == (20, 0, 0)
    assert (summary.metrics["loss"].first, summary.metrics["learning_rate"].record_count) == (2.8, 20)
