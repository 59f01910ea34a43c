import os
import time
from pathlib import Path

import psutil
import pytest

from receipt_cli.header.program import find_program, run_program


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_program_gets_exactly_the_environment_and_no_input(tmp_path: Path) -> None:
    program = script(tmp_path / "tool", 'cat; echo "$A|$HOME|$1"')
    result = run_program([program, "a b;$A"], environ={"A": "1", "PATH": os.defpath})
    assert (result.status, result.stdout, result.problem) == (0, b"1||a b;$A\n", "")


def test_failure_is_a_value_with_the_first_line_of_what_was_said(tmp_path: Path) -> None:
    program = script(tmp_path / "tool", "echo; echo 'no \033[31mdevice' >&2; echo more >&2; exit 9")
    result = run_program([program], environ=os.environ)
    assert (result.status, result.problem) == (9, "tool failed with status 9: no [31mdevice")
    silent = run_program([script(tmp_path / "silent", "exit 3")], environ={})
    assert silent.problem == "silent failed with status 3: no message"


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    children = tmp_path / "children"
    program = script(tmp_path / "tool", f"sleep 300 & echo $! > {children}; sleep 300 & echo $! >> {children}; wait")
    start = time.monotonic()
    result = run_program([program], environ={"PATH": os.defpath}, timeout_s=2)
    assert time.monotonic() - start < 60
    assert (result.status, result.problem) == (None, "tool gave no answer in 2 s")
    for child in map(int, children.read_text().split()):
        while runs(child):
            assert time.monotonic() - start < 60
            time.sleep(0.01)


def test_a_program_that_cannot_start_is_a_value(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    for path in (broken, tmp_path / "missing", tmp_path):
        result = run_program([str(path)], environ={})
        assert result.status is None
        assert "did not start" in result.problem
    assert "did not start" in run_program([str(broken)], environ={"A": "\x00"}).problem


def test_only_absolute_folders_of_the_path_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = script(tmp_path / "tool", "true")
    monkeypatch.chdir(tmp_path)
    assert find_program("tool", {"PATH": f".{os.pathsep}{os.pathsep}{tmp_path}"}) == program
    for path in ("", ".", "relative"):
        assert find_program("tool", {"PATH": path}) is None
    assert find_program("sh", {}) is not None
