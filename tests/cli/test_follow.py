"""``receipt parse --follow``: the receipt of a finished log, whoever writes it, however it comes and whatever ends it."""

import errno
import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Invoke

LOGS = ROOT / "fixtures" / "logs"
NANOCHAT = LOGS / "nanochat" / "speedrun-2025-10.log"
UNKNOWN = LOGS / "generic" / "unknown-trainer.log"
BARS = LOGS / "hf-trainer" / "bar-merged-v5.log"
PATIENCE_S = 120.0
NAN_STEP = (
    b"step 00040/00060 (66.67%) | loss: nan | lrm: 1.00 | dt: 476.37ms | tok/sec: 1,100,583 | mfu: 48.55 | total time: 0.13m\n"
)
WRITER = (
    "import sys, time\n"
    "data, out, size = open(sys.argv[1], 'rb').read(), open(sys.argv[2], 'ab', buffering=0), int(sys.argv[3])\n"
    "for at in range(0, len(data), size):\n"
    "    out.write(data[at:at + size])\n"
    "    time.sleep(0.02)\n"
)


def start(*arguments: str | Path, **more: Any) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", "LINES": "40"}
    command = [sys.executable, "-m", "receipt_cli", "parse", *map(str, arguments)]
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
    return subprocess.Popen(command, env=env, **more)


