"""Columns that grow: in any state, in memory or on disk, they hold what a list would."""

import errno
import math
import os
import pickle
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.errors import UsageError
from receipt_cli.numeric import column as cells
from receipt_cli.numeric import spill
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import SpillBuffer, bound

MANY = 3 * cells.FEW


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    before = spill._held
    yield
    assert spill._held == before


def column(values: list[float]) -> Cells[float]:
    return Cells.of(np.array(values, np.float64))


@given(
    pieces=st.lists(
        st.tuples(
            st.sampled_from(["append", "array", "block", "equal"]),
            st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=6),
        ),
        max_size=12,
    ),
    few=st.integers(0, 12),
    shift=st.sampled_from([0, 7]),
    memory=st.sampled_from(["1GiB", "0"]),
)
@settings(max_examples=300, deadline=None)
def test_a_column_holds_what_a_list_would(pieces: list[tuple[str, list[int]]], few: int, shift: int, memory: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "FEW", few)
        patch.setenv(spill.VARIABLE, memory)
        found: Cells[int] = Cells("q")
        wanted: list[int] = []
        for how, values in pieces:
            if how == "append":
                for value in values:
                    found.append(value)
                wanted += values
            else:
                if how == "equal":
                    values = [values[0]] * len(values)
                more: Cells[int] = Cells("q", values) if how == "array" else Cells.of(np.array(values, np.int64))
                found.extend(more, shift)
                wanted += [value + shift for value in values]
        for one in (found, pickle.loads(pickle.dumps(found)), pickle.loads(pickle.dumps(found, 5))):
            assert list(one) == wanted == one.whole().tolist() and len(one) == len(wanted)
            assert [one[i] for i in range(-len(wanted), len(wanted))] == wanted * 2
            assert list(one[1:5:2]) == wanted[1:5:2]
            assert np.asarray(one).dtype == np.int64


def test_equal_values_take_no_memory_and_keep_their_bits() -> None:
    strange = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\x7f")[0]
    for value in (math.nan, strange, -0.0, 2.5):
        found: Cells[float] = Cells("d")
        for _ in range(10):
            found.extend(column([value] * cells.FEW))
        assert spill._held == 0 and len(found) == 10 * cells.FEW
        found.extend(column([0.0]))
        assert spill._held > 0
        assert {struct.pack("<d", each) for each in found[:-1]} == {struct.pack("<d", value)}
        assert struct.pack("<d", found[-1]) == bytes(8)
        del found


def test_a_view_outlives_what_grows() -> None:
    found: Cells[float] = Cells("d")
    found.extend(column([float(n) for n in range(MANY)]))
    before = found.whole()
    found.extend(column([float(n) for n in range(100 * MANY)]))
    assert before.tolist() == list(range(MANY))
    assert found.whole()[MANY:].tolist() == list(range(100 * MANY))


def test_what_is_lent_is_copied() -> None:
    lent = bytearray(struct.pack(f"<{MANY}d", *range(MANY)))
    head = pickle.dumps(column([float(n) for n in range(MANY)]), protocol=5, buffer_callback=[].append)
    borrowed: Cells[float] = pickle.loads(head, buffers=[lent])
    found: Cells[float] = Cells("d")
    found.extend(borrowed)
    lent[:] = bytes(len(lent))
    assert found.whole().tolist() == list(range(MANY))


def test_beyond_the_bound_columns_go_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(spill.VARIABLE, "1MiB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    columns = [SpillBuffer(256 * 1024) for _ in range(4)]
    assert not any(each.on_disk for each in columns) and spill._held == 1 << 20
    for number, each in enumerate(columns):
        each.view(np.int64, 0, 1000)[...] = number
        each.grow(1 << 20)
    assert all(each.on_disk for each in columns[:3])
    assert spill._held <= 1 << 20
    columns[0].grow(8 << 20)
    assert [each.view(np.int64, 0, 1000).tolist() for each in columns] == [[n] * 1000 for n in range(4)]
    assert columns[0].view(np.int64, 1000, 1000).tolist() == [0] * 1000
    assert os.listdir(tmp_path) == []  # a file without a name


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="what a process holds is read from /proc")
def test_the_pages_of_files_are_given_back_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spill.VARIABLE, "0")
    columns = [SpillBuffer(8 << 20) for _ in range(12)]
    views = [column.view(np.int64, 0, 1 << 20) for column in columns]
    for number, view in enumerate(views):
        view[...] = number
    before = _resident()
    for column in columns:
        column.view(np.int64, 0, 1 << 20)
    assert before - _resident() > 48 << 20
    assert [(int(view.min()), int(view.max())) for view in views] == [(n, n) for n in range(12)]


