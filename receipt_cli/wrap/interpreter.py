"""Find the Python of the command and its packages: often not the one that runs ``receipt``."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from receipt_cli.header.host import DISTRIBUTIONS, cuda_of
from receipt_cli.header.program import run_program

_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?t?)?")
_FIRST_LINE = re.compile(rb"#! ?(\S+)(?: +(\S+))?[^\n]*\n(?:'''exec' \"?(/[^\"\n ]+)\"? )?")
"""The first line of a script, and the second of one whose interpreter has too long a path for the first."""
OURS = ("/software/python", "/software/torch", "/software/cuda", "/software/packages")
"""Fields of the header that describe an interpreter and not the machine."""
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


def set_interpreter(header: dict[str, Any], command: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Replace the facts of our interpreter in the header by those of the command's; return notes.

    The facts become unknown where the command's interpreter is: it is neither Python nor a Python script, and ours is not
    the one on its ``PATH``.
    """
    path = find_interpreter(command, environ)
    if path is not None and _is_ours(path):
        return []
    if path is None and any(_is_ours(found) for name in ("python", "python3") if (found := _which(name, environ))):
        return []
    facts: dict[str, object] = {}
    notes: list[str] = []
    if path is None:
        notes.append(f"cannot tell the Python of {command[0]}: Python and its packages left out")
    else:
        facts, problem = _ask(path, environ)
        notes += [f"{path}: {problem}"] if problem else []
    for pointer in OURS:
        if header["sources"].get(pointer) == "host":
            del header["sources"][pointer]
            header["software"][pointer.rpartition("/")[2]] = None
        value = facts.get(pointer)
        if value is not None and pointer not in header["sources"]:
            header["software"][pointer.rpartition("/")[2]] = value
            header["sources"][pointer] = "host"
    header["sources"] = dict(sorted(header["sources"].items()))
    return notes


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


def _ask(path: str, environ: Mapping[str, str]) -> tuple[dict[str, object], str]:
    """Return the facts of an interpreter, and the reason of a failure."""
    answer = run_program([os.path.abspath(path), "-c", _ASK, "torch", *DISTRIBUTIONS], environ=environ)
    if answer.problem:
        return {}, answer.problem
    try:
        version, found = json.loads(answer.stdout)
        torch = found.pop("torch", None)
        return dict(zip(OURS, (version, torch, cuda_of(torch), found), strict=True)), ""
    except (ValueError, TypeError, AttributeError):
        return {}, "its answer cannot be read"
