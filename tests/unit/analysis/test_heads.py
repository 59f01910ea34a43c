"""Tracebacks behind everything that step lines may stand behind, and what loggers and workers print of them."""

from pathlib import Path

import pytest

from benchmarks.metamorphic import heads as table
from tests.tools.logs import receipt_of

STEPS = [f"iter {n}: loss {3 - n * 0.01:.4f}, time 100.00ms, mfu 40.00%" for n in range(20)]
TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/src/train.py", line 12, in main',
    "    loss = step(batch)",
    '  File "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1511, in _call_impl',
    "    return forward_call(*args, **kwargs)",
    "ValueError: could not broadcast input array from shape (3,) into shape (4,)",
]
HEADS = [
    "",
    "[rank3]: ",
    "[default12]:",
    " 5: ",
    "[1,4]<stdout>:",
    "Rank 2 ",
    "(RayTrainWorker pid=21663, ip=10.0.0.1) ",
    "gpu250: ",
    "10.0.0.4: ",
    "node-3: [default0]:",
    "Jan  2 03:04:05 node001 train[123]: ",
    "ERROR:2026-03-26 21:59:41,526:",
    "2026-01-02T03:04:06.250000000Z stdout F ",
    "\x1b[36m(TaskRunner pid=38606)\x1b[0m ",
]
RANKS = {"[rank3]: ": 3, "[default12]:": 12, " 5: ": 5, "[1,4]<stdout>:": 4, "node-3: [default0]:": 0, "Rank 2 ": 2}
HOSTS = {
    "gpu250: ": "gpu250",
    "10.0.0.4: ": "10.0.0.4",
    "node-3: [default0]:": "node-3",
    "Jan  2 03:04:05 node001 train[123]: ": "node001",
}


def log(head: str, *parts: list[str]) -> str:
    return "".join(f"{head}{line}\n" for part in parts for line in part)


@pytest.mark.parametrize("head", HEADS, ids=repr)
def test_a_traceback_is_found_behind_every_head_of_step_lines(head: str) -> None:
    document = receipt_of(log(head, STEPS, TRACEBACK))
    assert document["summary"]["steps"]["record_count"] == len(STEPS)
    failure = document["failure"]
    assert (failure["reason"], failure["line_number"]) == ("traceback", 26)
    assert failure["message"] == TRACEBACK[-1]
    assert failure["exception"] == {
        "type": "ValueError",
        "message": "could not broadcast input array from shape (3,) into shape (4,)",
        "line_number": 26,
        "frame": {"file": "/src/train.py", "line": 12, "function": "main", "relative": "train.py"},
    }
    who = failure["culprit"] or {"rank": None, "host": None}
    assert (who["rank"] if head in RANKS else None, who["host"] if head in HOSTS else None) == (RANKS.get(head), HOSTS.get(head))


@pytest.mark.parametrize("head", HEADS, ids=repr)
def test_the_same_traceback_that_steps_follow_is_none(head: str) -> None:
    more = [line.replace("iter ", "iter 2") for line in STEPS]
    document = receipt_of(log(head, STEPS, TRACEBACK, more))
    assert document["failure"] is None or document["failure"]["reason"] == "truncated"
    assert document["checks"]["zero_exit_code"] is None
    assert "exception" in [marker["id"] for marker in document["derivation"]["observed"]]


PAIRS = [(head, list(table.ENDINGS)[n % len(table.ENDINGS)]) for n, head in enumerate(table.HEADS)]
PAIRS += [("none", ending) for ending in table.ENDINGS]


@pytest.mark.parametrize(("head", "ending"), PAIRS)
def test_each_ending_of_the_table_is_found(tmp_path: Path, head: str, ending: str) -> None:
    assert table.verdict(head, ending, tmp_path) == ""


HANDLED = ["Error loading model:  CUDA out of memory. Tried to allocate 1.50 GiB."]
LOGGED = ["ERROR:root:Traceback (most recent call last):", *TRACEBACK[1:]]
WORKER = [f"(CursorLoopWorker pid=57714) {line}" for line in TRACEBACK]
REPORT = [
    "--- Logging error ---",
    *TRACEBACK,
    "Call stack:",
    '  File "train.py", line 5, in <module>',
    "Message: 'x'",
    "Arguments: (0.7,)",
]
ON = [f"rollout {n} goes on" for n in range(40)]
DEATH = ["ray.exceptions.RayTaskError(ValueError): ray::TaskRunner.run() (pid=54569, ip=10.0.0.4)"]


