"""Several runs in one log: what tells another run from another attempt of the same one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.events.launches import Launch, window
from receipt_cli.receipts.production import Request, produce_all
from receipt_cli.scan.columns import place
from receipt_cli.scan.segment import KEPT_HITS, SegmentBody

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]
BANNER = "toy model 1000\ntoy batch 8 x 32\n"
TRACE = "Traceback (most recent call last):\nValueError: no such batch\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.14 GiB.\n"
DONE = "toy done in 5.0 s\n"
OTHER = BANNER.replace("1000", "2000")
KILLED = "slurmstepd: error: *** JOB 7214 ON node3 CANCELLED AT 2026-10-25T12:00:00 DUE TO TIME LIMIT ***\n"
RESUMED = "Resuming training from out\n"


def steps(numbers: Iterable[int], loss: float = 2.5, plan: str = "") -> str:
    return "".join(f"toy step {n}{plan} | loss={loss + n / 64} | time=0.5\n" for n in numbers)


def timed(numbers: Iterable[int], at: str, loss: float = 2.5, plan: str = "") -> list[str]:
    """Return step records that begin at a time (``HH:MM:SS``), ten seconds apart."""
    begin = datetime.fromisoformat(f"2026-10-25 {at}")
    lines = steps(numbers, loss, plan).splitlines(keepends=True)
    return [f"{begin + timedelta(seconds=10 * n)} {line}" for n, line in enumerate(lines)]


def in_blocks(one: list[str], other: list[str], size: int) -> str:
    """Return two lists of lines in turns of so many lines."""
    return "".join("".join(one[n : n + size] + other[n : n + size]) for n in range(0, len(one), size))


def launches(document: dict[str, Any]) -> tuple[int, int, int]:
    found = document["derivation"].get("launches", {"count": 1, "used": 1, "first_line": 1})
    return found["count"], found["used"], found["first_line"]


def spread(document: dict[str, Any]) -> tuple[int | None, int | None, int, int]:
    found = document["summary"]["steps"]
    return found["first"], found["last"], found["record_count"], found["restart_count"]


def evals(numbers: Iterable[int], loss: float = 2.5) -> str:
    return "".join(f"toy eval {n}: {loss - n / 64}\n" for n in numbers)


def named(rank: str, at: str) -> list[str]:
    return [f"[{rank}] {line}" for line in timed(range(12), at, 2.5 + (rank == "rank1"))]


FIRST = "".join(timed(range(9), "12:00:00"))
SEVERAL = [
    ("appended, begun anew", BANNER + steps(range(9)) + BANNER + steps(range(4), loss=3.5), 2),
    ("after a crash, from the start", BANNER + steps(range(9)) + TRACE + BANNER + steps(range(4), loss=3.5), 2),
    ("a queue of three", (BANNER + steps(range(6)) + DONE) * 3, 3),
    ("done, no banner", (steps(range(6)) + DONE) * 2, 2),
    ("the plan was reached", steps(range(6), plan="/6") * 2, 2),
    ("another model", BANNER + steps(range(6)) + OTHER + steps(range(6)), 2),
    ("another batch", BANNER + steps(range(6)) + BANNER.replace(" 8 ", " 16 ") + steps(range(6)), 2),
    ("another plan", BANNER + steps(range(6), plan="/9") + BANNER + steps(range(6), plan="/12"), 2),
    ("another model that goes on from its checkpoint", BANNER + steps(range(6)) + OTHER + steps(range(8, 12)), 2),
    ("folds without a word", steps(range(6)) * 5, 5),
    ("a smaller batch after running out of memory at once", BANNER + OOM + BANNER.replace(" 8 ", " 4 ") + steps(range(6)), 2),
    ("another plan behind a crash", steps(range(6), plan="/9") + TRACE + steps(range(6), plan="/12"), 2),
    ("another plan behind a report of the job", steps(range(6), plan="/9") + OOM + KILLED + steps(range(6), plan="/12"), 2),
    ("another plan before the first was done", steps(range(6), plan="/100") + steps(range(4), plan="/40"), 2),
    ("another plan, far ahead", steps(range(14), plan="/300") + steps(range(251, 260), plan="/350"), 2),
    ("another plan between two others", "".join(steps(n, plan=f"/{n[-1] + 1}") for n in (range(20), range(5), range(20, 30))), 2),
    ("begun before the run before", "".join(timed(range(9), "12:00:00") + timed(range(9), "09:00:00")), 2),
    ("the same, by seconds", "".join(timed(range(4), "12:00:40") + timed(range(2), "12:00:25")), 2),
    ("the same losses at the same times", BANNER + FIRST + BANNER + "".join(timed(range(4), "12:00:00")), 2),
    ("evaluations alone, twice", BANNER + evals(range(1, 4)) + DONE + BANNER + evals(range(1, 4), 1.5) + DONE, 2),
    ("evaluations alone, then steps", BANNER + evals(range(1, 4)) + DONE + BANNER + steps(range(6)), 2),
    ("died at its start with another model", BANNER + steps(range(6)) + DONE + OTHER + TRACE, 2),
]  # fmt: skip
ONE = [
    ("one run", BANNER + steps(range(9)) + DONE),
    ("resumed in the middle", BANNER + steps(range(9)) + TRACE + BANNER + steps(range(6, 12))),
    ("resumed and extended", BANNER + steps(range(9), plan="/9") + BANNER + steps(range(9, 15), plan="/15")),
    ("from the start, no banner", steps(range(9)) + steps(range(4))),
    ("the same trajectory again", BANNER + steps(range(9)) + TRACE + BANNER + steps(range(12))),
    (
        "the launcher started it again",
        BANNER + steps(range(9)) + "[default] Worker group FAILED. 3/3 attempts left; will restart worker group\n"
        + BANNER + steps(range(12), loss=3.0),
    ),
    ("resumed from the first checkpoint", BANNER + steps(range(9)) + BANNER + RESUMED + steps(range(3), loss=3.0)),
    ("every rank introduces itself", BANNER * 4 + steps(range(9))),
    ("introduced late", BANNER + steps(range(3)) + BANNER + steps(range(3, 9))),
    ("stages with names", "".join(f"toy stage {name}\n{steps(range(5))}" for name in ("one", "two", "three"))),
    ("another plan, no banner", steps(range(6), plan="/6") + steps(range(4), plan="/4")),
    ("died at its start, the same run", BANNER + steps(range(9)) + DONE + BANNER + TRACE),
    ("three crashes without a banner", (steps(range(4)) + TRACE) * 3),
    ("evaluations that go on", BANNER + evals(range(1, 4)) + DONE + BANNER + evals(range(4, 7)) + DONE),
    ("winter time", "".join(timed(range(6), "02:59:05") + timed(range(6, 12), "02:00:05"))),
    ("winter time, and from the start", "".join(timed(range(6), "02:59:05") + timed(range(2), "02:00:05"))),
    ("two ranks with names", in_blocks(named("rank0", "12:00:03"), named("rank1", "12:00:00"), 1)),
    ("two ranks with names in blocks", in_blocks(named("rank0", "12:00:03"), named("rank1", "12:00:00"), 6)),
]  # fmt: skip
CONTESTED = [
    ("a smaller batch", steps(range(5)) + OOM + steps(range(9), loss=3.5), 7, 9, 3.5),
    ("a smaller batch, another plan", steps(range(5), plan="/100") + OOM + steps(range(9), plan="/200"), 7, 9, 2.5),
    ("the same, logged", steps(range(5), plan="/100") + f"WARNING {OOM}Batch of 4\n" + steps(range(9), plan="/200"), 8, 9, 2.5),
    ("two clocks", in_blocks(timed(range(12), "12:00:03"), timed(range(12), "12:00:00", 3.5), 4), 5, 12, None),
    (
        "two clocks, one behind the other",
        in_blocks(timed(range(12), "12:00:03"), timed(range(12), "12:00:00", 3.5), 12),
        13,
        12,
        None,
    ),
]
"""Steps that begin anew though nothing shows a start of the program: the line, the records of the run, and its first loss.

