"""A path or stdin → blocks of decompressed bytes, with their digest and size; plain, gzip, zstd, xz and bzip2."""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import IO, Any, cast

from receipt_cli.errors import InputError
from receipt_cli.io.compression import HEAD, compression_of, decompress, is_bomb
from receipt_cli.io.copied_lines import NO_COPIES, Copies, blanked, left_out
from receipt_cli.io.discovery import HEAD_BYTES
from receipt_cli.io.encoding import as_utf8
from receipt_cli.io.envelopes import Unpacker, unpacked
from receipt_cli.io.file_kinds import recognise
from receipt_cli.io.line_range import lines_of
from receipt_cli.io.pipe import Pipe
from receipt_cli.io.prefetch import Ahead
from receipt_cli.lazy_dataclass import dataclass
from receipt_cli.problems import Problem

BLOCK = 1 << 20
DIRECT = 4 << 20
"""Bytes of text that are read as they are asked for; of a longer log, the rest is read ahead, in threads of its own."""
KEPT = 8 << 20
"""Bytes that are taken and given back once before many blocks are: what the C library of Linux had to give back in one piece it
takes from its own store from then on, of which it keeps twice as much. Else each block comes in pages to be made first."""
SPOOLED = 16 << 20
"""Bytes of a pipe that are kept in memory for a second look; more go to a temporary file."""
_TAR_AT = 257

Progress = Callable[[int, int], None]
"""Is told how many bytes of the file, as it is stored, have been read, and how many there are."""


