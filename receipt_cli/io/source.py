"""A path or stdin → blocks of decompressed text, with digest and size; plain, gzip, zstd, xz and bzip2."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from receipt_cli.errors import InputError
from receipt_cli.io.compression import HEAD, compression_of, decompress_log
from receipt_cli.io.copied_lines import NO_COPIES, Copies, blanked, left_out
from receipt_cli.io.discovery import HEAD_BYTES
from receipt_cli.io.encoding import as_utf8
from receipt_cli.io.envelopes import Unpacker, unpacked
from receipt_cli.io.file_kinds import recognise, refusing
from receipt_cli.io.folded_lines import Fold, FoldedLines, unfolded
from receipt_cli.io.pipe import Ahead, Pipe
from receipt_cli.problems import Problem

if TYPE_CHECKING:
    from hashlib import _Hash


MOST = 1024
"""Most marks kept; at the limit, every second one is dropped."""
MOST_HELD = 1 << 12
"""Most bytes of an unfinished line that a mark keeps."""


class Mark(NamedTuple):
    """A mark between two blocks: bytes and lines before it, their digest, and a function that makes an unpacker to go on."""

    size: int
    lines: int
    digest: _Hash
    unpacker: Callable[[Any], Unpacker]


class Marks:
    """Marks in a plain UTF-8 file, in order: each run of a log can be read without the runs before it."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self._noted = False

    def noting(self, unpacker: Unpacker, place: Callable[[], tuple[int, _Hash] | None]) -> Callable[[bytes], None] | None:
        """Return a function that marks the end of each block, on the first call only; then None.

        ``place`` returns the bytes read of the file and their digest, or None if no mark may be set.
        """
        if self._noted:
            return None
        self._noted = True
        passed = seen = 0
        apart = 1

        def note(block: bytes) -> None:
            nonlocal passed, seen, apart
            passed, seen = passed + 1, seen + len(block)
            here = place()
            if here is None or here[0] != seen or passed % apart or unpacker.held > MOST_HELD:
                return  # more was read ahead to detect the encoding, or the mark would keep much of a long line
            self._marks.append(Mark(seen, unpacker.line_count, here[1].copy(), unpacker.mark()))
            if len(self._marks) == MOST:
                del self._marks[::2]
                apart *= 2

        return note

    def last_before(self, line: int) -> Mark | None:
        """Return the last mark with at most ``line`` lines before it, or None."""
        at = bisect_right(self._marks, line, key=lambda mark: mark.lines)
        return self._marks[at - 1] if at else None


def lines_of(text: Iterator[bytes], before: int, end: int | None, *, passed: int = 0) -> Iterator[bytes]:
    """Yield lines ``before`` + 1 to ``end`` (None: the last); ``text`` begins after line ``passed``."""
    lines = passed
    for block in text:
        first, lines = lines, lines + block.count(b"\n")
        if lines < before:
            continue
        stop = len(block) if end is None or lines < end else _behind(block, end - first)
        start = _behind(block, before - first) if first < before else 0
        yield block[start:stop]
        if end is not None and lines >= end:
            return


def numbered_lines(
    source: Source, longest: int | None = None, *, open_end: bool = True
) -> Generator[tuple[int, bytes], None, None]:
    """Yield the number, from 1, and the text of each line of ``source``, at most ``longest`` bytes of each; close the source.

    A last line without a line end is given only with ``open_end``. Raises ``InputError``.
    """
    number, begun, size = 0, list[bytes](), 0
    try:
        for block in source.blocks():
            *lines, rest = block.split(b"\n")
            for line in lines:
                number += 1
                yield number, (b"".join((*begun, line)) if begun else line)[:longest]
                begun, size = [], 0
            if rest and (longest is None or size < longest):
                begun.append(rest)
                size += len(rest)
        if begun and open_end:
            yield number + 1, b"".join(begun)[:longest]
    finally:
        source.close()


def _behind(block: bytes, count: int) -> int:
    """Return the position after ``count`` line ends."""
    rest = block.split(b"\n", count)[count]
    return len(block) - len(rest)


