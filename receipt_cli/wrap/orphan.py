"""The note beside a log while its job runs, from which a receipt can be made if ``receipt run`` was killed.

Two locks prove which processes are alive, because process ids are reused: ``receipt run`` locks the note, and the process that
writes the log locks the log. The system releases both however a process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from receipt_cli.errors import OutputError, system_errors
from receipt_cli.io.atomic import write_atomically
from receipt_cli.io.compression import running_name

_VERSION = "running/1"
_LARGEST = 1 << 20


class Note:
    """The note of a running job; its file is locked until ``remove`` or until our process ends."""

    def __init__(self, log: Path, facts: Mapping[str, Any]) -> None:
        """Write ``facts`` beside ``log``. Raises ``OutputError``."""
        self.path = _path(log).absolute()
        write_atomically(self.path, _bytes({"version": _VERSION, "pid": os.getpid(), **facts}))
        with system_errors(OutputError, "cannot read", self.path):
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        lock(self._descriptor)

    def remove(self) -> None:
        """Delete the note: the receipt exists, or nothing ran."""
        with contextlib.suppress(OSError):
            self.path.unlink()


@dataclass(frozen=True, slots=True)
class Orphan:
    """A note without a receipt: file names, options of the run, and whether the log is complete (None if unknown).

    ``state``: ``running`` while ``receipt run`` is alive, ``writing`` while only the command is, else ``over``.
    """

    note: Path
    state: Literal["running", "writing", "over"]
    pid: int | None
    header: Path
    receipt: Path | None
    grammar: str | None
    attachments: tuple[str, ...]
    log_complete: bool | None
    log_loss: Mapping[str, Any] | None


def lock(descriptor: int) -> None:
    """Lock an open file, if its file system has locks and no other process holds one."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def add_loss(path: Path, loss: Mapping[str, Any] | None) -> None:
    """Add the closed log's loss to the note at ``path``; do nothing if the note cannot be written."""
    facts = _read(path)
    if facts is not None:
        with contextlib.suppress(OutputError):
            write_atomically(path, _bytes({**facts, "log_complete": loss is None, "log_loss": loss}))


def find_orphan(log: Path, header: Path) -> Orphan | None:
    """Return the job described by the note beside ``log``, or None without a note."""
    path = _path(log)
    facts = _read(path)
    if facts is None:
        return None
    state: Literal["running", "writing", "over"] = "running" if _is_locked(path) else "writing" if _is_locked(log) else "over"
    facts = _read(path) or facts  # the loss is written before the log's lock is released
    pid, receipt, grammar, attached, complete, loss = map(
        facts.get, ("pid", "receipt", "grammar", "attachments", "log_complete", "log_loss")
    )
    return Orphan(
        path,
        state,
        pid if isinstance(pid, int) else None,
        header,
        Path(receipt) if isinstance(receipt, str) else None,
        grammar if isinstance(grammar, str) else None,
        tuple(text for text in attached if isinstance(text, str)) if isinstance(attached, list) else (),
        complete if isinstance(complete, bool) else None,
        loss if isinstance(loss, dict) else None,
    )


def _path(log: Path) -> Path:
    return log.with_name(running_name(log.name))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            facts = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) and facts.get("version") == _VERSION else None


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _bytes(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, indent=1).encode() + b"\n"
