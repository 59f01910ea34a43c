"""The parts of ``receipt run`` that need no command: files, interpreters, whole lines, counters, signals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from receipt_cli.wrap import job
from receipt_cli.wrap.job import KillCounter, Kills
from receipt_cli.wrap.paths import default_files
from receipt_cli.wrap.tee import HELD, Log

NOW = "2026-11-21T16:15:00Z"


@pytest.mark.parametrize(
    ("command", "name", "stem"),
    [
        (["python", "-u", "src/train_gpt.py", "--lr", "1"], None, "train_gpt"),
        (["bash", "jobs/run.sh"], None, "run"),
        (["/opt/bin/torchrun", "-m", "pkg.train"], None, "torchrun"),
        (["python", "train.py"], "böse/../name", "b-se-..-name"),
        (["..."], None, "run"),
    ],
)
def test_the_name_of_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], name: str | None, stem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_files(command, name, NOW, None).log == Path(f"{stem}-20261121T161500Z.log")


def test_a_name_that_is_taken_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job-20261121T161500Z.receipt.json").touch()
    Path("job-20261121T161500Z-2.log").touch()
    assert default_files(["x"], "job", NOW, None).receipt == Path("job-20261121T161500Z-3.receipt.json")


# --- the log ----------------------------------------------------------------------------------------------------------------


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([b"one\ntw", b"o\nthree\n"], b"one\ntwo\nREMARK\nthree\n"),
        ([b"one\n", b"two\n"], b"one\ntwo\nREMARK\n"),
        ([b"\r1/3", b"\r2/3\r3/3"], b"\r1/3\nREMARK\n\r2/3\r3/3"),
        ([b"one\r", b"\ntwo\r\n"], b"one\r\nREMARK\ntwo\r\n"),
        ([b"no end", b" at all"], b"no end at all\nREMARK\n"),
    ],
)
def test_a_remark_stands_on_its_own_line(tmp_path: Path, texts: list[bytes], told: bytes) -> None:
    descriptor = opened(tmp_path / "log")
    log = Log(descriptor, 1)
    log.write(0, memoryview(texts[0]))
    log.remark("REMARK")
    for text in texts[1:]:
        log.write(0, memoryview(text))
    log.end()
    os.close(descriptor)
    assert (tmp_path / "log").read_bytes() == told


def test_a_long_line_is_not_kept_back(tmp_path: Path) -> None:
    descriptor = opened(tmp_path / "log")
    log = Log(descriptor, 2)
    log.write(0, memoryview(b"x" * (HELD + 1)))
    assert os.fstat(descriptor).st_size == HELD + 1
    os.close(descriptor)


# --- kills for want of memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("0::/job", "job/memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill {}\noom_group_kill 0\n"),
        ("0::/", "memory.events", "oom_kill {}\n"),
        ("4:memory:/job", "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"),
        ("4:memory:/docker/1", "memory/memory.oom_control", "oom_kill {}\n"),
    ],
)
def test_the_counter_of_a_cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, file: str, text: str) -> None:
    monkeypatch.setattr(job, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(job, "_CGROUPS", tmp_path)
    program(tmp_path / "proc" / "self" / "cgroup", f"9:cpu:/x\n{line}\n")
    counted = tmp_path / file
    program(counted, text.format(4))
    counter = KillCounter()
    assert counter.recent() is None
    counted.write_text(text.format(6))
    assert counter.recent() == Kills(2, "memory cgroup")
    counted.unlink()
    assert counter.recent() == Kills(2, "memory cgroup")
    monkeypatch.setattr(job, "RECENT_S", -1.0)
    assert counter.recent() is None


def test_without_a_cgroup_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_PROC", tmp_path)
    (tmp_path / "vmstat").write_text("nr_free_pages 4\noom_kill 7\n")
    counter = KillCounter()
    (tmp_path / "vmstat").write_text("nr_free_pages 4\noom_kill 8\n")
    assert counter.recent() == Kills(1, "kernel")


# --- signals after the end ---------------------------------------------------------------------------------------------------

GIVE_UP = """
import os, signal, sys, time
from receipt_cli.wrap.job import SignalThread, passed_on
signals = passed_on()
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
pid = os.posix_spawnp("true", ["true"], os.environ)
listening = SignalThread(pid, signals, os.open(os.devnull, os.O_WRONLY), print, print, lambda: os._exit(42))
while listening.reap() is None:
    time.sleep(0.01)
listening.start()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.3)
print("one is passed over", flush=True)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(10)
"""


def test_the_second_signal_after_the_end_gives_up() -> None:
    done = subprocess.run([sys.executable, "-c", GIVE_UP], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (42, b"one is passed over\n")
