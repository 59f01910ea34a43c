"""Read defaults of options: ``RECEIPT_*`` variables, else ``receipt.toml`` or ``[tool.receipt]`` of ``pyproject.toml``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from receipt_cli.errors import UsageError

FILES = ("receipt.toml", "pyproject.toml")
PATHS = {"store", "gates", "policy", "path"}
SETTINGS = {
    "lane": "Series of comparable runs (hardware and recipe).",
    "name": "Name of the run.",
    "preset": "Name of the recipe.",
    "store": "Store whose runs may be given by digest, name or path.",
    "gates": "YAML file of what a run must prove, for receipt check.",
    "policy": "YAML file of the fields that block a comparison, warn or are ignored.",
    "path": "Folders of definitions that do not ship; a list in a file.",
}
"""Setting → meaning. Its variable is ``RECEIPT_`` and the name in capitals."""
_MOST_BYTES = 1 << 20


class Setting(NamedTuple):
    """The value of a setting, and the variable or file that gave it; paths are absolute, several joined by ``os.pathsep``."""

    value: str
    source: str


class Settings(NamedTuple):
    """The settings with a value, and notes on files that are not read."""

    values: Mapping[str, Setting]
    notes: tuple[str, ...] = ()


def variable(name: str) -> str:
    """Return the variable of a setting."""
    return f"RECEIPT_{name.upper()}"


def find_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of the environment, and of the nearest file in the working folder or above it.

    The search ends at the home folder. ``RECEIPT_LOCAL=0`` leaves files out; one that another user owns, or everybody may write
    to, is left out with a note. Raises ``UsageError`` for a file that is no TOML, and for a key or value that cannot be.
    """
    found: dict[str, Setting] = {}
    notes: list[str] = []
    if environ.get("RECEIPT_LOCAL") != "0":
        found = _nearest(notes)
    named = {name: Setting(environ[variable(name)], variable(name)) for name in SETTINGS if environ.get(variable(name))}
    return Settings({**found, **named}, tuple(notes))


def _nearest(notes: list[str]) -> dict[str, Setting]:
    from receipt_cli.definitions.search_path import distrusted, upwards

    for folder in upwards(None):
        for name in FILES:
            path = os.path.join(folder, name)
            if not os.path.isfile(path):
                continue
            table = _table(path)
            if table is None:
                continue
            why = distrusted(path)
            if why:
                notes.append(f"the settings in {path} are not used: {why}")
                continue
            return _checked(table, path)
    return {}


def _table(path: str) -> Any:
    """Return the settings that a file contains, unchecked; None for a ``pyproject.toml`` without any."""
    own = os.path.basename(path) == FILES[0]
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError as error:
        if not own:
            return None
        raise UsageError("cannot read the settings", where=path, why=error.strerror or str(error)) from error
    if not own and b"tool.receipt" not in data:
        return None
    import tomllib

    try:
        read = tomllib.loads(data.decode("utf-8"))
    except ValueError as error:  # of TOML, or of UTF-8
        raise UsageError("the settings file is not valid TOML", where=path, why=str(error)) from error
    return read if own else read.get("tool", {}).get("receipt")


def _checked(table: Any, path: str) -> dict[str, Setting]:
    """Return the settings of a file. Raises ``UsageError``."""
    from difflib import get_close_matches

    if not isinstance(table, dict):
        raise UsageError("the settings must be a table", where=path)
    folder, found = os.path.dirname(path), {}
    for key, value in table.items():
        if key not in SETTINGS:
            similar = get_close_matches(key, SETTINGS, n=1)
            try_ = f"{similar[0]} = ..." if similar else ""
            raise UsageError(f"unknown setting {key!r}", where=path, why=f"settings are {', '.join(SETTINGS)}", try_=try_)
        several = key == "path" and isinstance(value, list)
        texts = value if several else [value]
        if not texts or not all(isinstance(text, str) and text and "\0" not in text for text in texts):
            raise UsageError(f"the setting {key} must be a string", where=path, why=f"it is {str(value)[:80]}")
        if key in PATHS:
            texts = [os.path.normpath(os.path.join(folder, os.path.expanduser(text))) for text in texts]
        found[key] = Setting(os.pathsep.join(texts), path)
    return found
