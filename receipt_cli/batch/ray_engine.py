"""Engine on a Ray cluster: many logs per task, results as paths and digests."""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO, TypeVar, cast

from receipt_cli.batch.model import Lost
from receipt_cli.errors import UnavailableError, UsageError

TASK_BYTES = 64 << 20
TASK_ITEMS = 256
"""Most items and bytes of a task, unless one item is larger: handing out a task costs milliseconds, like a small log."""
TASKS_A_WORKER = 4
"""Fewest tasks per worker, so that all workers end together."""
RETRIES = 2
"""Times that Ray itself repeats a task whose worker or machine died."""

T = TypeVar("T")
R = TypeVar("R")


class RayEngine:
    """An ``Engine`` on the cluster at ``RAY_ADDRESS``, or on a temporary one of ``workers`` processes on this machine.

    Every machine of the cluster needs this package in the same version, and the logs and the store under the same paths.
    Raises ``UsageError`` if Ray is not installed, ``UnavailableError`` if the cluster cannot be reached or does not start.
    """

    def __init__(self, workers: int) -> None:
        try:
            import ray
        except ImportError as error:
            way = "pip install 'receipt-cli[ray]'"
            raise UsageError("--engine ray needs Ray", why="it is not installed", try_=way) from error
        self._ray: Any = ray
        self._stdout = sys.stdout
        if sys.stdout is not None:  # None if the parent closed it
            sys.stdout = cast(TextIO, _OnStderr(sys.stdout))
        address = os.environ.get("RAY_ADDRESS")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # give up a log that needs too much memory
        try:
            if address:
                ray.init(address=address, **quiet)
            else:
                os.environ.setdefault("RAY_worker_niceness", "0")  # 15 by default: a third of the speed on a busy machine
                ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        except Exception as error:  # Ray raises Exception if a node starts too late
            sys.stdout = self._stdout
            raise refused(error, address or "local") from error
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", workers)))
        self._task: Any = ray.remote(num_cpus=1, max_retries=RETRIES)(work_on)

    def run(
        self, work: Callable[[T], R], items: Sequence[T], sizes: Sequence[int], kinds: Sequence[int] = ()
    ) -> Iterator[tuple[int, R | Lost]]:
        """Yield (position, result) of each item, task by task as they end; Ray chooses the workers.

        A task whose workers die repeatedly is retried item by item, so that one item does not cost the others.
        """
        waiting = deque(_tasks(sizes, self.workers))
        running: dict[Any, list[int]] = {}
        while waiting or running:
            while waiting and len(running) < TASKS_A_WORKER * self.workers:
                positions = waiting.popleft()
                running[self._task.remote(work, [items[position] for position in positions])] = positions
            done, _ = self._ray.wait(list(running), num_returns=1)
            for reference in done:
                positions = running.pop(reference)
                results = self._results(reference)
                if not isinstance(results, Lost):
                    yield from zip(positions, results, strict=True)
                elif len(positions) > 1:
                    waiting.extend([position] for position in positions)
                else:
                    yield positions[0], results

    def close(self) -> None:
        """Leave the cluster: our tasks are stopped, and a cluster of our own is shut down."""
        self._ray.shutdown()
        sys.stdout = self._stdout

    def _results(self, reference: Any) -> Any:
        """Return the results of a task, or ``Lost`` if its worker died. Raises the exception of the work."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, MemoryError):
                return Lost("it needs more memory than a worker has")
            raise error.cause from error
        except errors.RayError as error:
            return Lost(f"the worker died, {RETRIES + 1} times: {type(error).__name__}")


_LOCAL = "--engine local, or retry when the machine is less busy: Ray waits half a minute for its node"
_TOKEN = "RAY_AUTH_MODE=token and the cluster's token in RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"


def refused(error: Exception, where: str) -> UnavailableError:
    """Return the error for a cluster that cannot be reached, does not start, or requires a token.

    For a wrong token, or for none if the mode is unset, Ray only prints the reason (InvalidAuthToken) and raises that it cannot
    connect.
    """
    why = str(error).split(". ")[0][:300] or type(error).__name__
    if type(error).__name__ == "AuthenticationError":
        return UnavailableError("the Ray cluster requires a token", where=where, why=why, try_=_TOKEN)
    if where == "local":
        return UnavailableError("Ray does not start on this machine", why=why, try_=_LOCAL)
    way = f"check the address; a cluster that requires a token needs {_TOKEN}"
    return UnavailableError("the Ray cluster cannot be reached", where=where, why=why, try_=way)


class _OnStderr:
    """Replaces stdout while Ray, which prints there, is used: text goes to stderr, bytes through ``buffer`` to stdout."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)

    def flush(self) -> None:
        self._stdout.flush()
        sys.stderr.flush()

    def write(self, text: str) -> int:
        return sys.stderr.write(text)


def work_on(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the result of ``work`` for each item: the body of a Ray task."""
    return [work(item) for item in items]


def _tasks(sizes: Sequence[int], workers: int) -> Iterator[list[int]]:
    most = max(1, min(TASK_ITEMS, len(sizes) // (TASKS_A_WORKER * workers)))
    task: list[int] = []
    total = 0
    for position, size in enumerate(sizes):
        if task and (len(task) >= most or total + size > TASK_BYTES):
            yield task
            task, total = [], 0
        task.append(position)
        total += size
    if task:
        yield task
