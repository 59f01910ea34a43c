"""The ends of logs as launchers, schedulers and shells write them → why the run ended."""

import pytest

from tests.tools.logs import receipt_of

HEAD = "max_iters = 500\n" + "".join(f"iter {n}: loss {3 - n * 0.01:.4f}, time 100.00ms, mfu 40.00%\n" for n in range(20))

ENDS = {
    "slurm oom": (
        "host_oom",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=91.0. Some of the step tasks have been OOM Killed.\n"
        "srun: error: node4: task 0: Out Of Memory\n"
        "srun: Terminating StepId=91.0\n"
        "slurmstepd: error: *** STEP 91.0 ON node4 CANCELLED AT 2026-06-04T07:20:14 ***\n"
        "srun: error: node5: task 1: Terminated\n"
        "srun: Force Terminated StepId=91.0\n",
    ),
    "slurm crash": (
        "traceback",
        "[rank3]: Traceback (most recent call last):\n"
        '[rank3]:   File "a.py", line 3\n'
        "[rank3]: IndexError: list index out of range\n"
        "srun: error: node4: task 3: Exited with exit code 1\n"
        "srun: Terminating StepId=91.0\n"
        "slurmstepd: error: *** STEP 91.0 ON node4 CANCELLED AT 2026-06-04T07:20:14 ***\n"
        "srun: error: node5: task 1: Terminated\n",
    ),
    "slurm crash no text": (
        "child_failed",
        "srun: error: node4: task 3: Exited with exit code 1\n"
        "srun: Terminating StepId=91.0\n"
        "slurmstepd: error: *** STEP 91.0 ON node4 CANCELLED AT 2026-06-04T07:20:14 ***\n"
        "srun: error: node5: task 1: Terminated\n",
    ),
    "slurm scancel": (
        "killed",
        "srun: Job step aborted: Waiting up to 62 seconds for job step to finish.\n"
        "slurmstepd: error: *** STEP 91.0 ON node4 CANCELLED AT 2026-06-04T07:20:14 ***\n"
        "slurmstepd: error: *** JOB 91 ON node4 CANCELLED AT 2026-06-04T07:20:14 ***\n"
        "[2025-02-11 23:11:12,834] [INFO] [launch.py:295:sigkill_handler] Main process received SIGTERM, exiting\n",
    ),
    "slurm segv": (
        "segfault",
        "srun: error: node4: task 3: Segmentation fault (core dumped)\n"
        "srun: Terminating StepId=91.0\n"
        "slurmstepd: error: *** STEP 91.0 ON node4 CANCELLED AT 2026-06-04T07:20:14 ***\n",
    ),
    "timelimit sigterm first": (
        "time_limit",
        "W0612 05:12:43.162000 70133 torch/distributed/elastic/agent/server/api.py:739] Received Sign"
        "als.SIGTERM death signal, shutting down workers\n"
        "W0612 05:12:43.163000 70133 torch/distributed/elastic/multiprocessing/api.py:897] Sending pr"
        "ocess 44 closing signal SIGTERM\n"
        "Traceback (most recent call last):\n"
        '  File "x", line 3\n'
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 70133 got signal: 15\n"
        "slurmstepd: error: *** JOB 91 ON node4 CANCELLED AT 2026-06-04T07:20:14 DUE TO TIME LIMIT ***\n",
    ),
    "preempt": (
        "preempted",
        "slurmstepd: error: *** STEP 91.0 ON node4 CANCELLED AT 2026-06-04T07:20:14 DUE TO PREEMPTION ***\n"
        "srun: error: node4: task 0: Terminated\n",
    ),
    "deepspeed -9": (
        "killed",
        "[2025-02-11 11:08:24,316] [INFO] [launch.py:314:sigkill_handler] Killing subprocess 91\n"
        "[2025-02-11 11:08:25,316] [ERROR] [launch.py:320:sigkill_handler] ['/opt/conda/bin/python', "
        "'-u', 'main.py'] exits with return code = -9\n",
    ),
    "deepspeed oom": (
        "cuda_oom",
        "Traceback (most recent call last):\n"
        '  File "a.py", line 3\n'
        "    x\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.75 GiB (GPU 0; 44.10 GiB total capacity)\n"
        "[2025-02-11 11:08:25,316] [ERROR] [launch.py:320:sigkill_handler] ['/opt/conda/bin/python', "
        "'-u', 'main.py'] exits with return code = 1\n",
    ),
    "accelerate notebooks": (
        "killed",
        "Traceback (most recent call last):\n"
        '  File "a.py", line 3\n'
        "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.\n",
    ),
    "accelerate sigsegv": (
        "segfault",
        "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGSEGV: 11>.\n",
    ),
    "mpi": (
        "killed",
        "--------------------------------------------------------------------------\n"
        "mpirun noticed that process rank 3 with PID 812 on node node4 exited on signal 9 (Killed).\n"
        "--------------------------------------------------------------------------\n",
    ),
    "ray actor died": (
        "traceback",
        "ray.exceptions.RayTaskError(ValueError): ray::main_task() (pid=70412, ip=10.0.0.4)\n"
        '  File "x", line 3\n'
        "ValueError: bad shape\n",
    ),
    "hf gated": (
        "traceback",
        "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-0)\n"
        "\n"
        "OSError: You are trying to access a gated repo.\n",
    ),
    "kb ddp": (
        "interrupted",
        "^CTraceback (most recent call last):\n"
        '  File "a.py", line 3\n'
        "KeyboardInterrupt\n"
        "[rank1]:[E520 08:11:25.150097785 ProcessGroupNCCL.cpp:757] [Rank 1] Watchdog caught collecti"
        "ve operation timeout: WorkNCCL(SeqNum=3)\n",
    ),
    "docker 137": ("killed", "trainer-1 exited with code 137\n"),
    "xid": (
        "ecc_or_xid",
        "[Fri Aug 30 11:43:09 2026] NVRM: Xid (PCI:0000:cb:00): 79, pid=1, GPU has fallen off the bus.\n"
        "RuntimeError: CUDA error: unspecified launch failure\n",
    ),
    "disk": (
        "disk_full",
        "Traceback (most recent call last):\n"
        '  File "a.py", line 3\n'
        "OSError: [Errno 28] No space left on device\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0\n",
    ),
    "disk torch": ("traceback", "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0\n"),
    "vm": (None, "Connection to 10.0.0.4 closed by remote host.\n"),
    "gloo": (
        "child_failed",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:41002\n",
    ),
    "pt aborted corrupted": (None, "double free or corruption (!prev)\n"),
    "jax preempt": (
        "truncated",
        "W0612 12:00:00.1 12 coordination_service_agent.cc:580] Terminating process because the JAX d"
        "istributed service detected fatal errors. This most likely indicates that another task died;"
        " see the other task logs for more details.\n",
    ),
    "colab": ("truncated", "^C\n"),
    "oom bare": ("cuda_oom", "RuntimeError: CUDA out of memory.\n"),
    "oom caught": ("truncated", "WARNING: ran out of memory, retrying batch\n"),
    "tf oom": (
        "cuda_oom",
        "2026-01-01 10:00:00.123: W tensorflow/core/framework/op_kernel.cc:968] Resource exhausted: O"
        "OM when allocating tensor with shape[128,640,9,9]\n"
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor\n",
    ),
    "lightning sigterm": (
        "killed",
        "/x/trainer/connectors/signal_connector.py:163: [rank: 0] Received SIGTERM: 15\n"
        "lightning.pytorch.utilities.exceptions.SIGTERMException\n",
    ),
    "k8s": (None, "rpc error: code = Unknown desc = Error: No such container: abc\n"),
    "condor": (
        "host_oom",
        "012 (123.000.000) 2026-01-01 10:00:00 Job was held.\n"
        "\tError from slot1@h: Job has gone over memory limit of 4096 megabytes. Peak usage: 4100 megabytes.\n",
    ),
    "glog sigterm": (
        "killed",
        '*** Aborted at 1450124995 (unix time) try "date -d @1450124995" if you are using GNU date ***\n'
        "PC: @     0x7ffd5d3a37c2 (unknown)\n"
        "*** SIGTERM (@0x3e800006e91) received by PID 20576 (TID 0x7f82335dd7c0) from PID 28305; stack trace: ***\n",
    ),
    "glog sigint": ("interrupted", "*** SIGINT (@0x3e8) received by PID 20576 (TID 0x7f82335d) from PID 1; stack trace: ***\n"),
    "deepspeed sigint": (
        "interrupted",
        "[2022-10-28 23:01:52,534] [INFO] [launch.py:295:sigkill_handler] Main process received SIGINT, exiting\n",
    ),
    "ray worker died": (
        "child_failed",
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the "
        "problem, check the logs for the dead worker.\n",
    ),
    "zsh": ("killed", "zsh: killed     python train.py\n"),
    "win": ("segfault", "Process finished with exit code -1073741819 (0xC0000005)\n"),
}