class KeptText:
    """Text blocks, each with the number of ``problems`` known before it; and the last shown excerpt."""

    def __init__(self, blocks: Sequence[tuple[bytes, int]], problems: Sequence[Problem]) -> None:
        self._blocks = blocks
        self._problems = [*problems]
        self._shown: tuple[object, Sequence[Problem], Sequence[bytes]] | None = None

    def ready(self, problems: list[Problem]) -> Iterator[bytes]:
        """Yield the text; append each problem to ``problems`` at the block at which it was found."""
        for block, known in self._blocks:
            problems += self._problems[len(problems) : known]
            yield block
        problems += self._problems[len(problems) :]

    def note(self, part: object, problems: Sequence[Problem], blocks: Sequence[bytes]) -> None:
        """Keep the ``blocks`` shown of ``part``, which identifies the lines and the copies left out."""
        self._shown = part, [*problems], blocks

    def shown(self, part: object, problems: list[Problem]) -> Sequence[bytes] | None:
        """Return the blocks kept for ``part`` and set ``problems``; None if another part was kept."""
        if self._shown is None or self._shown[0] != part:
            return None
        problems[:] = self._shown[1]
        return self._shown[2]


BLOCK = 1 << 20
DIRECT = 4 << 20
"""Bytes of text read on demand; the rest of a longer log is read ahead, in threads."""
KEPT = 8 << 20
"""Bytes allocated and freed once before many blocks are read: after it, glibc serves blocks of this size from its heap, which
keeps twice as much. Otherwise every block costs new pages."""
SPOOLED = 16 << 20
"""Bytes of a pipe kept in memory for a second reading; more go to a temporary file."""
_TAR_AT = 257


class Listener(Protocol):
    """Hears the text of a log while it is read."""

    def hear(self, block: bytes, before: _Hash | None) -> None:
        """Take the next block as it is stored, decompressed; ``before`` is the digest of the text before it."""


Progress = Callable[[int, int], None]
"""Called with the number of stored bytes read so far, and their total."""


