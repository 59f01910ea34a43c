"""Read the records of a session line by line, in bounded memory; find its start and duration."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from receipt_cli.errors import GrammarChoiceError
from receipt_cli.gpu_profile import format as gpufl
from receipt_cli.gpu_profile.activity import Copies, Kernels, Scopes
from receipt_cli.gpu_profile.devices import Inventory, Samples
from receipt_cli.gpu_profile.files import Listing, Window, gaps
from receipt_cli.gpu_profile.kernel_details import KernelDetails, StallSamples
from receipt_cli.gpu_profile.stream import (
    LATEST_NS,
    LONGEST_NS,
    Dictionary,
    Json,
    Line,
    Lines,
    Rows,
    StreamProblems,
    Unreadable,
    is_whole,
    rows_of,
    whole,
)

_TYPE = re.compile(rb'"type"\s*:\s*"([a-z_]{1,64})"')
_MAX_REPEATS = 1 << 18
_MAX_KINDS = 64
_MAX_NAME = 100
_MAX_SESSIONS = 16


class OtherSessions(GrammarChoiceError):
    """The files have several sessions and none was chosen, or they lack the chosen one."""


class ReadFile(NamedTuple):
    """One file that was read."""

    name: str
    sha256: str
    size_bytes: int
    line_count: int


@dataclass
class Session:
    """The contents of one session. ``read``, ``ignored`` and ``unread`` count all its records.

    Times are nanoseconds; ``starts`` and ``ends`` are all recorded times of its start and end (every channel has the record).
    ``lifecycle`` maps each channel to (start was read, end was read).
    """

    wanted: str | None = None
    session_id: str | None = None
    others: Counter[str] = field(default_factory=Counter)
    application: str | None = None
    starts: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)
    lifecycle: dict[str, list[bool]] = field(default_factory=dict)
    kernel_channels: set[str] = field(default_factory=set)
    holes: set[str] = field(default_factory=set)
    """Channels with missing records."""
    exit_code: int | None = None
    host: str | None = None
    files: list[ReadFile] = field(default_factory=list)
    read: int = 0
    ignored: int = 0
    unread: int = 0
    last_event: int | None = None
    problems: StreamProblems = field(default_factory=StreamProblems)
    kernels: Kernels = field(default_factory=Kernels)
    copies: Copies = field(default_factory=Copies)
    scopes: Scopes = field(default_factory=Scopes)
    samples: Samples = field(default_factory=Samples)
    details: KernelDetails = field(default_factory=KernelDetails)
    stalls: StallSamples = field(default_factory=StallSamples)
    metric_names: Dictionary = field(default_factory=lambda: Dictionary("metric_dict"))
    inventory: Inventory = field(default_factory=Inventory)
    kernel_names: Dictionary = field(default_factory=lambda: Dictionary("kernel_dict"))
    scope_names: Dictionary = field(default_factory=lambda: Dictionary("scope_name_dict"))
    columns: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Batches with an unknown column, by (record, column)."""
    types: Counter[str] = field(default_factory=Counter)
    """Records of unknown types."""

    @property
    def kernels_whole(self) -> bool:
        """Whether the kernel channels have a start, an end and no hole, and so contain all kernels."""
        whole_ones = {channel for channel, (start, end) in self.lifecycle.items() if start and end} - self.holes
        paired = not (self.kernels.unstarted or self.kernels.unended or self.kernels.forgotten)
        return paired and bool(self.kernel_channels) and self.kernel_channels <= whole_ones

    def lose(self, channel: str, kind: str, count: int | None = 1) -> None:
        """Record missing records of ``channel``."""
        self.holes.add(channel)
        self.problems.add_loss(kind, count)

    def seen(self, time: int) -> None:
        """Note the time of an event on the program's clock."""
        self.last_event = time if self.last_event is None else max(self.last_event, time)


