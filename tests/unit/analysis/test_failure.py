"""Markers and what followed them → how the run ended."""

from typing import Any

import pytest

from tests.tools.logs import receipt_of, toy_receipt

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 839.33 MiB. GPU 0 has a total capacity of 201.68 GiB.\n"
NCCL = (
    "[rank{rank}]:[E520 06:31:05.050097785 ProcessGroupNCCL.cpp:757] [Rank {rank}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=3, OpType=_ALLGATHER_BASE, Timeout(ms)=600000) ran for 600010 milliseconds\n"
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
    "ValueError: could not broadcast input array from shape (3,) into shape (4,)\n"
)
CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
TIME = "slurmstepd: error: *** STEP 1809655.0 ON node4 CANCELLED AT 2026-05-24T09:50:34 DUE TO TIME LIMIT ***\n"
DONE = "toy done in 9.0 s\n"


def steps(start: int, stop: int, loss: str = "2.5", plan: str = "") -> str:
    return "".join(f"toy step {n}{plan} | loss={loss} | time=0.5\n" for n in range(start, stop))


def reason(document: dict[str, Any]) -> str | None:
    return document["failure"]["reason"] if document["failure"] is not None else None


def observed(document: dict[str, Any]) -> list[str]:
    return [marker["id"] for marker in document["derivation"]["observed"]]


