"""Batches that are killed and started again make the store of one that was left alone."""

import shutil
from pathlib import Path

import pytest

from benchmarks.kill import kill_and_resume

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
