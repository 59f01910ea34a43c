"""Read a growing log; scan each piece once, merge it, and take intermediate results from a copy."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import stat
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from pickle import PickleBuffer
from typing import IO

from receipt_cli.derive import Plan, Reading
from receipt_cli.errors import InputError, OutputError, UsageError
from receipt_cli.events.streams import gathered_from
from receipt_cli.io.compression import HEAD, compression_of, times_name
from receipt_cli.io.copied_lines import CopiedLines
from receipt_cli.io.envelopes import Unpacker
from receipt_cli.io.file_kinds import no_log
from receipt_cli.io.folded_lines import FoldedLines
from receipt_cli.io.pipe import widen
from receipt_cli.io.source import BLOCK, SPOOLED, Source, Stream
from receipt_cli.io.times_file import TimesWriter
from receipt_cli.scan.arrivals import Arrivals, LiveArrivals, find_arrivals
from receipt_cli.scan.segment import Segment

PIECE = 8 << 20
"""Most bytes read at a time."""
SEAM = 256
"""Bytes before the read position that are compared to detect a rewritten file."""


class Tail(ABC):
    """One log that may still grow."""

    waits_on: Sequence[int] = ()
    """Descriptors that become readable with more output; empty for a file, which must be polled."""
    ended = False
    """Whether no more output can follow."""

    @abstractmethod
    def read(self) -> list[bytes]:
        """Return the appended bytes, at most ``PIECE``; [] without any. Raises ``OSError``."""

    def lost(self) -> str | None:
        """Return how the file was replaced or rewritten, or None; after that, the new file is read from its start."""
        return None

    def size(self) -> int:
        """Return the bytes that the log has now, and had before anybody saw them come."""
        return 0

    def written_at(self) -> float:
        """Return the time of the last bytes read, in seconds since 1970."""
        return time.time()

    @abstractmethod
    def close(self) -> None:
        """Close the log."""


def open_tail(path: str) -> Tail:
    """Return the tail of the log at ``path`` from its first byte; ``-`` is stdin. Raises ``InputError``."""
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", where="stdin")
        descriptor = sys.stdin.fileno()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError("--follow needs the name of a file", why="standard input is a file", try_="name it instead of -")
        return PipeTail(descriptor, ours=False)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise no_log(path) from error
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError("cannot read the log", where=path, why=why) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return FileTail(path, descriptor)
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return PipeTail(descriptor, ours=True)
    os.close(descriptor)
    raise InputError("is not a file or a pipe", where=path, try_="name one log file, or - for a pipe")


class FileTail(Tail):
    """A regular file. It never ends by itself: the caller decides when the job is over."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._offset = 0
        self._seam = b""
        self._stamp = (0, 0)

    def read(self) -> list[bytes]:
        """Return the bytes appended since the last call."""
        blocks: list[bytes] = []
        room = PIECE
        while room > 0 and (block := os.read(self._descriptor, min(BLOCK, room))):
            blocks.append(block)
            room -= len(block)
            self._offset += len(block)
            self._seam = (self._seam + block[-SEAM:])[-SEAM:]
        return blocks

    def size(self) -> int:
        """Return the size of the file."""
        return os.fstat(self._descriptor).st_size

    def written_at(self) -> float:
        """Return the time at which the file was last written to."""
        return os.fstat(self._descriptor).st_mtime

    def lost(self) -> str | None:
        """Compare inode, size and the last bytes read with the file; a deleted file is kept."""
        if self._replaced():
            what = "was replaced"
        else:
            status = os.fstat(self._descriptor)
            stamp = (status.st_size, status.st_mtime_ns)
            if stamp == self._stamp:
                return None
            self._stamp = stamp
            if status.st_size < self._offset:
                what = "was truncated"
            elif os.pread(self._descriptor, len(self._seam), self._offset - len(self._seam)) != self._seam:
                what = "was written anew"
            else:
                return None
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        what = f"{what} after {self._offset} bytes"
        self._offset, self._seam = 0, b""
        return what

    def _replaced(self) -> bool:
        """Switch to another, non-empty file that now has this name; return whether there was one."""
        try:
            now, then = os.stat(self._path), os.fstat(self._descriptor)
            if (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino) or not (now.st_size and stat.S_ISREG(now.st_mode)):
                return False
            fresh = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # the name is gone, but our file is still open
            return False
        os.close(self._descriptor)
        self._descriptor = fresh
        return True

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class PipeTail(Tail):
    """A pipe, a socket or a terminal."""

    def __init__(self, descriptor: int, *, ours: bool) -> None:
        """Read from ``descriptor``, which ``close`` closes if it is ``ours``. No other reader may use it."""
        self.waits_on = (descriptor,)
        self._ours = ours
        widen(descriptor)

    def read(self) -> list[bytes]:
        """Return the bytes written since the last call."""
        blocks: list[bytes] = []
        room = PIECE
        while room > 0 and not self.ended and select.select(self.waits_on, [], [], 0)[0]:
            try:
                block = os.read(self.waits_on[0], min(BLOCK, room))
            except BlockingIOError:  # another reader was faster
                break
            except OSError:  # a terminal that was hung up
                block = b""
            self.ended = not block
            blocks += [block] if block else []
            room -= len(block)
        return blocks

    def close(self) -> None:
        """Close the pipe, if it is ours."""
        if self._ours:
            with contextlib.suppress(OSError):
                os.close(self.waits_on[0])


