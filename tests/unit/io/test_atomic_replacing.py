"""A file that another program fills takes its place as a whole, or not at all."""

import os
import stat
from pathlib import Path

import pytest

from receipt_cli.errors import OutputError
from receipt_cli.io.atomic import replacing


def test_the_new_file_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as new:
        new.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)
    assert link.is_symlink() and sorted(os.listdir(tmp_path)) == ["a", "link"]


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
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
