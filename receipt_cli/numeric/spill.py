"""Columns beyond a shared limit in unlinked temporary files; long columns processed in pieces.

If memory is short, the system can drop the pages of a file, but not a process's own. If the disk is full or no temporary
file can be made, a buffer stays in memory.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from mmap import PAGESIZE, mmap
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet, finalize

import numpy as np

from receipt_cli.errors import UsageError
from receipt_cli.patterns import compile_later

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Integers, Mask


Kind = TypeVar("Kind", bound="np.generic")

VARIABLE = "RECEIPT_MEMORY"
"""Environment variable of the limit: ``512MiB``, ``4GB``, or bytes."""
BOUND = 64 << 20
"""Default limit of column bytes in memory."""
SHOWN = 8 << 20
"""Bytes of file-backed columns read before their pages are released to the system's cache."""
HUGE = 2 << 20
"""Bytes of a huge page, which replaces 512 page faults by one; buffers larger than half of it request huge pages."""
TOUCHED = 1 << 16
"""Bytes that the system maps at one access."""
GROWTH = 4
"""Buffers grow by at least 1 / ``GROWTH`` of their size."""
_WRITTEN = 1 << 16
"""Bytes collected for one write: a call for every few rows takes five times as long."""
_SIZE = compile_later(r"\s*([0-9]{1,15}(?:\.[0-9]{1,3})?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)

_held = 0
"""Bytes of memory held by all buffers; files do not count."""
_shown = 0
"""Bytes of file-backed buffers read since pages were last released."""
_mapped = 0
"""Result of ``_count_mapped`` when pages were last released."""
_statm = 0, -1
"""A process id, and the open file with that process's memory use."""
_filed: WeakSet[mmap] = WeakSet()
"""Memory maps of file-backed buffers; arrays may keep one alive after its buffer is gone."""


def bound() -> int:
    """Return the limit of all buffers in memory, in bytes. Raises ``UsageError``."""
    stated = os.environ.get(VARIABLE, "")
    if not stated.strip():
        return BOUND
    found = _SIZE.fullmatch(stated)
    if found is None:
        raise UsageError(f"{VARIABLE} is not a size", why=repr(stated)[:80], try_=f"{VARIABLE}=1GiB")
    power = " KMGT".index(found[2].upper() or " ")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


class SpillBuffer:
    """``size`` bytes, zero at first, that keep their content when they grow.

    Arrays from ``view`` stay valid after growth, but may show the old content.
    """

    __slots__ = ("__weakref__", "_at", "_counted", "_file", "_map", "_waiting", "size")

    def __init__(self, size: int) -> None:
        """Take ``size`` bytes, rounded up to whole pages. Raises ``UsageError`` if ``RECEIPT_MEMORY`` is not a size."""
        self.size = 0
        self._counted = 0
        self._file: IO[bytes] | None = None
        self._map: mmap | None = None
        self._waiting = bytearray()  # unwritten bytes for offset `_at` of the file
        self._at = 0
        self.grow(size)

    @property
    def on_disk(self) -> bool:
        """Whether the bytes are in a file."""
        return self._file is not None

    def grow(self, size: int) -> None:
        """Grow to at least ``size`` bytes."""
        if size <= self.size:
            return
        self.flush()
        step = HUGE if size > HUGE // 2 else PAGESIZE
        size = -(-max(size, self.size + self.size // GROWTH) // step) * step
        if self._file is None and _held + size - self.size > bound():
            self._file = _temporary()
        if self._file is None or not self._on_disk(size):
            self._in_memory(size)
        self.size = size

    def write(self, at: int, data: bytes | memoryview) -> None:
        """Put bytes at offset ``at``, inside the buffer. Earlier views show them after ``flush``."""
        if at != self._at + len(self._waiting):
            self.flush()
        if self._file is None or (not self._waiting and len(data) >= _WRITTEN):
            self._put(at, data)
            return
        if not self._waiting:
            self._at = at
        self._waiting += data
        if len(self._waiting) >= _WRITTEN:
            self.flush()

    def flush(self) -> None:
        """Flush buffered writes."""
        if self._waiting:
            waiting, self._waiting = self._waiting, bytearray()
            self._put(self._at, waiting)

    def _put(self, at: int, data: bytes | bytearray | memoryview) -> None:
        assert self._map is not None
        if self._file is None or not _written(self._file, at, data):
            self._map[at : at + len(data)] = data

    def numbers(self, code: str, start: int, count: int) -> memoryview:
        """Return as ``view`` does, without numpy, for an array type code."""
        assert self._map is not None
        if self._file is not None:
            self.flush()
            show(8 * count)
        return memoryview(self._map).cast(code)[start : start + count]  # type: ignore[call-overload, no-any-return]

    def view(self, dtype: type[Kind], start: int, count: int) -> NDArray[Kind]:
        """Return a view of ``count`` eight-byte numbers from number ``start`` on."""
        return np.frombuffer(self.numbers("q", start, count), dtype)

    def _on_disk(self, size: int) -> bool:
        """Resize the file to ``size`` bytes and move the content there; return whether that worked."""
        assert self._file is not None
        descriptor = self._file.fileno()
        done = self.size if self._map is not None and not self._counted else 0
        try:
            _allocate(descriptor, done, size - done)  # reserve disk space: a write to a mapped file cannot fail safely
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
        small = self.size < HUGE <= size  # resizing would keep its small pages
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
        """Let the system move the pages if it can and no view of them exists; return whether it did."""
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
        """Keep the bytes counted as held while a view of them exists, even after the buffer is gone."""
        assert self._map is not None
        _hold(self._counted)
        finalize(self._map, _hold, -self._counted).atexit = False

    def __del__(self) -> None:
        """Give the bytes back as soon as no view of them exists."""
        self._count(0)
        if self._file is not None:
            self._file.close()


def _hold(size: int) -> None:
    global _held
    _held += size


def show(size: int = TOUCHED) -> None:
    """Count ``size`` bytes read from files, by default one access; after ``SHOWN`` of them, release the pages of all files.

    Nothing is released while few of these bytes are in the process.
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
    """Return the bytes of files that are mapped into this process; None if the system does not report it."""
    global _statm
    process = os.getpid()
    try:
        if _statm[0] != process:
            _statm = process, os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_statm[1], 128, 0).split()[2]) * PAGESIZE
    except (AttributeError, OSError):
        return None


def _give_back(shown: mmap) -> None:
    """Release a file's pages from the process; access reads them back."""
    if hasattr(shown, "madvise"):
        from mmap import MADV_DONTNEED

        with contextlib.suppress(OSError, ValueError):
            shown.madvise(MADV_DONTNEED)


def _written(file: IO[bytes], at: int, data: bytes | bytearray | memoryview) -> bool:
    """Write to a file by a call, three times as fast as through mapped pages; return whether it worked."""
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
    """Reserve ``length`` more bytes of a file from ``start`` on. Raises ``OSError`` if the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, length)
        return
    os.lseek(descriptor, start, os.SEEK_SET)
    for begin in range(0, length, HUGE):
        os.write(descriptor, bytes(min(HUGE, length - begin)))


PIECE = 1 << 17
"""Numbers of a long column processed together."""
NEAR = PIECE << 2
"""Greatest distance of the rows of a long column that are read together."""
_LARGE = 1 << 20
"""Fewest bytes of a temporary column that are worth a file."""


def scratch(dtype: type[Kind], count: int) -> NDArray[Kind]:
    """Return ``count`` eight-byte numbers, uninitialised: in a file if they are many and would exceed the memory limit of all
    buffers."""
    return _scratch(dtype, count)[0]


def _scratch(dtype: type[Kind], count: int) -> tuple[NDArray[Kind], SpillBuffer | None]:
    """Return the array of ``scratch``, and the buffer that has it if that is in a file, else None."""
    size = 8 * count
    if size < _LARGE:
        return np.empty(count, dtype), None

    buffer = SpillBuffer(size)
    made = buffer.view(dtype, 0, count)
    if buffer.on_disk:
        return made, buffer
    buffer.lend()
    return made, None


def gathered(dtype: type[Kind], count: int, parts: Iterable[NDArray[Any]]) -> NDArray[Kind]:
    """Return the ``count`` numbers of all ``parts``, in order."""
    made, buffer = _scratch(dtype, count)
    at = 0
    for part in parts:
        if buffer is None:
            made[at : at + len(part)] = part
        elif len(part):
            buffer.write(8 * at, np.ascontiguousarray(part, dtype).data.cast("B"))
        at += len(part)
    if buffer is not None:
        buffer.flush()
    return made


def pieces(values: NDArray[Kind], size: int = PIECE) -> Iterator[NDArray[Kind]]:
    """Yield ``values`` (eight bytes each) in pieces of ``size``; release pages of files meanwhile."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
        show(8 * size)


def slices(count: int) -> Iterator[slice]:
    """Yield slices of ``count`` rows; release pages of files meanwhile."""
    for begin in range(0, count, PIECE):
        yield slice(begin, min(count, begin + PIECE))
        show(8 * PIECE)


def picked(values: NDArray[Kind], rows: Integers) -> NDArray[Kind]:
    """Return ``values`` (eight bytes each) at ascending ``rows``; release pages of files meanwhile."""
    if values.nbytes < _LARGE or not len(rows):
        return values[rows]

    def parts() -> Iterator[NDArray[Kind]]:
        for piece in pieces(rows):
            begins = range(int(piece[0]), int(piece[-1]) + 1, NEAR)
            for begin, end in pairwise([*np.searchsorted(piece, begins).tolist(), len(piece)]):
                yield values[piece[begin:end]]
                show(8 * NEAR)

    return gathered(values.dtype.type, len(rows), parts())


def extremes(values: Integers) -> tuple[int, int]:
    """Return the smallest and the largest of ``values``, at least one."""
    ends = [(int(piece.min()), int(piece.max())) for piece in pieces(values)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def ascends(values: NDArray[Any]) -> bool:
    """Return whether each of ``values`` (eight bytes) is larger than the one before."""
    last = None
    for piece in pieces(values):
        if not bool((piece[1:] > piece[:-1]).all()) or (last is not None and not piece[0] > last):
            return False
        last = piece[-1]
    return True


def rises(values: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (offset, differences of successive ``values``) in pieces."""
    for part in slices(len(values) - 1):
        yield part.start, values[part.start + 1 : part.stop + 1] - values[part]


def take(values: NDArray[Kind], wanted: Callable[[NDArray[Kind]], Mask], count: int) -> NDArray[Kind]:
    """Return the ``count`` entries of ``values`` (eight bytes each) for which ``wanted`` is true, in order."""
    return gathered(values.dtype.type, count, (piece[wanted(piece)] for piece in pieces(values)))
