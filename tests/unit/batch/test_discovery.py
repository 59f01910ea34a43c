"""Which files an archive is made of, and under which names: the same whatever the order of the paths."""

import os
import time
from pathlib import Path

import pytest

from receipt_cli.batch.discovery import SETTLED_S, read_list, walk
from receipt_cli.batch.remote import fetched, find_remote
from receipt_cli.errors import InputError, UsageError


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    for name in ("b/run.log", "a/run.log", "a/rank10.log", "a/rank9.log.gz", "top.txt", "a/notes.md", ".git/x.log", "c/.hid.log"):
        path = tmp_path / "archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("step 1 loss 2\n")
    return tmp_path / "archive"


def names(*paths: object) -> list[str]:
    return [log.name for log in walk([str(path) for path in paths]).logs]


def test_a_folder_gives_its_logs_in_the_order_of_their_names(archive: Path) -> None:
    found = walk([str(archive)])
    assert [log.name for log in found.logs] == ["a/rank10.log", "a/rank9.log.gz", "a/run.log", "b/run.log", "top.txt"]
    assert [(each.name, each.reason) for each in found.left_out] == [
        (".git/", "hidden"), ("a/notes.md", "name"), ("c/.hid.log", "hidden"),
    ]  # fmt: skip
    assert not any(log.named for log in found.logs)


def test_the_order_of_the_paths_does_not_matter(archive: Path) -> None:
    parts = [archive / "a", archive / "b", archive / "top.txt"]
    assert names(*parts) == names(*reversed(parts)) == names(archive)


def test_a_log_that_is_named_twice_counts_once_and_as_named(archive: Path) -> None:
    found = walk([str(archive), str(archive / "a" / "notes.md"), str(archive / "a" / ".." / "b" / "run.log")])
    assert [log.name for log in found.logs if log.named] == ["a/notes.md", "b/run.log"]
    assert len(found.logs) == 6


def test_equal_names_in_two_folders_stay_two_logs(archive: Path) -> None:
    assert names(archive / "a" / "run.log", archive / "b") == ["a/run.log", "b/run.log"]
    assert names(archive / "b") == ["run.log"]


def test_a_pattern(archive: Path) -> None:
    assert names(archive / "**" / "run.log") == ["a/run.log", "b/run.log"]
    assert names(archive / "?") == ["a/rank10.log", "a/rank9.log.gz", "a/run.log", "b/run.log"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "run[1].log").write_text("x\n")
    assert names(tmp_path / "run[1].log") == ["run[1].log"]


@pytest.mark.parametrize("path", ["nothing.log", "no*.log", "empty"])
def test_nothing_found_is_an_error(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        walk([str(tmp_path / path)])


def test_stdin_is_no_archive() -> None:
    with pytest.raises(UsageError):
        walk(["-"])


def test_a_pipe_is_refused_where_it_is_named_and_passed_over_in_a_folder(archive: Path) -> None:
    os.mkfifo(archive / "pipe.log")
    with pytest.raises(InputError, match="not a file"):
        walk([str(archive / "pipe.log")])
    assert "pipe.log" not in names(archive)


def test_links_to_nowhere_and_in_circles_are_passed_over(archive: Path) -> None:
    (archive / "gone.log").symlink_to(archive / "nowhere")
    (archive / "a" / "up").symlink_to(archive)
    assert len(names(archive)) == 5


def test_a_name_that_is_no_utf8_becomes_a_text(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"run\xff.log"), "wb") as file:
        file.write(b"x\n")
    assert names(tmp_path) == ["run\\xff.log"]


@pytest.mark.parametrize(
    ("now", "settled"),
    [
        pytest.param(SETTLED_S + 1, True, id="old enough"),
        pytest.param(SETTLED_S / 2, False, id="just written"),
        pytest.param(-3600.0, False, id="the clock went back: the file is of tomorrow"),
        pytest.param(86400.0, True, id="the clock went ahead"),
    ],
)
def test_the_time_stamp_of_a_file_that_may_still_change_is_not_trusted(tmp_path: Path, now: float, settled: bool) -> None:
    path = tmp_path / "run.log"
    path.write_text("x\n")
    (log,) = walk([str(tmp_path)], clock=lambda: path.stat().st_ctime + now).logs
    assert log.settled is settled


def test_every_change_changes_the_stamp(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("one\n")
    stamps = [walk([str(path)]).logs[0].stamp]
    before = path.stat()
    time.sleep(0.02)
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, and the old time put back
    stamps.append(walk([str(path)]).logs[0].stamp)
    time.sleep(0.02)
    path.write_text("longer\n")
    stamps.append(walk([str(path)]).logs[0].stamp)
    (tmp_path / "new").write_text("longer\n")
    os.replace(tmp_path / "new", path)
    stamps.append(walk([str(path)]).logs[0].stamp)
    assert len(set(stamps)) == 4


fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket() -> str:
    system = fsspec.filesystem("memory")
    if system.exists("/bucket"):  # one for all tests of a process
        system.rm("/bucket", recursive=True)
    for name in ("run.log", "deep/run.log", "deep/run.header.json", "deep/model.bin", ".git/x.log"):
        system.pipe(f"/bucket/{name}", b"step 1 loss 2\n")
    return "memory://bucket"


def test_a_url_is_listed(bucket: str) -> None:
    found = walk([bucket])
    assert [log.name for log in found.logs] == ["memory:///bucket/deep/run.log", "memory:///bucket/run.log"]
    assert [(each.name, each.reason) for each in found.left_out] == [
        ("memory:///bucket/.git/x.log", "hidden"),
        ("memory:///bucket/deep/model.bin", "name"),
        ("memory:///bucket/deep/run.header.json", "name"),
    ]
    assert [log.size_bytes for log in found.logs] == [14, 14]


@pytest.mark.parametrize(
    ("url", "count"), [("memory://bucket/deep/*.log", 1), ("memory://bucket/**", 2), ("memory://bucket/run.log", 1)]
)
def test_patterns_and_files_behind_a_url(bucket: str, url: str, count: int) -> None:
    assert len(walk([url]).logs) == count


def test_a_log_is_fetched_with_what_stands_beside_it(bucket: str) -> None:
    with fetched(f"{bucket}/deep/run.log", ["run.header.json", "run.receipt.json"]) as path:
        assert Path(path).read_bytes() == b"step 1 loss 2\n"
        assert sorted(os.listdir(Path(path).parent)) == ["run.header.json", "run.log"]
    assert not Path(path).exists()


def test_a_url_that_holds_nothing_or_nobody_can_open(bucket: str) -> None:
    with pytest.raises(InputError):
        find_remote("memory://bucket/nothing/", 0.0)
    with pytest.raises(UsageError):
        find_remote("nosuchprotocol://bucket/", 0.0)
    with pytest.raises(FileNotFoundError), fetched(f"{bucket}/gone.log", []):
        pass


def test_names_are_relative_to_a_root_that_is_given(archive: Path, tmp_path: Path) -> None:
    assert [log.name for log in walk([str(archive / "b")], str(tmp_path)).logs] == ["archive/b/run.log"]
    with pytest.raises(UsageError, match="not all paths are below"):
        walk([str(archive / "b")], str(archive / "a"))


def test_paths_from_a_list(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"a.log\nb c.log\r\n\nd\xff.log\n")
    assert read_list(str(tmp_path / "list")) == ["a.log", "b c.log", "d\udcff.log"]
    with pytest.raises(InputError):
        read_list(str(tmp_path / "nothing"))
