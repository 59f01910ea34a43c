"""Follow many growing logs at once: the state of each, and what happened to it."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from receipt_cli.derive import Plan
from receipt_cli.errors import InputError, ReceiptError
from receipt_cli.follow.growth import FileTail, Following, open_tail
from receipt_cli.follow.hooks import Happening, Hooks, running_failure
from receipt_cli.follow.loop import SHARE, Figures, Snapshot, Stop, Watch
from receipt_cli.io.discovery import find_logs

State: TypeAlias = Literal["waiting", "running", "stalled", "failed", "nan", "done", "unreadable"]
MAX_JOBS = 500
LOOK_S = 0.5
SEARCH_S = 10.0
"""Seconds between two searches of folders for new logs."""
OVER: tuple[State, ...] = ("failed", "nan", "done", "unreadable")


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as displayed. ``silent_s`` is seconds since its last output; ``reason`` is a failure slug or an error."""

    path: str
    state: State
    silent_s: float
    snapshot: Snapshot | None
    reason: str | None = None

    @property
    def figures(self) -> Figures | None:
        """The figures of the log, if any are known."""
        return self.snapshot.figures if self.snapshot is not None else None


class _Job:
    def __init__(self, path: str, plan: Plan, share: int) -> None:
        self.path = path
        self.error: str | None = None
        self._watch = Watch(Path(path).name, share=share)
        self._written = 0.0
        self._behind = True
        self._followed: Following | None = None
        try:
            tail = open_tail(path)
        except ReceiptError as error:
            self.error = error.why or error.message
            return
        if not isinstance(tail, FileTail):
            tail.close()
            raise InputError("is a pipe", where=path, try_=f"receipt parse {path} --follow")
        self._followed = Following(path, plan, tail, LOOK_S, 1, timed=True, recorded=True)

    @property
    def snapshot(self) -> Snapshot | None:
        return self._watch.snapshot

    def look(self) -> None:
        if self._followed is None or self.error is not None:
            return
        try:
            if self._followed.lost() is not None:
                self._watch.again()
            blocks = self._followed.read()
            self._written = self._followed.tail.written_at()
            self._behind = bool(blocks)
            hurried = self._behind and self.snapshot is None
            self._watch.look(self._followed.growth, self._written if blocks else None, (), hurried=hurried)
        except ReceiptError as error:
            self.error = error.why or error.message
        except OSError as error:
            self.error = error.strerror or str(error)

    @property
    def is_read(self) -> bool:
        """Whether the figures cover all output of the log."""
        figures = self.snapshot.figures if self.snapshot is not None else None
        if self._followed is None or self.error is not None:
            return True
        return not self._behind and (figures is not None or not self._followed.growth.size_bytes)

    def state(self, now: float, stall_s: float) -> JobState:
        silent = max(0.0, now - self._written) if self._written else math.nan
        if self.error is not None:
            return JobState(self.path, "unreadable", silent, None, self.error)
        figures = self.snapshot.figures if self.snapshot is not None else None
        reason = running_failure(figures.document) if figures is not None else None
        kind: State = "waiting"
        if reason is not None:
            kind = "nan" if reason == "nan_loss" else "failed"
        elif figures is not None and figures.document["checks"]["completed"] is True:
            kind = "done"
        elif silent >= stall_s:
            kind = "stalled"
        elif figures is not None:
            kind = "running"
        return JobState(self.path, kind, silent, self.snapshot, reason)

    def close(self) -> None:
        if self._followed is not None:
            self._followed.close()


class Jobs:
    """The logs at some paths: files, and folders in which new logs are found while they are watched."""

    def __init__(self, paths: Sequence[str], plan: Plan, hooks: Hooks) -> None:
        """Raises ``InputError`` for a path that does not exist or has no log, and for more than ``MAX_JOBS``."""
        self._paths = list(paths)
        self._plan = plan
        self._hooks = hooks
        self._jobs: dict[str, _Job] = {}
        self._states: dict[str, State] = {}
        self._searched = -math.inf
        self._find()
        if not self._jobs:
            raise InputError("there is no log", where=", ".join(paths)[:200])

    def _find(self) -> None:
        if time.monotonic() - self._searched < SEARCH_S:
            return
        found, _ = find_logs(self._paths)
        self._searched = time.monotonic()
        for path in found:
            if path not in self._jobs:
                if len(self._jobs) >= MAX_JOBS:
                    raise InputError(f"more than {MAX_JOBS} logs", try_="name fewer folders")
                self._jobs[path] = _Job(path, self._plan, SHARE * max(1, len(found)))

    def look(self) -> tuple[list[JobState], list[tuple[Happening, JobState]]]:
        """Read new output; return the state of each job, and what has happened since the last call."""
        with suppress(InputError):  # the folder is gone, but its logs are still open
            self._find()
        now = time.time()
        states: list[JobState] = []
        happened: list[tuple[Happening, JobState]] = []
        for job in self._jobs.values():
            job.look()
            state = job.state(now, self._hooks.stall_s)
            states.append(state)
            if job.is_read:
                happened += [(happening, state) for happening in self._happened(state)]
        return states, happened

    def _happened(self, state: JobState) -> Iterator[Happening]:
        before = self._states.get(state.path)
        self._states[state.path] = state.state
        if state.state == "running":
            self._hooks.again("stall", state.path)
        if state.state == before or state.figures is None:
            return
        kinds: dict[State, Happening] = {"failed": "failure", "nan": "failure", "done": "end", "stalled": "stall"}
        happening = kinds.get(state.state)
        if happening is not None and self._hooks.call(happening, state.path, state.figures.document):
            yield happening

    @property
    def is_read(self) -> bool:
        """Whether all output of all logs is read."""
        return all(job.is_read for job in self._jobs.values())

    def close(self) -> None:
        """Close the logs."""
        for job in self._jobs.values():
            job.close()


def watch_jobs(
    paths: Sequence[str],
    plan: Plan,
    hooks: Hooks,
    *,
    once: bool = False,
    until_over: bool = False,
) -> Generator[tuple[list[JobState], list[tuple[Happening, JobState]]], None, None]:
    """Yield the jobs at ``paths``, and what happened since the last time, until Ctrl-C or SIGTERM.

    ``once``: only when all present output is read; ``until_over``: until every job is done, failed or stalled. Must be called
    in the main thread. Raises ``ReceiptError``.
    """
    jobs = Jobs(paths, plan, hooks)
    try:
        with Stop() as stop:
            while True:
                states, happened = jobs.look()
                over = jobs.is_read and (once or (until_over and all(s.state in (*OVER, "stalled") for s in states)))
                if not once or over or stop.asked:
                    yield states, happened
                if over or stop.asked:
                    return
                stop.wait((), LOOK_S if jobs.is_read else 0.0)
    finally:
        jobs.close()
        hooks.finish()
