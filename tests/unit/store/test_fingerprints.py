"""What a batch remembers: worth time and nothing else, so that no damage to it may matter."""

import os
from pathlib import Path

import pytest

from receipt_cli.store.fingerprints import MAX_FILES, Known, KnownLog

DIGEST, OTHER = "ab" * 32, "cd" * 32


def noted(root: Path, definitions: str = "d1") -> None:
    known = Known(root, definitions)
    known.note_path("/a/run.log", "10 5 5 77", DIGEST, 10)
    known.note_log(DIGEST, KnownLog(2, True))
    known.close()


def journals(root: Path) -> list[Path]:
    return sorted((root / ".cache" / "known").iterdir())


@pytest.mark.parametrize(("path", "stamp"), [("/a/run.log", "11 5 5 77"), ("/b/run.log", "10 5 5 77")])
def test_another_state_or_path_is_not(tmp_path: Path, path: str, stamp: str) -> None:
    noted(tmp_path)
    assert Known(tmp_path, "d1").identity(path, stamp) is None


def test_other_definitions_know_the_file_but_not_the_receipt(tmp_path: Path) -> None:
    noted(tmp_path)
    known = Known(tmp_path, "d2")
    assert known.identity("/a/run.log", "10 5 5 77") is not None
    assert known.log(DIGEST) is None


@pytest.mark.parametrize("damage", ["cut", "flip", "garbage", "binary"])
def test_damaged_lines_are_passed_over(tmp_path: Path, damage: str) -> None:
    noted(tmp_path)
    file = journals(tmp_path)[0]
    data = file.read_bytes()
    first, rest = data.split(b"\n", 1)
    broken = {
        "cut": first[: len(first) // 2] + b"\n" + rest,
        "flip": first.replace(b"ab", b"cd", 1) + b"\n" + rest,
        "garbage": b"path what is this 00000000\n" + rest,
        "binary": bytes(range(256)) + b"\n" + rest,
    }[damage]
    file.write_bytes(broken)
    known = Known(tmp_path, "d1")
    assert known.identity("/a/run.log", "10 5 5 77") is None
    assert known.log(DIGEST) == KnownLog(2, True)


def test_many_files_become_one(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        known = Known(tmp_path, "d1")
        known.note_path(f"/{number}", "s", DIGEST, number)
        known.close()
    known = Known(tmp_path, "d1")
    known.close()
    assert len(journals(tmp_path)) == 1
    again = Known(tmp_path, "d1")
    assert [again.identity(f"/{number}", "s") for number in range(MAX_FILES + 1)] == [
        (DIGEST, number) for number in range(MAX_FILES + 1)
    ]


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    known = Known(tmp_path, "d1", writes=False)
    known.note_log(DIGEST, KnownLog(1, True))
    known.close()
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / ".cache").write_text("in the way")
    noted(tmp_path)
    assert Known(tmp_path, "d1").log(DIGEST) is None


def test_a_path_that_is_no_text_is_a_key_all_the_same(tmp_path: Path) -> None:
    known = Known(tmp_path, "d1")
    known.note_path("/a/\udcff.log", "s", DIGEST, 1)
    known.close()
    assert Known(tmp_path, "d1").identity("/a/\udcff.log", "s") == (DIGEST, 1)


def test_only_one_merges_at_a_time(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        known = Known(tmp_path, "d1")
        known.note_path(f"/{number}", "s", DIGEST, number)
        known.close()
    mark = tmp_path / ".cache" / "known" / "merging"
    mark.touch()
    Known(tmp_path, "d1").close()
    assert len(journals(tmp_path)) == MAX_FILES + 2
    os.utime(mark, (0, 0))  # whoever began was killed
    Known(tmp_path, "d1").close()
    assert len(journals(tmp_path)) == 1
