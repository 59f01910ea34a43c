"""The benchmark of ``receipt_cli.emit`` runs and tells every row."""

import pytest

from benchmarks import emit


def test_every_row_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["emit", "--count", "400", "--rounds", "1", "--threads", "2"])
    emit.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * len(emit.ROWS)
    assert [line[:26].strip() for line in lines[1:-1:2]] == [row.name for row in emit.ROWS]
    assert lines[-1].startswith("import receipt_cli.emit")
