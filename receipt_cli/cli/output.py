"""Print for commands: documents to stdout, messages to stderr."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from receipt_cli.documents.canonical import canonical_line
from receipt_cli.errors import ExitCode, OutputError, ReceiptError, UsageError
from receipt_cli.io.atomic import write_atomically
from receipt_cli.render.style import ColorChoice, Style
from receipt_cli.render.text import clean, disarm

if TYPE_CHECKING:
    from receipt_cli.comparison.comparable import Policy

_quiet = False
_color: ColorChoice = "auto"


def set_up(*, quiet: bool = False, color: ColorChoice = "auto") -> None:
    """Switch notes and progress off, or on again, and choose when text is coloured."""
    global _quiet, _color
    _quiet, _color = quiet, color


def tell(error: ReceiptError) -> None:
    """Print an error on stderr: what, ``why:`` and ``try:``; a line end in a name stays in its line."""
    shown = ReceiptError(clean(error.message), why=error.why, try_=error.try_, where=clean(error.where))
    print_line(shown.render())


def fail(error: ReceiptError) -> NoReturn:
    """Print an error and exit with its code."""
    tell(error)
    sys.exit(error.exit_code)


def note(lines: Iterable[str]) -> None:
    """Print notes on stderr."""
    for line in () if _quiet else lines:
        print_line(f"receipt: note: {line}")


def note_some(lines: Sequence[str], *, most: int = 5) -> None:
    """Print the first notes on stderr, and how many more there are."""
    note([*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])])


def print_line(text: str) -> None:
    """Print ``text`` on stderr if it is open, with control sequences escaped and secrets masked."""
    from receipt_cli.redaction.mask import mask_secrets

    if sys.stderr is not None:  # the caller may have closed it; print would use stdout
        with contextlib.suppress(OSError):
            print("\n".join(disarm(clean(line)) for line in mask_secrets(text).split("\n")), file=sys.stderr)


def progress(name: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
    """Return a progress bar for reading the log ``name``, or None if stderr is not a terminal."""
    from receipt_cli.render.progress import ReadingBar, shows_progress

    return nullcontext() if _quiet or not shows_progress(sys.stderr) else ReadingBar(Path(name).name, sys.stderr)


def style(stream: TextIO | None = None) -> Style:
    """Return the style of ``stream``, by default of stdout."""
    return Style.detect(stream or sys.stdout, color=_color)


def abandon_stdout() -> None:
    """Discard what is buffered for stdout, so that the interpreter does not fail at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_stdout(data: bytes | str) -> None:
    """Write to stdout as UTF-8 and flush; a reader that has gone away is no error. Raises ``OutputError``."""
    if sys.stdout is None:
        raise OutputError("cannot write to stdout", why="it is closed")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data if isinstance(data, bytes) else data.encode(sys.stdout.encoding, "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        abandon_stdout()
        sys.exit(ExitCode.OK)
    except OSError as error:
        abandon_stdout()
        raise OutputError("cannot write to stdout", why=error.strerror or str(error)) from error


def write_json(value: Any) -> None:
    """Write ``value`` as JSON on stdout; NaN becomes null, a lone surrogate its escape."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        data = text.encode("utf-8")
    except ValueError:  # also a UnicodeEncodeError; only a damaged document holds such values
        data = json.dumps(_finite(value), indent=2, allow_nan=False).encode("ascii")
    write_stdout(data + b"\n")


def write_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Write each row as a line of JSON on stdout."""
    write_stdout(b"".join(map(canonical_line, rows)))


def write_output(path: Path | None, data: bytes) -> None:
    """Write ``data`` to the file ``path``; to stdout for ``-``, and without a path. Raises ``ReceiptError``."""
    if path is None or str(path) == "-":
        write_stdout(data)
    else:
        write_atomically(path, data)


def write_answer(
    value: Any, json_output: bool, text: Callable[[], str], markdown: Path | None = None, page: Callable[[], str] = str
) -> None:
    """Write ``value`` as JSON on stdout, or what ``text`` makes of it; and to the file ``markdown`` what ``page`` makes of it.

    If ``markdown`` is ``-``, that comes to stdout in place of the text. Raises ``ReceiptError``, also for a file of another kind.
    """
    if markdown is not None:
        if markdown.exists() and markdown.suffix not in (".md", ".markdown"):
            why, try_ = "--markdown would replace a file that is not Markdown", "--markdown - prints it"
            raise UsageError(why, where=str(markdown), try_=try_)
        write_output(markdown, page().encode("utf-8"))
    if json_output:
        write_json(value)
    elif str(markdown) != "-":
        write_stdout(text())


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def read_policy(path: Path | None) -> Policy:
    """Return the policy of a YAML file, or without one the policy that ships. Raises ``ReceiptError``."""
    from receipt_cli.comparison.comparable import DEFAULT, read_policy
    from receipt_cli.io.file_kinds import read_file

    return DEFAULT if path is None else read_policy(read_file(path), str(path))
