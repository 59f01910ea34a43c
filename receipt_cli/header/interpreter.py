"""Find the Python of a job, often another than the one that runs ``receipt``, and list its packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence

from receipt_cli.errors import UsageError
from receipt_cli.header.host import DISTRIBUTIONS, cuda_of, own_interpreter, process_of
from receipt_cli.header.program import run_program

_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?t?)?")
_FIRST_LINE = re.compile(rb"#! ?(\S+)(?: +(\S+))?[^\n]*\n(?:'''exec' \"?(/[^\"\n ]+)\"? )?")
"""First line of a script, plus the second if the interpreter's path is too long for the first."""
OURS = ("/software/python", "/software/torch", "/software/cuda", "/software/packages")
"""Header fields that describe an interpreter, not the machine."""
_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
_ASK = """
import json, platform, sys
from importlib import metadata
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except Exception:
        pass
print(json.dumps([platform.python_version(), found]))
"""


def job_interpreter(environ: Mapping[str, str]) -> str | None:
    """Return the Python that a job with this environment runs, or None.

    It is the virtual environment's, else conda's, else the first on ``PATH``.
    """
    for folder in filter(None, map(environ.get, _ENVIRONMENTS)):
        path = os.path.join(folder, "bin", "python")
        if os.access(path, os.X_OK):
            return path
    return _which("python", environ) or _which("python3", environ)


def command_interpreter(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the path of the Python that ``command`` runs, "" if unknown.

    A command that is no Python may start any. The environment's Python counts if an environment is active or it is ours.
    """
    path = find_interpreter(command, environ)
    if path is not None:
        return path
    guess = job_interpreter(environ)
    active = any(environ.get(name) for name in _ENVIRONMENTS)
    return guess if guess is not None and (active or _is_ours(guess)) else ""


def process_interpreter(pid: int) -> tuple[dict[str, str], str]:
    """Return the environment and Python of a process. Raises ``UsageError`` if it runs no Python or cannot be read."""
    environ, command = process_of(pid)
    path = find_interpreter(command, environ) if command else None
    if path is None:
        raise UsageError(f"process {pid} runs no Python", why=f"it runs {ascii(command[0])[:200] if command else 'nothing'}")
    return environ, path


def find_interpreter(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the path of the Python that runs ``command``; None if it is neither Python nor a Python script."""
    path = _which(command[0], environ)
    if path is None or _is_python(path):
        return path
    try:
        with open(path, "rb") as file:
            line = _FIRST_LINE.match(file.read(4096))
    except OSError:
        return None
    if line is None:
        return None
    words = [os.fsdecode(word) for word in line.groups() if word]
    if len(words) > 1 and os.path.basename(words[0]) == "env":
        words = [_which(words[1], environ) or ""]
    return next((word for word in reversed(words) if _is_python(word)), None)


def _which(name: str, environ: Mapping[str, str]) -> str | None:
    return shutil.which(name, path=environ.get("PATH"))


def _is_python(path: str) -> bool:
    return _PYTHON.fullmatch(os.path.basename(path)) is not None


def _is_ours(path: str) -> bool:
    """Return whether an interpreter has our packages; compares folders, because links to it lead elsewhere."""
    return os.path.dirname(os.path.abspath(path)) == os.path.dirname(os.path.abspath(sys.executable))


def ask_interpreter(path: str, environ: Mapping[str, str]) -> tuple[dict[str, object], str]:
    """Return version and packages of an interpreter by header pointer, and the reason of a failure, else ""."""
    if _is_ours(path):
        return dict(zip(OURS, own_interpreter(), strict=True)), ""
    answer = run_program([os.path.abspath(path), "-c", _ASK, "torch", *DISTRIBUTIONS], environ=environ)
    if answer.problem:
        return {}, answer.problem
    try:
        version, found = json.loads(answer.stdout)
        torch = found.pop("torch", None)
        return dict(zip(OURS, (version, torch, cuda_of(torch), found), strict=True)), ""
    except (ValueError, TypeError, AttributeError):
        return {}, "its answer is not the expected JSON"