@pytest.mark.parametrize(("want", "end"), ENDS.values(), ids=ENDS)
def test_the_end_of_a_log_says_why(want: str | None, end: str) -> None:
    document = receipt_of(HEAD + end)
    if want is None:  # closing text that no marker knows proves neither that the run ended early nor that it did not
        assert document["failure"] is None and document["checks"]["completed"] is None
    else:
        assert document["failure"]["reason"] == want


EPOCHS = [f"21:25:{n:02} INFO: Epoch {n}/8 | Loss: {1 / (n + 1):.5f} | Time: 485.5s" for n in range(9)]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (EPOCHS[1:8], "truncated"),  # counted from 1, and the eighth is missing
        (EPOCHS[1:], None),
        (EPOCHS[:8], None),  # counted from 0
    ],
)
def test_the_last_epoch_has_the_number_of_epochs_where_the_first_is_1(lines: list[str], reason: str | None) -> None:
    assert ((receipt_of("\n".join(lines) + "\n")["failure"]) or {"reason": None})["reason"] == reason


@pytest.mark.parametrize(
    ("first", "last", "reason"), [(0, 39, None), (1, 39, "truncated"), (20, 38, "truncated"), (20, 39, None)]
)
def test_a_resumed_log_does_not_show_whether_its_epochs_count_from_zero(first: int, last: int, reason: str | None) -> None:
    epochs = (f"Epoch [{n}/40], Loss: {9 / (n + 1):.4f}\nValidation Loss: {9 / (n + 1):.4f}\n" for n in range(first, last + 1))
    failure = receipt_of("".join(epochs))["failure"]
    assert (failure and failure["reason"]) == reason


