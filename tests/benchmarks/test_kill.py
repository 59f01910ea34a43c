"""Batches that are killed and started again make the store of one that was left alone."""

import shutil
from pathlib import Path

import pytest

from benchmarks.kill import files_of, kill_and_resume

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "logs"


@pytest.mark.slow
def test_killed_and_resumed_is_the_same_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(LOGS.parents[1]))
    archive = tmp_path / "archive"
    archive.mkdir()
    for log in sorted(LOGS.rglob("*.log"))[:20]:
        shutil.copy(log, archive / f"{log.parent.name}-{log.name}")
    (archive / "empty.log").touch()
    outcome = kill_and_resume(archive, tmp_path, 3, ["--workers", "2"])
    assert outcome.wrong == []
    assert (outcome.kills.total(), outcome.receipts) == (3, 22)  # two of the logs contain two runs
    assert outcome.completed >= 1


def test_a_file_that_differs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(LOGS.parents[1]))
    (tmp_path / "archive").mkdir()
    shutil.copy(next(LOGS.rglob("*.log")), tmp_path / "archive" / "run.log")
    torn = tmp_path / "killed" / "receipts" / "ab" / f"{'ab' * 32}.1.json"
    torn.parent.mkdir(parents=True)
    torn.write_text('{"schema_ver')
    assert files_of(tmp_path / "killed") == {f"receipts/ab/{'ab' * 32}.1.json": b'{"schema_ver'}
    outcome = kill_and_resume(tmp_path / "archive", tmp_path, 0, ["--workers", "1"])
    assert outcome.wrong == [f"receipts/ab/{'ab' * 32}.1.json is new"]
