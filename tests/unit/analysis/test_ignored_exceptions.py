"""An exception that Python ignores ends nothing: the traceback directly behind its heading is no failure of the run."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.tools.logs import receipt_of

SESSION = "<bound method Session.__del__ of <tensorflow.python.client.session.Session object at 0x7f82ac2479b0>>"
HEADINGS = [
    f"Exception ignored in: {SESSION}",
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f2f5c0d1c10>",
    "Exception ignored in atexit callback: <function Manager._atexit_teardown at 0x7fcc2b>",
    "Exception ignored in sys.unraisablehook: <built-in function unraisablehook>",
    "Exception ignored in thread started by: <bound method Worker.loop of <worker.Worker object at 0x7f2f>>",
    "Exception ignored on calling ctypes callback function: <function CFUNC.<locals>.callback at 0x7f1c>",
    "Exception ignored on threading shutdown: <module 'threading' from '/usr/lib/python3.13/threading.py'>",
    "Exception ignored while calling deallocator <function Session.__del__ at 0x7f2f5c0d1c10>:",
    "Error in atexit._run_exitfuncs:",
    "Unhandled exception in thread started by <bound method Thread._bootstrap of <Thread(Thread-7, stopped daemon 140)>>",
    "Exception in thread Thread-2 (most likely raised during interpreter shutdown):",
]
TRACE = (
    "Traceback (most recent call last):",
    '  File "/usr/local/lib/python3.4/dist-packages/tensorflow/python/client/session.py", line 696, in __del__',
    '  File "/usr/local/lib/python3.4/dist-packages/tensorflow/python/framework/c_api_util.py", line 30, in __init__',
    "TypeError: 'NoneType' object is not callable",
)
NEWER = (
    "Traceback (most recent call last):",
    '  File "/opt/conda/lib/python3.12/site-packages/torch/utils/data/dataloader.py", line 1477, in __del__',
    "    self._shutdown_workers()",
    "    ~~~~~~~~~~~~~~~~~~~~~~^^",
    "AssertionError: can only test a child process",
)
CHAINED = (
    *TRACE,
    "",
    "During handling of the above exception, another exception occurred:",
    "",
    "Traceback (most recent call last):",
    '  File "a.py", line 3, in close',
    "OSError: handle is closed",
)
CRASH = ("Traceback (most recent call last):", '  File "train.py", line 30, in <module>', "KeyError: 'images'")


def run(epochs: int, *end: str) -> str:
    lines = [f"Epoch {n}/12 train loss {3 / n:.4f} val loss {3.2 / n:.4f}" for n in range(1, epochs + 1)]
    return "\n".join([*lines, *end, ""])


def ending(document: dict[str, Any]) -> tuple[str | None, bool | None]:
    return document["failure"] and document["failure"]["reason"], document["checks"]["completed"]


@pytest.mark.parametrize("trace", [TRACE, NEWER, CHAINED], ids=["old", "new", "chained"])
@pytest.mark.parametrize("heading", HEADINGS)
def test_an_ignored_exception_behind_a_finished_run(heading: str, trace: Iterable[str]) -> None:
    document = receipt_of(run(12, "Finish", heading, *trace))
    assert ending(document) == (None, True)
    assert document["checks"]["zero_exit_code"] is None


def test_what_was_ignored_is_still_observed() -> None:
    document = receipt_of(run(12, HEADINGS[0], *TRACE))
    assert {"ignored_exception", "exception"} <= {seen["id"] for seen in document["derivation"]["observed"]}


@pytest.mark.parametrize(
    "layout",
    [
        lambda heading, trace: [heading, *(f"  {line}" for line in trace)],
        lambda heading, trace: [f"[rank0]: {heading}", *(f"[rank0]: {line}" for line in trace)],
        lambda heading, trace: [f"100%|##########| 10/10 [00:04<00:00,  2.31it/s]{heading}", *trace],
        lambda heading, trace: [heading, *trace, heading, *trace, heading, *trace],
        lambda heading, trace: [heading, trace[-1]],
        lambda heading, trace: [heading, "", *trace],
    ],
    ids=["indented", "ranks", "behind a bar", "three times", "without a traceback", "blank line"],
)
def test_forms_of_an_ignored_exception(layout: Callable[..., list[str]]) -> None:
    assert ending(receipt_of(run(12, *layout(HEADINGS[0], TRACE)))) == (None, True)


@pytest.mark.parametrize("before", [True, False])
def test_a_crash_beside_an_ignored_exception_convicts(before: bool) -> None:
    ignored = (HEADINGS[0], *TRACE)
    document = receipt_of(run(5, *(*CRASH, *ignored) if before else (*ignored, *CRASH)))
    assert document["failure"]["reason"] == "traceback"
    assert document["failure"]["message"] == "KeyError: 'images'"


def test_the_rest_of_a_log_is_no_part_of_it() -> None:
    document = receipt_of(run(5, HEADINGS[0], *TRACE[:-1], "queue.Empty", "Killed"))
    assert document["failure"]["reason"] == "killed"
    document = receipt_of(run(5, HEADINGS[0], *TRACE, "srun: error: node4: task 0: Exited with exit code 1"))
    assert document["failure"]["reason"] == "child_failed"


@pytest.mark.parametrize(("epochs", "completed"), [(5, None), (12, True)])
def test_a_ctrl_c_that_python_ignored_is_no_reason(epochs: int, completed: bool | None) -> None:
    shutdown = "Exception ignored in: <module 'threading' from '/usr/lib/python3.10/threading.py'>"
    frames = ("Traceback (most recent call last):", '  File "/usr/lib/python3.10/threading.py", line 1567, in _shutdown')
    assert ending(receipt_of(run(epochs, shutdown, *frames, "    lock.acquire()", "KeyboardInterrupt: "))) == (None, completed)


def test_output_that_could_not_be_written_is_no_ignored_exception() -> None:
    stdout = "Exception ignored in: <_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>"
    assert ending(receipt_of(run(5, stdout, "BrokenPipeError: [Errno 32] Broken pipe")))[0] == "traceback"


@pytest.mark.parametrize(
    "heading",
    [
        ("ERROR:asyncio:Task exception was never retrieved", "future: <Task finished name='Task-17' exception=KeyError('x')>"),
        ("Future exception was never retrieved", "future: <Future finished exception=KeyError('x')>"),
        ("ERROR - asyncio - Exception in callback Loop._read_from_self()", "handle: <Handle Loop._read_from_self()>"),
    ],
)
def test_an_exception_of_a_task_that_nobody_waits_for_is_no_reason(heading: tuple[str, str]) -> None:
    assert ending(receipt_of(run(5, *heading, *TRACE))) == (None, None)
    assert receipt_of(run(5, *heading, *TRACE, *heading, *NEWER, *CRASH))["failure"]["message"] == "KeyError: 'images'"


def test_an_exception_in_a_thread_is_no_reason() -> None:
    assert ending(receipt_of(run(5, "Exception in thread Thread-3 (learn):", *TRACE))) == (None, None)
    assert ending(receipt_of(run(5, "Exception in thread Thread-3 (learn):", *TRACE, *CRASH)))[0] == "traceback"


MIXED = (
    "Exception in thread Thread-3:", TRACE[0], "Exception in thread Thread-2:", TRACE[1], TRACE[0], *TRACE[1:3], TRACE[2],
    TRACE[3], "    raise OSError('closed')", "OSError: closed",
)  # fmt: skip


def test_mixed_tracebacks_of_threads_are_no_reason() -> None:
    spawned = ("-- Process 0 terminated with the following error:", *CRASH)
    assert ending(receipt_of(run(5, *MIXED))) == (None, None)
    for crash in (CRASH, ("torch.multiprocessing.spawn.ProcessRaisedException: ", "", *spawned)):
        assert receipt_of(run(5, *MIXED, *crash))["failure"]["message"] == "KeyError: 'images'"


FRAMES = (
    '  File "train.py", line 281, in <module>',
    '  File "/opt/lib/python3.11/site-packages/jax/_src/pjit.py", line 332, in cache_miss',
    '  File "/opt/lib/python3.11/site-packages/jax/_src/interpreters/mlir.py", line 2776, in _wrapped_callback',
)
QUOTED = {
    "jax": (
        *CRASH[:2],
        "XlaRuntimeError: INTERNAL: CustomCall failed: CpuCallback error: Traceback (most recent call last):",
        *FRAMES,
        "KeyboardInterrupt:",
        "--------------------",
        "For simplicity, JAX has removed its internal frames from the traceback of the following exception.",
    ),
    "jax of 2023": (
        *CRASH[:2],
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Generated function failed: CpuCallback error: KeyboardInterrupt: "
        "<EMPTY MESSAGE>",
        "",
        "At:",
        "  /opt/lib/python3.9/selectors.py(415): select",
    ),
    "pytorch": (
        *CRASH[:2],
        "RuntimeError: Caught KeyboardInterrupt in DataLoader worker process 0.",
        "Original Traceback (most recent call last):",
        *FRAMES,
        "KeyboardInterrupt",
    ),
    "tensorflow": (
        *CRASH[:2],
        "tensorflow.python.framework.errors_impl.UnknownError: KeyboardInterrupt: ",
        "Traceback (most recent call last):",
        "",
        *FRAMES,
        "",
        "KeyboardInterrupt",
    ),
    "ray": (
        *CRASH[:2],
        "ray.exceptions.RayTaskError(KeyboardInterrupt): ray::Trainer.step() (pid=812, ip=10.0.0.4)",
        *FRAMES,
        "KeyboardInterrupt",
    ),
    "another extension": (*CRASH[:2], "RuntimeError: the callback raised:", *FRAMES, "KeyboardInterrupt"),
}


@pytest.mark.parametrize("end", QUOTED.values(), ids=QUOTED)
def test_an_error_whose_message_holds_the_traceback_of_a_ctrl_c(end: Iterable[str]) -> None:
    document = receipt_of(run(5, *end))
    assert document["failure"]["reason"] == "interrupted"
    assert document["failure"]["category"] == "signal"


@pytest.mark.parametrize(
    "end",
    [
        (*CRASH, *CRASH[:2], "KeyboardInterrupt"),
        (*CRASH[:2], "RuntimeError: the callback raised:", *FRAMES, "KeyError: 'images'", *CRASH[:2], "KeyboardInterrupt"),
        (*CRASH, "    next(self.gen)", *FRAMES, "KeyboardInterrupt"),
        (*CRASH, "waiting for the other processes", "stopping them", "KeyboardInterrupt"),
    ],
    ids=["another process", "another error within", "interleaved", "no frames"],
)
def test_an_error_before_a_ctrl_c_is_still_the_failure(end: Iterable[str]) -> None:
    assert receipt_of(run(5, *end))["failure"]["reason"] == "traceback"


@pytest.mark.parametrize(("said", "want"), [("SystemExit: 130", "interrupted"), ("SystemExit: 143", "killed")])
def test_an_exit_with_the_code_of_a_signal(said: str, want: str) -> None:
    assert receipt_of(run(5, *CRASH[:2], "RuntimeError: the callback raised:", *FRAMES, said))["failure"]["reason"] == want


def test_the_error_of_a_loader_worker_counts_in_a_thread() -> None:
    worker = "KeyError: 'DataLoader worker(1) caught KeyError with message:\\nTraceback (most recent call last)"
    end = (HEADINGS[-1], *TRACE[:2], worker, *CRASH[:2], "SystemError: (Fatal) Blocking queue is killed")
    assert receipt_of(run(5, *end))["failure"]["message"] == worker