OPTIONS = [f"{word} option: off" for word in ("first", "second", "third", "grey", "fine", "slow", "old", "wide") * 3]
CRASH = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "KeyError: 'batch'"]


@pytest.mark.parametrize(
    "rows",
    [
        [f"{n} {1 / (n + 1):.6f}" for n in range(30)],
        [f"{n} {1 / (n + 1):.6f}" for n in range(30)][::-1],
        [*OPTIONS, *(f"1.{n}... zeta: {1 / n:.6f}, {n % 3 / 7:.6f} ({n % 4 / 9:.3f} sec)" for n in range(1, 18))],
    ],
    ids=["up", "down", "fractions"],
)
def test_rows_of_numbers_may_be_steps(rows: list[str]) -> None:
    for end in ([], CRASH):
        assert receipt_of("\n".join([*rows, *end]) + "\n")["checks"]["has_steps"] is None


def test_a_plan_without_a_step_proves_no_end() -> None:
    """The steps may be printed in a form that nobody reads."""
    told = [
        "***** Running training *****", "  Num examples = 400", "  Total optimization steps = 100",
        *(f"{n} done so far, all is well" for n in range(40)),
    ]  # fmt: skip
    document = receipt_of(told, "hf-trainer")
    assert (document["checks"]["completed"], document["failure"]) == (None, None)
