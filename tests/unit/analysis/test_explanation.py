"""Why a run failed: its exception, who failed first, who only followed, what to do, and since when nothing moved."""

import pytest

from tests.tools.logs import receipt_of

STEPS = "".join(f"iter {n}: loss {3 - n * 0.01:.4f}, time 100.00ms, mfu 40.00%\n" for n in range(20))
HEAD = "Traceback (most recent call last):\n"
KEY = HEAD + "  File \"/src/data.py\", line 4, in load\n    return table[name]\nKeyError: 'images'\n"
RUNTIME = HEAD + '  File "/src/train.py", line 9, in main\n    load()\nRuntimeError: cannot load the shard\n'
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
REMOTE = (
    "ray.exceptions.RayTaskError(ValueError): ray::main_task() (pid=70412, ip=10.0.0.4)\n"
    '  File "/src/ppo.py", line 33, in fit\n'
    "ValueError: bad shape\n"
)
ACTOR = (
    "ray.exceptions.RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=1)\n"
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
)
OWN_TYPE = HEAD + '  File "/src/train.py", line 9, in main\n    stop()\nmine.budget.Spent: 400 of 400 hours\n'
PACKAGES = (
    HEAD + '  File "/src/train.py", line 9, in main\n    go()\n'
    '  File "/opt/lib/python3.11/site-packages/torch/nn/functional.py", line 2, in linear\n    return x\n'
    '  File "<frozen importlib._bootstrap>", line 1006, in _find_and_load\n'
    "TypeError: linear(): argument 'input' must be Tensor, not tuple\n"
)


@pytest.mark.parametrize(
    ("files", "file", "relative"),
    [
        (["/src/train.py", "/src/nn/mx.py", "/opt/pytorch/torch/function.py"], "/src/nn/mx.py", "nn/mx.py"),
        (["/src/train.py", "/src/train.py", "/tmp/torchinductor_me/yj/cyj7.py"], "/src/train.py", "train.py"),
        (["/usr/lib/python3.11/runpy.py", "/src/main.py", "/x/lib/python3.11/site-packages/a/b.py"], "/src/main.py", "main.py"),
        (["./train.py", "/src/data.py"], "/src/data.py", "data.py"),
        (["./train.py", "lib/data.py", "sklearn/tree/_tree.pyx"], "lib/data.py", "lib/data.py"),
        (["C:\\src\\train.py", "C:\\src\\nn\\mx.py"], "C:\\src\\nn\\mx.py", "nn\\mx.py"),
        (["<frozen runpy>", "/opt/venv/bin/torchrun"], "/opt/venv/bin/torchrun", None),
    ],
)
def test_the_frame_is_below_the_folder_of_the_first_own_file(files: list[str], file: str, relative: str | None) -> None:
    frames = "".join(f'  File "{each}", line {number}, in run\n    go()\n' for number, each in enumerate(files, 1))
    frame = receipt_of(f"{STEPS}{HEAD}{frames}ValueError: bad shape\n")["failure"]["exception"]["frame"]
    assert (frame["file"], frame["relative"]) == (file, relative)


@pytest.mark.parametrize(
    ("end", "kind", "message", "frame"),
    [
        (KEY, "KeyError", "'images'", ("/src/data.py", 4, "load")),
        (KEY + DURING + RUNTIME, "KeyError", "'images'", ("/src/data.py", 4, "load")),
        (KEY + CAUSE + RUNTIME, "KeyError", "'images'", ("/src/data.py", 4, "load")),
        (REMOTE, "ValueError", "bad shape", ("/src/ppo.py", 33, "fit")),
        (ACTOR, "ray.exceptions.ActorDiedError", "The actor died unexpectedly before finishing this task.", None),
        (OWN_TYPE, "mine.budget.Spent", "400 of 400 hours", ("/src/train.py", 9, "main")),
        (PACKAGES, "TypeError", "linear(): argument 'input' must be Tensor, not tuple", ("/src/train.py", 9, "main")),
        (HEAD + '  File "a.py", line 1, in <module>\nAssertionError\n', "AssertionError", None, ("a.py", 1, "<module>")),
    ],
    ids=["plain", "chained", "caused", "remote", "actor", "own type", "packages", "no message"],
)
def test_the_message_says_why(end: str, kind: str, message: str | None, frame: tuple[str, int, str] | None) -> None:
    failure = receipt_of(STEPS + end)["failure"]
    raised = failure["exception"]
    assert (raised["type"], raised["message"]) == (kind, message)
    keys = ("file", "line", "function", "relative")
    assert raised["frame"] == (dict(zip(keys, (*frame, frame[0].removeprefix("/src/")), strict=True)) if frame else None)
    assert failure["message"] == (f"{kind}: {message}" if message else kind)
    line = (STEPS + end).splitlines()[failure["line_number"] - 1]
    assert line.startswith(kind)
    assert raised["line_number"] == failure["line_number"]