INTERRUPT = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nKeyboardInterrupt\n'
NAN = steps(0, 5) + steps(5, 9, loss="nan")
ENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "a run that ends well": (steps(0, 5) + DONE, {"reason": None, "observed": []}),
    "a timeout alone is the cause": (
        steps(0, 5) + "".join(NCCL.format(rank=rank) for rank in range(4)) + CHILD, {"reason": "nccl_timeout", "line": 6}
    ),
    "the first of two exceptions": (steps(0, 5) + TRACEBACK + NCCL.format(rank=1) + CHILD, {"reason": "traceback"}),
    "the first of two, a timeout": (steps(0, 5) + NCCL.format(rank=1) + TRACEBACK + CHILD, {"reason": "nccl_timeout"}),
    "only the launcher speaks": (steps(0, 5) + CHILD, {"reason": "child_failed"}),
    "a traceback": (steps(0, 5) + TRACEBACK, {"reason": "traceback", "line": 9, "message": "could not broadcast"}),
    "one buffered step line proves nothing": (steps(0, 5) + TRACEBACK + steps(5, 6), {"reason": "traceback"}),
    "an end does not acquit the next run": (steps(0, 5) + DONE + steps(0, 3) + OOM, {"reason": "cuda_oom"}),
    "the time limit is an end from outside": (steps(0, 5) + TIME + CHILD, {"reason": "time_limit", "category": "scheduler"}),
    "interrupted": (steps(0, 5) + INTERRUPT, {"reason": "interrupted"}),
    "truncated": (
        steps(0, 5, plan="/50"),
        {"reason": "truncated", "line": None, "last": "toy step 4/50 | loss=2.5 | time=0.5", "markers": []},
    ),
    "all planned steps are an end": (steps(1, 11, plan="/10"), {"reason": None, "completed": True}),
    "a printed exit code denies completion": (NAN + "EXIT_CODE=1\n", {"reason": "nan_loss", "completed": False}),
    "a loss that stays nan": (NAN + DONE, {"reason": "nan_loss", "category": "numerics", "line": 6}),
    "a loss that recovers": (
        steps(0, 5) + steps(5, 6, loss="nan") + steps(6, 9) + DONE, {"reason": None, "finite_losses": False}
    ),
    "the nan of an overtaken attempt": (NAN + steps(4, 9) + DONE, {"reason": None, "finite_losses": True}),
    "the loss was lost behind a nan that was got over": (
        steps(0, 2, loss="nan") + steps(2, 5) + steps(5, 7, loss="inf") + steps(7, 9, loss="nan") + DONE, {"line": 6}
    ),
    "a run that says that it failed": (steps(0, 5) + "toy ended: aborted\n", {"reason": "unknown", "message": "aborted"}),
    "a run that says that it succeeded": (steps(0, 5) + "toy ended: SUCCESS\n", {"reason": None}),
    "the line of a failed end is its own": (
        steps(0, 5) + "toy ended: aborted\ntoy model 7\n", {"line": 6, "message": "the run ended with status aborted"}
    ),
    "an exit code of the caller": (steps(0, 5) + DONE, {"exit_code": 3, "reason": "unknown", "message": "exit code 3"}),
    "the later of two exit codes": (
        steps(0, 5) + DONE + "  exitcode  : 1 (pid: 921)\nEXIT_CODE=3\n", {"message": "exit code 3", "line": 8}
    ),
    "the later of two exit codes, the launcher's": (
        steps(0, 5) + DONE + "EXIT_CODE=3\n  exitcode  : 1 (pid: 921)\n", {"message": "exit code 1", "line": 8}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_how_a_run_ended(name: str) -> None:
    log, wanted = ENDS[name]
    document = toy_receipt(log, wanted.get("exit_code"))
    failure, says = document["failure"] or {}, wanted.get("message", "")
    found = {
        **{key: failure.get(key) for key in ("reason", "category", "markers")}, **document["checks"],
        "line": failure.get("line_number"), "observed": observed(document), "last": (failure.get("log_tail") or [None])[-1],
        "message": says if says in (failure.get("message") or "") else failure.get("message"),
        "exit_code": wanted.get("exit_code"),
    }  # fmt: skip
    assert {key: found[key] for key in wanted} == wanted


@pytest.mark.parametrize("before", [True, False])
def test_the_oom_of_one_rank_wins_over_the_timeouts_of_the_others(before: bool) -> None:
    noise = "".join(NCCL.format(rank=rank) for rank in range(1, 12))
    log = steps(0, 5) + (noise + OOM if before else OOM + noise) + CHILD
    failure = toy_receipt(log)["failure"]
    assert (failure["reason"], failure["category"]) == ("cuda_oom", "memory")
    assert failure["line_number"] == log[: log.index(OOM)].count("\n") + 1
    assert "CUDA out of memory" in failure["message"]
    assert {"cuda_out_of_memory", "nccl_timeout"} <= {m["id"] for m in failure["markers"]}


@pytest.mark.parametrize(
    ("rest", "exit_code"),
    [
        (steps(5, 20), None),  # steps went on (and the log breaks off later)
        (steps(2, 4), None),  # a new attempt
        (steps(5, 6) + DONE, None),
        ("", 0),
    ],
)
def test_what_a_run_got_over_does_not_fail_it(rest: str, exit_code: int | None) -> None:
    document = toy_receipt(steps(0, 5) + TRACEBACK + rest, exit_code)
    assert reason(document) in (None, "truncated")
    assert "exception" in observed(document)
    if document["failure"] is not None:
        assert document["failure"]["markers"] == []


@pytest.mark.parametrize(
    "noise",
    [
        steps(5, 6) * 8,  # of eight ranks
        "".join(f"toy bar 5/9 loss={9 - n}.0\r" for n in range(8)) + "\n",
        steps(5, 6) + "toy norm 5: 1.5\n",
    ],
)
def test_many_lines_about_one_step_are_one_step(noise: str) -> None:
    assert reason(toy_receipt(steps(0, 5) + TRACEBACK + noise)) == "traceback"


@pytest.mark.parametrize(("later", "want"), [(99, "cuda_oom"), (100, None)])
def test_an_oom_needs_many_steps_to_be_got_over(later: int, want: str | None) -> None:
    assert reason(toy_receipt(steps(0, 5) + OOM + steps(5, 5 + later))) == want


def test_a_failure_after_one_that_was_got_over() -> None:
    log = steps(0, 5) + TRACEBACK + steps(5, 20) + OOM
    failure = toy_receipt(log)["failure"]
    assert (failure["reason"], failure["line_number"]) == ("cuda_oom", log.count("\n"))
    assert "exception" not in [m["id"] for m in failure["markers"]]


def test_the_line_of_a_failure_is_that_of_the_hit_that_counts() -> None:
    log = steps(0, 5) + TRACEBACK + steps(5, 20) + TRACEBACK
    failure = toy_receipt(log)["failure"]
    assert failure["line_number"] == log.count("\n")
    [marker] = [m for m in failure["markers"] if m["id"] == "exception"]
    assert (marker["count"], marker["first_line"], marker["last_line"]) == (2, 9, log.count("\n"))


def test_an_oom_line_quoted_in_a_config_dump_of_a_run_that_finishes() -> None:
    document = toy_receipt("known errors:\n" + OOM + steps(0, 5) + DONE)
    assert document["failure"] is None
    assert document["checks"]["no_oom"] is True
    [marker] = document["derivation"]["observed"]
    assert (marker["id"], marker["first_line"], marker["count"]) == ("cuda_out_of_memory", 2, 1)


def test_a_trainer_without_an_end_line_is_not_truncated() -> None:
    log = "".join(f"iter {n}: loss 2.5, time 100.00ms, mfu 40.00%\n" for n in range(5))
    document = receipt_of(log)
    assert (document["failure"], document["checks"]["completed"]) == (None, None)
    document = receipt_of("max_iters = 500\n" + log)
    assert (reason(document), document["checks"]["completed"]) == ("truncated", False)


@pytest.mark.parametrize(
    ("shown", "reason"), [("module {0:b} is loaded: no\n", "import_error"), ("answers: {}/30 [00:10<52:58, 1.63s/it]\n", None)]
)
def test_what_a_shell_does_not_find_is_no_program_that_ran(shown: str, reason: str | None) -> None:
    document = receipt_of("".join(map(shown.format, range(1, 31))) + "tools/run.sh: line 19: d: command not found\n")
    assert (document["failure"] and document["failure"]["reason"]) == reason


def test_no_grammar_match() -> None:
    document = receipt_of("hello\nworld\n")
    assert document["failure"] is None
    assert (document["derivation"]["grammars"], document["checks"]["has_steps"]) == ([], None)


UNREAD = {
    "pairs": "".join(f"{10.19 - n / 100}, {n}00\nEpoch: {n}\n" for n in range(12)),
    "evaluations": "".join(f'Step:{n}\t{{"metric": {{"eval_acc": 0.6{n}, "eval_loss": 0.5{n}}}}}\n' for n in range(12)),
    "epochs": "".join(f"Epoch: {n}\nsaw 0.{n}1 and 0.{n}2\n" for n in range(12)),
}


@pytest.mark.parametrize("log", UNREAD.values(), ids=UNREAD)
def test_how_a_log_of_unread_records_ended_is_unknown(log: str) -> None:
    document = receipt_of(log)
    assert (document["derivation"]["grammars"], document["checks"]["has_steps"]) == ([], None)
    for end in ("", "Training completed.\n", "Process finished with exit code 0\n"):
        document = receipt_of(log + end)
        assert (document["failure"], document["checks"]["completed"]) == (None, None)


@pytest.mark.parametrize(
    ("error", "no_oom"),
    [
        ("RuntimeError: can't alloc", None),
        ("RuntimeError: failed to allocate the workspace", None),
        ("ValueError: std::bad_alloc", None),
        ("RuntimeError: the queue was reallocated", True),
        ("KeyError: 'loss'", True),
    ],
)
def test_an_error_of_an_allocation_does_not_prove_that_memory_sufficed(error: str, no_oom: bool | None) -> None:
    document = toy_receipt(steps(0, 5) + f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n{error}\n')
    assert (reason(document), document["checks"]["no_oom"]) == ("traceback", no_oom)


@pytest.mark.parametrize(("said", "no_oom"), [("status=2: out of memory", None), ("status=2: too late", True)])
def test_an_unknown_cause_beside_words_of_memory_does_not_prove_that_it_sufficed(said: str, no_oom: bool | None) -> None:
    document = toy_receipt(steps(0, 5) + f"alloc FAIL {said}\nstack traceback:\n\t[C]: in function 'Tensor'\n")
    assert (document["failure"]["category"], document["checks"]["no_oom"]) == ("unknown", no_oom)


def test_what_an_unknown_log_shows() -> None:
    document = receipt_of("hello\n" + OOM)
    assert (reason(document), document["failure"]["line_number"]) == ("cuda_oom", 2)


def test_markers_and_messages_are_bounded() -> None:
    log = steps(0, 5) + f"ValueError: {'x' * 100_000}\n" + OOM * 3000
    failure = toy_receipt(log)["failure"]
    assert len(failure["message"]) <= 2000
    assert all(len(m["message"]) <= 2000 for m in failure["markers"])
    [oom] = [m for m in failure["markers"] if m["id"] == "cuda_out_of_memory"]
    assert (oom["count"], oom["first_line"], oom["last_line"]) == (3000, 7, 3006)


@pytest.mark.parametrize(
    ("stop", "stride", "want"),
    [
        (1000, 10, None),  # 990 of 1000: the next line would be beyond the plan, whether 999 was reached is not said
        (990, 10, False),
        (1000, 1, True),
        (999, 1, False),
        (1, 1, False),
    ],
)
def test_a_plan_is_missed_where_a_line_is_missing(stop: int, stride: int, want: bool | None) -> None:
    log = "max_iters = 1000\n" + "".join(f"iter {n}: loss 2.5, time 100.00ms, mfu 40.00%\n" for n in range(0, stop, stride))
    document = receipt_of(log)
    assert document["checks"]["completed"] is want
    assert reason(document) == ("truncated" if want is False else None)


def test_on_one_line_the_order_of_the_catalogue_decides() -> None:
    log = "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    document = receipt_of("hello\n" + log)
    assert reason(document) == "cuda_error"


WANDB = "wandb: Waiting for W&B process to finish... (success).\n"


@pytest.mark.parametrize(
    ("log", "completed"),
    [
        (steps(0, 5, plan="/100") + WANDB, None),  # it says no more than an exit code of zero
        (steps(0, 5, plan="/100") + WANDB + steps(5, 50, plan="/100"), None),  # the good end was of something else
        (steps(0, 5, plan="/100") + "EXIT_CODE=0\n" + steps(3, 50, plan="/100"), None),
        (steps(0, 5, plan="/50") + WANDB + steps(5, 50, plan="/50"), True),  # all planned steps were done
    ],
)
def test_a_good_end_before_the_last_steps_proves_nothing(log: str, completed: bool | None) -> None:
    document = toy_receipt(log)
    assert document["checks"]["completed"] is completed
    assert document["failure"] is None


def test_a_failed_end_of_an_attempt_is_not_that_of_the_next() -> None:
    first = steps(0, 5) + "toy ended: aborted\n"
    assert toy_receipt(first + steps(0, 5) + DONE)["failure"] is None
    assert reason(toy_receipt(first + steps(0, 5))) is None
    failure = toy_receipt(first + DONE)["failure"]  # both are about one end
    assert (failure["line_number"], failure["message"]) == (6, "the run ended with status aborted")


def child(rank: int, code: int, how: str) -> str:
    return (
        f"[{rank}]:\n  time      : 2026-01-15_05:44:28\n  host      : node7\n  rank      : {rank} (local_rank: {rank % 8})\n"
        f"  exitcode  : {code} (pid: {4100 + rank})\n  error_file: <N/A>\n  traceback : {how}\n"
    )


KILLED = "Signal 9 (SIGKILL) received by PID 4102"
NO_TEXT = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
RULE = "------------------------------------------------------------\n"


def summary(culprit: str, *others: str) -> str:
    """What torchrun prints when a rank failed: the others first, then the one that failed first."""
    return (
        f"{CHILD}============================================================\ntrain.py FAILED\n{RULE}Failures:\n"
        f"{''.join(others) or '  <NO_OTHER_FAILURES>' + chr(10)}{RULE}Root Cause (first observed failure):\n{culprit}"
    )


@pytest.mark.parametrize(
    ("culprit", "others", "want", "message"),
    [
        (child(6, 1, NO_TEXT), (), "child_failed", "rank 6 (local rank 6) failed first: exit code 1"),
        (child(6, 1, NO_TEXT), (child(2, -9, KILLED),), "child_failed", "exit code 1"),
        (child(6, 1, NO_TEXT), (child(2, -11, "Signal 11 (SIGSEGV) received by PID 4102"),), "child_failed", "exit code 1"),
        (child(9, -9, "Signal 9 (SIGKILL) received by PID 4109"), (), "killed", "rank 9 (local rank 1) failed first: signal 9"),
        (child(9, -15, "Signal 15 (SIGTERM) received by PID 4109"), (), "killed", "signal 15"),
        (child(9, -11, "Signal 11 (SIGSEGV) received by PID 4109"), (), "segfault", "signal 11"),
        (child(9, -7, "Signal 7 (SIGBUS) received by PID 4109"), (), "segfault", "signal 7"),
        (child(9, -6, "Signal 6 (SIGABRT) received by PID 4109"), (child(2, -9, KILLED),), "child_failed", "signal 6"),
        (child(9, 137, NO_TEXT), (), "killed", "exit code 137"),
    ],
)  # fmt: skip
def test_the_launcher_names_the_rank_that_failed_first(culprit: str, others: tuple[str, ...], want: str, message: str) -> None:
    log = steps(0, 5) + summary(culprit, *others)
    document = toy_receipt(log)
    failure = document["failure"]
    assert failure["reason"] == want
    assert message in failure["message"]
    assert failure["line_number"] == log[: log.index("exitcode", log.index("Root Cause"))].count("\n") + 1
    assert document["checks"]["no_oom"] is None
    assert document["checks"]["zero_exit_code"] is False


def test_a_rank_that_was_told_to_stop_is_no_culprit_while_another_is() -> None:
    told = child(9, -15, "Signal 15 (SIGTERM) received by PID 4109")
    log = steps(0, 5) + summary(told) + summary(child(3, 1, NO_TEXT))
    assert "rank 3 " in toy_receipt(log)["failure"]["message"]


SCRIPT = """Traceback (most recent call last):
  File "{file}", line 90, in <module>
    main()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 56.00 MiB.
"""
BROKEN = """  File "run.py", line 33
    optim="adamw"
    ^
SyntaxError: invalid syntax
"""


@pytest.mark.parametrize(
    ("before", "want"),
    [(SCRIPT.format(file="run.py"), "traceback"), (SCRIPT.format(file="run.py") * 2 + CHILD, "traceback"),
     (SCRIPT.format(file="other.py"), "cuda_oom")],
)  # fmt: skip
def test_a_syntax_error_of_a_script_that_ran_before_is_another_launch(before: str, want: str) -> None:
    document = toy_receipt(before + "a new start\n" * 20 + BROKEN)
    assert (reason(document), document["checks"]["no_oom"]) == (want, want == "traceback")


def test_an_exception_says_more_than_the_launcher() -> None:
    failure = toy_receipt(steps(0, 5) + TRACEBACK + summary(child(6, 1, NO_TEXT)))["failure"]
    assert (failure["reason"], failure["line_number"]) == ("traceback", 9)


def test_the_first_error_of_the_rank_that_failed_first() -> None:
    log = steps(0, 5) + "[rank0]: ConnectionResetError: [Errno 104] Connection reset by peer\n[rank3]: KeyError: 'images'\n"
    assert toy_receipt(log)["failure"]["line_number"] == 6
    failure = toy_receipt(log + summary(child(3, 1, NO_TEXT)))["failure"]
    assert (failure["line_number"], failure["message"]) == (7, "KeyError: 'images'")
    assert toy_receipt(log + summary(child(5, 1, NO_TEXT)))["failure"]["line_number"] == 6


def test_a_watchdog_that_aborts_its_own_rank_is_the_cause() -> None:
    abort = "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    died = child(3, -6, "Signal 6 (SIGABRT) received by PID 4103")
    assert reason(toy_receipt(steps(0, 5) + abort + summary(died))) == "nccl_error"
    assert reason(toy_receipt(steps(0, 5) + abort + summary(child(3, 1, NO_TEXT)))) == "child_failed"


@pytest.mark.parametrize(
    ("code", "want"),
    [
        (137, "killed"),
        (143, "killed"),
        (130, "interrupted"),
        (139, "segfault"),
        (135, "segfault"),
        (134, "unknown"),
        (1, "unknown"),
    ],
)
def test_an_exit_code_of_a_signal(code: int, want: str) -> None:
    failure = toy_receipt(steps(0, 5), code)["failure"]
    assert (failure["reason"], failure["message"]) == (want, f"exit code {code}")
    assert reason(toy_receipt(steps(0, 5) + f"trainer-0 exited with code {code}\n")) == want
    assert toy_receipt(steps(0, 5), code)["checks"]["no_oom"] is None


def test_a_log_that_goes_on_after_its_error_failed_if_its_exit_code_says_so() -> None:
    quiet = "cleaning up\n" * 300
    log = "hello\n" + TRACEBACK
    assert receipt_of(log + quiet)["failure"] is None
    assert reason(receipt_of(log + "##[error]Process completed with exit code 1.\n" + quiet)) == "traceback"
    assert reason(receipt_of("##[error]Process completed with exit code 1.\n" + log + quiet)) == "unknown"


def test_what_fails_long_after_a_run_that_did_its_plan() -> None:
    quiet = "$ tail results.txt\n" * 300
    assert toy_receipt(steps(1, 11, plan="/10") + TRACEBACK + quiet)["failure"] is None
    assert reason(toy_receipt(steps(1, 11, plan="/10") + TRACEBACK)) == "traceback"
    assert reason(toy_receipt(steps(1, 9, plan="/10") + TRACEBACK + quiet)) == "traceback"


def rising(*losses: float) -> str:
    return "".join(f"toy step {n} | loss={loss} | time=0.5\n" for n, loss in enumerate(losses))


@pytest.mark.parametrize(
    ("losses", "want"),
    [
        ([10.0 - n * 0.2 for n in range(20)] + [6.0 + n * n for n in range(20)], True),
        ([10.0 - n * 0.2 for n in range(40)], False),
        ([10.0 - n * 0.2 for n in range(20)] + [6.0] * 20, False),
        ([10.0] * 38 + [90.0], False),  # a spike
        ([10.0, 90.0, 90.0], False),  # too few
        ([-1.0 - n for n in range(20)] + [90.0] * 20, False),  # a reward, or a loss below zero
    ],
)
def test_a_finite_loss_that_diverges_is_observed(losses: list[float], want: bool) -> None:
    document = toy_receipt(rising(*losses) + DONE)
    assert document["failure"] is None
    assert document["checks"]["finite_losses"] is True
    assert ("loss_diverged" in observed(document)) is want


@pytest.mark.parametrize("said", ["Training completed and model saved.\n", "[INFO] Total training time: 21.5 s\n"])
def test_a_script_that_says_that_it_is_done(said: str) -> None:
    assert toy_receipt(steps(0, 5, plan="/50"))["checks"]["completed"] is False
    document = toy_receipt(steps(0, 5) + said)  # a time alone may be of a part
    assert (document["failure"], document["checks"]["completed"]) == (None, True if "completed" in said else None)
    document = toy_receipt(steps(0, 5, plan="/50") + said)  # it may say so in any case, but its log does not just end
    assert (document["failure"], document["checks"]["completed"]) == (None, None)
    assert reason(toy_receipt(said + steps(0, 5, plan="/50"))) == "truncated"
    assert toy_receipt("toy model 7\n" + said)["failure"] is None
    assert toy_receipt("toy model 7\n")["failure"] is None


@pytest.mark.parametrize(
    ("error", "want"),
    [
        ("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", "nan_loss"),
        (
            "ValueError: Expected parameter loc to satisfy the constraint Real(), but found invalid values: tensor([1.0])",
            "nan_loss",
        ),
        ("KeyError: 'images'", "traceback"),
        ("KeyError: 'inference'", "traceback"),
        ("KeyboardInterrupt", "interrupted"),
    ],
)
def test_an_exception_that_complains_of_a_loss_that_was_nan_before(error: str, want: str) -> None:
    failure = toy_receipt(steps(0, 5) + steps(5, 9, loss="nan") + error + "\n")["failure"]
    assert (failure["reason"], failure["line_number"]) == (want, 6 if want == "nan_loss" else 10)
    assert reason(toy_receipt(steps(0, 5) + error + "\n")) in ("traceback", "interrupted")


def test_the_loss_of_evaluations_counts_where_none_other_is_printed() -> None:
    log = "".join(f"step:{n}/30 train_time:{n * 95}ms step_avg:95.00ms\n" for n in range(1, 31))
    evals = "step:{n}/30 val_loss:{loss} train_time:{t}ms step_avg:95.00ms\n"
    log = evals.format(n=0, loss="10.8", t=0) + log + evals.format(n=30, loss="nan", t=2850)
    document = receipt_of(log)
    assert (reason(document), document["failure"]["line_number"]) == ("nan_loss", 32)


@pytest.mark.parametrize(("epochs", "want"), [(9, "cuda_oom"), (10, "truncated")])
def test_an_oom_is_got_over_in_fewer_epochs_than_steps(epochs: int, want: str) -> None:
    bars = [f"Epoch {n}/40\n60/60 - 3s - 42ms/step - accuracy: 0.8000 - loss: 0.5000\n" for n in range(1, epochs + 2)]
    assert reason(receipt_of(bars[0] + OOM + "".join(bars[1:]))) == want


NO_SPACE = TRACEBACK[: TRACEBACK.rindex("\n", 0, -1) + 1] + "OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("failure", [OOM, "[rank0]: " + OOM, NO_SPACE, "Killed\n", "KeyboardInterrupt\n", TRACEBACK])
@pytest.mark.parametrize(("later", "over"), [(1, False), (2, True)])
def test_a_failure_before_the_first_step_is_another_start_s(failure: str, later: int, over: bool) -> None:
    """It ends no run that then takes steps, however few, also if nothing of the first start comes again."""
    assert (reason(toy_receipt(failure + "the data is there\n" + steps(0, later))) is None) is over


@pytest.mark.parametrize("failure", [OOM, "Killed\n", "KeyboardInterrupt\n", TRACEBACK])
def test_a_start_that_comes_again_behind_a_failure_needs_no_second_step(failure: str) -> None:
    assert reason(toy_receipt("toy model 7\n" + failure + "toy model 8\n" + steps(0, 1))) is None
