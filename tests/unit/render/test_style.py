import io
import os
from collections.abc import Mapping

import pytest

from receipt_cli.render.style import MIN_WIDTH, PIPE_WIDTH, ColorChoice, Style


class Stream(io.StringIO):
    def __init__(self, terminal: bool, encoding: str | None = "utf-8") -> None:
        super().__init__()
        self._terminal = terminal
        self._encoding = encoding

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        return 99


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((132, 50)))


@pytest.mark.parametrize(
    ("terminal", "environ", "choice", "want"),
    [
        (True, {}, "auto", True),
        (False, {}, "auto", False),
        (True, {"NO_COLOR": "1"}, "auto", False),
        (True, {"NO_COLOR": ""}, "auto", True),  # as no-color.org says
        (True, {"TERM": "dumb"}, "auto", False),
        (False, {"NO_COLOR": "1", "TERM": "dumb"}, "always", True),
        (True, {}, "never", False),
    ],
)
def test_color(terminal: bool, environ: Mapping[str, str], choice: ColorChoice, want: bool) -> None:
    assert Style.detect(Stream(terminal), color=choice, environ=environ).color is want


@pytest.mark.parametrize(
    ("terminal", "environ", "want"),
    [
        (True, {}, (132, 50)),
        (False, {}, (PIPE_WIDTH, 24)),
        (True, {"COLUMNS": "80", "LINES": "10"}, (80, 10)),
        (False, {"COLUMNS": "80"}, (80, 24)),
        (True, {"COLUMNS": "0"}, (132, 50)),
        (True, {"COLUMNS": "wide"}, (132, 50)),
        (False, {"COLUMNS": "7"}, (MIN_WIDTH, 24)),
        (False, {"COLUMNS": "99999"}, (1000, 24)),
        (False, {"COLUMNS": "9" * 5000}, (PIPE_WIDTH, 24)),
    ],
)
def test_size(terminal: bool, environ: Mapping[str, str], want: tuple[int, int]) -> None:
    style = Style.detect(Stream(terminal), environ=environ)
    assert (style.width, style.height) == want


def test_size_of_a_terminal_that_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert Style.detect(Stream(True), environ={}).width == PIPE_WIDTH


def test_a_stream_without_a_file_or_closed() -> None:
    stream = io.StringIO()
    assert not Style.detect(stream, environ={}).color
    stream.close()
    assert not Style.detect(stream, environ={}).color


@pytest.mark.parametrize(
    ("encoding", "want"),
    [("utf-8", True), ("UTF8", True), ("ascii", False), ("latin-1", False), (None, False), ("no such", False)],
)
def test_unicode(encoding: str | None, want: bool) -> None:
    assert Style.detect(Stream(True, encoding), environ={}).unicode is want


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    monkeypatch.setenv("NO_COLOR", "1")
    style = Style.detect(Stream(True))
    assert (style.width, style.color) == (77, False)