class Source:
    """One log to read once. ``name`` is for messages only and never reaches a derived value.

    After ``blocks`` is exhausted, ``sha256``, ``size_bytes`` and ``problems`` describe the decompressed bytes; ``changed``
    is set if the file was written to meanwhile; ``copies`` are lines that repeat others; ``emptied`` are lines joined to a
    later one.
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
        """Open ``path`` (``-`` is stdin), or read again the bytes that ``origin`` kept. Raises ``InputError``.

        With ``later`` the file is opened at its first block, so that only one of many files is open at a time. ``document``
        accepts a document of this program, which is no log.
        """
        self.path = path
        self._may_be_document = document
        self.name = "stdin" if path == "-" else path
        self.size_bytes, self.changed = 0, False
        self.problems: list[Problem] = []
        self.copies = NO_COPIES
        self.emptied: Sequence[int] = ()
        self.native: Any = None  # the compiled kernel makes ``blocks`` faster, with the same result
        self._known: Copies | None = None  # known if the same text was searched before
        self._fold: Fold | None = None  # valid if copies are known
        self._folded: Sequence[int] = ()
        self.compression: str | None = None
        self.progress = progress
        self.listener: Listener | None = None
        self._digest: _Hash | None = None
        self._limit: int | None = None
        self._stored, self._head = 0, b""
        self._spool: IO[bytes] | None = None
        self._pipe: Pipe | None = None
        self._blocks: Iterator[bytes] = iter(())
        self._ahead: Ahead[bytes] | None = None
        self._lines: tuple[int, int | None] = (0, None)
        self._marks = Marks()
        self._keeps = not later  # many files together are too large to keep
        self._kept: KeptText | None = None
        self._origin = origin  # must outlive this source: it owns the kept bytes
        self._ours = origin is None and path != "-"
        self._opened: IO[bytes] | None = origin._spool if origin is not None else None
        if not later:
            self._begin()

    @property
    def sha256(self) -> str:
        """Hex digest of the text read so far; of all of it after ``blocks`` is exhausted."""
        return (self._digest or sha256()).hexdigest()

    @property
    def lines_before(self) -> int:
        """Number of log lines before the first block, which ``excerpt`` leaves out."""
        return self._lines[0]

    @property
    def line_end(self) -> int | None:
        """Last line that ``excerpt`` gives, None for the last of the log."""
        return self._lines[1]

    @property
    def plain_size(self) -> int | None:
        """Size in bytes of an uncompressed regular file, which can be read in ranges; else None."""
        return self.stored_size if self.compression is None else None

    @property
    def stored_size(self) -> int | None:
        """Stored size in bytes of a regular file; None for a pipe or an excerpt."""
        return self._limit if self._lines == (0, None) else None

    @property
    def _file(self) -> IO[bytes]:
        assert self._opened is not None
        return self._opened

    def _begin(self) -> None:
        if self._opened is None and self._kept is None:
            with refusing(self.path, ValueError):
                self._opened = self._open()
            if self._limit is None:
                import tempfile  # four milliseconds that a file does not need

                self._spool = tempfile.SpooledTemporaryFile(SPOOLED)  # noqa: SIM115  # a pipe can be read only once
                self._pipe = Pipe.of(self._opened)

    def _open(self) -> IO[bytes]:
        if self.path == "-":
            if sys.stdin is None:  # closed by the parent process
                raise InputError("standard input is closed", where="stdin")
            return sys.stdin.buffer
        file = open(self.path, "rb")  # noqa: SIM115  # closed by blocks()
        try:
            self._look(file)
        except BaseException:
            file.close()
            raise
        return file

    def _look(self, file: IO[bytes]) -> None:
        """Refuse what cannot be a log; set the size and compression of a file."""
        self._status = status = os.fstat(file.fileno())
        if stat.S_ISBLK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not file.isatty()):
            raise InputError("is a device, not a log", where=self.path)
        if stat.S_ISREG(status.st_mode):
            self._limit = status.st_size or None  # some file systems give 0 for generated files
            head = file.read(HEAD_BYTES)
            file.seek(0)
            self.compression = compression_of(head)
            self._refuse(head)

    def _refuse(self, head: bytes) -> None:
        kind = recognise(head)
        if kind is not None and not (kind.is_document and self._may_be_document):
            raise InputError(f"is {kind.what}, not a log", where=self.name, try_=kind.way.format(quote(self.name)))

    def _refuse_tar(self, text: bytes) -> None:
        if text[_TAR_AT : _TAR_AT + 5] == b"ustar":
            raise InputError("is a tar archive, not a log", where=self.name, try_="tar -xOf FILE LOG | receipt parse -")

    def blocks(self) -> Iterator[bytes]:
        """Yield the decompressed text in blocks of about 1 MiB and close the file. Raises ``InputError``.

        Other encodings become UTF-8 (``encoding``), packed lines are unpacked (``envelopes``) and exact copies of lines become
        empty (``copied_lines``); digest and size are of the bytes before these steps.

        A compressed stream that ends early or is damaged gives the text before the fault, and a problem. A file that is still
        being written gives the bytes that it had on opening. Threads that read ahead end with the iterator, or at once with
        ``close``.
        """
        yield from self._reading(self._shown())

    def measure(self) -> Source:
        """Read all of the file only for ``sha256`` and ``size_bytes``; return the source. Raises as ``blocks`` does."""
        self._blocks = self._read()
        for _ in self._reading(self._hashed()):
            pass
        return self

    def _reading(self, text: Iterator[bytes]) -> Iterator[bytes]:
        self._begin()
        try:
            with refusing(self.name):
                yield from text
                if self._limit is not None:
                    now = os.fstat(self._file.fileno())
                    self.changed = (now.st_size, now.st_mtime_ns) != (self._status.st_size, self._status.st_mtime_ns)
        finally:
            self._close_file()

    def _shown(self) -> Iterator[bytes]:
        """Yield the text of ``blocks``: prepared text without copies, cut to the excerpt; keep that of a small log."""
        if self._kept is not None and (before := self._kept.shown((self._lines, self._known), self.problems)) is not None:
            yield from before
            return
        told: list[bytes] = []
        unpacker, passed = self._behind_mark()
        with closing(self._ready(unpacker)) as ready:
            text: Iterator[bytes] = ready
            if self._known is None:
                whole = ready if self._may_be_document else unfolded(ready, FoldedLines(), self.report_fold)
                text = left_out(whole, self.report_copies)
            elif self._fold is not None:
                text = unfolded(ready, FoldedLines(self._fold, known=True), lambda _: None)
            text = text if self._lines == (0, None) else lines_of(text, *self._lines, passed=passed)
            for block in text if self._known is None else blanked(text, self._known, self._lines[0]):
                self._tell()
                yield block
                if self.size_bytes <= BLOCK:
                    told.append(block)
            self._tell()
        if self._kept is not None:
            self._kept.note((self._lines, self._known), self.problems, told)

    def report_copies(self, copies: Copies) -> None:
        """Set the copies of this text, also for sources that read it again."""
        self.copies = self._known = copies

    def report_fold(self, lines: FoldedLines) -> None:
        """Set how lines are cut and which were joined to a later one."""
        self._fold, self._folded = lines.fold, lines.emptied

    @property
    def found(self) -> list[Problem]:
        """All problems of the text: of its bytes, and of its lines."""
        if self._fold is None:
            return [*self.problems]
        detail = f"lines are cut at {self._fold.width} columns; they are joined"
        return [*self.problems, Problem("lines_folded", None, detail, "")]

    @property
    def empty_lines(self) -> Sequence[int]:
        """Numbers of lines that are empty here but not in the log, ascending."""
        return sorted({*self.copies.lines, *self.emptied, *self._folded})

    def _ready(self, unpacker: Unpacker | None) -> Generator[bytes, None, None]:
        """Yield the text as UTF-8 and unpacked: the first ``DIRECT`` bytes on demand, the rest ahead in threads.

        One thread reads and decompresses, another hashes and unpacks.
        """
        if self._kept is not None:
            yield from self._kept.ready(self.problems)
            return
        self._blocks = reading = self._read()
        text = as_utf8(self._hashed(), self.problems) if unpacker is None else self._hashed()
        unpacker = unpacker or Unpacker(self.native)
        begun, self.emptied = self.size_bytes, unpacker.emptied
        note = self._marks.noting(unpacker, self._place) if (self.plain_size or 0) > BLOCK else None
        blocks = unpacked(text, unpacker, note)
        first: list[tuple[bytes, int]] = []
        for block in blocks:
            if self.size_bytes <= BLOCK:
                first.append((block, len(self.problems)))
            yield block
            if self.size_bytes - begun >= DIRECT and (self._limit or self._pipe or self._origin):  # only if a wait can be ended
                break
        else:
            if self._keeps and self._limit is not None and self.size_bytes <= BLOCK:
                self._kept = KeptText(first, self.problems)
            return
        first.clear()

        bytearray(KEPT)  # see ``KEPT``
        ready: Iterator[bytes] = blocks
        try:
            self._blocks = self._ahead = read = Ahead(reading, interrupt=None if self._pipe is None else self._pipe.stop)
            ready = self._ahead = Ahead(blocks, depth=1, interrupt=read.close)
        except RuntimeError:  # the system refuses another thread
            pass
        try:
            yield from ready
        finally:
            if self._ahead is not None:
                self._ahead.close()

    def _behind_mark(self) -> tuple[Unpacker | None, int]:
        """Seek to the last mark before the excerpt; return an unpacker for the text after it, and the number of lines before."""
        mark = self._marks.last_before(self._lines[0]) if self._known is not None else None
        if mark is None:
            return None, 0
        self._file.seek(mark.size)
        self._stored, self.size_bytes, self._digest = mark.size, mark.size, mark.digest.copy()
        return mark.unpacker(self.native), mark.lines

    def _place(self) -> tuple[int, _Hash] | None:
        """Return size and digest of the text read so far, or None if it is not plain UTF-8."""
        return None if self._digest is None or self.problems else (self.size_bytes, self._digest)

    def _hashed(self) -> Generator[bytes, None, None]:
        """Yield the blocks read; count and hash them."""
        while (block := next(self._blocks, None)) is not None:
            if not self.size_bytes:
                self._refuse_tar(block)
            self.size_bytes += len(block)
            if self.listener is not None:
                self.listener.hear(block, self._digest)
            self._hash(block)
            yield block

    def _hash(self, block: bytes) -> None:
        if self._digest is None:
            self._digest = sha256()
        self._digest.update(block)

    def _tell(self) -> None:
        """Report progress; runs in the consumer's thread."""
        if self.progress is not None and self._limit is not None:
            self.progress(self._stored, self._limit)

    def reopen(self) -> Source | None:
        """Return a source that reads the same stored bytes again, or None if that is impossible.

        A file may have changed meanwhile: compare digests. The text of a small file is kept. Raises ``InputError``.
        """
        if self._kept is not None:
            again = Source(self.path, later=True)
            again._kept, again._digest, again._lines = self._kept, self._digest, self._lines
            again.size_bytes, again.changed, again.emptied = self.size_bytes, self.changed, self.emptied
        elif self._limit is None:
            if self._origin is not None:
                return self._origin.excerpt(*self._lines)
            if self._spool is None:
                return None
            self._spool.seek(0)
            again = Source(self.path, origin=self)
        else:
            again = Source(self.path)
            again._limit, again._lines, again._marks, again.native = self._limit, self._lines, self._marks, self.native
        again.listener = self.listener
        if self._known is not None:
            again.report_copies(self._known)
            again._fold, again._folded = self._fold, self._folded
        return again

    def excerpt(self, before: int, end: int | None = None) -> Source | None:
        """Return as ``reopen`` a source of lines ``before`` + 1 to ``end`` (None: the last).

        Its digest and size cover the text up to the end of the block with the last of these lines.
        """
        if (again := self.reopen()) is not None:
            again._lines = (before, end)
        return again

    def close(self) -> None:
        """End reading ahead, close our own file, and delete the kept bytes of a pipe."""
        self._close_file()
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def __del__(self) -> None:
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
            self._head = self._stored_bytes(HEAD)  # a pipe cannot be rewound
            self.compression = compression_of(self._head)
            self._refuse(self._head)
        if self.compression is None:
            while block := self._stored_bytes(BLOCK):
                yield block
            return
        wrong = yield from decompress_log(self.compression, self._stored_bytes, self.name, of_file=self._ours)
        if wrong is not None and not self.size_bytes:
            raise InputError("cannot be decompressed", where=self.name, why=wrong)
        if wrong is not None:
            self.problems.append(Problem("compressed_stream_damaged", None, wrong, ""))

    def _stored_bytes(self, size: int) -> bytes:
        """Return ``size`` stored bytes, fewer only at the end."""
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
        except OSError:  # no space to keep a second copy
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


