"""What was appended to a file or written to a pipe, what becomes of a file, and who says that it is over."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from receipt_cli.errors import InputError
from receipt_cli.follow.growth import PIECE, PipeTail, Tail, open_tail
from receipt_cli.follow.loop import Process, Stop


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_bytes(b"one\ntwo\n")
    return path


@pytest.fixture
def tail(log: Path) -> Iterator[Tail]:
    opened = open_tail(str(log))
    yield opened
    opened.close()


def test_a_file_gives_what_was_appended(log: Path, tail: Tail) -> None:
    assert b"".join(tail.read()) == b"one\ntwo\n"
    assert tail.read() == []
    with log.open("ab") as file:
        file.write(b"three\n")
    assert (tail.lost(), b"".join(tail.read())) == (None, b"three\n")
    assert not tail.ended
    assert tail.written_at() == pytest.approx(time.time(), abs=60)


def test_a_large_file_comes_in_pieces(log: Path, tail: Tail) -> None:
    log.write_bytes(bytes(PIECE + 10))
    assert [sum(map(len, tail.read())) for _ in range(3)] == [PIECE, 10, 0]


def truncate(log: Path) -> None:
    os.truncate(log, 4)


def write_anew(log: Path) -> None:
    log.write_bytes(b"another beginning, and longer\n")


def replace(log: Path) -> None:
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"fresh\n")


@pytest.mark.parametrize(
    ("change", "told", "text"),
    [
        (truncate, "was truncated after 8 bytes", b"one\n"),
        (write_anew, "was written anew after 8 bytes", b"another beginning, and longer\n"),
        (replace, "was replaced after 8 bytes", b"fresh\n"),
    ],
)
def test_a_file_that_is_another_one_is_read_from_its_beginning(
    log: Path, tail: Tail, change: object, told: str, text: bytes
) -> None:
    assert callable(change)
    tail.read()
    change(log)
    assert tail.lost() == told
    assert b"".join(tail.read()) == text
    assert tail.lost() is None


def test_a_renamed_file_is_read_on_until_the_new_one_holds_something(log: Path, tail: Tail) -> None:
    tail.read()
    old = log.rename(log.with_suffix(".1"))
    with old.open("ab") as file:
        file.write(b"three\n")
    log.touch()
    assert (tail.lost(), b"".join(tail.read())) == (None, b"three\n")
    old.unlink()
    assert tail.lost() is None
    log.write_bytes(b"fresh\n")
    assert tail.lost() == "was replaced after 14 bytes"


def test_a_pipe_gives_what_there_is_and_ends_with_its_last_writer() -> None:
    reader, writer = os.pipe()
    tail = PipeTail(reader, ours=True)
    assert tail.read() == []
    os.write(writer, b"one\n")
    assert tail.read() == [b"one\n"]
    assert not tail.ended
    os.write(writer, b"two")
    os.close(writer)
    assert (tail.read(), tail.ended) == ([b"two"], True)
    tail.close()


@pytest.mark.parametrize("name", ["absent.log", ".", "a\0b"])
def test_what_is_no_log(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        open_tail(str(tmp_path / name))


def test_a_process_ends_even_where_nobody_has_waited_for_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = Process(child.pid)
        assert not process.ended
        child.stdin.close()
        limit = time.monotonic() + 120
        while not process.ended and time.monotonic() < limit:
            time.sleep(0.01)
        assert process.ended
        child.wait()
        assert process.ended
        assert Process(child.pid).ended


def test_the_first_signals_are_wishes_and_the_third_is_obeyed() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        began = time.monotonic()
        stop.wait((), 3600.0)
        os.kill(os.getpid(), signal.SIGTERM)
        stop.wait((), 3600.0)
        assert time.monotonic() - began < 1800.0
        assert stop.asked == 2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before