@pytest.mark.parametrize(
    ("after", "want"),
    [
        (
            "\n2 root error(s) found.\n  (0) INVALID_ARGUMENT:  size 15\n\t [[{{node}}]]\n",
            ("INVALID_ARGUMENT:  size 15", 3),
        ),
        ("  (0) INVALID_ARGUMENT:  size 15\n", ("Graph execution error:", 0)),
        ("2 root error(s) found.\nof\nno\nuse\n  (0) INVALID_ARGUMENT:  size 15\n", ("Graph execution error:", 0)),
        ("\n\n2 root error(s) found.\n2 root error(s) found.\n  (0) OUT_OF_RANGE: 5\n", ("OUT_OF_RANGE: 5", 5)),
    ],
    ids=["listed", "not announced", "too far", "each line twice"],
)
def test_the_first_root_error_is_the_message(after: str, want: tuple[str, int]) -> None:
    end = HEAD + '  File "/src/train.py", line 9, in main\nerrors_impl.InvalidArgumentError: Graph execution error:\n'
    failure = receipt_of(STEPS + end + after)["failure"]
    raised = failure["exception"]
    assert (raised["message"], raised["line_number"] - failure["line_number"]) == want


@pytest.mark.parametrize("tagged", [KEY[len(HEAD) :], RUNTIME[len(HEAD) :]])
def test_a_rank_has_its_frames_where_the_head_is_not_in_the_log(tagged: str) -> None:
    end = HEAD + "".join(f"[rank4]: {line}\n" for line in tagged.splitlines())
    for text in (end, end.removeprefix(HEAD)):
        assert receipt_of(STEPS + text)["failure"]["exception"]["frame"] is not None


def test_frames_without_a_label_are_no_frames_of_a_rank() -> None:
    """Each of several processes printed a caught error; of the traceback of rank 4 the head is lost."""
    caught = (
        'Traceback (most recent call last):\n  File "/src/log.py", line 7, in <module>\n    import x\nModuleNotFoundError: no x\n'
    )
    own = '[rank4]:   File "/src/step.py", line 30, in step\n[rank4]:     raise ValueError\n[rank4]: ValueError: not finite\n'
    frame = receipt_of(caught * 2 + STEPS + own)["failure"]["exception"]["frame"]
    assert (frame["file"], frame["line"]) == ("/src/step.py", 30)


@pytest.mark.parametrize("head", ["Rank 0 Epoch 1/2:   0%|          | 0/93 [00:00<?, ?it/s]", "[rank0]: ", ""])
def test_a_frame_is_found_whatever_stands_before_the_head(head: str) -> None:
    assert receipt_of(STEPS + head + KEY)["failure"]["exception"]["frame"]["line"] == 4


def test_a_secret_in_an_exception_is_masked() -> None:
    secret = "hf_" + "Ab3" * 11
    end = HEAD + f'  File "/src/{secret}/train.py", line 9, in main\nValueError: token {secret} was refused\n'
    raised = receipt_of(STEPS + end)["failure"]["exception"]
    assert secret not in str(raised)


def watchdog(rank: int, enqueued: int, completed: int, host: str = "") -> str:
    return (
        f"{host}[rank{rank}]:[E520 06:31:05.05 ProcessGroupNCCL.cpp:757] [Rank {rank}] Watchdog caught collective operation"
        f" timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600010 milliseconds\n"
        f"{host}[rank{rank}]:[E520 06:31:05.06 ProcessGroupNCCL.cpp:1870] [PG 0 Rank {rank}] Exception detected by watchdog"
        f" at work: 3, last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}.\n"
    )


