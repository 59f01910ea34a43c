"""Record metrics, commits and tokens step by step as an ``evaluation/1.0`` document."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import time
from array import array
from collections.abc import Callable, Mapping
from itertools import groupby
from operator import index, itemgetter
from threading import RLock
from typing import Any

from receipt_cli.emit.document import (
    Document,
    attachment,
    figures,
    finite_or_none,
    header_block,
    producer_block,
    require,
    rfc3339,
    run_block,
    write_document,
)

SCHEMA_VERSION = "evaluation/1.0"
MAX_STEPS = 1_000_000
MAX_NAME = 200
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PENDING = 128
"""Records kept as tuples before they are moved into the columns."""
_NONE = -1
"""A missing count in a column of counts."""
_LOWEST, _LARGEST = -(2**63), 2**63 - 1
_NS = 1e9
_THERE = b"\x01"

_Record = tuple[int, int, int, int, tuple[str, ...], tuple[float | None, ...]]


class TemporalPerformanceTracker:
    """Record the metrics of each step; report speed and memory at the end.

    A record is one tuple appended under one lock; every 128 are moved into columns of 9 bytes per value, so a million steps of
    three metrics take about 60 MB. After ``max_steps`` steps, further ones are only counted in ``dropped_step_count``, and the
    document covers the kept steps.

    ``header`` is the header in the document of ``receipt header``; ``run`` has known fields of the run (``name``, ``lane``,
    ``preset``, ``exit_code``). ``clock_ns`` is monotonic; ``wall`` returns seconds since 1970.
    """

    def __init__(
        self,
        *,
        header: Mapping[str, Any] | None = None,
        run: Mapping[str, Any] | None = None,
        max_steps: int = MAX_STEPS,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._header = header
        self._run = dict(run or {})
        run_block(self._run)
        self._max = max_steps
        self._clock = clock_ns
        self._wall = wall
        self._lock = RLock()  # a signal handler may interrupt, and write the document
        self._start: int | None = None
        self._end: int | None = None
        self._config: Document | None = None
        self._attachments: list[Document] = []
        self._names: tuple[str, ...] = ()
        """The last record's names, already checked."""
        self._clear()

    def start_run(self, config: Mapping[str, Any] | None = None) -> None:
        """Begin a run, and drop earlier records. ``config`` is the configuration of the run.

        Raises ``ValueError`` if the configuration, header or run fields do not fit into a document.
        """
        kept = None if config is None else _as_json(config)
        with self._lock:
            self._clear()
            self._config, self._end, self._start = kept, None, self._clock()
        require(self.to_json(), "evaluation")  # report wrong input now, not after days
        with self._lock:
            self._run |= {"started_at": rfc3339(self._wall()), "finished_at": None}
            self._start = self._clock()

    def record_step(
        self, step: int, metrics: Mapping[str, float | None], commits: int | None = None, tokens: int | None = None
    ) -> None:
        """Record one step: its values, and the numbers of commits and tokens that it processed.

        A value is a number, or None if missing. A tensor is converted to a number here, which waits for its device. Raises
        ``TypeError`` for a value that is not a number, ``ValueError`` for a count below 0 and an invalid name, ``RuntimeError``
        before ``start_run`` and after ``finish_run``.
        """
        try:
            values: tuple[float | None, ...] = tuple(map(float, metrics.values()))  # type: ignore[arg-type]
        except (TypeError, OverflowError):
            values = tuple(None if value is None else _number(value) for value in metrics.values())
        names = tuple(metrics)
        known = self._names
        if names == known:
            names = known  # one shared object is less work for the garbage collector
        else:
            self._check_names(names)
        if type(step) is not int or not _LOWEST <= step <= _LARGEST:
            step = _whole(step)
        worked = _NONE if commits is None else commits if type(commits) is int and 0 <= commits <= _LARGEST else _count(commits)
        read = _NONE if tokens is None else tokens if type(tokens) is int and 0 <= tokens <= _LARGEST else _count(tokens)
        with self._lock:
            if len(self._pending) >= self._room and not self._make_room():
                return
            self._pending.append((step, self._clock(), worked, read, names, values))

    def finish_run(self) -> None:
        """End the run: stop the clock and complete the document. Raises ``RuntimeError`` before ``start_run``."""
        with self._lock:
            if self._start is None:
                raise RuntimeError("finish_run needs an earlier start_run")
            if self._end is None:
                self._room = 0
                self._end = self._clock()
                self._run["finished_at"] = rfc3339(self._wall())

    def attach(self, kind: str, uri: str) -> None:
        """Add a large artefact by its address, with digest and size for a local file. Raises ``ValueError`` for empty texts."""
        if not kind or not uri:
            raise ValueError("an attachment needs a kind and an address")
        self._attachments.append(attachment(kind, uri))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> Document:
        """Return the ``evaluation/1.0`` document, also during a run; with ``path``, write it there as ``write`` does.

        Raises ``RuntimeError`` before ``start_run``.
        """
        document = self._document()
        if path is not None:
            write_document(path, require(document, "evaluation"))
        return document

    def _document(self) -> Document:
        with self._lock:
            if self._start is None:
                raise RuntimeError("to_json needs an earlier start_run")
            self._pack()
            full = self.dropped_step_count > 0
            finished = self._end is not None and not full
            end = self._clock() if self._end is None else self._end
            if full:
                end = self._times[-1] if self._times else self._start
            duration = (end - self._start) / _NS
            columns = {name: self._column(name) for name in self._values}
            counts = {name: _counts(column) for name, column in (("commits", self._commits), ("tokens", self._tokens))}
            totals = {name: None if known is None else sum(c for c in known if c is not None) for name, known in counts.items()}
            return {
                "schema_version": SCHEMA_VERSION,
                "run": run_block(self._run),
                "header": header_block(self._header),
                "complete": finished,
                "config": self._config,
                "series": {
                    "steps": list(self._steps),
                    "elapsed_s": [(at - self._start) / _NS for at in self._times],
                    "commit_counts": counts["commits"],
                    "token_counts": counts["tokens"],
                    "metrics": {name: [finite_or_none(value) for value in column] for name, column in columns.items()},
                },
                "summary": {
                    "step_count": len(self._steps),
                    "duration_s": duration,
                    "commit_count": totals["commits"],
                    "token_count": totals["tokens"],
                    "commits_per_s": _rate(totals["commits"], duration),
                    "tokens_per_s": _rate(totals["tokens"], duration),
                    "metrics": {name: figures(column) for name, column in columns.items()},
                },
                "memory": peak_memory(),
                "attachments": [dict(one) for one in self._attachments],
                "producer": producer_block(),
            }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the document to ``path`` atomically.

        Raises ``OutputError``, ``NotConforming``, and ``RuntimeError`` before ``start_run``.
        """
        write_document(path, require(self.to_json(), "evaluation"))

    def _make_room(self) -> bool:
        """Return whether another record fits. The caller holds the lock."""
        if self._start is None or self._end is not None:
            raise RuntimeError("call record_step between start_run and finish_run")
        self._pack()
        self._room = min(_PENDING, self._max - len(self._steps))
        self.dropped_step_count += self._room <= 0
        return self._room > 0

    def _check_names(self, names: tuple[str, ...]) -> None:
        for name in names:
            if not 0 < len(name) <= MAX_NAME or _CONTROL.search(name):
                raise ValueError(f"{name!r} is not a metric name: use 1 to {MAX_NAME} characters without control characters")
        self._names = names

    def _clear(self) -> None:
        self._pending: list[_Record] = []
        self._room = 0
        """Number of records that may wait; 0 sends the next one to ``_make_room``."""
        self.dropped_step_count = 0
        """Steps after the first ``max_steps``, which are not kept."""
        self._steps = array("q")
        self._times = array("q")
        self._commits = array("q")
        self._tokens = array("q")
        self._values: dict[str, tuple[array[float], bytearray]] = {}

    def _pack(self) -> None:
        """Move the waiting records into the columns. The caller holds the lock."""
        pending, self._pending, self._room = self._pending, [], 0
        for names, group in groupby(pending, key=itemgetter(4)):
            self._extend(names, list(group))

    def _extend(self, names: tuple[str, ...], records: list[_Record]) -> None:
        """Append records with equal metric names to the columns."""
        steps, times, commits, tokens, _, rows = zip(*records, strict=True)
        place, count = len(self._steps), len(steps)
        self._steps.extend(steps)
        self._times.extend(times)
        self._commits.extend(commits)
        self._tokens.extend(tokens)
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            numbers, known = self._values.setdefault(name, (array("d"), bytearray()))
            if len(known) < place:
                numbers.frombytes(bytes(8 * (place - len(known))))
                known.extend(bytes(place - len(known)))
            if None in column:
                numbers.extend([0.0 if value is None else value for value in column])
                known.extend([value is not None for value in column])
            else:
                numbers.extend(column)
                known.extend(_THERE * count)

    def _column(self, name: str) -> list[float | None]:
        numbers, known = self._values[name]
        column: list[float | None] = [value if there else None for value, there in zip(numbers, known, strict=True)]
        return column + [None] * (len(self._steps) - len(column))


def peak_memory(status: str = "/proc/self/status") -> dict[str, int | str] | None:
    """Return ``peak_memory_bytes`` and its ``source``: ``VmHWM`` in ``status``, else ``getrusage``; None without either."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(status, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return {"peak_memory_bytes": int(line.split()[1]) * 1024, "source": "vm_hwm"}
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, "source": "getrusage"}


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond float64
        return math.inf if value > 0 else -math.inf


def _whole(value: int) -> int:
    whole = index(value)
    if not _LOWEST <= whole <= _LARGEST:
        raise ValueError(f"{whole} is beyond 64 bits")
    return whole


def _count(value: int) -> int:
    count = _whole(value)
    if count < 0:
        raise ValueError(f"{count} is not a count")
    return count


def _counts(column: array[int]) -> list[int | None] | None:
    """Return the counts, None for a step without one; None as a whole if no step has one."""
    if all(count == _NONE for count in column):
        return None
    return [None if count == _NONE else count for count in column]


def _rate(total: int | None, duration: float) -> float | None:
    rate = total / duration if total is not None and duration > 0 else None
    return finite_or_none(rate)


def _as_json(config: Mapping[str, Any]) -> Document:
    """Return a copy of ``config`` as JSON values. Raises ``ValueError``."""
    import json

    try:
        copied: Document = json.loads(json.dumps(dict(config), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the configuration cannot be JSON: {error}") from None
    return copied
