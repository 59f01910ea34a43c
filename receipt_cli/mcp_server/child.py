"""Run a command of ``receipt`` in its own process, which is killed at a limit of time or bytes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.abc import ByteReceiveStream, Process

from receipt_cli.errors import ExitCode, InputError

MOST_PRINTED = 64 << 20
"""Most bytes that a command may print: its output is complete before an answer is cut to rows or a part."""
_MOST_NOTES = 64 << 10


class Printed(NamedTuple):
    """Output of a command: its answer, and its notes."""

    answer: bytes
    notes: list[str]


async def run_receipt(words: Sequence[str], folder: Path, seconds: float) -> Printed:
    """Run ``receipt`` with ``words`` in ``folder`` and return its output.

    Exit code 1 (the answer is no) is no error. Raises ``InputError`` with the command's own error message, and if it takes more
    than ``seconds``.
    """
    # -P: a folder with a log may also contain modules, which we must not import
    command = [sys.executable, "-P", "-m", "receipt_cli", *words]
    out, notes = bytearray(), bytearray()
    with anyio.move_on_after(seconds) as scope:
        async with await anyio.open_process(command, stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True) as process:
            try:
                async with anyio.create_task_group() as both:
                    both.start_soon(_read, process.stdout, out, MOST_PRINTED + 1, process)
                    both.start_soon(_read, process.stderr, notes, _MOST_NOTES, None)
                await process.wait()
            except BaseException:  # the limit, or the client has disconnected
                _kill_group(process)
                raise
    if scope.cancelled_caught:
        raise InputError("the answer takes too long", why=f"stopped after {seconds:g} seconds")
    if len(out) > MOST_PRINTED:
        raise InputError("the answer is too long", why=f"it has more than {MOST_PRINTED} bytes")
    text = notes.decode("utf-8", "replace").strip()
    if process.returncode not in (ExitCode.OK, ExitCode.NO) or not out:
        raise InputError(text.removeprefix("receipt: error: ") or f"the command ended with {process.returncode}")
    return Printed(bytes(out), [line.removeprefix("receipt: note: ") for line in text.splitlines()])


async def _read(stream: ByteReceiveStream | None, into: bytearray, most: int, process: Process | None) -> None:
    """Read a stream to its end; after ``most`` bytes kill the process, or without one drop the rest."""
    assert stream is not None
    async for block in stream:
        into += block[: most - len(into)]
        if process is not None and len(into) >= most:
            _kill_group(process)
            return


def _kill_group(process: Process) -> None:
    """Kill the process and those that it started."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