def test_the_rank_behind_the_others_is_the_culprit() -> None:
    end = "".join(watchdog(rank, 7 if rank != 2 else 5, 4) for rank in range(4))
    failure = receipt_of(STEPS + end)["failure"]
    assert (failure["reason"], failure["culprit"]["rank"], failure["culprit"]["enqueued"]) == ("nccl_timeout", 2, 5)
    assert [victim["rank"] for victim in failure["victims"]["first"]] == [0, 1, 3]
    assert {(v["reason"], v["enqueued"], v["completed"]) for v in failure["victims"]["first"]} == {("nccl_timeout", 7, 4)}


def test_ranks_that_all_wait_name_no_culprit() -> None:
    failure = receipt_of(STEPS + "".join(watchdog(rank, 7, 4) for rank in range(4)))["failure"]
    assert failure["culprit"] is None
    assert failure["victims"]["count"] == 0


def test_an_error_of_one_rank_makes_the_others_victims() -> None:
    own = "".join(f"node-7: [rank3]: {line}\n" for line in KEY.splitlines())
    end = own + "".join(watchdog(rank, 7, 6, f"node-{rank}: ") for rank in (0, 1, 2, 3))
    failure = receipt_of(STEPS + end)["failure"]
    culprit = failure["culprit"]
    assert (failure["reason"], culprit["rank"], culprit["host"], culprit["completed"]) == ("traceback", 3, "node-7", 6)
    assert [(v["rank"], v["host"]) for v in failure["victims"]["first"]] == [(0, "node-0"), (1, "node-1"), (2, "node-2")]


def torchrun(rank: int, code: int, host: str) -> str:
    return (
        f"[{rank}]:\n  time      : 2026-01-15_05:44:28\n  host      : {host}\n  rank      : {rank} (local_rank: {rank % 8})\n"
        f"  exitcode  : {code} (pid: {4100 + rank})\n  error_file: <N/A>\n"
        f"  traceback : Signal {-code} (SIGTERM) received by PID {4100 + rank}\n"
    )


def test_the_launcher_names_culprit_and_victims() -> None:
    end = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n===\ntrain.py FAILED\n---\nFailures:\n"
        f"{torchrun(9, -15, 'node2')}{torchrun(10, -15, 'node3')}---\nRoot Cause (first observed failure):\n"
        f"{torchrun(4, 1, 'node1')}"
    )
    failure = receipt_of(STEPS + end)["failure"]
    assert (failure["culprit"]["rank"], failure["culprit"]["host"]) == (4, "node1")
    assert [(v["rank"], v["host"], v["reason"]) for v in failure["victims"]["first"]] == [
        (9, "node2", "killed"),
        (10, "node3", "killed"),
    ]


OWN, INSTALLED = "train.py", "/opt/venv/lib/python3.11/site-packages/torch/optim/adam.py"


@pytest.mark.parametrize(
    ("files", "error", "rule"),
    [
        ([OWN], "NameError: name 'device' is not defined", "exception:NameError"),
        ([OWN, OWN], "AttributeError: 'Net' object has no attribute 'head'", "exception:AttributeError"),
        ([OWN], "ModuleNotFoundError: No module named 'flash_attn'", "exception:ModuleNotFoundError"),
        ([OWN, INSTALLED], "TypeError: unsupported operand type(s) for +: 'int' and 'str'", None),
        ([INSTALLED, OWN], "TypeError: unsupported operand type(s) for +: 'int' and 'str'", "exception:TypeError"),
        ([OWN], "KeyError: 'images'", None),
        ([OWN], "ConnectionRefusedError: [Errno 111] Connection refused", None),
        ([OWN], "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.", None),
        ([], "Killed", None),
    ],
)
def test_whether_it_would_fail_again(files: list[str], error: str, rule: str | None) -> None:
    frames = "".join(f'  File "{file}", line {n}, in run\n    run()\n' for n, file in enumerate(files, 3))
    head = "Traceback (most recent call last):\n" if files else ""
    retry = receipt_of(f"{STEPS}{head}{frames}{error}\n")["failure"]["retry"]
    assert retry == {"verdict": "would_repeat" if rule else None, "rule": rule}


def stamped(second: int, line: str) -> str:
    return f"2026-01-02 03:{second // 60:02d}:{second % 60:02d} {line}\n"


