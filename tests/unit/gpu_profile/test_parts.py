"""Parts of a recorded session: its files, lines of any length, names without end, and pairs of events."""

import gzip
import hashlib
import io
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from receipt_cli.errors import InputError
from receipt_cli.gpu_profile import stream as lines_module
from receipt_cli.gpu_profile.activity import Scopes, Timings
from receipt_cli.gpu_profile.devices import Inventory, Samples
from receipt_cli.gpu_profile.files import gaps, is_session, list_session
from receipt_cli.gpu_profile.stream import Dictionary, Lines, StreamProblems, exact_total


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(gzip.compress(b"{}\n") if name.endswith(".gz") else b"{}\n")
    return folder


def test_windows_come_by_channel_and_number_the_open_one_last(tmp_path: Path) -> None:
    fill(tmp_path, "system.log", "device.10.log", "device.2.log.gz", "device.log", "notes.txt", ".device.3.log")
    assert [w.name for w in list_session(tmp_path, StreamProblems()).windows] == [
        "device.2.log.gz",
        "device.10.log",
        "device.log",
        "system.log",
    ]
    assert is_session(tmp_path)
    assert not is_session(tmp_path / "nowhere")


def test_missing_windows_are_those_below_the_last_known_one(tmp_path: Path) -> None:
    fill(tmp_path, "device.2.log", "scope.1.log", ".gpufl-transport-loss.scope.3.json")
    assert gaps(list_session(tmp_path, StreamProblems())) == {("device", 1), ("scope", 2), ("scope", 3)}


def test_a_sidecar_announces_its_window_and_a_broken_one_is_a_problem(tmp_path: Path) -> None:
    fill(tmp_path, "device.1.log")
    sidecar = {"payload_file": "device.1.log", "payload_bytes": 3, "payload_crc32": -1}
    (tmp_path / ".gpufl-window.device.1.json").write_text(json.dumps(sidecar))
    (tmp_path / ".gpufl-window.device.2.json").write_text("[")
    problems = StreamProblems()
    listing = list_session(tmp_path, problems)
    assert listing.sidecars == {"device.1.log": {"payload_bytes": 3, "payload_crc32": None}}
    assert gaps(listing) == {("device", 2)}
    assert [p.kind for p in problems.first] == ["sidecar_unreadable"]


def test_a_folder_above_a_session_names_it(tmp_path: Path) -> None:
    fill(tmp_path, "run/device.log")
    with pytest.raises(InputError, match="no file of a session") as caught:
        list_session(tmp_path, StreamProblems())
    assert caught.value.try_ == f"receipt import {tmp_path / 'run'}"


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


def test_nested_scopes_are_paired_from_the_inside() -> None:
    scopes = Scopes()
    for begins, time in ((True, 0), (True, 10), (False, 15), (False, 40)):
        assert scopes.add_event({"name": "step", "ts_ns": time}, begins=begins)
    assert not scopes.add_event({"name": "step", "ts_ns": 50}, begins=False)
    assert (scopes.by_name.of["step"].shortest, scopes.by_name.of["step"].longest) == (5, 40)


def test_devices_without_numbers_are_counted_by_their_place() -> None:
    inventory = Inventory()
    listed = [{"name": "H100", "uuid": "a", "vendor": "NVIDIA"}, {"name": "H200", "uuid": "b"}]
    inventory.add({"cuda_static_devices": listed}, "device.log", Samples())
    assert ([inventory.name(n) for n in (0, 1, 2)], inventory.number_of("b")) == (["H100", "H200", None], 1)
    assert (inventory.vendors, inventory.place) == ({"NVIDIA"}, ("device.log", "/cuda_static_devices"))
    inventory.add({"cuda_static_devices": [{"name": "L4"}]}, "device.log", Samples())
    assert inventory.name(0) is None  # two names
