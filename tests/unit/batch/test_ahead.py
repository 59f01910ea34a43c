"""A file that was written ahead is as any other: whole or not there, and flushed before it has its name."""

import os
from pathlib import Path

import pytest

from receipt_cli.batch.pool import Flusher
from receipt_cli.errors import OutputError
from receipt_cli.io.atomic import write_atomically, write_new

DATA = b"0123456789" * 1000


@pytest.fixture
def flusher() -> Flusher:
    made = Flusher()
    made.start()
    return made


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("write", [write_new, write_atomically])
def test_a_file_written_ahead_gets_its_name(flusher: Flusher, scratch: Path, tmp_path: Path, write: type) -> None:
    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: seen.append(os.fstat(handle).st_ino))
        with flusher.written(scratch, [DATA, b"other"]):
            assert len(os.listdir(scratch)) == 2
            write(tmp_path / "a.json", DATA, scratch)
            assert ((tmp_path / "a.json").read_bytes(), len(os.listdir(scratch))) == (DATA, 1)
            assert (tmp_path / "a.json").stat().st_ino in seen
            write(tmp_path / "b.json", DATA, scratch)  # the same again: not written ahead
        assert os.listdir(scratch) == []
        assert (len(seen), (tmp_path / "b.json").stat().st_ino in seen) == (3, True)


def test_what_nobody_takes_is_removed(flusher: Flusher, scratch: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"), flusher.written(scratch, [DATA]):
        raise ValueError("x")
    write_new(tmp_path / "a.json", DATA, scratch)
    assert ((tmp_path / "a.json").read_bytes(), os.listdir(scratch)) == (DATA, [])


def test_a_flush_that_fails_is_reported_by_who_writes(
    flusher: Flusher, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with flusher.written(scratch, [DATA]), pytest.raises(OutputError, match="cannot write"):
        write_new(tmp_path / "a.json", DATA, scratch)
    assert sorted(os.listdir(tmp_path)) == ["tmp"]
    assert os.listdir(scratch) == []


def test_files_removed_in_between_and_folders_that_are_not_there_cost_nothing(
    flusher: Flusher, scratch: Path, tmp_path: Path
) -> None:
    with flusher.written(scratch, [DATA]):
        for path in scratch.iterdir():
            path.unlink()
        write_new(tmp_path / "a.json", DATA, scratch)
    with flusher.written(tmp_path / "none", [DATA]):
        write_new(tmp_path / "b.json", DATA, scratch)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes() == DATA


def test_without_the_thread_nothing_is_written_ahead(scratch: Path) -> None:
    with Flusher().written(scratch, [DATA]):
        assert os.listdir(scratch) == []