def end(process: subprocess.Popen[bytes]) -> tuple[int, bytes, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, (err or b"").decode()


class Terminal:
    """What a process shows on a terminal that is its stderr."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.theirs, (40, 80))
        os.set_blocking(self._ours, False)
        self.shown = ""

    def read(self) -> str:
        try:
            while data := os.read(self._ours, 65536):
                self.shown += data.decode("utf-8", "replace")
        except BlockingIOError:
            pass
        except OSError as error:
            assert error.errno == errno.EIO  # nobody has it open any more
        return self.shown

    def wait_for(self, text: str) -> None:
        limit = time.monotonic() + PATIENCE_S
        while text not in self.read():
            assert time.monotonic() < limit, f"{text!r} is not in {self.shown!r}"
            time.sleep(0.02)

    def close(self) -> None:
        os.close(self._ours)
        os.close(self.theirs)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def parsed(invoke: Invoke, log: Path) -> bytes:
    return invoke("parse", log, "--json").stdout


@pytest.mark.parametrize(("log", "size"), [(NANOCHAT, 997), (BARS, 301), (UNKNOWN, 400)], ids=["known", "redraws", "unknown"])
def test_a_file_that_grows_gives_the_receipt_of_the_finished_file(invoke: Invoke, tmp_path: Path, log: Path, size: int) -> None:
    grown = tmp_path / "run.log"
    grown.touch()
    with subprocess.Popen([sys.executable, "-c", WRITER, str(log), str(grown), str(size)]) as writer:
        code, out, err = end(start(grown, "--follow", "--pid", str(writer.pid), "--json"))
        assert writer.wait(PATIENCE_S) == 0
    assert (code, err) == (0, f"receipt: note: process {writer.pid} has exited\n")
    assert grown.read_bytes() == log.read_bytes()
    assert out == parsed(invoke, grown)


@pytest.mark.parametrize("log", [NANOCHAT, UNKNOWN], ids=["known", "unknown"])
def test_a_pipe_gives_the_same_until_its_writer_is_gone(invoke: Invoke, tmp_path: Path, log: Path) -> None:
    output = tmp_path / "receipt.json"
    command = [sys.executable, "-c", WRITER, str(log), "/dev/stdout", "700"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        code, out, err = end(start("-", "--follow", "-o", output, stdin=writer.stdout))
        assert writer.wait(PATIENCE_S) == 0
    assert (code, err) == (0, "")
    assert out  # the summary, as ever
    assert output.read_bytes() == parsed(invoke, log)


def test_silence_ends_it(invoke: Invoke) -> None:
    code, out, err = end(start(NANOCHAT, "--follow", "--idle", "1", "--json"))
    assert (code, err) == (0, "receipt: note: no output for 1 s: assumed to have ended\n")
    assert out == parsed(invoke, NANOCHAT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_a_signal_ends_it_with_the_receipt_of_what_had_come(
    invoke: Invoke, tmp_path: Path, terminal: Terminal, number: int
) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"".join(NANOCHAT.read_bytes().splitlines(keepends=True)[:40]))
    process = start(log, "--follow", "--json", stderr=terminal.theirs)
    terminal.wait_for("throughput")
    process.send_signal(number)
    code, out, _ = end(process)
    found, whole = json.loads(out), json.loads(parsed(invoke, log))
    assert code == 0
    assert [found[key] for key in ("summary", "phases")] == [whole[key] for key in ("summary", "phases")]
    assert (whole["failure"]["reason"], found["failure"], found["derivation"]["options"]["running"]) == ("truncated", None, True)
    assert f"stopped: the receipt covers the {log.stat().st_size} bytes" in terminal.read().replace("\r\n", "")


def test_the_writer_of_a_pipe_has_its_last_words_after_ctrl_c(invoke: Invoke, tmp_path: Path, terminal: Terminal) -> None:
    log = tmp_path / "run.log"
    first = b"".join(NANOCHAT.read_bytes().splitlines(keepends=True)[:40])
    process = start("-", "--follow", "--json", stdin=subprocess.PIPE, stderr=terminal.theirs)
    process.stdin.write(first)
    process.stdin.flush()
    terminal.wait_for("throughput")
    process.send_signal(signal.SIGINT)
    terminal.wait_for("the job's last output")
    last = b"Traceback (most recent call last):\nKeyboardInterrupt\n"
    code, out = process.returncode, process.communicate(last, timeout=PATIENCE_S)[0]
    log.write_bytes(first + last)
    assert (code or process.returncode, out) == (0, parsed(invoke, log))
    assert b'"reason": "interrupted"' in out


def test_a_terminal_shows_the_job_and_is_left_clean(tmp_path: Path, terminal: Terminal) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(NANOCHAT.read_bytes()[:3000].rpartition(b"\n")[0] + b"\n")
    job = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)  # figures may be late, the job is not
    follow = ("--follow", "--pid", job.pid, "--color", "never")
    process = start(log, *follow, "-o", tmp_path / "r.json", stderr=terminal.theirs)
    terminal.wait_for("of 60")
    with log.open("ab") as file:
        file.write(NAN_STEP)
    terminal.wait_for("not finite")
    terminal.wait_for("✗ finite_losses")
    job.communicate(b"\n")
    code, out, _ = end(process)
    shown = terminal.read()
    assert code == 0
    assert shown.rindex("\x1b[2K") > shown.rindex("goodput")
    assert "\x1b[1m" not in shown
    assert out.startswith("✗ failed    loss is NaN".encode())


@pytest.mark.parametrize("way", ["truncated", "replaced", "written anew"])
def test_a_file_that_begins_anew_is_followed_from_its_beginning_and_that_is_said(
    invoke: Invoke, tmp_path: Path, terminal: Terminal, way: str
) -> None:
    log = tmp_path / "run.log"
    text = NANOCHAT.read_bytes()
    fresh = text.replace(b"step 000", b"step  00")[: 2500 if way == "truncated" else 6000]
    log.write_bytes(text[:4000])
    job = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = start(log, "--follow", "--pid", str(job.pid), "--json", stderr=terminal.theirs)
    terminal.wait_for("throughput")
    if way == "replaced":
        log.rename(tmp_path / "run.log.1")
    log.write_bytes(fresh)
    job.communicate(b"\n")
    code, out, _ = end(process)
    found, whole = json.loads(out), json.loads(parsed(invoke, log))
    assert (code, found["summary"]) == (0, whole["summary"])
    assert found["derivation"]["options"]["replaced_bytes"] == 4000
    assert found["derivation"]["problems"]["kinds"] == whole["derivation"]["problems"]["kinds"] | {"launch_doubtful": 1}
    (tmp_path / "run.receipt.json").write_bytes(out)
    assert invoke("verify", tmp_path / "run.receipt.json", log).code == 0
    assert f"was {way} after 4000 bytes" in terminal.read().replace("\r\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["{log}", "--idle", "3"], 2, "go with --follow"),
        (["{log}", "--pid", "3"], 2, "go with --follow"),
        (["{log}", "{log}", "--follow"], 2, "--follow takes one log"),
        (["{packed}", "--follow"], 2, "is compressed with gzip"),
        (["{folder}", "--follow"], 3, "is not a file or a pipe"),
        (["{folder}/absent.log", "--follow"], 3, "no such log"),
        (["{empty}", "--follow", "--idle", "1"], 3, "the log is empty"),
        (["{log}", "--follow", "-o", "{folder}/absent/r.json"], 6, "cannot write"),
        (["{log}", "--follow", "--header", "{folder}/absent.json"], 3, "absent.json"),
    ],
)
def test_refusals(process: Invoke, tmp_path: Path, arguments: list[str], code: int, text: str) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(NANOCHAT.read_bytes()))
    names = {"log": NANOCHAT, "folder": tmp_path, "empty": tmp_path / "empty.log", "packed": tmp_path / "run.log.gz"}
    done = process("parse", *(argument.format_map(names) for argument in arguments))
    assert (done.code, done.stdout) == (code, b"")
    assert text in done.stderr


def test_a_file_on_standard_input_is_refused() -> None:
    with NANOCHAT.open("rb") as file:
        code, _, err = end(start("-", "--follow", stdin=file))
    assert code == 2
    assert "--follow needs the name of a file" in err


def test_a_log_that_nobody_knows_ends_as_it_does_without_following(process: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "noise.log"
    log.write_text("nothing here\n" * 5)
    without = process("parse", log)
    done = process("parse", log, "--follow", "--idle", "1")
    assert done.code == without.code == 4
    assert done.stderr.endswith(without.stderr)
