"""The three files of a wrapped run: its log, the header beside it, and the receipt."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

from receipt_cli.errors import OutputError, system_errors
from receipt_cli.io.atomic import check_new
from receipt_cli.io.compression import header_name, receipt_names

Existing = Literal["refuse", "append", "overwrite"]
"""What to do with an existing log; applies to header and receipt too."""
_SCRIPTS = (".py", ".sh", ".bash", ".r", ".jl")


@dataclass(frozen=True, slots=True)
class Files:
    """Paths of the log, the header and the receipt of a run."""

    log: Path
    header: Path
    receipt: Path

    @staticmethod
    def beside(log: Path, receipt: Path | None) -> Files:
        """Return the files of ``log``; the receipt is ``receipt``, by default beside the log under its name."""
        return Files(log, log.with_name(header_name(log.name)), receipt or log.with_name(receipt_names(log.name)[0]))


def default_files(command: Sequence[str], name: str | None, now: str, receipt: Path | None) -> Files:
    """Return files in the current folder that do not exist yet: ``<name>-<UTC time>.log`` and those beside it.

    ``now`` is RFC 3339. The default name is that of the command's script, else of the command.
    """
    stem = f"{_plain(name or _called(command))}-{now.replace('-', '').replace(':', '')}"
    for number in count(1):
        files = Files.beside(Path(f"{stem}.log" if number == 1 else f"{stem}-{number}.log"), receipt)
        if not any(os.path.lexists(path) for path in (files.log, files.header, *([] if receipt else [files.receipt]))):
            return files
    raise AssertionError  # the numbers do not end


def check_files(files: Files, existing: Existing) -> None:
    """Raise ``OutputError`` if a file exists that must not be replaced, or a folder is missing."""
    for path in (files.log,) if is_device(files.log) else (files.log, files.header, files.receipt):
        folder = path.absolute().parent
        if not folder.is_dir():
            raise OutputError("cannot write", where=str(path), why=f"there is no folder {folder}")
        if existing == "refuse" and not is_device(path):
            try:
                check_new(path)
            except OutputError as error:
                raise OutputError(error.message, where=error.where, try_="name another file; --append; --overwrite") from None
        elif path.is_dir():
            raise OutputError("is a directory, not a file", where=str(path))


def open_log(path: Path, existing: Existing) -> int:
    """Open the log for appending on a new line; return its descriptor. Raises ``OutputError``."""
    device = is_device(path)
    how = 0 if device else {"refuse": os.O_EXCL, "append": 0, "overwrite": os.O_TRUNC}[existing]
    with system_errors(OutputError, "cannot write the log", path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | how, 0o666)
        size = 0 if device else os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")
        return descriptor


def is_device(path: Path) -> bool:
    """Return whether the log cannot be read again (a device, a pipe); it gets no header and receipt beside it."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _called(command: Sequence[str]) -> str:
    script = next((word for word in command if word.lower().endswith(_SCRIPTS)), command[0])
    return Path(script).stem


def _plain(name: str) -> str:
    """Return ``name`` reduced to characters that are safe in a file name."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name).strip(".-")
    return kept[:80] or "run"
