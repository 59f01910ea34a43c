"""A session of any size is read in bounded memory: lines in blocks, names and open pairs up to a number."""

import gzip
import hashlib
import io
import zlib

import numpy as np
import pytest

from receipt_cli.gpu_profile import stream as lines_module
from receipt_cli.gpu_profile.activity import Timings
from receipt_cli.gpu_profile.stream import Dictionary, Lines, StreamProblems, exact_total


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch, block: int, pack: object) -> None:
    monkeypatch.setattr(lines_module, "BLOCK", block)
    monkeypatch.setattr(lines_module, "MAX_LINE", 10)
    monkeypatch.setattr(lines_module, "KEPT", 4)
    text = b"ab\n\n" + b"x" * 10 + b"\n" + b"0123456789+\n" + b"y" * 50 + b"\nlast"
    stored = pack(text)  # type: ignore[operator]
    read = Lines(io.BytesIO(stored))
    assert [tuple(line) for line in read] == [
        (1, b"ab", True), (2, b"", True), (3, b"x" * 10, True), (4, b"0123", False), (5, b"yyyy", False), (6, b"last", True)
    ]  # fmt: skip
    assert (read.sha256, read.size_bytes, read.line_count) == (hashlib.sha256(text).hexdigest(), len(text), 6)
    assert (read.stored_bytes, read.crc32, read.damage) == (len(stored), zlib.crc32(stored), None)


def test_a_line_without_an_end_is_cut_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "MAX_LINE", 100)
    (line,) = Lines(io.BytesIO(b"x" * 5_000_000))
    assert (len(line.data), line.whole) == (lines_module.KEPT, False)


def test_a_stream_that_unpacks_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "is_bomb", lambda given, stored: given > 100 * stored > 1000)
    read = Lines(io.BytesIO(gzip.compress(b"x" * (4 << 20)) * 4))
    assert [len(line.data) for line in read] == [read.size_bytes]
    assert read.size_bytes < 4 << 20
    assert read.damage is not None
    assert "possibly a bomb" in read.damage


def test_names_beyond_the_bound_are_together() -> None:
    timings: Timings[int] = Timings(3)
    timings.add_grouped(np.array([5, 1, 5, 9, 8, 8], np.int64), np.array([1, 2, 3, 4, 5, 6], np.int64))
    assert {key: (t.count, t.total, t.shortest, t.longest) for key, t in timings.of.items()} == {
        1: (1, 2, 2, 2), 5: (2, 4, 1, 3), 8: (2, 11, 5, 6)
    }  # fmt: skip
    assert (timings.left_out.count, timings.left_out.total) == (1, 4)


def test_a_dictionary_holds_so_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.gpu_profile.stream._MAX_CHARACTERS", 10)
    names = Dictionary("kernel_dict")
    problems = StreamProblems()
    names.update({"kernel_dict": {"1": "a" * 8, "2": "b" * 8, "3": "c", "x": "d", "4": 5}}, problems, "device.log", 1)
    assert [names.name(number) for number in range(1, 5)] == ["a" * 8, None, "c", None]
    assert problems.count == 2


@pytest.mark.parametrize("values", [[], [0], [2**62 - 1] * 4096, [2**40, 1, 2**61]])
def test_sums_beyond_64_bits_are_exact(values: list[int]) -> None:
    assert exact_total(np.array(values, np.int64)) == sum(values)


def test_problems_of_one_kind_leave_room_for_others() -> None:
    problems = StreamProblems()
    for number in range(1000):
        problems.add("a", "x", line=number)
    problems.add("b", "y")
    assert (problems.count, [p.kind for p in problems.first]) == (1001, ["a"] * 5 + ["b"])
