"""A file is written whole or not at all, by us or by another program that fills it."""

import os
import stat
import threading
from pathlib import Path

import pytest

from receipt_cli.errors import OutputError
from receipt_cli.io.atomic import replacing, write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("data", [b"", b"{}\n", bytes(range(256)) * 4096])
def test_a_new_file(tmp_path: Path, data: bytes) -> None:
    write_atomically(tmp_path / "a.json", data)
    assert (tmp_path / "a.json").read_bytes() == data
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(("umask", "want"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path, umask: int, want: int) -> None:
    old = os.umask(umask)
    try:
        write_atomically(tmp_path / "a.json", b"x")
        assert os.umask(umask) == umask
    finally:
        os.umask(old)
    assert mode(tmp_path / "a.json") == want


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o644, 0o755])
def test_a_replaced_file_keeps_its_mode(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old, and longer than the new")
    path.chmod(kept)
    before = path.stat().st_ino
    write_atomically(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", kept)
    assert path.stat().st_ino != before  # another file under the old name: a reader never sees half of one


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OutputError) as caught:
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]
    assert "No space left" in caught.value.why


def test_an_interruption_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a.json"])


def test_the_bytes_are_on_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (seen.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append("replace"), replace(a, b))[1])
    write_atomically(tmp_path / "a.json", b"x")
    assert seen[:2] == ["fsync", "replace"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target = tmp_path / "store" / "a.json"
    target.write_bytes(b"old")
    link = tmp_path / "latest.json"
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OutputError):
        write_atomically(tmp_path / "a", b"x")


@pytest.mark.parametrize("name", [".", "missing/a.json", "file/a.json", "x" * 300])
def test_where_nothing_can_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OutputError):
        write_atomically(tmp_path / name, b"x")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"through")
    reader.join(5)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_one(tmp_path: Path) -> None:
    write_atomically(Path(os.devnull), b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_the_new_file_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as new:
        new.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert (path.read_bytes(), mode(path)) == (b"new", 0o640)
    assert link.is_symlink() and sorted(os.listdir(tmp_path)) == ["a", "link"]


def test_a_filled_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as new:
        new.write_bytes(b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("error", [ValueError("ours"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(type(error)), replacing(tmp_path / "a") as new:
        new.write_bytes(b"half")
        raise error
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


def test_a_full_disk_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"), replacing(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_no_folder_and_no_regular_file(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "a", tmp_path, Path(os.devnull)):
        with pytest.raises(OutputError), replacing(path):
            pytest.fail("nothing to fill")
    assert os.listdir(tmp_path) == []
