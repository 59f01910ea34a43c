"""Run a program of this machine: absolute path, no shell, no terminal, time limit, failures as values."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TIMEOUT_S = 5.0
"""Time limit of a program, in seconds."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The result of a program; ``problem`` is empty after status 0, else the failure in one line.

    ``status`` is the exit status, or None if the program did not start or ran out of time.
    """

    status: int | None
    stdout: bytes
    problem: str


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of ``name`` on ``PATH``, ignoring relative folders, or None."""
    path = environ.get("PATH", os.defpath)
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


def run_program(arguments: Sequence[str], *, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> ProgramResult:
    """Run ``arguments`` (the first an absolute path) with exactly the environment ``environ``.

    A program that does not start, fails or hangs gives a result, not an exception. After ``timeout_s`` seconds it and the
    processes that it started are killed.
    """
    name = os.path.basename(arguments[0])
    try:
        process = subprocess.Popen(
            list(arguments),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "bad argument"
        return ProgramResult(None, b"", f"{name} did not start: {reason}")
    with process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return ProgramResult(None, b"", f"{name} gave no answer in {timeout_s:g} s")
        finally:
            _kill_group(process)
    if process.returncode == 0:
        return ProgramResult(0, stdout, "")
    problem = _first_line(stderr) or _first_line(stdout) or "no message"
    status = process.returncode
    return ProgramResult(status, stdout, f"{name} failed with status {status}: {problem}")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that still runs, with its children if the system has process groups."""
    if process.poll() is not None:
        return
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except OSError:
        process.kill()


def _first_line(output: bytes) -> str:
    for line in output[:4096].decode("utf-8", "replace").splitlines():
        printable = "".join(character for character in line if character.isprintable()).strip()
        if printable:
            return printable[:200]
    return ""
