"""Plain command lines, read without typer, whose loading is a third of a cold start.

Only ``parse`` and ``check`` with options that are spelled as documented, each once, and with values that need no
judgement. For everything else, and so for every refusal and every help text, the answer is None and typer reads.
What is read here is what typer reads: ``tests/cli/test_plain.py`` holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_COMPLETION = "_RECEIPT_COMPLETE"
"""The variable by which a shell asks typer for completions."""


def _text(value: str) -> str | None:
    return value


def _whole(value: str) -> int | None:
    return int(value) if _NUMBER.fullmatch(value) else None


def _positive(value: str) -> int | None:
    return _whole(value) or None


def _workers(value: str) -> int | None:
    number = _whole(value)
    return number if number is not None and 1 <= number <= 256 else None


def _colour(value: str) -> str | None:
    return value if value in ("auto", "always", "never") else None


Reading = tuple[str, Callable[[str], Any] | None]
"""The parameter that an option sets, and what makes its value of the text, or None for a flag."""
SEVERAL = ("attach",)
"""Parameters whose option may come more than once."""
_CHECK: Mapping[str, Reading] = {
    "--exit-code": ("exit_code", _whole),
    "--proven": ("proven", None),
    "--allow-truncated": ("allow_truncated", None),
    "--json": ("json_output", None),
}
_PARSE: Mapping[str, Reading] = {
    "--json": ("json_output", None),
    "--output": ("output", Path),
    "-o": ("output", Path),
    "--series": ("series", Path),
    "--html": ("html", Path),
    "--all-runs": ("all_runs", None),
    "--follow": ("follow", None),
    "--idle": ("idle", _positive),
    "--pid": ("pid", _positive),
    "--grammar": ("grammar", _text),
    "-g": ("grammar", _text),
    "--exit-code": ("exit_code", _whole),
    "--wall": ("wall", _text),
    "--name": ("name", _text),
    "--lane": ("lane", _text),
    "--preset": ("preset", _text),
    "--attach": ("attach", _text),
    "--header": ("header", Path),
    "--here": ("here", None),
    "--strict": ("strict", None),
    "--workers": ("workers", _workers),
    "--color": ("color", _colour),
}
OPTIONS: Mapping[str, Mapping[str, Reading]] = {"parse": _PARSE, "check": _CHECK}


def read_plain(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, dict[str, Any]] | None:
    """Return the command and the values that ``arguments`` give to its parameters, or None where typer is to read them."""
    if not arguments or arguments[0] not in OPTIONS or _COMPLETION in environ:
        return None
    command, options = arguments[0], OPTIONS[arguments[0]]
    given: dict[str, Any] = {}
    files: list[str] = []
    rest = iter(arguments[1:])
    for word in rest:
        if not _is_plain(word):
            return None
        if word == "-" or not word.startswith("-"):
            files.append(word)
            continue
        option, joined, text = word.partition("=")
        name, make = options.get(option, ("", None))
        if not name or (name in given and name not in SEVERAL) or (joined and (make is None or not option.startswith("--"))):
            return None
        value: Any = True
        if make is not None:
            text = text if joined else next(rest, "")
            value = make(text) if _is_plain(text) and not text.startswith("-") else None
            if value is None:
                return None
        given[name] = [*given.get(name, []), value] if name in SEVERAL else value
    if not files or (command == "check" and len(files) > 1):
        return None
    return command, {**given, **({"logs": files} if command == "parse" else {"file": files[0]})}


def _is_plain(text: str) -> bool:
    """Tell whether a word is text that stands for itself."""
    return bool(text) and text.isprintable()