def read_session(listing: Listing, problems: StreamProblems, wanted: str | None = None) -> Session:
    """Return the session ``wanted``, or the only one, in the files of ``listing``.

    For any bytes it returns a session or raises a ``ReceiptError``: ``OtherSessions`` if there are several or the wanted one is
    missing, ``InputError`` for a file that cannot be opened.
    """
    reader = _Reader(Session(wanted=wanted, problems=problems))
    for window in listing.windows:
        reader.read(window, listing)
    session = reader.session
    missing = gaps(listing)
    for kind, windows, why in (
        ("window_gap", missing - listing.given_up, "windows are missing"),
        ("lost_window", listing.given_up, "the recorder gave windows up as lost"),
    ):
        if windows:
            detail = ", ".join(f"{channel}.{index}" for channel, index in sorted(windows)[:8])
            problems.add(kind, f"{why}: {detail}", count=len(windows))
        for channel, _ in windows:
            session.lose(channel, kind)
    if session.others and wanted is None:
        known = [session.session_id or "?", *session.others]
        raise OtherSessions("holds several sessions", why=", ".join(known)[:300], try_=f"receipt import --session {known[0]} …")
    if wanted is not None and session.session_id is None:
        raise OtherSessions("holds no such session", why=f"{wanted!r} is none of {', '.join(session.others)[:300] or 'none'}")
    return session


