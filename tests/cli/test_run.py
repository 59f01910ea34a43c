"""``receipt run``: the command sees no difference, its caller sees no difference, and there is a receipt."""

import errno
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = ROOT / "tests" / "trainers"
RECEIPT = [sys.executable, "-m", "receipt_cli"]
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
MANY_STEPS = 20
ENDS = ("header.json", "log", "log.times", "receipt.json")
"""Ends of the names of the files that a run writes, in order."""


@dataclass(frozen=True)
class Run:
    """A wrapped command that has ended."""

    code: int
    stdout: bytes
    stderr: str
    folder: Path

    @property
    def log(self) -> bytes:
        return (self.folder / "job.log").read_bytes()

    @property
    def receipt(self) -> dict[str, Any]:
        return json.loads((self.folder / "job.receipt.json").read_bytes())

    @property
    def reason(self) -> str | None:
        failure = self.receipt["failure"]
        return None if failure is None else failure["reason"]


def wrapped(*command: str | Path, options: Sequence[str] = ("--log", "job.log")) -> list[str]:
    return [*RECEIPT, "run", *options, "--", *map(str, command)]


def run(folder: Path, *command: str | Path, options: Sequence[str] = ("--log", "job.log"), **more: Any) -> Run:
    settings = {"capture_output": True, "env": ENV, "timeout": 120, "check": False, **more}
    done = subprocess.run(wrapped(*command, options=options), cwd=folder, **settings)
    return Run(done.returncode, done.stdout or b"", (done.stderr or b"").decode(), folder)


