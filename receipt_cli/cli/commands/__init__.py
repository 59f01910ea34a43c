"""The commands of ``receipt``: their names in the order of the help, and the function that each calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from pkgutil import resolve_name

from receipt_cli.errors import UsageError

_NAMES = (
    ("", "parse run watch show explain check ci compare history validate migrate rederive verify attest header"),
    ("", "import export report plot"),
    ("grammar", "list matrix show lint test explain learn"),
    ("schema", "list show diff"),
    ("store", "add ls query stats export show diff ask tag note exclude"),
    ("", "mcp config completion"),
)
COMMANDS = tuple(f"{group} {name}".lstrip() for group, commands in _NAMES for name in commands.split())
"""Each command is a function of its name: its parameters are the options, the docstring is the help, the last paragraph of
which is an example. The function is in the module of the group, else in one of the same name."""
_MODULES = {
    **dict.fromkeys(("show", "validate", "migrate"), "documents"),
    "attest": "verify",
    "history": "compare",
    **dict.fromkeys(("completion", "config", "mcp"), "integration"),
    **dict.fromkeys((f"store {name}" for name in ("show", "diff", "ask", "tag", "note", "exclude")), "store_runs"),
}
"""Commands that share another module."""
GROUPS = {
    "grammar": "List, test, explain and learn the grammars that parse logs.",
    "schema": "List, print and compare the schemas of documents and definitions.",
    "store": "Store receipts and query them.",
}
"""Commands that have commands of their own, and the help of each."""


def load(name: str) -> Callable[..., None]:
    """Return the function of a command; of all commands, only its module is imported. Raises ``UsageError``."""
    if name == "run" and os.name == "nt":
        raise UsageError("receipt run needs the signals and terminals of POSIX", try_="receipt parse LOG --here")
    group, _, command = name.rpartition(" ")
    function = f"{command}_" if command in ("import", "list") else command  # names that Python has taken
    found: Callable[..., None] = resolve_name(f"{__name__}.{_MODULES.get(name, group or function)}:{function}")
    return found


def names(group: str = "") -> list[str]:
    """Return the names of the commands in ``group`` or, with groups among them, of those at the top."""
    if group:
        return [name.removeprefix(f"{group} ") for name in COMMANDS if name.startswith(f"{group} ")]
    return list(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS))