class _Reader:
    """Reads the records of one session, one after the other."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._file = ""
        self._channel = ""
        self._repeats: set[tuple[Any, ...]] = set()
        self._batches: dict[str, Callable[[Rows, Json], int]] = {
            gpufl.KERNELS: lambda rows, record: self._kernels(rows),
            gpufl.COPIES: lambda rows, record: session.copies.add_batch(rows),
            gpufl.SCOPES: lambda rows, record: session.scopes.add_batch(rows),
            gpufl.SAMPLES: lambda rows, record: session.stalls.add_batch(rows),
            gpufl.DEVICES: lambda rows, record: session.samples.add_devices(rows),
            gpufl.HOSTS: lambda rows, record: session.samples.add_hosts(rows, _text(record.get("hostname")) or session.host),
        }

    def read(self, window: Window, listing: Listing) -> None:
        """Read one file."""
        self._file, self._channel = window.name, window.channel
        self.session.lifecycle.setdefault(window.channel, [False, False])
        with window.open() as stream:
            lines = Lines(stream)
            for line in lines:
                self._line(line)
        if lines.damage is not None:
            self._lose("damaged_file", lines.damage)
        elif lines.stored_bytes == 0 and window.name.endswith(".gz"):
            self._lose("empty_window", "is empty: its content is lost")
        declared = listing.sidecars.get(window.name.rpartition("/")[2], {})
        if declared and (declared.get("payload_bytes"), declared.get("payload_crc32")) != (lines.stored_bytes, lines.crc32):
            self._lose("payload_mismatch", "does not match its description", lost=None)
        self.session.files.append(ReadFile(window.name, lines.sha256, lines.size_bytes, lines.line_count))

    def _line(self, line: Line) -> None:
        if not line.data.strip():
            return
        session = self.session
        if not line.whole:
            kind = _TYPE.search(line.data)
            if kind is not None and kind[1].decode() in gpufl.IGNORED:
                session.ignored += 1
            else:
                self._unread(line, "oversized_record", "is too long to be read")
            return
        try:
            record = json.loads(line.data)
        except (ValueError, RecursionError) as error:
            self._unread(line, "undecodable_record", f"is not JSON: {str(error)[:200]}")
            return
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            self._unread(line, "undecodable_record", "is not a record with a type")
            return
        if self._is_ours(record, line):
            self._record(record["type"], record, line)

    def _unread(self, line: Line, kind: str, detail: str) -> None:
        self.session.unread += 1
        self._lose(kind, detail, line.number, excerpt=line.data)

    def _lose(self, kind: str, detail: str, line: int | None = None, *, excerpt: bytes = b"", lost: int | None = 1) -> None:
        """Record a problem of the file, by which the channel has ``lost`` records; None: an unknown number."""
        self.session.problems.add(kind, f"{self._file}: {detail}", line=line, excerpt=excerpt, count=lost or 1)
        self.session.lose(self._channel, kind, lost)

    def _is_ours(self, record: Json, line: Line) -> bool:
        """Return whether the record belongs to this session; a record without an id does."""
        declared, session = record.get("session_id"), self.session
        if declared is None or declared == "":
            return True
        if not isinstance(declared, str):
            self._unread(line, "unreadable_value", "session_id is not a string")
            return False
        if session.session_id is None and session.wanted in (None, declared):
            session.session_id = declared
        if declared == session.session_id:
            return True
        if declared in session.others or len(session.others) < _MAX_SESSIONS:
            session.others[declared] += 1
        session.ignored += 1
        return False

    def _record(self, kind: str, record: Json, line: Line) -> None:
        session = self.session
        if kind in gpufl.BATCHES:
            self._batch(kind, record, line)
        elif kind in gpufl.IGNORED:
            session.ignored += 1
        elif kind == gpufl.NAMES:
            session.read += 1
            for names in (session.kernel_names, session.scope_names, session.metric_names):
                names.update(record, session.problems, self._file, line.number)
        elif kind in gpufl.STARTS or kind == gpufl.ENDS:
            self._lifecycle(kind, record, line)
        elif kind in (gpufl.DETAIL, gpufl.SAMPLE):
            session.read += 1
            session.details.add_detail(record) if kind == gpufl.DETAIL else session.stalls.add_event(record)
        elif kind in gpufl.SINGLE:
            if self._single(kind, record):
                session.read += 1
                time = whole(record.get("ts_ns"), 0, LATEST_NS)
                if time is not None:
                    session.seen(time)
            else:
                self._unread(line, "unreadable_record", f"{kind}: a value cannot be read")
        else:
            session.unread += 1
            name = kind[:_MAX_NAME] if kind in session.types or len(session.types) < _MAX_KINDS else "(others)"
            session.types[name] += 1

    def _batch(self, kind: str, record: Json, line: Line) -> None:
        session, known = self.session, gpufl.BATCHES[kind]
        version = record.get("version")
        if version is not None and (not is_whole(version) or version not in known.versions):
            self._unread(line, "unknown_version", f"{kind}: version {str(version)[:20]} is not known")
            return
        try:
            rows = rows_of(record, known)
        except Unreadable as error:
            self._unread(line, "unreadable_batch", f"{kind}: {error}")
            return
        if self._is_repeat(kind, record, rows, line):
            session.ignored += 1
            return
        for name in (column[:_MAX_NAME] for column in rows.unknown):
            key = (kind, name) if (kind, name) in session.columns or len(session.columns) < _MAX_KINDS else (kind, "(others)")
            session.columns[key] += 1
        lost = rows.torn + self._batches[kind](rows, record)
        if lost:
            self._lose("unreadable_row", f"{kind}: {lost} rows cannot be read", line.number, lost=lost)
        session.read += 1
        if kind == gpufl.KERNELS:
            session.kernel_channels.add(self._channel)
        if kind in (gpufl.SCOPES, gpufl.DEVICES, gpufl.HOSTS):
            offsets = [dt for dt in rows.columns["dt_ns"] if is_whole(dt) and abs(dt) < LONGEST_NS]
            if offsets:
                session.seen(rows.base_ns + max(offsets))

    def _is_repeat(self, kind: str, record: Json, rows: Rows, line: Line) -> bool:
        """Return whether the same batch was read before, such as from a copied window."""
        number = record.get("batch_id")
        if not is_whole(number) or whole(number, 0, LATEST_NS) is None:
            return False
        ends = [column[place] for column in rows.columns.values() for place in ((0, -1) if rows.count else ())]
        if not all(whole(value, -LATEST_NS, LATEST_NS) is not None and is_whole(value) for value in ends):
            return False
        key = (kind, number, rows.base_ns, rows.count, *ends)
        if key in self._repeats:
            self.session.problems.add("batch_repeated", f"{self._file}: {kind} {number} was read before", line=line.number)
            return True
        if len(self._repeats) < _MAX_REPEATS:
            self._repeats.add(key)
        return False

    def _lifecycle(self, kind: str, record: Json, line: Line) -> None:
        session = self.session
        time = whole(record.get("ts_ns"), 0, LATEST_NS)
        flags = session.lifecycle[self._channel]
        session.read += 1
        session.application = session.application or _text(record.get("app"))
        if kind == gpufl.ENDS and record.get("synthetic") is True:
            session.exit_code = _exit_code(record)
            session.problems.add("synthetic_end", f"{self._file}: the launcher, not the program, recorded the end of the session")
            return
        if kind == gpufl.ENDS:
            flags[1] = True
            session.ends |= {time} if time is not None else set()
        else:
            flags[0] = True
            session.starts |= {time} if time is not None else set()
            session.host = session.host or _text(record.get("hostname"))
            session.inventory.add(record, self._file, session.samples)
        if time is None:
            session.problems.add("unreadable_value", f"{self._file}: {kind} has no time", line=line.number)

    def _single(self, kind: str, record: Json) -> bool:
        session = self.session
        session.application = session.application or _text(record.get("app"))
        if kind.startswith("kernel_"):
            session.kernel_channels.add(self._channel)
            session.details.add_event(record)
        if kind == "kernel_event":
            return session.kernels.add_event(record)
        if kind == "kernel_start":
            return session.kernels.begin(record, session.inventory.number_of(record.get("uuid")))
        if kind == "kernel_end":
            return session.kernels.end(record)
        if kind in ("memcpy_event", "memset_event"):
            return session.copies.add_event(record, fill=kind == "memset_event")
        if kind in ("scope_begin", "scope_end"):
            return session.scopes.add_event(record, begins=kind == "scope_begin")
        return session.samples.add_event(record, _text(record.get("hostname")) or session.host)

    def _kernels(self, rows: Rows) -> int:
        self.session.details.add_batch(rows)
        return self.session.kernels.add_batch(rows)


def _exit_code(record: Json) -> int | None:
    """Return the exit code recorded by the launcher: negative for a signal; None if it stopped the program on purpose."""
    code = whole(record.get("exit_code"), -(1 << 31), 1 << 31)
    signal = whole(record.get("signal"), 1, 128)
    if record.get("window_stopped") is True:
        return None
    return code if record.get("signaled") is not True else None if signal is None else -signal


def _text(value: object) -> str | None:
    """Return a non-blank string, bounded; None for anything else."""
    return value.strip()[:500] or None if isinstance(value, str) else None


_SLACK_NS = 10**8
"""Tolerance for converting event times from device clocks to the session's, in nanoseconds."""
_SLACK_PARTS = 1000
_LONGEST_NS = 10 * 366 * 86_400 * 10**9
"""Longest plausible session in nanoseconds, ten years."""
_EPOCH_FROM_NS = 1_262_304_000 * 10**9
"""The year 2010: earlier times are not counted from 1970."""