class Source:
    """One log to read once. ``name`` is for messages only and never reaches a derived value.

    After ``blocks`` is exhausted, ``sha256``, ``size_bytes`` and ``problems`` are of the decompressed bytes, and
    ``changed`` says whether the file was written to while it was read; ``copies`` are the lines that repeat others,
    ``emptied`` those that are parts of a later one.
    """

    def __init__(
        self,
        path: str,
        progress: Progress | None = None,
        *,
        origin: Source | None = None,
        later: bool = False,
        document: bool = False,
    ) -> None:
        """Open ``path`` (``-`` is stdin), or read again what ``origin`` kept of it. Raises ``InputError``.

        With ``later`` the file is opened when its first block is asked for: of many files only one is open at a time. A
        ``document`` may be one of this program, which is no log.
        """
        self.path = path
        self._may_be_document = document
        self.name = "stdin" if path == "-" else path
        self.size_bytes = 0
        self.problems: list[Problem] = []
        self.changed = False
        self.copies = NO_COPIES
        self.emptied: Sequence[int] = ()
        self.native: Any = None  # the compiled kernel, with which ``blocks`` gives the same sooner
        self._known: Copies | None = None  # once they were searched, whoever reads the same text again
        self.compression: str | None = None
        self.progress = progress
        self._digest = hashlib.sha256()
        self._limit: int | None = None
        self._stored = 0
        self._head = b""
        self._spool: IO[bytes] | None = None
        self._pipe: Pipe | None = None
        self._blocks: Iterator[bytes] = iter(())
        self._ahead: Ahead[bytes] | None = None
        self._lines: tuple[int, int | None] = (0, None)
        self._origin = origin  # which must not be gone before what it kept was read
        self._ours = origin is None and path != "-"
        self._opened: IO[bytes] | None = origin._spool if origin is not None else None
        if not later:
            self._begin()

    @property
    def sha256(self) -> str:
        """Hex digest of the text; of all of it once ``blocks`` is exhausted."""
        return self._digest.hexdigest()

    @property
    def lines_before(self) -> int:
        """How many lines of the log precede the first block: those that ``excerpt`` leaves out."""
        return self._lines[0]

    @property
    def line_end(self) -> int | None:
        """The last of the lines that ``excerpt`` gives, None where that is the last of the log."""
        return self._lines[1]

    @property
    def plain_size(self) -> int | None:
        """Bytes of an uncompressed regular file, or None: what can be read in ranges."""
        return self.stored_size if self.compression is None else None

    @property
    def stored_size(self) -> int | None:
        """Bytes of a regular file as it is stored, or None, also for some of its lines."""
        return self._limit if self._lines == (0, None) else None

    @property
    def _file(self) -> IO[bytes]:
        assert self._opened is not None
        return self._opened

    def _begin(self) -> None:
        if self._opened is None:
            self._opened = self._open()
            if self._limit is None:
                import tempfile  # four milliseconds that a file does not need

                self._spool = tempfile.SpooledTemporaryFile(SPOOLED)  # noqa: SIM115  # a pipe gives its bytes once
                self._pipe = Pipe.of(self._opened)

    def _open(self) -> IO[bytes]:
        if self.path == "-":
            if sys.stdin is None:  # closed by whoever started us
                raise InputError("standard input is closed", where="stdin")
            return sys.stdin.buffer
        try:
            file = open(self.path, "rb")  # noqa: SIM115  # closed by blocks()
        except IsADirectoryError as error:
            raise InputError("is a directory, not a log", where=self.path, try_="name one log file") from error
        except FileNotFoundError as error:
            raise InputError("no such log", where=self.path) from error
        except (OSError, ValueError) as error:
            raise InputError("cannot read the log", where=self.path, why=_reason(error)) from error
        try:
            self._look(file)
        except OSError as error:
            file.close()
            raise InputError("cannot read the log", where=self.path, why=_reason(error)) from error
        except InputError:
            file.close()
            raise
        return file

    def _look(self, file: IO[bytes]) -> None:
        """Refuse what can be no log, and learn the size and the compression of a file."""
        self._status = status = os.fstat(file.fileno())
        if stat.S_ISBLK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not file.isatty()):
            raise InputError("is a device, not a log", where=self.path)
        if stat.S_ISREG(status.st_mode):
            self._limit = status.st_size or None  # some file systems give 0 for what they make on the fly
            head = file.read(HEAD_BYTES)
            file.seek(0)
            self.compression = compression_of(head)
            self._refuse(head)

    def _refuse(self, head: bytes) -> None:
        kind = recognise(head)
        if kind is not None and not (kind.is_document and self._may_be_document):
            raise InputError(f"is {kind.what}, not a log", where=self.name, try_=kind.way.format(shlex.quote(self.name)))

    def _refuse_tar(self, text: bytes) -> None:
        if text[_TAR_AT : _TAR_AT + 5] == b"ustar":
            raise InputError("is a tar archive, not a log", where=self.name, try_="tar -xOf FILE LOG | receipt parse -")

    def blocks(self) -> Iterator[bytes]:
        """Yield the decompressed text in blocks of about 1 MiB and close the file. Raises ``InputError``.

        Text in another encoding than UTF-8 becomes UTF-8 (see ``encoding``), and lines that a collector packed are unpacked
        (see ``envelopes``), and exact copies of lines become empty (see ``copied_lines``); digest and size stay those of its own
        bytes.

        A compressed stream that ends early or is damaged gives what could be read, and a problem. Of a file that is
        still being written, the bytes that it had when it was opened. Threads that read ahead end with the iterator; where
        that may be late, ``close`` ends them.
        """
        self._begin()
        try:
            with closing(self._ready()) as ready:
                text = left_out(ready, self.report_copies) if self._known is None else blanked(ready, self._known)
                for block in text if self._lines == (0, None) else lines_of(text, *self._lines):
                    self._tell()
                    yield block
                self._tell()
            if self._limit is not None:
                now = os.fstat(self._file.fileno())
                self.changed = (now.st_size, now.st_mtime_ns) != (self._status.st_size, self._status.st_mtime_ns)
        except OSError as error:
            raise InputError("cannot read the log", where=self.name, why=_reason(error)) from error
        finally:
            self._close_file()

    def report_copies(self, copies: Copies) -> None:
        """Keep the copies of the text that was read so far, also for whoever reads it again."""
        self.copies = self._known = copies

    @property
    def empty_lines(self) -> Sequence[int]:
        """The numbers of the lines that are empty in place of what the log has there, ascending."""
        return sorted({*self.copies.lines, *self.emptied}) if self.emptied else self.copies.lines

    @property
    def _may_wait(self) -> bool:
        """Whether another thread may read: a wait for bytes that may never come must have a way to end."""
        return self._limit is not None or self._pipe is not None or self._origin is not None

    def _ready(self) -> Generator[bytes, None, None]:
        """Yield the text as UTF-8 and unpacked: the first of it at once; the rest is made ready beside whoever asks for it.

        One thread reads and decompresses, another takes the digest and unpacks.
        """
        unpacker = Unpacker(self.native)
        self.emptied = unpacker.emptied
        self._blocks = reading = self._read()
        blocks = unpacked(as_utf8(self._hashed(), self.problems), unpacker)
        for block in blocks:
            yield block
            if self.size_bytes >= DIRECT and self._may_wait:
                break
        else:
            return
        bytearray(KEPT)  # see there
        ready: Iterator[bytes] = blocks
        try:
            self._blocks = self._ahead = read = Ahead(reading, interrupt=None if self._pipe is None else self._pipe.stop)
            ready = self._ahead = Ahead(blocks, depth=1, interrupt=read.close)
        except RuntimeError:  # the system gives no thread more
            pass
        try:
            yield from ready
        finally:
            if self._ahead is not None:
                self._ahead.close()

    def _hashed(self) -> Generator[bytes, None, None]:
        """Yield what is read, counted and with its digest taken."""
        while (block := next(self._blocks, None)) is not None:
            if not self.size_bytes:
                self._refuse_tar(block)
            self.size_bytes += len(block)
            self._digest.update(block)
            yield block

    def _tell(self) -> None:
        """Tell how much of the file was read; from the thread of whoever asks for blocks."""
        if self.progress is not None and self._limit is not None:
            self.progress(self._stored, self._limit)

    def reopen(self) -> Source | None:
        """Return a source of the same stored bytes, to read them again once they were read; None where that cannot be.

        Raises ``InputError``. Whether they are the same bytes, only the digest tells.
        """
        if self._limit is None:
            if self._origin is not None:
                return self._origin.excerpt(*self._lines)
            if self._spool is None:
                return None
            self._spool.seek(0)
            again = Source(self.path, origin=self)
        else:
            again = Source(self.path)
            again._limit = self._limit
            again._lines = self._lines
        if self._known is not None:
            again.report_copies(self._known)
        return again

    def excerpt(self, before: int, end: int | None = None) -> Source | None:
        """Return as ``reopen`` a source of some lines: without the first ``before``, up to line ``end``, the last if None.

        Digest and size are those of the text up to the end of the block with the last of them.
        """
        if (again := self.reopen()) is not None:
            again._lines = (before, end)
        return again

    def close(self) -> None:
        """End what reads ahead, close the file, if it is ours, and give up what was kept of a pipe."""
        self._close_file()
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def __del__(self) -> None:
        """Give up what was kept of a pipe."""
        if self.__dict__.get("_spool") is not None or self.__dict__.get("_pipe") is not None:
            self.close()

    def _close_file(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._ours and self._opened is not None:
            self._opened.close()

    def _read(self) -> Generator[bytes, None, None]:
        if self._limit is None:
            self._head = self._stored_bytes(HEAD)  # a pipe cannot be wound back
            self.compression = compression_of(self._head)
            self._refuse(self._head)
        if self.compression is None:
            while block := self._stored_bytes(BLOCK):
                yield block
            return
        wrong = yield from self._unpacked(self.compression)
        if wrong is not None and not self.size_bytes:
            raise InputError("cannot be decompressed", where=self.name, why=wrong)
        if wrong is not None:
            self.problems.append(Problem("compressed_stream_damaged", None, wrong, ""))

    def _unpacked(self, compression: str) -> Generator[bytes, None, str | None]:
        """Yield the text, and return as ``decompress``. Raises ``InputError`` for what unpacks without end."""
        given = 0
        pieces = decompress(compression, self._stored_bytes)
        try:
            while True:
                piece = next(pieces)
                given += len(piece)
                if is_bomb(given, self._stored):
                    why = f"{given:,} bytes of text from {self._stored:,} (possible decompression bomb)"
                    way = f"{compression} -dc {self.name} | receipt parse -" if self._ours else ""
                    raise InputError("decompresses to far more than a log does", where=self.name, why=why, try_=way)
                yield piece
        except StopIteration as end:
            return cast("str | None", end.value)

    def _stored_bytes(self, size: int) -> bytes:
        """Return ``size`` bytes of what is stored, fewer only at the end."""
        head, self._head = self._head[:size], self._head[size:]
        if self._limit is not None:
            size = min(size, self._limit - self._stored)
        fresh = self._wait(size - len(head))
        if self._spool is not None:
            self._keep(fresh)
        block = head + fresh
        self._stored += len(block)
        return block

    def _keep(self, block: bytes) -> None:
        assert self._spool is not None
        try:
            self._spool.write(block)
        except OSError:  # no room for a second look
            self._spool.close()
            self._spool = None

    def _wait(self, size: int) -> bytes:
        if self._pipe is not None:
            return self._pipe.read(size)
        pieces: list[bytes] = []
        while size > 0 and (piece := self._file.read(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


@dataclass(frozen=True, slots=True)
class Stream:
    """What one process wrote: the parts of its log, the oldest first.

    ``names`` are the files' names as a receipt lists them, ``rank`` what they say of the rank, ``certain`` when a word
    of the name says that it is one, ``attempt`` the launcher's number of the attempt.
    """

    parts: tuple[Source, ...]
    names: tuple[str, ...] = ()
    rank: int | None = None
    certain: bool = False
    attempt: int | None = None


def _reason(error: Exception) -> str:
    """Return why without the path, which stands beside it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
