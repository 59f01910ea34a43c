"""Growable buffers: in memory up to a shared limit, then in unlinked temporary files.

A file's pages are written out and given back when memory is short; those of the process are not. Where the disk is full
or there is no place for a temporary file, the memory is the process's after all.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from mmap import PAGESIZE, mmap
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet, finalize

from receipt_cli.errors import UsageError
from receipt_cli.lazy_pattern import compile_later

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Integers, Mask

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
TOUCHED = 1 << 16
"""Bytes that the system maps where one is looked at."""
PIECE = 1 << 17
"""Numbers of a long column that are looked at together."""
_LARGE = 8 << 20
"""Bytes for a while that are worth a file."""
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

    __slots__ = ("__weakref__", "_counted", "_file", "_map", "size")

    def __init__(self, size: int) -> None:
        """Take ``size`` bytes, rounded up to whole pages. Raises ``UsageError`` where the bound is not a size."""
        self.size = 0
        self._counted = 0
        self._file: IO[bytes] | None = None
        self._map: mmap | None = None
        self.grow(size)

    @property
    def on_disk(self) -> bool:
        """True when the bytes are in a file."""
        return self._file is not None

    def grow(self, size: int) -> None:
        """Hold ``size`` bytes at least."""
        if size <= self.size:
            return
        step = HUGE if size > HUGE // 2 else PAGESIZE
        size = -(-max(size, self.size + self.size // GROWTH) // step) * step
        if self._file is None and _held + size - self.size > bound():
            self._file = _temporary()
        if self._file is None or not self._on_disk(size):
            self._in_memory(size)
        self.size = size

    def write(self, at: int, data: bytes | memoryview) -> None:
        """Put bytes at byte ``at``; there is room for them."""
        assert self._map is not None
        if self._file is None or not _written(self._file, at, data):
            self._map[at : at + len(data)] = data

    def numbers(self, code: str, start: int, count: int) -> memoryview:
        """Return as ``view``, without numpy, for the code of an array."""
        assert self._map is not None
        if self._file is not None:
            show(8 * count)
        return memoryview(self._map).cast(code)[start : start + count]  # type: ignore[call-overload, no-any-return]

    def view(self, dtype: type[Kind], start: int, count: int) -> NDArray[Kind]:
        """Return ``count`` numbers of eight bytes from number ``start`` on, as a view."""
        import numpy as np

        assert self._map is not None
        if self._file is not None:
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
        global _held
        _held += size - self._counted
        self._counted = size

    def __del__(self) -> None:
        """Give the bytes back, once no view of them lives."""
        self._count(0)
        if self._file is not None:
            self._file.close()


def show(size: int = TOUCHED) -> None:
    """Count bytes of files that are looked at, by default at one place; where they are many, give back all pages of files.

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


def scratch(dtype: type[Kind], count: int) -> NDArray[Kind]:
    """Return ``count`` numbers of eight bytes that are still to be written: in a file where they are many and would
    exceed the bound beside what all rooms, and other such numbers, hold."""
    return _scratch(dtype, count)[0]


def _scratch(dtype: type[Kind], count: int) -> tuple[NDArray[Kind], Room | None]:
    """Return as ``scratch``, and the room where it is in a file."""
    import numpy as np

    global _held
    size = 8 * count
    if size < _LARGE:
        return np.empty(count, dtype), None
    room = Room(size)
    assert room._map is not None
    made = room.view(dtype, 0, count)
    if room.on_disk:
        return made, room
    _held += size  # the array outlives the room
    finalize(room._map, _returned, size).atexit = False
    return made, None


def gathered(dtype: type[Kind], count: int, parts: Iterable[NDArray[Any]]) -> NDArray[Kind]:
    """Return the ``count`` numbers of all ``parts``, in order."""
    import numpy as np

    made, room = _scratch(dtype, count)
    at = 0
    for part in parts:
        if room is None:
            made[at : at + len(part)] = part
        elif len(part):
            room.write(8 * at, np.ascontiguousarray(part, dtype).data.cast("B"))
        at += len(part)
    return made


def _returned(size: int) -> None:
    global _held
    _held -= size


def pieces(values: NDArray[Kind], size: int = PIECE) -> Iterator[NDArray[Kind]]:
    """Yield ``values`` (of eight bytes) in pieces of ``size``; the pages of files are given back meanwhile."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
        show(8 * size)


def slices(count: int, before: int = 0) -> Iterator[slice]:
    """Yield ``count`` rows in pieces, each with so many rows ``before`` it; the pages of files are given back meanwhile."""
    for begin in range(0, count, PIECE):
        yield slice(max(0, begin - before), min(count, begin + PIECE))
        show(8 * PIECE)


def picked(values: NDArray[Kind], rows: Integers) -> NDArray[Kind]:
    """Return ``values`` (of eight bytes) at ``rows``, ascending; the pages of files are given back meanwhile."""
    if len(rows) <= PIECE:
        return values[rows]

    def parts() -> Iterator[NDArray[Kind]]:
        for begin in range(0, len(rows), PIECE):
            piece = rows[begin : begin + PIECE]
            yield values[piece]
            show(8 * int(piece[-1] - piece[0]))

    return gathered(values.dtype.type, len(rows), parts())


def joined(parts: Sequence[list[float] | NDArray[Any]], dtype: type[Kind]) -> NDArray[Kind]:
    """Return the numbers (of eight bytes) of all ``parts``, in order; of a single one no copy is made."""
    import numpy as np

    filled = [part for part in map(np.asarray, parts) if len(part)]
    if len(filled) == 1 and filled[0].dtype == dtype:
        return filled[0]
    return gathered(dtype, sum(map(len, filled)), (piece for part in filled for piece in pieces(part)))


def ascends(values: Integers) -> bool:
    """True when each of ``values`` (of eight bytes) is larger than the one before."""
    last = None
    for piece in pieces(values):
        if not bool((piece[1:] > piece[:-1]).all()) or (last is not None and not piece[0] > last):
            return False
        last = piece[-1]
    return True


def rises(values: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield the rises from one of ``values`` to the next in pieces, and how many precede each piece."""
    for part in slices(len(values) - 1):
        yield part.start, values[part.start + 1 : part.stop + 1] - values[part]


def take(values: NDArray[Kind], wanted: Callable[[NDArray[Kind]], Mask], count: int) -> NDArray[Kind]:
    """Return the ``count`` of ``values`` (of eight bytes) for which ``wanted`` is true, in order."""
    return gathered(values.dtype.type, count, (piece[wanted(piece)] for piece in pieces(values)))


def _written(file: IO[bytes], at: int, data: bytes | memoryview) -> bool:
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
