"""Laws 5, 7 and 12: a failure belongs to the launch that it ended, and ``completed`` is one table."""

from collections.abc import Callable
from itertools import product
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from receipt_cli.analysis.completed import closes, is_completed
from tests.tools.logs import receipt_of

FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = ("failed", "reached", "ended", "far", "stopped_early", "short", "spoken", "closing", "unread")
TABLE: tuple[tuple[Callable[[dict[str, bool]], bool], bool | None], ...] = (
    (lambda e: e["failed"], False),
    (lambda e: e["reached"], True),
    (lambda e: e["ended"] and not e["far"], True),
    (lambda e: e["ended"] and not e["stopped_early"], None),
    (lambda e: e["stopped_early"], True),
    (lambda e: e["short"] and not (e["spoken"] or e["closing"] or e["unread"]), False),
    (lambda _: True, None),
)
"""The rows of the law: what holds, and what follows."""
STEP = "iter {}: loss {:.4f}, time 100.00ms, mfu 40.00%\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB.\n"
ERRORS = (OOM, "KeyError: 'images'\n", "NameError: name 'device' is not defined\n")


def trace(error: str, script: str = "train.py") -> str:
    return f'Traceback (most recent call last):\n  File "{script}", line 70, in <module>\n    main()\n{error}'


def reason(document: dict[str, Any]) -> str | None:
    return None if document["failure"] is None else str(document["failure"]["reason"])


def test_the_failure_of_another_script_is_not_that_of_the_run_before() -> None:
    steps = [f"epoch {n}/9 loss {3 / n:.4f}" for n in range(1, 10)]
    for script, failed in (("predict.py", None), ("", "name_error")):
        later = [f"START {script}"] if script else []
        document = receipt_of(["START train.py", *steps, "END train.py", *later, *trace(ERRORS[2], script).splitlines()])
        assert (reason(document) is None, document["checks"]["completed"]) == (failed is None, failed is None)


def test_the_first_row_that_holds_decides() -> None:
    for values in product((False, True), repeat=len(NAMES)):
        case = dict(zip(NAMES, values, strict=True))
        closing = case.pop("closing")
        completed = is_completed(**case, closing=lambda closing=closing: closing)  # type: ignore[misc]
        case["closing"] = closing
        row = next(number for number, (holds, _) in enumerate(TABLE) if holds(case))
        assert completed is TABLE[row][1], case


@FEW
@given(plan=st.integers(20, 400), done=st.integers(3, 19), said=st.sampled_from(["", "done solving", "results: 4 of 9 better"]))
def test_a_log_that_breaks_off_is_truncated_only_if_nothing_follows(plan: int, done: int, said: str) -> None:
    log = f"max_iters = {plan}\n" + "".join(STEP.format(n, 4 - n / 1000) for n in range(done))
    document = receipt_of(log + (f"{said}\n" if said else ""))
    assert document["checks"]["completed"] is (None if said else False)
    assert reason(document) == (None if said else "truncated")


@FEW
@given(
    last=st.sampled_from(
        ["iter 3: lo", "iter 4", "  0%|   | 0/5", "", "x.py:3: UserWarning: slow", "  warnings.warn('slow'", "12.5"]
    ),
    head=st.sampled_from(["", "2026-05-06T07:08:09.123456789Z stdout F ", "[rank0]: "]),
)
def test_a_cut_record_or_a_warning_closes_nothing(last: str, head: str) -> None:
    lines = {n: f"{head}iter {n}: loss 2.5".encode() for n in range(3)}
    assert not closes({**lines, 3: head.encode() + last.encode()}, 2)
    assert closes({**lines, 3: last.encode(), 4: b"saved the best of them"}, 2)
    assert not closes({0: b"saved the best of them", **{n: lines[n] for n in (1, 2)}, 4: b"saved the best of them"}, 2)


@FEW
@given(first=st.sampled_from(ERRORS), second=st.sampled_from(("", *ERRORS)), opening=st.integers(1, 4))
def test_a_failure_convicts_the_launch_that_it_ended(first: str, second: str, opening: int) -> None:
    names = ("args", "loading annotations", "index", "model")[:opening]
    banner = "".join(f"2026-01-0{{day}} 10:00:0{n} {name}: {n}{{day}}\n" for n, name in enumerate(names))
    log = banner.format(day=1) + trace(first) + banner.format(day=2) + (trace(second) if second else "epoch begins\n")
    document = receipt_of(log)
    assert document["checks"]["no_oom"] is (False if second == OOM else True if second else None)
    if second:
        assert document["failure"]["line_number"] == log.count("\n")
    else:
        assert (reason(document), document["checks"]["zero_exit_code"]) == (None, None)


@FEW
@given(error=st.sampled_from(ERRORS), head=st.sampled_from(["Exception in thread Thread-2 (read):", "Exception ignored in: <x>"]))
def test_an_exception_that_ends_no_process_convicts_nothing(error: str, head: str) -> None:
    steps = "".join(STEP.format(n, 4 - n / 1000) for n in range(5))
    for log in (f"{head}\n{trace(error)}{steps}", f"{steps}{head}\n{trace(error)}"):
        document = receipt_of(log)
        assert reason(document) in (None, "truncated")
        assert (document["checks"]["zero_exit_code"], document["checks"]["no_oom"]) == (None, None)


@FEW
@given(frames=st.integers(1, 3), named=st.booleans())
def test_a_cut_traceback_proves_nothing_about_memory(frames: int, named: bool) -> None:
    steps = "".join(STEP.format(n, 4 - n / 1000) for n in range(5))
    cut = "Traceback (most recent call last):\n" + '  File "a.py", line 3, in run\n    step()\n' * frames
    document = receipt_of(steps + cut + ("KeyError: 'images'\n" if named else ""))
    assert document["checks"]["no_oom"] is (True if named else None)


@FEW
@given(said=st.sampled_from(["out of memory", "invalid argument"]), kept=st.integers(1, 12), ended=st.booleans())
def test_an_error_whose_next_line_is_cut_proves_nothing_about_memory(said: str, kept: int, ended: bool) -> None:
    log = "| max_sequence_length T | 1024 |\n[CUDA ERROR] at file train_gpt2.cu:265:\n" + said[:kept] + ("\n" if ended else "")
    assert receipt_of(log)["checks"]["no_oom"] is (True if ended and said[:kept] not in said[-3:] else None)


@FEW
@given(code=st.sampled_from([0, 1, 137]), end=st.booleans())
def test_an_exit_code_of_zero_alone_completes_nothing(code: int, end: bool) -> None:
    log = "max_iters = 6\n" + "".join(STEP.format(n, 4 - n / 1000) for n in range(7 if end else 3))
    checks = receipt_of(log, exit_code=code)["checks"]
    assert checks["completed"] is (False if code else True if end else None)
    assert checks["zero_exit_code"] is (code == 0)


@FEW
@given(bad=st.integers(0, 4), count=st.integers(6, 12))
def test_what_stands_for_a_loss_is_not_finite(bad: int, count: int) -> None:
    rows = [("0.0", "nan") if n >= count - bad else (f"{3 - n / 10:.2f}", "1.2") for n in range(count)]
    log = "".join(
        f"{{'loss': {loss}, 'grad_norm': {norm}, 'learning_rate': 0.0001, 'epoch': {n / 100:.2f}}}\n"
        for n, (loss, norm) in enumerate(rows, 1)
    )
    document = receipt_of(log)
    assert document["checks"]["finite_losses"] is (None if bad else True)
    kinds = [problem["kind"] for problem in document["derivation"]["problems"]["first"]]
    assert ("placeholder" in kinds) is bool(bad)
