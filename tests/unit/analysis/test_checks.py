"""The checks: true, false, or null where the log cannot prove it."""

import pytest

from receipt_cli.analysis.checks import CORE, Checks, healthy, outcome, proven
from tests.tools.logs import receipt_of, toy_receipt

STEPS = "".join(f"toy step {n} | loss=2.5 | time=0.5\n" for n in range(5))
NAN = "toy step 5 | loss=nan | time=0.5\n"
MORE = "".join(f"toy step {n} | loss=2.5 | time=0.5\n" for n in range(6, 9))
LOSSLESS = "".join(f"toy step {n} | time=0.5\n" for n in range(5))
DONE = "toy done in 9.0 s\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 839.33 MiB. GPU 0 has a total capacity of 201.68 GiB.\n"
HOST = "slurmstepd: error: Detected 1 oom_kill event in StepId=40538625.3. Some of the step tasks have been OOM Killed.\n"
KILLED = "Received 15 death signal, shutting down workers\n"
TIMEOUT = (
    "[rank0]:[E520 06:31:05.050097785 ProcessGroupNCCL.cpp:757] [Rank 0] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=3, OpType=_ALLGATHER_BASE, Timeout(ms)=600000) ran for 600010 milliseconds\n"
)
FAULT = "ValueError: could not broadcast input array from shape (3,) into shape (4,)\n"


@pytest.mark.parametrize(
    ("log", "exit_code", "want"),
    [  # finite_losses, zero_exit_code, has_steps, no_oom
        (STEPS + DONE, None, (True, None, True, True)),
        (STEPS + DONE, 0, (True, True, True, True)),
        (STEPS + DONE, 1, (True, False, True, None)),  # of what, the log does not say
        (STEPS, None, (True, None, True, None)),  # breaks off: why, the log does not say
        (STEPS, 0, (True, True, True, True)),
        (STEPS, 137, (True, False, True, None)),
        (STEPS + OOM, None, (True, False, True, False)),  # who dies does not exit with zero
        (STEPS + HOST, None, (True, False, True, False)),
        (STEPS + FAULT, None, (True, False, True, True)),
        (STEPS + DONE + "EXIT_CODE=0\n" + STEPS + FAULT, None, (True, False, True, True)),  # the first of two runs
        (STEPS + NAN + MORE + DONE, None, (False, None, True, True)),
        (LOSSLESS + DONE, None, (None, None, True, True)),
        ("toy model 1234\n" + OOM, None, (None, False, False, False)),
        (STEPS + "EXIT_CODE=1\n", None, (True, False, True, None)),
        (STEPS + DONE + "EXIT_CODE=0\n", None, (True, True, True, True)),
        (STEPS + DONE + "EXIT_CODE=0\n", 1, (True, False, True, None)),  # the caller knows better
        (STEPS + NAN, None, (False, None, True, None)),  # diverged, and what ended it is not said
        (STEPS + NAN + DONE, None, (False, None, True, True)),
        (STEPS + TIMEOUT, None, (True, False, True, None)),  # of what died the rank that was waited for
    ],
)
def test_the_core_checks(log: str, exit_code: int | None, want: tuple[bool | None, ...]) -> None:
    checks = toy_receipt(log, exit_code)["checks"]
    assert tuple(checks[name] for name in CORE) == want
    assert list(checks)[:4] == list(CORE)


TRAINER = "***** Running training *****\n  Num examples = 400\n  Total optimization steps = 60\n"
SUMMARY = "{'train_runtime': 85.2, 'train_samples_per_second': 5.633, 'train_steps_per_second': 0.704, 'epoch': 0.1}\n"


@pytest.mark.parametrize(
    ("shown", "has_steps"),
    [
        ("", False),
        (SUMMARY, None),  # a training that took time may have taken steps
        ("  0%|          | 0/60 [00:00<?, ?it/s]\n", False),
        ("  7%|7         | 4/60 [00:09<02:28,  2.56s/it]\n", None),
        ("  7%|7         | 4/59 [00:09<02:28,  2.56s/it]\n", False),
    ],
)
def test_a_failure_behind_a_summary_or_a_bar_of_the_plan_does_not_prove_no_step(shown: str, has_steps: bool | None) -> None:
    options = [f"{name} = {n}\n" for n, name in enumerate(("alpha", "beta", "gamma", "delta", "weight", "gain", "depth") * 3)]
    log = "".join([*options, TRAINER, shown, "Traceback (most recent call last):\n", FAULT])
    assert receipt_of(log)["checks"]["has_steps"] is has_steps


