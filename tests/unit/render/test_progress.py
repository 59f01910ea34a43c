"""Progress bars: on terminals, for large files, and removed at the end."""

import io

import pytest

from receipt_cli.render.progress import MIN_BYTES, BatchBar, ReadingBar, shows_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_shows_progress() -> None:
    assert shows_progress(Terminal(), {"TERM": "xterm"})
    assert not shows_progress(Terminal(), {"TERM": "dumb"})
    assert not shows_progress(io.StringIO(), {})
    assert not shows_progress(None, {})
    closed = Terminal()
    closed.close()
    assert not shows_progress(closed, {"TERM": "dumb"})


def test_a_small_file_has_no_bar() -> None:
    stream = Terminal()
    with ReadingBar("run.log", stream) as bar:
        bar(10, MIN_BYTES - 1)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("name", ["run.log", "[red]run.log"])
def test_a_large_file_has_a_bar_with_its_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with ReadingBar(name, stream, least=1) as bar:
        bar(512, 1024)
        bar(1024, 1024)
    assert name in stream.getvalue()
    assert stream.getvalue().rstrip("\n").endswith("\x1b[2K")  # erased


def test_a_batch_has_one_bar_per_activity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with BatchBar(stream) as bar:
        bar("reading", 2, 2, 100, 100)
        bar("deriving", 1, 2, 0, 0)
    assert "deriving" in stream.getvalue() and "1 of 2 logs" in stream.getvalue()