@pytest.mark.parametrize(
    ("end", "want"),
    [
        ([*LOGGED, *ON], None),
        (LOGGED, "traceback"),
        ([*LOGGED, "stopping", "logs are in out/"], "traceback"),
        ([*LOGGED, *ON, "srun: error: node12: task 3: Exited with exit code 1"], "traceback"),
        ([*LOGGED, "EXIT_CODE=1", *ON], "traceback"),
        ([*WORKER, *ON[:2]], None),
        (WORKER, "traceback"),
        ([*WORKER, *ON, *DEATH], "traceback"),
        ([*WORKER, *ON, *WORKER, *ON, *WORKER, *ON[:3]], None),
        (REPORT, None),
        ([*REPORT, *REPORT], None),
        ([*REPORT, *ON, *TRACEBACK], "traceback"),
        ([*HANDLED, *ON[:3]], None),
        ([*HANDLED, *ON[:2]], "cuda_oom"),
        ([*HANDLED, *ON[:3], "exited with code 1"], "cuda_oom"),
        ([*TRACEBACK, *ON], "traceback"),
        ([*TRACEBACK, *[f"line {n}" for n in range(250)]], "traceback"),
    ],
)
def test_what_a_logger_or_a_worker_prints_of_an_error_ends_nothing(end: list[str], want: str | None) -> None:
    document = receipt_of(log("", STEPS, end))
    reason = (document["failure"] or {}).get("reason")
    assert reason == want if want else reason in (None, "truncated")
    assert want or document["checks"]["zero_exit_code"] is None


@pytest.mark.parametrize(
    ("head", "between", "want"),
    [
        ("[2026-02-03 04:05:06,120] [ERROR] [dl.native:88] no native library", ["which: no gcc"], "KeyError: 'dict'"),
        ("loading the native library", ["which: no gcc"], "OSError: a.so"),
        ("E [ERROR] no native library", ["During handling of the above exception, another exception occurred:"], "OSError: a.so"),
    ],
)
def test_an_error_that_a_logger_reports_before_another_ends_nothing(head: str, between: list[str], want: str) -> None:
    trace = [TRACEBACK[0], '  File "dl/native.py", line 85, in <module>', "OSError: a.so"]
    last = [TRACEBACK[0], '  File "train.py", line 5, in <module>', "KeyError: 'dict'"]
    failure = receipt_of("\n".join([*STEPS, head, *trace, *between, *last, ""]))["failure"]
    assert failure["message"] == want


def test_a_run_of_few_steps_that_goes_on_printing_got_over_its_error() -> None:
    between = [f"rollout {n}" for n in range(300)]
    few = [line for n in range(4) for line in (STEPS[n], *between)]
    document = receipt_of(log("", few, TRACEBACK, between))
    assert document["failure"] is None
    stopped = receipt_of(log("", few, TRACEBACK, between * 4))
    assert stopped["failure"]["reason"] == "traceback", "no step came though one was due"


@pytest.mark.parametrize(
    "line",
    [
        "  --expandable  avoid 'CUDA out of memory' (torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate)",
        "  on_oom: 'RuntimeError: CUDA out of memory'",
        "# RuntimeError: CUDA error: out of memory",
        "usage: train.py [--retry] RuntimeError: CUDA out of memory.",
        "  - Killed",
        "  - KeyboardInterrupt",
        "retry when the worker printed `RuntimeError: CUDA out of memory`",
        '--exit-on "exited with code 137"  what ends the sweep',
        '    "on_oom": "RuntimeError: CUDA out of memory",',
        'the docs say "RuntimeError: CUDA error: device-side assert triggered" is a bug',
    ],
)
def test_a_word_that_only_mentions_a_failure_is_observed(line: str) -> None:
    for log_ in ([line, *STEPS], [*STEPS, line]):
        document = receipt_of("\n".join(log_) + "\n")
        assert document["failure"] is None
        assert document["checks"]["no_oom"] is document["checks"]["zero_exit_code"] is None
        assert len(document["derivation"]["observed"]) == 1


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("Training failed (CUDA out of memory. Tried to allocate 2.00 GiB)", "cuda_oom"),
        ("Exception: RuntimeError('CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8 GiB total)')", "cuda_oom"),
        ('{"level": "error", "msg": "RuntimeError: CUDA out of memory."}', "cuda_oom"),
        ('    "error": "RuntimeError: CUDA out of memory",', "cuda_oom"),
        ("ERROR - RuntimeError: CUDA out of memory.", "cuda_oom"),
        ("2026-01-02 03:04:13,500 - root - ERROR - Killed", "killed"),
    ],
)
def test_an_error_in_other_words_is_no_mention(line: str, want: str) -> None:
    assert receipt_of("\n".join([*STEPS, line]) + "\n")["failure"]["reason"] == want


def test_copies_of_lines_part_no_error_from_what_explains_it() -> None:
    deep = [*REPORT[:2], *TRACEBACK[1:-1] * 12, *REPORT[len(TRACEBACK) :]]
    text = log("", STEPS, [*deep, *ON])
    lines = text.splitlines(keepends=True)
    for made in (text, "".join(line + line for line in lines)):
        document = receipt_of(made)
        assert (document["failure"] or {}).get("reason") in (None, "truncated")