class Followed(Source):
    """The part of a log read so far, as a finished source."""

    def __init__(self, path: str, *, once: bool) -> None:
        """``once``: the bytes of ``path`` can be read only once, and are kept for a second reading."""
        super().__init__(path, later=True)
        if once:
            self._spool = tempfile.SpooledTemporaryFile(SPOOLED)  # noqa: SIM115  # closed by close()
        self._once = once

    def add(self, block: bytes) -> None:
        """Append a block. Raises ``InputError`` and ``UsageError`` if the first block is not text."""
        if not self.size_bytes:
            self._refuse(block[:HEAD])
            self._refuse_tar(block)
            packed = compression_of(block[:HEAD])
            if packed is not None:
                raise UsageError(f"{self.name} is compressed with {packed}", why="--follow reads text", try_="leave --follow out")
        self._hash(block)
        self.size_bytes += len(block)
        if self._spool is not None:
            self._spool.seek(0, os.SEEK_END)  # a second reading may have moved the position
            self._keep(block)
        elif not self._once:
            self._limit = self.size_bytes


class Growth:
    """The fold of the part of a log read so far."""

    def __init__(
        self, path: str, plan: Plan, *, once: bool, workers: int | None = None, coming: LiveArrivals | None = None
    ) -> None:
        """Read ``path`` by ``plan``; ``once``: its bytes can be read only once; ``coming`` holds the times at which lines came.

        ``workers`` processes read a log again that no grammar recognised.
        """
        self._coming = coming
        self.source = Followed(path, once=once)
        self._stream = Stream((self.source,), (Path(path).name,))
        self._plan = plan
        self._workers = workers
        self._unpacker = Unpacker()
        self._folded = FoldedLines()
        self._copied = CopiedLines()
        self._stretch = Segment()

    @property
    def size_bytes(self) -> int:
        """Bytes read."""
        return self.source.size_bytes

    @property
    def line_count(self) -> int:
        """Line ends read."""
        return self._stretch.body.lines + self._stretch.head_end.count(b"\n") + self._folded.kept_lines + self._copied.kept_lines

    def add(self, blocks: Sequence[bytes], now: float = 0.0) -> None:
        """Append blocks, which were read at ``now`` of the monotonic clock. Raises as ``Followed.add``."""
        for block in blocks:
            self.source.add(block)
        if self._coming is not None:
            self._coming.add(blocks, now)
        whole = (self._folded.feed(self._unpacker.feed(block)) for block in blocks)
        self._stretch = self._with(self._stretch, list(map(self._copied.feed, whole)))

    def _rest(self) -> list[bytes]:
        """Return the held-back text as if the log ended here."""
        open_end, lines = self._folded.rest(self._unpacker.rest())
        text, copies = self._copied.rest(open_end)
        self.source.report_fold(lines)
        self.source.report_copies(copies)
        self.source.emptied = self._unpacker.emptied
        return [text]

    def _with(self, stretch: Segment, blocks: Sequence[bytes]) -> Segment:
        return self._plan.engine.merge(stretch, self._plan.engine.scan(blocks))

    def snapshot(self, *, timed: bool = False) -> Reading:
        """Return the reading of the log as if it ended here; it may grow afterwards. Raises ``ReceiptError``.

        Only an unrecognised log is read again. If ``timed``, records without stamps have the time at which they were read.
        """
        self.source.listener = self._coming.until_now() if timed and self._coming is not None else None
        return self._read(self._with(_copied(self._stretch), self._rest()))

    def finish(self, *, times: bool = True) -> Reading:
        """Return the reading of the whole log; nothing can be fed after this. ``times``: with those of the file beside it.

        Raises ``ReceiptError``, ``InputError`` for an empty log.
        """
        if not self.size_bytes:
            raise InputError("the log is empty", where=self.source.name)
        self.source.listener = self._arrivals() if times else None
        return self._read(self._with(self._stretch, self._rest()))

    def _arrivals(self) -> Arrivals | None:
        """Return the times beside the log, which have heard the bytes that were read; None without any."""
        found = find_arrivals(self.source.path)
        if found is None:
            return None
        digest, missing = sha256(), self.size_bytes
        try:
            with open(self.source.path, "rb") as file:
                while missing and (block := file.read(min(BLOCK, missing))):
                    found.hear(block, digest)
                    digest.update(block)
                    missing -= len(block)
        except OSError:
            return None
        return found if not missing and digest.hexdigest() == self.source.sha256 else None

    def _read(self, segment: Segment) -> Reading:
        return self._plan.read(gathered_from(self._plan.engine, segment, self._stream), self._workers)


