"""The files of a recorded session in a folder: windows in reading order, gaps, sidecars, and what is refused."""

import gzip
import json
from pathlib import Path

import pytest

from receipt_cli.errors import InputError
from receipt_cli.gpu_profile.files import gaps, is_session, list_session
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
