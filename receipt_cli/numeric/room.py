"""Growable buffers: in memory up to a shared limit, then in unlinked temporary files.

A file's pages are written out and given back when memory is short; those of the process are not. Where the disk is full
or there is no place for a temporary file, the memory is the process's after all.
"""

from __future__ import annotations

import contextlib
import os
import re
from mmap import PAGESIZE, mmap
from typing import IO, TYPE_CHECKING, TypeVar
from weakref import WeakSet, finalize

from receipt_cli.errors import UsageError
from receipt_cli.patterns import compile_later

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = TypeVar("Kind", bound="np.generic")

VARIABLE = "RECEIPT_MEMORY"
"""The environment variable that sets the bound: ``512MiB``, ``4GB``, or bytes."""
BOUND = 64 << 20
"""Bytes of columns that stay in memory if it is not set."""
SHOWN = 8 << 20
"""Bytes of columns in files that are looked at before their pages are the system's alone again: they stay in its cache."""
HUGE = 2 << 20
"""Bytes of a large page: one fault instead of 512. Rooms of more than half of that ask for them."""
GROWTH = 4
"""A room that is too small grows by at least a part in so many."""
_WRITTEN = 1 << 16
"""Bytes that are written to a file at once: a call for each few rows takes five times as long."""
_SIZE = compile_later(r"\s*([0-9]{1,15}(?:\.[0-9]{1,3})?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)

_held = 0
"""Bytes of memory that all rooms hold; what is in files does not count."""
_shown = 0
"""Bytes of rooms in files that were looked at since their pages were given back."""
_mapped = 0
"""Of ``_count_mapped``, when pages were given back last."""
_statm = 0, -1
"""A process, and the open file in which the system says what is in it."""
_filed: WeakSet[mmap] = WeakSet()
"""The memory of rooms in files: it may outlive them, while arrays show it."""


def bound() -> int:
    """Return how many bytes all rooms may hold in memory. Raises ``UsageError``."""
    stated = os.environ.get(VARIABLE, "")
    if not stated.strip():
        return BOUND
    found = _SIZE.fullmatch(stated)
    if found is None:
        raise UsageError(f"{VARIABLE} is not a size", why=repr(stated)[:80], try_=f"{VARIABLE}=1GiB")
    power = " KMGT".index(found[2].upper() or " ")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


class Room:
    """``size`` bytes that keep their content when they grow. Zero at first.

    Arrays from ``view`` stay valid after it grows; they may show the content from before.
    """

    __slots__ = ("__weakref__", "_at", "_counted", "_file", "_map", "_waiting", "size")

    def __init__(self, size: int) -> None:
        """Take ``size`` bytes, rounded up to whole pages. Raises ``UsageError`` where the bound is not a size."""
        self.size = 0
        self._counted = 0
        self._file: IO[bytes] | None = None
        self._map: mmap | None = None
        self._waiting = bytearray()  # for byte `_at` of the file
        self._at = 0
        self.grow(size)

    @property
    def on_disk(self) -> bool:
        """True when the bytes are in a file."""
        return self._file is not None

    def grow(self, size: int) -> None:
        """Hold ``size`` bytes at least."""
        if size <= self.size:
            return
        self.settle()
        step = HUGE if size > HUGE // 2 else PAGESIZE
        size = -(-max(size, self.size + self.size // GROWTH) // step) * step
        if self._file is None and _held + size - self.size > bound():
            self._file = _temporary()
        if self._file is None or not self._on_disk(size):
            self._in_memory(size)
        self.size = size

    def write(self, at: int, data: bytes | memoryview) -> None:
        """Put bytes at byte ``at``; there is room for them. A view from before shows them after ``settle``."""
        if at != self._at + len(self._waiting):
            self.settle()
        if self._file is None or (not self._waiting and len(data) >= _WRITTEN):
            self._put(at, data)
            return
        if not self._waiting:
            self._at = at
        self._waiting += data
        if len(self._waiting) >= _WRITTEN:
            self.settle()

    def settle(self) -> None:
        """Put what waits for more of it where it belongs."""
        if self._waiting:
            waiting, self._waiting = self._waiting, bytearray()
            self._put(self._at, waiting)

    def _put(self, at: int, data: bytes | bytearray | memoryview) -> None:
        assert self._map is not None
        if self._file is None or not _written(self._file, at, data):
            self._map[at : at + len(data)] = data

    def numbers(self, code: str, start: int, count: int) -> memoryview:
        """Return as ``view``, without numpy, for the code of an array."""
        assert self._map is not None
        if self._file is not None:
            self.settle()
            show(8 * count)
        return memoryview(self._map).cast(code)[start : start + count]  # type: ignore[call-overload, no-any-return]

    def view(self, dtype: type[Kind], start: int, count: int) -> NDArray[Kind]:
        """Return ``count`` numbers of eight bytes from number ``start`` on, as a view."""
        import numpy as np

        assert self._map is not None
        if self._file is not None:
            self.settle()
            show(8 * count)
        return np.frombuffer(self._map, dtype, count, 8 * start)

    def _on_disk(self, size: int) -> bool:
        """Let the file be ``size`` bytes and hold what was there; return False where it cannot."""
        assert self._file is not None
        descriptor = self._file.fileno()
        done = self.size if self._map is not None and not self._counted else 0
        try:
            _allocate(descriptor, done, size - done)  # what is written to a mapped file later must have its place
            made = mmap(descriptor, size)
        except (OSError, ValueError):
            self._file.close()
            self._file = None
            return False
        if self._counted:
            assert self._map is not None
            held = memoryview(self._map)[: self.size]
            if not _written(self._file, 0, held):
                made[: self.size] = held
        self._map = made
        self._count(0)
        _filed.add(made)
        return True

    def _in_memory(self, size: int) -> None:
        small = self.size < HUGE <= size  # its pages would stay as they are
        if self._map is None or not self._counted or small or not self._resized(size):
            made = _anonymous(size)
            _ask_for_large_pages(made, size)
            if self._map is not None:
                made[: self.size] = memoryview(self._map)[: self.size]
            self._map = made
        else:
            _ask_for_large_pages(self._map, size)
        self._count(size)

    def _resized(self, size: int) -> bool:
        """Let the system move the pages, where it can and no view of them lives."""
        assert self._map is not None
        try:
            self._map.resize(size)
        except (BufferError, OSError, SystemError, ValueError):
            return False
        return True

    def _count(self, size: int) -> None:
        _hold(size - self._counted)
        self._counted = size

    def lend(self) -> None:
        """Let the bytes count as held until no view of them lives, however long the room does."""
        assert self._map is not None
        _hold(self._counted)
        finalize(self._map, _hold, -self._counted).atexit = False

    def __del__(self) -> None:
        """Give the bytes back, once no view of them lives."""
        self._count(0)
        if self._file is not None:
            self._file.close()


def _hold(size: int) -> None:
    global _held
    _held += size


def show(size: int) -> None:
    """Count bytes of files that are looked at; where they are many, give back all pages of files.

    Few of the bytes may be needed of what is shown: none are given back as long as few are in the process.
    """
    global _shown, _mapped
    _shown += size
    if _shown >= SHOWN:
        _shown = 0
        mapped = _count_mapped()
        if mapped is None or mapped - _mapped >= SHOWN:
            for shown in list(_filed):
                _give_back(shown)
            _mapped = _count_mapped() or 0


def _count_mapped() -> int | None:
    """Return how many bytes of files are in this process; None where the system does not say."""
    global _statm
    process = os.getpid()
    try:
        if _statm[0] != process:
            _statm = process, os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_statm[1], 128, 0).split()[2]) * PAGESIZE
    except (AttributeError, OSError):
        return None


def _give_back(shown: mmap) -> None:
    """Take the pages of a file out of the process; they come back as they are looked at."""
    if hasattr(shown, "madvise"):
        from mmap import MADV_DONTNEED

        with contextlib.suppress(OSError, ValueError):
            shown.madvise(MADV_DONTNEED)


def _written(file: IO[bytes], at: int, data: bytes | bytearray | memoryview) -> bool:
    """Write to a file by a call, which takes a third of the time of a mapped file's pages; False where that cannot be."""
    try:
        return os.pwrite(file.fileno(), data, at) == len(data)
    except (AttributeError, OSError):
        return False


def _anonymous(size: int) -> mmap:
    try:
        from mmap import MAP_ANONYMOUS, MAP_PRIVATE
    except ImportError:  # Windows
        return mmap(-1, size)
    return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)


def _ask_for_large_pages(memory: mmap, size: int) -> None:
    if size >= HUGE and hasattr(memory, "madvise"):
        from mmap import MADV_HUGEPAGE

        with contextlib.suppress(OSError):
            memory.madvise(MADV_HUGEPAGE)


def _temporary() -> IO[bytes] | None:
    import tempfile  # four milliseconds that a small log does not need

    try:
        return tempfile.TemporaryFile(prefix="receipt-", buffering=0)
    except OSError:
        return None


def _allocate(descriptor: int, start: int, length: int) -> None:
    """Give a file ``length`` bytes more from ``start`` on, for good. Raises ``OSError`` where there is no place."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, length)
        return
    os.lseek(descriptor, start, os.SEEK_SET)
    for begin in range(0, length, HUGE):
        os.write(descriptor, bytes(min(HUGE, length - begin)))
