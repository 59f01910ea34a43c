"""Compile the shipped definitions into ``receipt_cli/_compiled``: a build hook of hatchling, and ``make compile``.

The hook runs for wheels and for editable installations. ``receipt_cli.definitions.compiled`` reads what it writes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


class CompileDefinitions(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles before the files of a wheel are collected."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the compiled files and make them part of the wheel, although git ignores them."""
        compile_definitions()
        build_data["artifacts"].append("/receipt_cli/_compiled/*")


def compile_definitions() -> None:
    """Write ``receipt_cli/_compiled`` anew."""
    sys.path.insert(0, str(ROOT))
    from receipt_cli.definitions.compiled import FOLDER, code_digest, pack

    folder = ROOT / "receipt_cli" / FOLDER
    folder.mkdir(exist_ok=True)
    tables = {"definitions": dict(definitions()), "grammars": dict(grammars())}
    prefix = f"{ROOT / 'receipt_cli'}/"
    files = sorted(str(module.__file__) for name, module in sys.modules.items() if name.startswith("receipt_cli"))
    code = [path.removeprefix(prefix) for path in files if path.startswith(prefix)]
    for group, made in tables.items():
        texts = {where: ROOT.joinpath(where).read_bytes() for where in made}
        entries = {w: (len(text), hashlib.sha256(text).hexdigest(), pack(made[w])) for w, text in texts.items()}
        table = {"code": code, "sha256": code_digest(code), "entries": entries}
        folder.joinpath(f"{group}.json").write_text(json.dumps(table, separators=(",", ":")) + "\n", "utf-8")


def definitions() -> Iterator[tuple[str, Any]]:
    """Yield every definition but the grammars, with its file."""
    from receipt_cli.definitions.accelerators import PEAKS_PATH, parse_peaks
    from receipt_cli.definitions.failure_markers import PATH, parse_catalogue
    from receipt_cli.definitions.metrics import REGISTRY_PATH, parse_registry
    from receipt_cli.documents.schemas import parse_index as parse_schemas
    from receipt_cli.grammar.catalog import parse_fixtures, parse_index
    from receipt_cli.learn.vocabulary import read_vocabulary

    readers: dict[str, Callable[[bytes, str], Any]] = {
        f"schemas/{REGISTRY_PATH}": parse_registry,
        f"schemas/{PEAKS_PATH}": parse_peaks,
        "schemas/index.yaml": parse_schemas,
        "grammars/index.yaml": lambda text, where: tuple(parse_index(text, where)),
        "grammars/fixtures.yaml": parse_fixtures,
        f"grammars/{PATH}": parse_catalogue,
        "grammars/generic/v1.yaml": read_vocabulary,
    }
    for where, read in readers.items():
        yield where, read(ROOT.joinpath(where).read_bytes(), where)


def grammars() -> Iterator[tuple[str, Any]]:
    """Yield every grammar with its file. Of a field its definition stays: it is made when a log first needs it."""
    from receipt_cli.grammar.catalog import INDUCED, list_grammars
    from receipt_cli.grammar.parse import load_grammar

    for entry in list_grammars():
        where = f"grammars/{entry.path}"
        if entry.id == INDUCED:
            continue
        grammar = load_grammar(ROOT.joinpath(where).read_bytes(), where)
        for rule in grammar.rules:
            bodies = rule.fields.bodies  # type: ignore[attr-defined]
            vars(rule)["fields"] = {name: without_description(body) for name, body in bodies.items()}
        yield where, grammar


def without_description(body: Any) -> Any:
    """Return the definition of a field without what is only for people to read."""
    return {key: value for key, value in body.items() if key != "description"} if body else body


if __name__ == "__main__":
    compile_definitions()
