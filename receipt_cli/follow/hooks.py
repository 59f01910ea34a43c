"""Run the user's commands if a job fails, ends or falls silent: argument vectors, never a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import UsageError

Happening: TypeAlias = Literal["failure", "end", "stall"]
PATIENCE_S = 60.0
"""Seconds to wait for commands at the end; a longer one goes on without us."""
STALL_S = 600
"""Default seconds without output that count as a stall."""
NOT_YET = ("truncated", "no_grammar_match", "unknown")
"""Failure reasons that only mean that the log is not finished."""


def running_failure(document: Mapping[str, Any]) -> str | None:
    """Return the failure reason of a growing log, or None if it only means that the job has not ended."""
    failure = document.get("failure")
    reason = failure["reason"] if failure else None
    return None if reason in NOT_YET else reason


class Hooks:
    """The commands by occasion. Each runs at most once per log and occasion, until ``again``."""

    def __init__(self, commands: Mapping[Happening, str | None], stall_s: int | None = None, *, quiet: bool = False) -> None:
        """``commands`` are split into words as by a shell; ``quiet`` discards their output, which would disturb a screen.

        ``stall_s`` is the silence of a stall, by default ``STALL_S``. Raises ``UsageError`` for a command that cannot be split.
        """
        self.stall_s = stall_s or STALL_S
        self.failed: list[str] = []
        """Notes on commands that could not be run, or failed."""
        self._quiet = quiet
        self._commands = {name: _words(name, text) for name, text in commands.items() if text is not None}
        self._called: set[tuple[str, str]] = set()
        self._running: list[tuple[subprocess.Popen[bytes], str, Path]] = []

    def __bool__(self) -> bool:
        return bool(self._commands)

    def again(self, happening: Happening, log: str) -> None:
        """Let ``happening`` run its command once more for this log."""
        self._called.discard((happening, log))

    def call(self, happening: Happening, log: str, document: Mapping[str, Any]) -> bool:
        """Run the command for ``happening``, with ``document`` (a receipt) in a file; return False if it ran before.

        Its environment has ``RECEIPT_EVENT``, ``RECEIPT_LOG``, ``RECEIPT_FILE`` (the receipt, as JSON), ``RECEIPT_REASON`` and
        ``RECEIPT_STEP``; the file is deleted after the command has ended.
        """
        if (happening, log) in self._called:
            return False
        self._called.add((happening, log))
        self._reap()
        words = self._commands.get(happening)
        if words is None:
            return True
        descriptor, name = tempfile.mkstemp(prefix="receipt-", suffix=".json")
        with os.fdopen(descriptor, "wb") as file:
            file.write(canonical_bytes(document))
        failure, summary = document.get("failure"), document.get("summary")
        step = summary["steps"]["last"] if summary else None
        environ = {
            **os.environ,
            "RECEIPT_EVENT": happening,
            "RECEIPT_LOG": log,
            "RECEIPT_FILE": name,
            "RECEIPT_REASON": str(failure["reason"]) if failure else "",
            "RECEIPT_STEP": "" if step is None else str(step),
        }
        output = subprocess.DEVNULL if self._quiet else 2  # stderr, because stdout is for the receipt
        try:
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, start_new_session=True
            )
        except (OSError, ValueError) as error:
            Path(name).unlink(missing_ok=True)
            self.failed.append(f"--on-{happening} {words[0]}: {error.strerror if isinstance(error, OSError) else error}")
            return True
        self._running.append((child, f"--on-{happening} {words[0]}", Path(name)))
        return True

    def call_at_end(self, log: str, document: Mapping[str, Any]) -> None:
        """Run the commands for the end of a job, and for its failure if it failed."""
        if document["failure"] is not None:
            self.call("failure", log, document)
        self.call("end", log, document)

    def finish(self) -> None:
        """Wait for running commands, at most ``PATIENCE_S`` in total."""
        end = time.monotonic() + PATIENCE_S
        for child, _, _ in self._running:
            try:
                child.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
        self._reap()
        self.failed += [f"{name}: is still running" for _, name, _ in self._running]

    def _reap(self) -> None:
        for entry in list(self._running):
            child, name, file = entry
            code = child.poll()
            if code is None:
                continue
            self._running.remove(entry)
            file.unlink(missing_ok=True)
            if code:
                self.failed.append(f"{name}: ended with {code}")


def _words(happening: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--on-{happening} cannot be split into words", why=str(error)) from error
    if not words:
        raise UsageError(f"--on-{happening} names no command", try_=f"--on-{happening} 'notify-send training'")
    return words