def start(folder: Path, *command: str | Path, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(wrapped(*command), cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def read_until(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """Read the stdout of ``process`` until ``text`` has come."""
    assert process.stdout is not None
    seen = b""
    while text not in seen:
        assert select.select([process.stdout], [], [], 60)[0], seen
        block = os.read(process.stdout.fileno(), 65536)
        assert block, seen
        seen += block
    return seen


def ended(process: subprocess.Popen[bytes], folder: Path) -> Run:
    out, err = process.communicate(timeout=60)
    return Run(process.returncode, out, err.decode(), folder)


# --- a trainer that needs nothing, to its four ends ------------------------------------------------------------------------


def test_success(tmp_path: Path) -> None:
    done = run(tmp_path, sys.executable, TRAINERS / "plain_loop.py", "success", options=("--log", "job.log", "--lane", "cpu"))
    receipt = done.receipt
    assert (done.code, done.reason, receipt["summary"]["steps"]["record_count"]) == (0, None, 40)
    assert all(receipt["checks"][name] for name in ("finite_losses", "zero_exit_code", "has_steps", "no_oom"))
    assert receipt["checks"]["completed"] is None  # an exit code of zero alone does not say that it did what it planned
    assert done.stdout == done.log
    job = receipt["run"]
    assert (job["log_complete"], "log_loss" in job) == (True, False)
    assert (job["exit_code"], job["lane"], job["started_at"] <= job["finished_at"]) == (0, "cpu", True)
    assert 40 * 0.002 < job["wall_time_s"] < 60
    assert receipt["derivation"]["options"]["wall"] == {
        "seconds": job["wall_time_s"], "evidence": "receipt_run", "phase": None,
    }  # fmt: skip
    assert 4 << 20 < job["peak_rss_bytes"] < 1 << 30
    shown = done.stderr.splitlines()
    assert shown[-1].split() == ["receipt", "job.receipt.json"]
    assert [line for line in shown if line.startswith("✓ finished  after step")], shown


def test_exception(tmp_path: Path) -> None:
    done = run(tmp_path, sys.executable, TRAINERS / "plain_loop.py", "exception")
    assert (done.code, done.reason, done.receipt["summary"]["steps"]["record_count"]) == (1, "traceback", MANY_STEPS)
    assert done.receipt["failure"]["message"].endswith("the optimizer has lost its way at step 20")
    assert "RuntimeError" in done.stderr
    assert b"RuntimeError" in done.log
    assert b"RuntimeError" not in done.stdout


def test_sigterm_is_passed_on(tmp_path: Path) -> None:
    process = start(tmp_path, sys.executable, TRAINERS / "plain_loop.py", "sigterm")
    read_until(process, b"ready at 20")
    process.send_signal(signal.SIGTERM)
    done = ended(process, tmp_path)
    assert (done.code, done.reason, done.receipt["summary"]["steps"]["record_count"]) == (-signal.SIGTERM, "killed", MANY_STEPS)
    assert done.receipt["run"]["exit_code"] == -signal.SIGTERM


LOOP = (
    "import signal, sys, time\n"
    "signal.signal(getattr(signal, sys.argv[1]), lambda *_: sys.exit(0))\n"
    "for n in range(20): print(f'iter {n}: loss 2.0, time 5.00ms, mfu 1.00%', flush=True)\n"
    "time.sleep(60)\n"
)


@pytest.mark.parametrize(("name", "reason"), [("SIGTERM", "killed"), ("SIGINT", "interrupted")])
def test_a_command_that_stops_on_a_signal_with_zero_has_not_come_to_its_end(tmp_path: Path, name: str, reason: str) -> None:
    process = start(tmp_path, sys.executable, "-c", LOOP, name)
    read_until(process, b"iter 19")
    process.send_signal(signal.Signals[name])
    done = ended(process, tmp_path)
    assert (done.code, done.reason, done.receipt["checks"]["completed"]) == (0, reason, False)
    assert done.log.splitlines()[-1] == f"receipt run: {name} was sent to the command".encode()


def test_a_signal_that_the_command_outlives_is_no_end(tmp_path: Path) -> None:
    waits = LOOP.replace("sys.exit(0)", "seen.append(1)").replace("time.sleep(60)", "while not seen: time.sleep(0.01)")
    script = f"seen = []\n{waits}{LOOP.splitlines()[2]}"
    process = start(tmp_path, sys.executable, "-c", script, "SIGTERM")
    read_until(process, b"iter 19")
    process.send_signal(signal.SIGTERM)
    done = ended(process, tmp_path)
    assert (done.code, done.reason, done.log.count(b"receipt run: SIGTERM was sent")) == (0, None, 1)


def test_an_address_space_that_runs_out(tmp_path: Path) -> None:
    limited = f"ulimit -v 400000; exec {sys.executable} {TRAINERS / 'plain_loop.py'} memory"
    done = run(tmp_path, "sh", "-c", limited)
    assert (done.code, done.reason, done.receipt["summary"]["steps"]["record_count"]) == (1, "host_oom", MANY_STEPS)
    assert done.receipt["checks"]["no_oom"] is False


@pytest.mark.parametrize("whole", [True, False], ids=["with us in it", "the command alone"])
def test_a_kill_for_want_of_memory(tmp_path: Path, cgroup: Path, whole: bool) -> None:
    enter = f"echo $$ > {cgroup}/cgroup.procs"
    command = [sys.executable, str(TRAINERS / "plain_loop.py"), "memory"]
    job = wrapped(*command) if whole else wrapped("sh", "-c", f"{enter}; exec {' '.join(command)}")
    script = f'{enter}; exec "$@"' if whole else 'exec "$@"'
    job = ["sh", "-c", script, "sh", *job]
    finished = subprocess.run(job, cwd=tmp_path, env=ENV, capture_output=True, timeout=120, check=False)
    done = Run(finished.returncode, finished.stdout, finished.stderr.decode(), tmp_path)
    assert (done.code, done.reason, done.receipt["summary"]["steps"]["record_count"]) == (-signal.SIGKILL, "host_oom", MANY_STEPS)
    assert b"receipt run: the command was killed by SIGKILL, and the memory cgroup counted 1 kill for want of memory" in done.log
    assert b"receipt run" not in done.stdout
    assert done.receipt["run"]["peak_rss_bytes"] > 100 << 20
    again = subprocess.run(
        [*RECEIPT, "verify", "job.receipt.json", "job.log"], cwd=tmp_path, env=ENV, capture_output=True, timeout=60, check=False
    )
    assert again.returncode == 0, again.stderr


def test_a_kill_without_evidence_is_not_called_one_for_want_of_memory(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", "echo 'iter 1: loss 2.0, time 5.00ms, mfu 1.00%'; kill -9 $$")
    assert (done.code, done.reason) == (-signal.SIGKILL, "killed")
    assert done.receipt["checks"]["no_oom"] is None


# --- what the caller sees ---------------------------------------------------------------------------------------------------


def test_signals_reach_the_command_once(tmp_path: Path) -> None:
    names = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT"]
    script = (
        "import signal, time\n"
        "seen = []\n"
        f"for name in {names}: signal.signal(getattr(signal, name), lambda number, _: seen.append(number))\n"
        "print('ready', flush=True)\n"
        f"for count in range(1, {len(names) + 1}):\n"
        "    while len(seen) < count: time.sleep(0.01)\n"
        "    print('seen', count, flush=True)\n"
        "time.sleep(0.2)\n"
        "print([signal.Signals(number).name for number in seen])\n"
    )
    process = start(tmp_path, sys.executable, "-c", script)
    read_until(process, b"ready")
    for count, name in enumerate(names, 1):
        process.send_signal(signal.Signals[name])
        if count < len(names):
            read_until(process, b"seen %d" % count)
    done = ended(process, tmp_path)
    assert (done.code, done.stdout.decode().splitlines()[-1]) == (0, str(names))


def test_the_second_signal_is_passed_on_too(tmp_path: Path) -> None:
    script = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saving', flush=True), signal.signal(signal.SIGTERM, signal.SIG_DFL)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.01)\n"
    )
    process = start(tmp_path, sys.executable, "-c", script)
    read_until(process, b"ready")
    process.send_signal(signal.SIGTERM)
    read_until(process, b"saving")
    process.send_signal(signal.SIGTERM)
    assert ended(process, tmp_path).code == -signal.SIGTERM


def test_a_signal_that_the_caller_ignores_stays_ignored(tmp_path: Path) -> None:
    script = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    done = run(tmp_path, sys.executable, "-c", script, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert done.stdout == b"True\n"


def test_what_the_command_inherits_is_unchanged(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "given = open(sys.argv[1], 'rb').read().split(b'\\0')\n"
        "print(sorted(b'='.join(pair) for pair in os.environb.items()) == sorted(given) or os.environb)\n"
        "print(os.getcwd() == sys.argv[2], signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
        "print(os.getpgrp() == os.getpgid(os.getppid()), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)\n"
        "print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], sys.stdin.read())\n"
    )
    (tmp_path / "job.py").write_text(script)
    (tmp_path / "environ").write_bytes(b"\0".join(os.fsencode(f"{key}={value}") for key, value in ENV.items()))
    done = run(tmp_path, sys.executable, "job.py", "environ", tmp_path, input=b"over stdin")
    assert done.stdout.decode().splitlines() == ["True", "True set()", "True True", "[0, 1, 2] over stdin"]


@pytest.mark.parametrize(
    ("text", "mode", "code", "said"),
    [
        (None, 0, 127, "receipt: error: ./train: command not found"),
        ("text", 0o644, 126, "Permission denied"),
        ("#!/no/such/python\n", 0o755, 127, "./train"),
    ],
    ids=["not there", "not executable", "no interpreter"],
)
def test_a_command_that_cannot_start(tmp_path: Path, text: str | None, mode: int, code: int, said: str) -> None:
    if text is not None:
        (tmp_path / "train").write_text(text)
        (tmp_path / "train").chmod(mode)
    done = run(tmp_path, "./train", "--lr", "1")
    assert (done.code, said in done.stderr.splitlines()[-1]) == (code, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == (["train"] if text is not None else [])


def test_a_script_without_its_first_line_is_run_as_execvp_does(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("echo from $1")
    (tmp_path / "train").chmod(0o755)
    assert run(tmp_path, "./train", "here").stdout == b"from here\n"


def test_stdout_and_stderr_stay_apart_and_their_lines_whole(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "for n in range(200):\n"
        "    sys.stdout.write('out'); sys.stdout.flush(); sys.stderr.write('err'); sys.stderr.flush()\n"
        "    time.sleep(0.001)\n"
        "    sys.stdout.write(f'put {n}\\n'); sys.stdout.flush(); sys.stderr.write(f'or {n}\\n'); sys.stderr.flush()\n"
    )
    done = run(tmp_path, sys.executable, "-c", script, options=("--log", "job.log", "--quiet"))
    output = [f"output {n}" for n in range(200)]
    error = [f"error {n}" for n in range(200)]
    assert done.stdout.decode().splitlines() == output
    assert done.stderr.splitlines()[:200] == error
    lines = done.log.decode().splitlines()
    assert [line for line in lines if line.startswith("out")] == output
    assert [line for line in lines if line.startswith("err")] == error


def test_one_place_for_both_keeps_their_order(tmp_path: Path) -> None:
    script = "import os\nfor n in range(2000): os.write(1 + n % 2, b'%d\\n' % n)"
    done = run(tmp_path, sys.executable, "-c", script, capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wanted = "".join(f"{n}\n" for n in range(2000)).encode()
    assert done.log == wanted
    assert done.stdout.startswith(wanted)


def test_a_reader_that_goes_away_ends_the_command_as_without_us(tmp_path: Path) -> None:
    process = start(tmp_path, "sh", "-c", "while :; do echo line; done")
    read_until(process, b"line")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        told = stderr.read()
    assert process.wait(60) == -signal.SIGPIPE, told
    assert json.loads((tmp_path / "job.receipt.json").read_bytes())["run"]["exit_code"] == -signal.SIGPIPE


def test_without_a_stdout_there_is_a_log(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$@" >&- <&-', "sh", *wrapped("sh", "-c", "echo x; echo y >&2; cat")]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    log = (tmp_path / "job.log").read_bytes()
    assert {b"x", b"y"} <= set(log.splitlines())
    assert done.stderr.startswith(b"y\n")
    assert b"cat: " in log  # it has no stdin either


LEFT = "(until test -e go; do sleep 0.1; done; echo late; sleep 0.1; echo later; echo $? > end) & echo early"
"""Leaves a process behind that prints twice, once there is a file for it, and then writes a file."""


def appears(path: Path) -> None:
    until = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("to", ["file", "pipe"])
def test_a_process_left_behind_never_notices_that_we_have_gone(tmp_path: Path, to: str) -> None:
    with (tmp_path / "out").open("wb") as file:
        process = subprocess.Popen(
            wrapped("sh", "-c", LEFT),
            cwd=tmp_path, env=ENV, stdout=file if to == "file" else subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    assert process.wait(60) == 0
    assert not (tmp_path / "end").exists()  # we did not wait for it
    log = (tmp_path / "job.log").read_bytes()
    assert log.startswith(b"early\nreceipt run: a process that the command left behind holds its output open")
    receipt = json.loads((tmp_path / "job.receipt.json").read_bytes())
    assert receipt["run"]["wall_time_s"] < 30
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=60)
    appears(tmp_path / "end")
    assert (tmp_path / "end").read_bytes() == b"0\n"
    assert ((tmp_path / "out").read_bytes() if to == "file" else out) == b"early\nlate\nlater\n"
    assert b"holds its output open" in err
    assert (tmp_path / "job.log").read_bytes() == log


def test_a_process_left_behind_meets_the_end_of_the_reader_only(tmp_path: Path) -> None:
    script = "(trap '' HUP; while sleep 0.1; do echo x || break; done 2>/dev/null; echo over > end) & echo early"
    process = start(tmp_path, "bash", "-c", f"trap '' PIPE; {script}")
    assert process.wait(60) == 0  # three seconds after the command
    time.sleep(0.5)
    assert not (tmp_path / "end").exists()
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    appears(tmp_path / "end")
    process.stderr.close()


def test_output_of_a_process_left_behind_is_still_read(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", "(sleep 0.5; echo late) & echo early")
    assert done.log == done.stdout == b"early\nlate\n"
    assert "5 bytes of output came after the command ended" in done.stderr


# --- a terminal -------------------------------------------------------------------------------------------------------------


@dataclass
class Terminal:
    """A terminal with a process group of its own in the foreground."""

    pid: int
    master: int
    seen: bytes = b""

    def until(self, text: bytes) -> None:
        limit = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < limit, self.seen
            if select.select([self.master], [], [], 1)[0]:
                self._read()

    def _read(self) -> bool:
        try:
            block = os.read(self.master, 65536)
        except OSError as error:
            assert error.errno == errno.EIO
            return False
        self.seen += block
        return bool(block)

    def end(self) -> int:
        while self._read():
            pass
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def on_terminal(folder: Path, command: Sequence[str], redirect: str = "") -> Terminal:
    """Run ``command`` on a terminal of 40 lines with 100 columns; ``redirect`` as a shell writes it."""
    script = f'stty rows 40 cols 100; exec "$@" {redirect}'
    pid, master = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execvpe("sh", ["sh", "-c", script, "sh", *command], ENV)
    return Terminal(pid, master)


TELL = (
    "import os, sys\n"
    "def size(n): return tuple(os.get_terminal_size(n)) if os.isatty(n) else None\n"
    "print([size(n) for n in (0, 1, 2)], flush=True)\n"
)


@pytest.mark.parametrize(
    ("redirect", "told"),
    [
        ("", "[(100, 40), (100, 40), (100, 40)]"),
        ("2> errors", "[(100, 40), (100, 40), None]"),
        ("> output", "[(100, 40), None, (100, 40)]"),
        ("< /dev/null", "[None, (100, 40), (100, 40)]"),
    ],
)
def test_the_command_finds_terminals_where_we_do(tmp_path: Path, redirect: str, told: str) -> None:
    terminal = on_terminal(tmp_path, wrapped(sys.executable, "-c", TELL), redirect)
    assert terminal.end() == 0
    assert (tmp_path / "job.log").read_text() == f"{told}\n"
    shown = (tmp_path / "output").read_bytes() if redirect == "> output" else terminal.seen
    assert told.encode() in shown


def test_a_terminal_shows_what_it_shows_without_us(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write('a\\nb\\r\\n\\x1b[1mc\\x1b[0m\\rd\\n'); sys.stderr.write('e\\n')"
    command = [sys.executable, "-c", script]
    alone = on_terminal(tmp_path, command)
    assert alone.end() == 0
    wrapping = on_terminal(tmp_path, wrapped(*command, options=("--log", "job.log", "--quiet")))
    assert wrapping.end() == 0
    assert wrapping.seen.startswith(alone.seen)
    assert (tmp_path / "job.log").read_bytes() == b"a\nb\r\n\x1b[1mc\x1b[0m\rd\ne\n"


COUNT = (
    "import signal, sys, time\n"
    "seen = []\n"
    "for name in ('SIGINT', 'SIGWINCH', 'SIGCONT'): signal.signal(getattr(signal, name), lambda number, _: seen.append(number))\n"
    "print('ready', flush=True)\n"
    "while not seen: time.sleep(0.01)\n"
    "time.sleep(0.3)\n"
    "import os\n"
    "print('seen', len(seen), tuple(os.get_terminal_size(1)), flush=True)\n"
)


@pytest.mark.parametrize(
    ("command", "ready", "sent", "code", "said"),
    [
        ((sys.executable, "-c", COUNT), b"ready", b"\x03", 0, b"seen 1 "),
        ((sys.executable, "-c", COUNT), b"ready", (30, 77), 0, b"(77, 30)"),
        ((sys.executable, "-c", "print('hello', input('name? '))"), b"name? ", b"world\n", 0, b"hello world"),
        (("sh", "-c", "echo ready; exec sleep 60"), b"ready", b"\x03", -signal.SIGINT, b"interrupted"),
    ],
    ids=["ctrl-c reaches it once", "a new size", "keys", "ctrl-c ends it and us"],
)
def test_what_is_done_at_the_terminal_reaches_the_command(
    tmp_path: Path, command: tuple[str, ...], ready: bytes, sent: bytes | tuple[int, int], code: int, said: bytes
) -> None:
    terminal = on_terminal(tmp_path, wrapped(*command))
    terminal.until(ready)
    if isinstance(sent, bytes):
        os.write(terminal.master, sent)
    else:
        termios.tcsetwinsize(terminal.master, sent)
    assert terminal.end() == code
    assert said in terminal.seen
    if code:
        assert json.loads((tmp_path / "job.receipt.json").read_bytes())["failure"]["reason"] == "interrupted"


def test_ctrl_z_stops_the_job_and_it_goes_on(tmp_path: Path) -> None:
    """An interactive shell on a terminal runs us as a job."""
    job = " ".join(f"'{word}'" for word in wrapped("sh", "-c", "echo ready; sleep 1; echo done"))
    pid, master = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        os.execvpe("bash", ["bash", "--norc", "-i"], {**ENV, "PS1": "$ ", "HISTFILE": "/dev/null"})
    terminal = Terminal(pid, master)
    os.write(master, job.encode() + b"\n")
    terminal.until(b"ready\r\n")
    os.write(master, b"\x1a")
    terminal.until(b"Stopped")
    os.write(master, b"fg\n")
    terminal.until(b"done\r\n")
    terminal.until(b"job.receipt.json")
    os.write(master, b"exit 5\n")
    assert terminal.end() == 5


# --- files ------------------------------------------------------------------------------------------------------------------


def test_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "fine tune.py").write_text("print('x')")
    run(tmp_path, sys.executable, "fine tune.py", options=())
    run(tmp_path, "echo", "x", options=("--name", "run 7"))
    names = sorted(re.sub(r"\d{8}T\d{6}Z", "TIME", path.name) for path in tmp_path.iterdir())
    stems = ("fine-tune-TIME", "run-7-TIME")
    assert names == ["fine tune.py", *(f"{stem}.{end}" for stem in stems for end in ENDS)]


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("precious")
    refused = run(tmp_path, "touch", "was-run")
    assert (refused.code, refused.log, (tmp_path / "was-run").exists()) == (6, b"precious", False)
    assert "--overwrite" in refused.stderr
    assert run(tmp_path, "echo", "more", options=("--log", "job.log", "--append")).log == b"precious\nmore\n"
    assert run(tmp_path, "echo", "new", options=("--log", "job.log", "--overwrite")).log == b"new\n"


def test_the_receipt_goes_where_it_is_asked_for(tmp_path: Path) -> None:
    run(tmp_path, "echo", "x", options=("--log", "job.log", "--output", "kept.json"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.header.json", "job.log", "job.log.times", "kept.json"]


@pytest.mark.parametrize(
    "options",
    [
        ("--log", "no/such/job.log"),
        ("--out", "no/such/r.json"),
        ("--append", "--overwrite"),
        ("--attach", "x"),
        ("-g", "no-such@v1"),
    ],
    ids=" ".join,
)
def test_what_cannot_work_is_refused_before_the_command_starts(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, "touch", "was-run", options=options)
    assert done.code in (2, 5, 6)
    assert list(tmp_path.iterdir()) == []


def test_an_attachment_that_is_missing_in_the_end_costs_no_receipt(tmp_path: Path) -> None:
    options = ("--log", "job.log", "--attach", "trace=made.json", "--attach", "profile=missing.json")
    done = run(tmp_path, "sh", "-c", "echo x; echo {} > made.json", options=options)
    assert (done.code, [a["uri"] for a in done.receipt["attachments"]]) == (0, ["made.json"])
    assert "missing.json" in done.stderr


def test_the_header_is_written_before_the_command_starts(tmp_path: Path) -> None:
    done = run(tmp_path, "cp", "job.header.json", "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == (tmp_path / "job.header.json").read_bytes()
    assert done.code == 0
    assert json.loads((tmp_path / "copy.json").read_bytes())["schema_version"] == "header/1.0"


@pytest.mark.parametrize(
    ("script", "code", "said", "end"),
    [
        ("exit 4", 4, "the log is empty", None),
        ("echo hello", 0, "no grammar recognises this log", "receipt.json"),
        ("echo x; mkdir job.receipt.json; exit 9", 9, "is a directory", "receipt.json"),
    ],
)
def test_a_receipt_that_cannot_be_made_leaves_the_exit_status(
    tmp_path: Path, script: str, code: int, said: str, end: str | None
) -> None:
    done = run(tmp_path, "sh", "-c", script)
    assert (done.code, said in done.stderr) == (code, True)
    expected = ["job.header.json", "job.log", "job.log.times", *([f"job.{end}"] if end else [])]
    assert sorted(path.name for path in tmp_path.iterdir()) == expected


def test_a_module_that_is_gone_costs_the_receipt_and_nothing_else(tmp_path: Path) -> None:
    """The installation may be replaced while the command runs: what is not loaded by then may be missing."""
    module = "receipt_cli._compiled.receipt_1_4"
    script = "import runpy, sys; sys.modules[sys.argv.pop(1)] = None; runpy.run_module('receipt_cli', run_name='__main__')"
    words = [sys.executable, "-c", script, module, *wrapped("sh", "-c", "echo x; exit 9")[len(RECEIPT) :]]
    done = subprocess.run(words, cwd=tmp_path, env=ENV, capture_output=True, timeout=60, check=False, text=True)
    assert (done.returncode, done.stdout, (tmp_path / "job.log").read_bytes()) == (9, "x\n", b"x\n"), done.stderr
    assert "error: no receipt: ModuleNotFoundError" in done.stderr
    assert "the command ended with exit code 9; its log is job.log" in done.stderr
    assert not (tmp_path / "job.receipt.json").exists()


def test_a_log_that_cannot_grow_leaves_the_command_alone(tmp_path: Path) -> None:
    script = "for n in range(50000): print('iter %d: loss 2.0000, time 5.00ms, mfu 1.00%%' % n)"
    limit = 1 << 20
    done = run(
        tmp_path,
        sys.executable, "-c", script,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert (done.code, done.stdout.count(b"\n"), len(done.log)) == (0, 50000, limit)
    lost = len(done.stdout) - limit
    assert f"the log is not complete: File too large (lost: {lost} bytes, from byte {limit} of the file on)" in done.stderr
    receipt = done.receipt
    assert receipt["derivation"]["log"]["size_bytes"] == limit
    assert receipt["run"]["log_loss"] == {"reason": "File too large", "first_byte": limit, "byte_count": lost}
    assert (receipt["run"]["exit_code"], receipt["run"]["log_complete"]) == (0, False)
    assert (receipt["checks"]["zero_exit_code"], receipt["checks"]["completed"], done.reason) == (True, None, "truncated")
    assert "~ cut off" in done.stderr
    for question, code in (("check", 1), ("verify", 0)):
        asked = [*RECEIPT, question, "job.receipt.json", *(["job.log"] if question == "verify" else [])]
        answer = subprocess.run(asked, cwd=tmp_path, env=ENV, capture_output=True, timeout=60, check=False)
        assert answer.returncode == code, answer


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
def test_nothing_is_written_beside_a_device(tmp_path: Path) -> None:
    before = set(os.listdir("/dev"))
    done = run(tmp_path, "sh", "-c", "echo x; exit 4", options=("--log", "/dev/full", "-o", "job.receipt.json"))
    assert (done.code, done.stdout) == (4, b"x\n")
    assert "No space left on device (lost: 2 bytes" in done.stderr
    assert "/dev/full is not a readable file" in done.stderr
    assert {name for name in set(os.listdir("/dev")) - before if "full" in name} == set()
    assert list(tmp_path.iterdir()) == []