def _resident() -> int:
    with open("/proc/self/smaps_rollup", encoding="ascii") as rollup:
        return next(1024 * int(line.split()[1]) for line in rollup if line.startswith("Rss:"))


def cut_short(descriptor: int, data: Any, at: int) -> int:
    return max(0, len(data) - 1)


def refused(descriptor: int, data: Any, at: int) -> NoReturn:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("write", [None, cut_short, refused], ids=["call", "cut short", "refused"])
@pytest.mark.parametrize("memory", ["1GiB", "0"])
def test_long_columns_are_written_and_gathered(memory: str, write: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spill.VARIABLE, memory)
    monkeypatch.setattr(spill, "_LARGE", 1 << 12)
    if write is not None:
        monkeypatch.setattr(os, "pwrite", write)
    found: Cells[float] = Cells("d")
    view = None
    for begin in range(0, 300_000, 50_000):  # beyond a large page
        found.extend_bytes(np.arange(begin, begin + 50_000, dtype=np.float64).tobytes())
        view = view if view is not None else found.whole()
    assert view is not None and view.tolist() == list(range(len(view)))
    values, odd = found.whole(), np.arange(1, 300_000, 2)
    assert (values == np.arange(300_000)).all()
    assert (spill.picked(values, odd) == odd).all()
    assert (spill.take(values, lambda piece: piece % 2 == 1, len(odd)) == odd).all()
    del found, view, values


@pytest.mark.parametrize("memory", ["1GiB", "0"])
def test_what_is_written_is_shown_wherever_it_waits(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spill.VARIABLE, memory)
    monkeypatch.setattr(spill, "_WRITTEN", 400)
    held, wanted = SpillBuffer(8 * 1000), np.zeros(1000, np.int64)
    for start, count in [(0, 7), (7, 20), (27, 30), (500, 3), (503, 90), (2, 4), (593, 1), (594, 60)]:
        wanted[start : start + count] = np.arange(start, start + count) + 1
        held.write(8 * start, wanted[start : start + count].tobytes())
        if start in (27, 2):
            assert held.view(np.int64, 0, 1000).tolist() == wanted.tolist()
    held.grow(1 << 20)
    assert held.numbers("q", 0, 1000).tolist() == wanted.tolist()


def no_space(descriptor: int, start: int, length: int) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


def no_file(**_: Any) -> IO[bytes]:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_a_full_disk_gives_back_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spill.VARIABLE, "0")
    grown = SpillBuffer(4096)
    grown.view(np.int64, 0, 512)[...] = np.arange(512)
    assert grown.on_disk
    monkeypatch.setattr(os, "posix_fallocate", no_space)
    grown.grow(1 << 20)
    assert not grown.on_disk and grown.size >= 1 << 20
    assert grown.view(np.int64, 0, 512).tolist() == list(range(512))


@pytest.mark.parametrize(("module", "name", "fails"), [(os, "posix_fallocate", no_space), (tempfile, "TemporaryFile", no_file)])
def test_where_no_file_can_be_columns_are_in_memory(
    module: object, name: str, fails: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(spill.VARIABLE, "0")
    monkeypatch.setattr(module, name, fails)
    made = SpillBuffer(4096)
    made.grow(1 << 20)
    assert not made.on_disk and spill._held == made.size


@pytest.mark.parametrize(
    ("stated", "size"),
    [("", 64 << 20), ("512MiB", 512 << 20), ("1.5GB", 1_500_000_000), ("4096", 4096), ("2k", 2000), (" 1gib", 1 << 30), ("0", 0)],
)
def test_the_bound_is_what_the_environment_says(stated: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spill.VARIABLE, stated)
    assert bound() == size


@pytest.mark.parametrize("stated", ["much", "-1", "1.5.5", "GiB", "1 XB"])
def test_a_bound_that_is_no_size_is_refused(stated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spill.VARIABLE, stated)
    with pytest.raises(UsageError, match=spill.VARIABLE):
        bound()