The loss is None where two processes print at the same time: either may be the one that counts.
"""


@pytest.mark.parametrize(("log", "count"), [row[1:] for row in SEVERAL], ids=[row[0] for row in SEVERAL])
def test_several_runs(log: str, count: int, toy_receipt: Receipt) -> None:
    assert launches(toy_receipt(log))[:2] == (count, count)


@pytest.mark.parametrize("log", [row[1] for row in ONE], ids=[row[0] for row in ONE])
def test_one_run(log: str, toy_receipt: Receipt) -> None:
    document = toy_receipt(log)
    assert "launches" not in document["derivation"]


@pytest.mark.parametrize(("log", "line", "records", "first"), [row[1:] for row in CONTESTED], ids=[row[0] for row in CONTESTED])
def test_one_run_whose_steps_begin_anew(log: str, line: int, records: int, first: float | None, toy_receipt: Receipt) -> None:
    document = toy_receipt(log)
    assert "launches" not in document["derivation"]
    assert spread(document)[:3] == (0, records - 1, records)
    doubts = [problem for problem in document["derivation"]["problems"]["first"] if problem["kind"] == "launch_doubtful"]
    assert [doubt["line_number"] for doubt in doubts] == [line]
    loss = document["summary"]["metrics"]["loss"]
    assert loss["first"] == first and (loss["last"] is None) == (loss["mean"] is None) == (first is None)
    assert bool(doubts[0]["fields"]) == (first is None)
    assert (document["failure"] or {}).get("reason") != "cuda_oom"  # the run went on


def test_the_receipt_is_of_the_last_run_alone(toy_receipt: Receipt) -> None:
    log = BANNER + steps(range(9), loss=1.0) + "toy eval 8: 1.25\n" + OOM
    log += "toy model 2000\ntoy batch 4 x 32\ntoy eval 0: 9.0\n" + steps(range(5), loss=5.0) + "toy eval 4: 8.0\n" + DONE
    document = toy_receipt(log)
    assert launches(document) == (2, 2, 14)
    assert spread(document) == (0, 4, 5, 0)
    metrics = document["summary"]["metrics"]
    assert (metrics["loss"]["first"], metrics["val_loss"]["first"], metrics["val_loss"]["record_count"]) == (5.0, 9.0, 2)
    assert document["summary"]["parameter_count"] == 2000
    assert document["header"]["sources"]["/model/parameter_count"] == "log:14"
    assert document["failure"] is None
    assert document["checks"]["no_oom"] is True
    assert document["derivation"]["observed"] == []
    assert sum(document["derivation"]["lines"].values()) == log.count("\n")  # the accounting is of the whole log


def test_a_run_that_died_at_its_start_has_no_steps(toy_receipt: Receipt) -> None:
    document = toy_receipt(BANNER + steps(range(6)) + DONE + "toy model 2000\n" + OOM)
    assert document["checks"]["has_steps"] is False
    assert document["failure"]["reason"] == "cuda_oom"


def test_a_fold_goes_by_the_banner_before_the_first(toy_receipt: Receipt) -> None:
    document = toy_receipt(BANNER + (steps(range(6)) + DONE) * 3)
    assert launches(document) == (3, 3, 17)
    assert document["summary"]["parameter_count"] == 1000


def test_a_run_without_a_logged_start_goes_by_the_banner_before(toy_receipt: Receipt) -> None:
    document = toy_receipt(BANNER + steps(range(9)) + steps(range(9), loss=9.5))
    assert launches(document) == (2, 2, 12)
    assert document["summary"]["parameter_count"] == 1000


@pytest.mark.parametrize("heading", ["Epoch {}/3", "---- epoch {} ----", "Start Epoch [{}]"])
def test_a_heading_that_counts_the_next_epoch_begins_no_run(heading: str, toy_receipt: Receipt) -> None:
    log = "".join(f"{heading.format(n)}\n{steps(range(6), loss=3 - n / 9, plan='/6')}" for n in (1, 2, 3))
    assert "launches" not in toy_receipt(log)["derivation"]
    assert launches(toy_receipt(log + log))[:2] == (2, 2)


def every(tmp_path: Path, log: str, **request: Any) -> list[dict[str, Any]]:
    path = tmp_path / "queue.log"
    path.write_text(log)
    return [product.document for product in produce_all(Request(path=str(path), workers=1, **request))]


def nanogpt(numbers: Iterable[int], loss: float) -> str:
    head = f"tokens per iteration will be: 4,096\nnumber of parameters: 0.{int(loss)}1M\n"
    return head + "".join(f"iter {n}: loss {loss - n / 10:.4f}, time 21.00ms, mfu 2.00%\n" for n in numbers)


def test_all_runs_have_their_receipt(tmp_path: Path) -> None:
    log = nanogpt(range(8), 4.0) + TRACE + nanogpt(range(6), 5.0) + OOM + nanogpt(range(9), 6.0)
    documents = every(tmp_path, log, exit_code=0, name="sweep")
    assert [launches(d) for d in documents] == [(3, 1, 1), (3, 2, 13), (3, 3, 22)]
    assert [d["summary"]["metrics"]["loss"]["first"] for d in documents] == [4.0, 5.0, 6.0]
    assert [d["summary"]["parameter_count"] for d in documents] == [410000, 510000, 610000]
    assert [(d["failure"] or {}).get("reason") for d in documents] == ["traceback", "cuda_oom", None]
    assert [(d["failure"] or {}).get("line_number") for d in documents] == [12, 21, None]
    assert documents[0]["failure"]["log_tail"][-1] == "ValueError: no such batch"
    assert documents[1]["failure"]["log_tail"][-1].startswith("torch.OutOfMemoryError")
    assert [d["run"]["exit_code"] for d in documents] == [None, None, 0]  # the job's exit code is the last run's
    assert {d["run"]["name"] for d in documents} == {"sweep"}
    assert len({d["derivation"]["log"]["sha256"] for d in documents}) == 1


def test_one_run_is_all_runs(tmp_path: Path) -> None:
    (document,) = every(tmp_path, nanogpt(range(8), 4.0))
    assert "launches" not in document["derivation"]


def test_records_printed_by_three_ranks_are_no_folds(receipt_of: Receipt) -> None:
    lines = [f"iter {n}: loss {3 - n / 10}, time 100.00ms, mfu 40.00%\n" * 3 for n in (0, 1, 2, 1, 2, 3)]
    document = receipt_of("".join(lines))
    assert "launches" not in document["derivation"]
    assert (document["summary"]["steps"]["first"], document["summary"]["steps"]["record_count"]) == (0, 4)


def failed_start(number: int, error: str = "TypeError: step() missing 1 required positional argument") -> str:
    head = [
        f"2026-05-06 18:43:2{number} INFO ---- {number} ----",
        "features: 5",
        f"type: emb{number}",
        "filter: rel",
        "epochs: 100",
    ]
    frames = ["Traceback (most recent call last):", '  File "/src/train.py", line 102, in <module>', "    scheduler.step()"]
    return "".join(f"{line}\n" for line in [*head, "rate: 0.01", "the data is there", *frames, error])


HEAD, FAILURE = failed_start(1)[: failed_start(1).index("Traceback")], failed_start(1)[failed_start(1).index("Traceback") :]


@pytest.mark.parametrize(
    ("log", "lines"),
    [
        (failed_start(1) + failed_start(2) + failed_start(3, "RuntimeError: no data"), [11, 22, 33]),
        (failed_start(1, KILLED.strip()) + failed_start(2, KILLED.strip()), [11, 22]),
        (failed_start(1) + "\n$ python train.py\n" + failed_start(2), [11, 24]),
        ("module load cuda\nnode7\n" + failed_start(1) + failed_start(2), [13, 24]),  # of the shell that started it
        (
            "".join(f"agent {word}\n" for word in ("up", "at work", "asked", "told", "ready"))
            + failed_start(1)
            + failed_start(2),
            [16, 27],
        ),
        ("\n" * 7 + failed_start(1) + failed_start(2), [18, 29]),
        (HEAD + HEAD + FAILURE + FAILURE, [18]),  # two processes
        (FAILURE * 3, [4]),  # nothing but tracebacks
        (("ERROR:root:no tracker is installed\n" + FAILURE) * 3, [5]),  # a logger prints them
        (("\x1b[31mERROR:root:no tracker is installed\x1b[0m\n" + FAILURE) * 3, [5]),
        (HEAD + FAILURE + "".join(HEAD.splitlines(keepends=True)[:3]) + FAILURE, [11]),  # too little comes again
        (
            failed_start(1) + "[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n" + failed_start(2),
            [11],
        ),
    ],
)
def test_a_program_that_fails_again_and_again_before_a_step(log: str, lines: list[int], tmp_path: Path) -> None:
    path = tmp_path / "nohup.out"
    path.write_text(log)
    documents = [product.document for product in produce_all(Request(path=str(path), workers=1))]
    assert [document["failure"]["line_number"] for document in documents] == lines


def test_no_text_of_another_run_stands_for_a_marker() -> None:
    """Of a marker that fires often the texts of its first and last hits are kept: those of a run in the middle are not."""
    body = SegmentBody()
    for number in range(4 * KEPT_HITS):
        body.markers["traceback_frame"].add((place(number), b'File "a.py", line %d' % number, None), number + 1)
    for start in range(0, 4 * KEPT_HITS, KEPT_HITS // 2):
        launch = Launch([], place(start), place(start + KEPT_HITS // 2))
        hits = window(body, launch).markers["traceback_frame"]
        assert len(hits.at) == KEPT_HITS // 2
        assert {at for at, _, _ in hits.texts} <= {*hits.at}
        kept = start < KEPT_HITS or start >= 3 * KEPT_HITS
        assert [text for _, text, _ in hits.texts][-1] == (f'File "a.py", line {start + KEPT_HITS // 2 - 1}' if kept else "")


def mllog(key: str, at: int, value: object = None, rank: str = "", **metadata: object) -> str:
    """Return a line of a benchmark at a time in milliseconds, as ``rank`` prints it."""
    printed = {"namespace": "", "time_ms": 1_700_000_000_000 + at, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return f"{rank}:::MLLOG {json.dumps({**printed, 'metadata': {'file': 'a.py', 'lineno': 1, **metadata}})}\n"


def benchmark(at: int, seed: int, ranks: tuple[str, ...] = ("",), *, stopped: bool = True) -> str:
    lines = [mllog("init_start", at + n, rank=rank) for n, rank in enumerate(ranks)]
    lines += [mllog("seed", at + 9, seed), *(mllog("run_start", at + 1000 + n, rank=rank) for n, rank in enumerate(ranks))]
    stats = ({"train_loss": 2.5 - n / 8, "throughput": 4.0 + n} for n in range(1, 6))
    lines += [mllog("tracked_stats", at + 2000 + n, s, samples_count=80 * n, step=10 * n) for n, s in enumerate(stats, 1)]
    return "".join([*lines, mllog("run_stop", at + 61_234, rank=ranks[0], status="success") if stopped else ""])


def test_a_mean_that_a_benchmark_prints_between_steps_is_no_step(receipt_of: Receipt) -> None:
    steps = [mllog("tracked_stats", n, {"reduced_train_loss": 3.5 - n / 8, "train_step_time": 2.0}, step=n) for n in range(1, 10)]
    mean = mllog("tracked_stats", 10, {"throughput": 4.0, "train_step_time": 9.0}, step=9)
    summary = receipt_of("".join([*steps, mean, mllog("run_stop", 11, status="success")]))["summary"]
    assert summary["metrics"]["step_time_s"]["last"] == summary["metrics"]["step_time_s"]["max"] == 2.0
    assert (summary["steps"]["record_count"], summary["other_metrics"]["throughput"]["last"]) == (9, 4.0)


@pytest.mark.parametrize("ranks", [("",), (" 0: ", " 1: "), ("", ""), (" 0: ", " 0: ")])
def test_a_benchmark_says_when_its_run_begins_and_ends(ranks: tuple[str, ...], receipt_of: Receipt) -> None:
    document = receipt_of(benchmark(0, 11, ranks))
    assert launches(document) == (1, 1, 1)
    assert document["summary"]["time_to_train_s"] == (60.234 if len({*ranks}) == len(ranks) else None)
    assert spread(document) == (10, 50, 5, 0)
    loss, rate = document["summary"]["metrics"]["loss"], document["summary"]["other_metrics"]["throughput"]
    assert (loss["first"], loss["last"], rate["last"]) == (2.375, 1.875, 9.0)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_benchmark_that_begins_again_is_another_run(stopped: bool, receipt_of: Receipt) -> None:
    document = receipt_of(benchmark(0, 11, stopped=stopped) + benchmark(600_000, 22))
    assert launches(document)[:2] == (2, 2)
    assert document["header"]["seeds"] == {"seed": 22}
    assert document["summary"]["time_to_train_s"] == 60.234
    assert spread(document) == (10, 50, 5, 0)