@pytest.mark.parametrize(("silence", "stalled"), [(30, False), (290, False), (310, True), (1800, True)])
def test_a_silence_longer_than_the_steps_allow_is_a_stall(silence: int, stalled: bool) -> None:
    steps = "".join(stamped(10 * n, f"iter {n}: loss 2.5, time 100.00ms, mfu 40.00%") for n in range(20))
    progress = receipt_of(steps + stamped(190 + silence, "Received SIGTERM, stopping"))["failure"]["progress"]
    assert progress == {"line_number": 20, "step": 19, "silence_s": silence, "usual_s": 10, "stalled": stalled}


def test_without_stamps_nobody_knows_of_a_stall() -> None:
    progress = receipt_of(STEPS + "Killed\n")["failure"]["progress"]
    assert progress == {"line_number": 20, "step": 19, "silence_s": None, "usual_s": None, "stalled": None}


JOB = "slurmstepd: error: *** JOB {} ON dgx-06 CANCELLED AT 2025-08-21T02:5{}:05 ***\n"


@pytest.mark.parametrize(
    ("log", "want", "line"),
    [
        (KEY + "loading\n" + JOB.format(1, 0) + "loading\n" + JOB.format(2, 1), "killed", 8),
        (JOB.format(1, 0) + KEY + JOB.format(2, 1), "traceback", 5),
        (KEY + JOB.format(1, 0) + JOB.format(1, 0), "traceback", 4),
        (JOB.format(1, 0) + "loading\n" + JOB.format(2, 1) + "Killed\n", "killed", 3),
    ],
)
def test_the_end_of_an_earlier_job_is_not_that_of_the_last(log: str, want: str, line: int) -> None:
    failure = receipt_of(log)["failure"]
    assert (failure["reason"], failure["line_number"]) == (want, line)


START = HEAD + "  File \"main.py\", line {}, in {}\n    import torch\nModuleNotFoundError: No module named 'torch'\n"


@pytest.mark.parametrize(
    ("end", "failed"),
    [
        (START.format(6, "<module>"), False),
        ("python: can't open file 'train.py': [Errno 2] No such file or directory\n", False),
        ("train.py: error: unrecognized arguments: --lr 3\n", False),
        ("bash: torchrun: command not found\n", False),
        (START.format(6, "evaluate"), True),
        (START.format(812, "<module>"), True),
        (START.format(6, "<module>") + "EXIT_CODE=1\n", False),
        (KEY, True),
        (KEY + START.format(6, "<module>"), True),
    ],
)
def test_a_failed_start_behind_a_run_is_a_launch_of_its_own(end: str, failed: bool) -> None:
    document = receipt_of(STEPS + end)
    kinds = [problem["kind"] for problem in document["derivation"]["problems"]["first"]]
    assert ("failed_start" in kinds) is not failed
    assert (document["failure"] is not None) is failed
    assert document["checks"]["zero_exit_code"] is (False if failed else None)


DOCKER = '{{"log":"{}\\n","stream":"stdout","time":"2026-01-02T03:04:{:02d}.123456789Z"}}\n'


def test_docker_records_are_unpacked() -> None:
    lines = [line.replace("\\", "\\\\").replace('"', '\\"') for line in (STEPS + KEY).splitlines()]
    document = receipt_of("".join(DOCKER.format(line, n) for n, line in enumerate(lines)))
    failure = document["failure"]
    assert document["summary"]["steps"]["record_count"] == 20
    assert (failure["reason"], failure["line_number"], failure["message"]) == ("traceback", 24, "KeyError: 'images'")
    assert failure["exception"]["frame"] == {"file": "/src/data.py", "line": 4, "function": "load", "relative": "data.py"}
    assert failure["progress"]["silence_s"] == 4


def test_what_was_interrupted_comes_before_the_launcher_that_says_so() -> None:
    launcher = "[2025-12-10 12:07:08,014] [INFO] [launch.py:344:sigkill_handler] Main process received SIGINT, exiting\n"
    failure = receipt_of(STEPS + launcher + HEAD + '  File "/src/train.py", line 9, in main\n    go()\nKeyboardInterrupt\n')[
        "failure"
    ]
    assert (failure["reason"], failure["line_number"], failure["message"]) == ("interrupted", 25, "KeyboardInterrupt")
    assert receipt_of(STEPS + launcher)["failure"]["line_number"] == 21
    assert (
        receipt_of(STEPS + launcher + "  - KeyboardInterrupt\n")["failure"]["line_number"] == 21
    )  # a mention interrupts nothing