def test_an_unknown_log_proves_nothing() -> None:
    checks = receipt_of("hello\n")["checks"]
    assert (checks["finite_losses"], checks["zero_exit_code"], checks["no_oom"]) == (None, None, None)
    assert checks["has_steps"] is None


def test_a_val_loss_counts_as_a_loss() -> None:
    log = "".join(f"iter {n}: loss 2.5, time 100.00ms, mfu 40.00%\n" for n in range(5))
    assert receipt_of(log + "step 5: train loss 2.5, val loss nan\n")["checks"]["finite_losses"] is False


def test_a_cause_other_than_memory_leaves_the_kill_open() -> None:
    document = toy_receipt(STEPS + KILLED)
    assert document["failure"]["reason"] in ("killed", "truncated")
    assert document["checks"]["no_oom"] is None


@pytest.mark.parametrize(("mfu", "want"), [("0.4", True), ("1.0", True), ("1.01", False)])
def test_mfu_plausible(mfu: str, want: bool) -> None:
    log = "".join(f"toy step {n} | loss=2.5 | mfu={mfu if n == 3 else 0.4}\n" for n in range(5))
    assert toy_receipt(log + DONE)["checks"]["mfu_plausible"] is want
    assert toy_receipt(STEPS + DONE)["checks"]["mfu_plausible"] is None


def test_completed() -> None:
    assert toy_receipt(STEPS + DONE)["checks"]["completed"] is True
    assert toy_receipt(STEPS)["checks"]["completed"] is None  # without a plan nothing says that more was to come
    assert toy_receipt(STEPS.replace(" | loss", "/9 | loss"))["checks"]["completed"] is False
    assert toy_receipt(STEPS + OOM)["checks"]["completed"] is False


def test_no_throughput_decides() -> None:
    slow = "".join(f"toy step {n} | loss=2.5 | time=900 | tps=0.001\n" for n in range(5))
    assert healthy(toy_receipt(slow + DONE)["checks"])


ALL: Checks = dict.fromkeys(CORE, True)


@pytest.mark.parametrize("name", CORE)
def test_a_null_is_not_proven_and_only_steps_must_be_there(name: str) -> None:
    assert healthy({**ALL, name: None}) is (None if name == "has_steps" else True)
    assert not proven({**ALL, name: None})


@pytest.mark.parametrize(
    ("checks", "reason", "word"),
    [
        ({"completed": True}, None, "finished"),
        ({"zero_exit_code": None, "completed": True}, None, "finished"),
        ({"zero_exit_code": True, "completed": None}, None, "finished"),
        ({"zero_exit_code": True, "completed": False}, None, "unknown"),
        ({"zero_exit_code": None, "completed": None}, None, "unknown"),
        ({"zero_exit_code": None, "completed": False}, "truncated", "cut off"),
        ({"has_steps": None, "zero_exit_code": None}, None, "unknown"),
        ({"has_steps": None, "zero_exit_code": None}, "no_grammar_match", "unknown"),
        ({"zero_exit_code": False}, "unknown", "failed"),
        ({"has_steps": None, "zero_exit_code": None}, "cuda_oom", "failed"),
        ({"completed": True}, "nan_loss", "failed"),
        ({"zero_exit_code": False}, "time_limit", "stopped"),
        ({"zero_exit_code": False}, "interrupted", "stopped"),
    ],
)
def test_outcome_in_a_word(checks: Checks, reason: str | None, word: str) -> None:
    assert outcome({"checks": {**ALL, **checks}, "failure": None if reason is None else {"reason": reason}}) == word


def test_an_outcome_that_the_checks_do_not_tell() -> None:
    nothing = {"checks": dict.fromkeys(ALL), "failure": None}
    assert outcome(nothing, running=True) == "running"
    assert outcome({**nothing, "evidence": [{"ended": "not_ended"}]}) == "running"
    stopped = {"checks": ALL, "failure": {"reason": "time_limit"}}
    ends_in_nan = {**stopped, "summary": {"metrics": {"loss": {"last": None, "nonfinite_count": 3}}}}
    assert outcome(ends_in_nan) == "failed"
    left_open = {"first": [{"fields": ["/summary/metrics/loss/last"]}]}
    assert outcome({**ends_in_nan, "derivation": {"problems": left_open}}) == "stopped"
    assert outcome({}) == "unknown"