class SessionTimes(NamedTuple):
    """Nanoseconds; None if unknown or contradictory."""

    started: int | None
    duration: int | None
    complete: bool

    @property
    def started_at(self) -> str | None:
        """The exact start as RFC 3339 with Z; None if it is not counted from 1970."""
        if self.started is None or self.started < _EPOCH_FROM_NS:
            return None
        seconds, rest = divmod(self.started, 10**9)
        text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{text}{fraction}Z"


def times_of(session: Session, busy: int | None) -> SessionTimes:
    """Return start and duration of ``session``; ``busy``, the busiest device's time, is a lower bound of the duration."""
    problems = session.problems
    silent = sorted(name for name, (start, end) in session.lifecycle.items() if not (start and end))
    for name in silent:
        lacks = " and ".join(what for what, there in zip(("start", "end"), session.lifecycle[name], strict=True) if not there)
        problems.add("channel_not_complete", f"{name}: holds no {lacks} of the session")
    started = _only(session.starts, "start", problems)
    ended = _only(session.ends, "end", problems)
    duration = None if started is None else _duration(session, started, ended, problems)
    if duration is not None and not 0 <= duration <= _LONGEST_NS:
        problems.add("contradicting_times", "the session ends before it begins, or years after")
        duration = None
    if duration is not None and busy is not None and busy > duration:
        problems.add("contradicting_times", "a device was busy for longer than the session lasted")
        duration = None
    return SessionTimes(started, duration, not silent and bool(session.lifecycle) and not session.unread)


def _only(times: set[int], what: str, problems: StreamProblems) -> int | None:
    """Return the time on which all channels agree, or None."""
    if len(times) > 1:
        problems.add("contradicting_times", f"the session has {len(times)} times of its {what}")
        return None
    return next(iter(times), None)


def _duration(session: Session, started: int, ended: int | None, problems: StreamProblems) -> int | None:
    """Return the time from the start to the end or, without an end, to the last event."""
    spans = [span for span in session.kernels.spans.values() if span.first is not None and span.last is not None]
    first = min((span.first for span in spans if span.first is not None), default=None)
    last = max((span.last for span in spans if span.last is not None), default=None)
    if ended is None and session.ends:
        return None
    if first is None or last is None:
        until = ended if ended is not None else session.last_event
        return None if until is None else until - started
    if ended is None:
        if last < started - _SLACK_NS:  # on another clock
            return None if session.last_event is None else session.last_event - started
        until = max(last, session.last_event if session.last_event is not None else last)
    else:
        until = ended
    slack = _SLACK_NS + abs(until - started) // _SLACK_PARTS
    if last < started - slack or first > until + slack:
        problems.add("other_clock", "the kernels' times are from another clock than the session's: only their durations count")
    elif first < started - slack or last > until + slack:
        problems.add("contradicting_times", "kernels ran outside the session")
        return None
    return until - started
