"""Several files as one run and several runs in one file, from the command line."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


def iterations(numbers: Iterable[int], loss: float = 4.0) -> str:
    head = f"number of parameters: 0.{int(loss)}1M\n"
    return head + "".join(f"iter {n}: loss {loss - n / 10:.4f}, time 21.00ms, mfu 2.00%\n" for n in numbers)


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    path = tmp_path / "queue.log"
    path.write_text(iterations(range(6)) + iterations(range(9), 5.0) + iterations(range(7), 6.0))
    return path


def test_the_last_run_and_a_note_of_the_others(queue: Path, invoke: Invoke) -> None:
    done = invoke("parse", "--json", queue)
    assert done.code == 0
    assert done.document["derivation"]["launches"] == {"count": 3, "used": 3, "first_line": 18}
    assert done.stderr == (
        "receipt: note: the log has 3 runs; this is the last, from line 18 on: --all-runs writes a receipt for each\n"
    )
    assert b"3 of 3 in this file, from log:18" in invoke("parse", queue).stdout


@pytest.mark.parametrize("stdin", [False, True])
def test_all_runs_as_json_lines(queue: Path, invoke: Invoke, stdin: bool) -> None:
    done = invoke("parse", "--json", "--all-runs", "-" if stdin else queue, stdin=queue.read_bytes() if stdin else b"")
    assert (done.code, done.stderr) == (0, "")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [d["summary"]["steps"]["record_count"] for d in documents] == [6, 9, 7]
    assert documents[2] == invoke("parse", "--json", queue).document


def test_all_runs_into_a_folder(queue: Path, invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "receipts"
    done = invoke("parse", "--all-runs", queue, "-o", folder)
    assert done.code == 0
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["run-1.json", "run-2.json", "run-3.json"]
    assert [invoke("schema", "check", file).code for file in files] == [0, 0, 0]
    assert done.stdout.count(b"  run       nanoGPT") == 3
    assert invoke("parse", "--all-runs", queue, "-o", queue).code == 6


def test_files_of_one_run(tmp_path: Path, invoke: Invoke) -> None:
    paths = [tmp_path / f"rank{rank}.log" for rank in range(2)]
    for path in paths:
        path.write_text(iterations(range(8)))
    (tmp_path / "notes.md").write_text("# not a log\n")
    done = invoke("parse", "--json", *paths)
    assert (done.code, done.stderr) == (0, "")
    folder = invoke("parse", "--json", tmp_path)
    assert folder.stdout == done.stdout
    assert folder.stderr == "receipt: note: 1 file looks like no log: left out\n"
    assert b"2 files" in invoke("parse", "--full", *paths).stdout


@pytest.mark.parametrize("path", [".", ".."])
def test_a_folder_without_a_name_of_its_own(path: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "rank0.log").write_text(iterations(range(8)))
    monkeypatch.chdir(tmp_path if path == "." else tmp_path / "inner")
    done = invoke("parse", "--json", path)
    assert done.code == 0
    assert done.document["summary"]["steps"]["record_count"] == 8


def test_a_failure_names_its_file(tmp_path: Path, invoke: Invoke) -> None:
    paths = [tmp_path / f"rank{rank}.log" for rank in range(2)]
    paths[0].write_text(iterations(range(8)))
    paths[1].write_text(iterations(range(5)) + "Traceback (most recent call last):\nValueError: no such batch\n")
    assert "(rank1.log:8)" in invoke("parse", *paths).stdout.decode()


def test_3_for_a_folder_without_logs(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "model.pt").write_bytes(b"\0\1")
    done = invoke("parse", tmp_path)
    assert done.code == 3
    assert "holds no log" in done.stderr
