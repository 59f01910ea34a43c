"""The help of ``receipt`` in plain lines, made from the list of commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from receipt_cli.cli.commands import GROUPS, SECTIONS
from receipt_cli.errors import ExitCode

ABOUT = "Turn the log of a training run into one answer: what happened, where, how far,\nhow fast."
USAGE = "Usage: receipt COMMAND [OPTIONS]"
_END = """
Everywhere: -h/--help  -q/--quiet  --color auto|always|never
First step: receipt parse train.log
More:       receipt help COMMAND | --all | exit-codes
"""


def short_help() -> str:
    """Return the help of ``receipt``: the commands of each section but the last."""
    shown = dict(list(SECTIONS.items())[:-1])
    return f"{ABOUT}\n\n{USAGE}\n\n{''.join(_lines(shown))}{_END}"


def full_help() -> str:
    """Return every command, also those of groups."""
    groups = {f"receipt {name}": members for name, members in GROUPS.items()}
    return f"{USAGE}\n\n{''.join(_lines(SECTIONS | groups, blank=True))}{_END}"


def group_help(name: str) -> str:
    """Return the commands of a group."""
    rows = "".join(_lines({"Commands": GROUPS[name]}))
    return f"Usage: receipt {name} COMMAND [OPTIONS]\n\n{rows}\nMore: receipt help {name} COMMAND\n"


def exit_codes() -> str:
    """Return what each exit code means."""
    return "".join(_lines({"Exit codes": {str(code.value): code.meaning for code in ExitCode}}))


def _lines(sections: Mapping[str, Mapping[str, str]], *, blank: bool = False) -> Iterator[str]:
    width = max(len(name) for section in sections.values() for name in section)
    for number, (title, rows) in enumerate(sections.items()):
        yield f"{chr(10) if blank and number else ''}{title}\n"
        yield from (f"  {name:<{width}}  {about}\n" for name, about in rows.items())
