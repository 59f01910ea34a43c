"""A path or stdin → blocks of decompressed bytes, with their digest and size; plain, gzip, zstd, xz and bzip2."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from receipt_cli.errors import InputError
from receipt_cli.model import Problem

BLOCK = 1 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2"}


class Source:
    """One log to read once. ``name`` is for messages only and never reaches a derived value.

    After ``blocks`` is exhausted, ``sha256``, ``size_bytes`` and ``problems`` are of the decompressed bytes, and
    ``changed`` says whether a file grew or shrank while it was read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "stdin" if path == "-" else path
        self.size_bytes = 0
        self.problems: list[Problem] = []
        self.changed = False
        self.compression: str | None = None
        self._digest = hashlib.sha256()
        self._limit: int | None = None
        self._file = self._open()

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes given so far."""
        return self._digest.hexdigest()

    @property
    def plain_size(self) -> int | None:
        """Bytes of an uncompressed regular file, or None: what can be read in ranges."""
        return self._limit if self.compression is None else None

    def _open(self) -> IO[bytes]:
        if self.path == "-":
            return sys.stdin.buffer
        try:
            file = open(self.path, "rb")  # noqa: SIM115  # closed by blocks()
        except IsADirectoryError as error:
            raise InputError("is a directory, not a log", where=self.path, try_="name one log file") from error
        except FileNotFoundError as error:
            raise InputError("no such log", where=self.path) from error
        except (OSError, ValueError) as error:
            raise InputError("cannot read the log", where=self.path, why=str(error)) from error
        status = os.fstat(file.fileno())
        if stat.S_ISDIR(status.st_mode):
            file.close()
            raise InputError("is a directory, not a log", where=self.path, try_="name one log file")
        if stat.S_ISREG(status.st_mode):
            self._limit = status.st_size
            head = file.read(8)
            file.seek(0)
            self.compression = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
        return file

    def blocks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes in blocks of about 1 MiB and close the file. Raises ``InputError``.

        A compressed stream that ends early or is damaged gives what could be read, and a problem. Of a file that is
        still being written, the bytes that it had when it was opened.
        """
        try:
            for block in self._read():
                self._digest.update(block)
                self.size_bytes += len(block)
                yield block
            if self._limit is not None:
                self.changed = os.fstat(self._file.fileno()).st_size != self._limit
        except OSError as error:
            raise InputError("cannot read the log", where=self.name, why=str(error)) from error
        finally:
            if self.path != "-":
                self._file.close()

    def _read(self) -> Iterator[bytes]:
        if self.path == "-":
            yield from self._stdin()
        elif self.compression is None:
            yield from self._plain()
        else:
            yield from self._decompressed(cast("IO[bytes]", self._decompressor(self._file)))

    def _plain(self) -> Iterator[bytes]:
        left = self._limit
        while left is None or left > 0:
            block = self._file.read(BLOCK if left is None else min(BLOCK, left))
            if not block:
                return
            left = None if left is None else left - len(block)
            yield block

    def _stdin(self) -> Iterator[bytes]:
        head = self._file.read(BLOCK)
        self.compression = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
        joined = _Joined(head, self._file)
        if self.compression is None:
            while block := joined.read(BLOCK):
                yield block
        else:
            yield from self._decompressed(cast("IO[bytes]", self._decompressor(joined)))

    def _decompressor(self, file: Any) -> Any:
        if self.compression == "gzip":
            import gzip

            return gzip.GzipFile(fileobj=file, mode="rb")
        if self.compression == "xz":
            import lzma

            return lzma.LZMAFile(file)
        if self.compression == "bzip2":
            import bz2

            return bz2.BZ2File(file)
        import zstandard

        return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, read_across_frames=True)

    def _decompressed(self, stream: IO[bytes]) -> Iterator[bytes]:
        errors: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error)
        if self.compression == "zstd":
            import zstandard

            errors = (*errors, zstandard.ZstdError)
        elif self.compression == "xz":
            import lzma

            errors = (*errors, lzma.LZMAError)
        small = 64 * 1024  # so that a damaged stream gives all that stands before the damage
        while True:
            try:
                block = stream.read1(small) if hasattr(stream, "read1") else stream.read(small)
            except errors as error:
                detail = f"the {self.compression} stream ends early or is damaged: {error}"
                self.problems.append(Problem("compressed_stream_damaged", None, detail, ""))
                return
            if not block:
                return
            yield block


class _Joined:
    """The bytes already read from a pipe, then the rest of it."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self.head = head
        self.rest = rest

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes."""
        if self.head:
            part, self.head = (self.head, b"") if size < 0 else (self.head[:size], self.head[size:])
            return part
        return self.rest.read(size)

    def readable(self) -> bool:
        """True: what a decompressor asks."""
        return True

    def seekable(self) -> bool:
        """False: a pipe."""
        return False

    closed = False