class Following:
    """A log that is read as it grows: its ``growth``, and the record of when its output came."""

    def __init__(
        self, path: str, plan: Plan, tail: Tail, pause_s: float, workers: int | None, *, timed: bool, recorded: bool
    ) -> None:
        """Take over ``tail``, which is looked at every ``pause_s``.

        ``timed``: figures of the growing log may use when it was read; ``recorded``: a file beside it keeps that.
        """
        self.tail = tail
        self._path, self._plan, self._pause_s, self._workers, self._timed = path, plan, pause_s, workers, timed
        self._recorder = begin_recording(path, pause_s) if recorded else None
        self.growth = self._begun()

    def _begun(self) -> Growth:
        now, size = time.monotonic(), self.tail.size()
        coming = LiveArrivals(size, self._pause_s, now, time.time()) if self._timed else None
        return Growth(self._path, self._plan, once=bool(self.tail.waits_on), workers=self._workers, coming=coming)

    def lost(self) -> str | None:
        """Return how the file was replaced or rewritten, or None; after that, the growth is that of the new file."""
        what = self.tail.lost()
        if what is not None:
            self.growth = self._begun()
            if self._recorder is not None:
                self._recorder.abandon()
                self._recorder = None
        return what

    def read(self) -> list[bytes]:
        """Add what was appended to the growth, and return it. Raises ``OSError`` and as ``Growth.add``."""
        blocks, now = self.tail.read(), time.monotonic()
        if blocks:
            self.growth.add(blocks, now)
        if self._recorder is not None:
            self._recorder.add(blocks, now)
        return blocks

    def close(self) -> None:
        """End the record, and close the log."""
        if self._recorder is not None:
            self._recorder.close(time.monotonic())
        with contextlib.suppress(OSError):
            self.tail.close()


def _copied(segment: Segment) -> Segment:
    """Return a copy that shares the memory of large columns; it must be consumed before the original grows."""
    columns: list[PickleBuffer] = []
    rest = pickle.dumps(segment, protocol=5, buffer_callback=columns.append)
    copied: Segment = pickle.loads(rest, buffers=[column.raw() for column in columns])
    return copied


class Recorder:
    """Writes the times of a log's growth, from its first growth on; what the log had before gets none."""

    def __init__(self, log: IO[bytes], times: str, pause_s: float) -> None:
        """Begin with the present end of the open file ``log``, which is looked at every ``pause_s``."""
        self._log, self._times, self._pause_s = log, times, pause_s
        self._old = self._skipped = os.fstat(log.fileno()).st_size
        self._writer: TimesWriter | None = None
        self._failed = False

    def add(self, blocks: Sequence[bytes], now: float) -> None:
        """Note that these bytes of the log, read from its beginning on, were read at ``now``."""
        for block in blocks:
            old = min(self._skipped, len(block))
            self._skipped -= old
            if len(block) > old:
                self._begin(now)
            if self._writer is not None:
                self._writer.add(memoryview(block)[old:], now)
        if self._writer is not None:
            self._writer.tick(now)

    def _begin(self, now: float) -> None:
        """Begin the file with what was read just before ``now``; do without one if it cannot be written."""
        if self._writer is None and not self._failed:
            self._failed = os.path.lexists(self._times)  # meanwhile the job's own wrapper writes it
        if self._writer is None and not self._failed:
            try:
                self._writer = TimesWriter(
                    self._times,
                    self._log.fileno(),
                    append=True,
                    pause_s=self._pause_s,
                    now=now,
                    wall=time.time(),
                    known=self._old,
                )
            except OutputError:
                self._failed = True

    def close(self, now: float) -> None:
        """End the file, and close the log."""
        if self._writer is not None:
            self._writer.close(now, ended=False)
        self._log.close()

    def abandon(self) -> None:
        """Delete the file: the log is another one now."""
        self.close(time.monotonic())
        if self._writer is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._times)


def begin_recording(path: str, pause_s: float) -> Recorder | None:
    """Return what records the growth of the log at ``path``, looked at every ``pause_s``; None if it cannot, or need not."""
    times = os.path.join(os.path.dirname(path), times_name(os.path.basename(path)))
    if os.name != "nt" and times == f"{path}.times" and not os.path.lexists(times):
        with contextlib.suppress(OSError):
            return Recorder(open(path, "rb"), times, pause_s)  # closed by close()
    return None
