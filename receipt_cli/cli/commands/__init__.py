"""The commands of ``receipt``: their names in the order of the help, and the function that each calls."""

from __future__ import annotations

from collections.abc import Callable

from receipt_cli.rooms import doors

COMMANDS = {
    "parse": ("parse", "parse"),
    "run": ("run", "run"),
    "show": ("documents", "show"),
    "explain": ("explain", "explain"),
    "check": ("check", "check"),
    "ci": ("ci", "ci"),
    "compare": ("compare", "compare"),
    "history": ("history", "history"),
    "validate": ("documents", "validate"),
    "migrate": ("documents", "migrate"),
    "rederive": ("rederive", "rederive"),
    "verify": ("verify", "verify"),
    "header": ("header", "header"),
    "import": ("import_", "import_"),
    "export": ("export", "export"),
    "report": ("report", "report"),
    "plot": ("plot", "plot"),
    "grammar list": ("grammar", "list_"),
    "grammar matrix": ("grammar", "matrix"),
    "grammar show": ("grammar", "show"),
    "grammar lint": ("grammar", "lint"),
    "grammar test": ("grammar", "test"),
    "grammar explain": ("grammar", "explain"),
    "grammar learn": ("grammar", "learn"),
    "schema list": ("schema", "list_"),
    "schema show": ("schema", "show"),
    "schema diff": ("schema", "diff"),
    "store add": ("store", "add"),
    "store ls": ("store", "ls"),
    "store query": ("store", "query"),
    "store stats": ("store", "stats"),
    "store export": ("store", "export"),
    "completion": ("completion", "completion"),
}
"""Each command's module in this package, and its function: the parameters are its options, the docstring is its help,
the last paragraph of which is an example."""
GROUPS = {
    "grammar": "List, test, explain and learn the grammars that parse logs.",
    "schema": "List, print and compare the schemas of documents and definitions.",
    "store": "Store receipts and query them.",
}
"""Commands that have commands of their own, and the help of each."""


def load(name: str) -> Callable[..., None]:
    """Return the function of a command; of all commands, only its module is imported."""
    module, function = COMMANDS[name]
    found: Callable[..., None] = doors(__name__, {module: function})[0](function)
    return found


def names(group: str = "") -> list[str]:
    """Return the names of the commands in ``group`` or, with groups among them, of those at the top."""
    if group:
        return [name.removeprefix(f"{group} ") for name in COMMANDS if name.startswith(f"{group} ")]
    return list(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS))
