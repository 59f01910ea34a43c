"""Find the Python of a job and ask it for its packages: often not the one that runs ``receipt``."""

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
"""The first line of a script, and the second of one whose interpreter has too long a path for the first."""
OURS = ("/software/python", "/software/torch", "/software/cuda", "/software/packages")
"""Fields of the header that describe an interpreter and not the machine."""
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
    """Return the Python that a job with this environment runs; None where there is none.

    It is that of the virtual environment, else that of conda, else the first on ``PATH``.
    """
    for folder in filter(None, map(environ.get, _ENVIRONMENTS)):
        path = os.path.join(folder, "bin", "python")
        if os.access(path, os.X_OK):
            return path
    return _which("python", environ) or _which("python3", environ)


def command_interpreter(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the Python that ``command`` runs, "" where nobody knows.

    A command that is no Python may start any: that of the environment counts where one is active, or is ours.
    """
    path = find_interpreter(command, environ)
    if path is not None:
        return path
    guess = job_interpreter(environ)
    active = any(environ.get(name) for name in _ENVIRONMENTS)
    return guess if guess is not None and (active or _is_ours(guess)) else ""


def process_interpreter(pid: int) -> tuple[dict[str, str], str]:
    """Return the environment and the Python of a process. Raises ``UsageError`` where it runs none, or cannot be read."""
    environ, command = process_of(pid)
    path = find_interpreter(command, environ) if command else None
    if path is None:
        raise UsageError(f"process {pid} runs no Python", why=f"it runs {ascii(command[0])[:200] if command else 'nothing'}")
    return environ, path


def find_interpreter(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the path of the Python that runs ``command``; None where it is neither Python nor a Python script."""
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
    """Return whether an interpreter has our packages: its folder decides, since links to it lead elsewhere."""
    return os.path.dirname(os.path.abspath(path)) == os.path.dirname(os.path.abspath(sys.executable))


def ask_interpreter(path: str, environ: Mapping[str, str]) -> tuple[dict[str, object], str]:
    """Return the version and the packages of an interpreter by pointers of the header, and the reason of a failure."""
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
        return {}, "its answer cannot be read"