def joined(parts: Sequence[Source]) -> Source:
    """Return the only part, or a source of all parts for ``reopen`` and ``excerpt``."""
    return parts[0] if len(parts) == 1 else _JoinedParts(parts)


class _JoinedParts(Source):
    """A source of several files; its digest is computed from the digests of the parts, as in a receipt.

    Only one part is open at a time.
    """

    def __init__(self, parts: Sequence[Source]) -> None:
        super().__init__(parts[0].path, later=True)
        self._parts = parts
        self._digests: list[str] = []
        self._empty: list[int] = []

    @property
    def sha256(self) -> str:
        return digest_of(self._digests)

    @property
    def empty_lines(self) -> Sequence[int]:
        return sorted({*self._empty, *self.copies.lines})

    def blocks(self) -> Iterator[bytes]:
        text = self._text() if self._known is None else blanked(self._text(), self._known)
        yield from text if self._lines == (0, None) else lines_of(text, *self._lines)

    def _text(self) -> Iterator[bytes]:
        before = 0
        for part in self._parts:
            again = part.reopen()
            assert again is not None  # a file
            again.native = self.native
            lines = 0
            with closing(again):
                for block in again.blocks():
                    lines += block.count(b"\n")
                    yield block
            self._digests.append(again.sha256)
            self.size_bytes += again.size_bytes
            self.changed |= again.changed
            self.problems += [problem.moved(before) for problem in again.problems]
            self._empty += [before + number for number in again.empty_lines]
            before += lines

    def reopen(self) -> Source | None:
        if any(part.stored_size is None for part in self._parts):
            return None
        again = _JoinedParts(self._parts)
        again._lines = self._lines
        if self._known is not None:
            again.report_copies(self._known)
        return again


def digest_of(digests: Sequence[str]) -> str:
    """Return the digest of a log of several files: SHA-256 of their hex digests, one a line."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Stream:
    """The log of one process: its parts, oldest first.

    ``names`` are the files' names in the receipt, ``rank`` the number in them, ``certain`` if a word marks it as a rank,
    ``attempt`` the launcher's number of the attempt.
    """

    parts: tuple[Source, ...]
    names: tuple[str, ...] = ()
    rank: int | None = None
    certain: bool = False
    attempt: int | None = None
