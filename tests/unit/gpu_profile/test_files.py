"""The files of a recorded session in a folder: windows in reading order, gaps, sidecars, and what is refused."""

import gzip
import io
import json
from pathlib import Path

import pytest

from receipt_cli.errors import InputError
from receipt_cli.gpu_profile.files import gaps, is_session, list_session, list_streams
from receipt_cli.gpu_profile.stream import StreamProblems


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


def test_of_two_files_of_a_window_the_one_with_content_is_read(tmp_path: Path) -> None:
    fill(tmp_path, "device.1.log.gz", ".tmp/scope.1.log", "scope.1.log")
    (tmp_path / "device.1.log").write_bytes(b"")
    problems = StreamProblems()
    assert [w.name for w in list_session(tmp_path, problems).windows] == ["device.1.log.gz", "scope.1.log"]
    assert [p.kind for p in problems.first] == ["window_twice"]


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


def test_files_of_two_recordings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="several recordings"):
        list_session(fill(tmp_path, "a.device.log", "b.device.log"), StreamProblems())


def test_a_folder_above_a_session_names_it(tmp_path: Path) -> None:
    fill(tmp_path, "run/device.log")
    with pytest.raises(InputError, match="no file of a session") as caught:
        list_session(tmp_path, StreamProblems())
    assert caught.value.try_ == f"receipt import {tmp_path / 'run'}"


def test_the_last_stream_of_a_name_counts() -> None:
    listing = list_streams([("device.log", lambda: io.BytesIO(b"1")), ("device.log", lambda: io.BytesIO(b"2"))])
    assert [w.open().read() for w in listing.windows] == [b"2"]
