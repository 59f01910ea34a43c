"""Compile the shipped definitions into ``receipt_cli/_compiled``, and the scan kernel if there is a compiler.

A build hook of hatchling for wheels and editable installations; ``make compile`` and ``make kernel`` call it too.
``receipt_cli.definitions.resources`` and ``receipt_cli.scan.kernel`` read its output.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace as changed
from functools import cache
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


KERNEL = "receipt_cli.scan.kernel._native"
KERNEL_SOURCE = "native/kernel.c"
LEFT_OUT = "RECEIPT_KERNEL"
"""Environment variable; with ``0`` the kernel is not compiled, and a wheel does not contain it."""


class Compile(BuildHookInterface):  # type: ignore[type-arg]
    """Runs the compilation before the files of a wheel are collected."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the compiled files and add them to the wheel, although git ignores them."""
        compile_definitions()
        build_data["artifacts"].extend(f"/receipt_cli/_compiled/*.{kind}" for kind in ("jsonl", "py"))
        made = compile_kernel(self.app.display_warning)
        if made is not None:
            build_data["artifacts"].append(f"/{made.relative_to(ROOT).as_posix()}")
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_kernel(warn: Callable[[str], None]) -> Path | None:
    """Compile the kernel into the package and return its file; None, after a warning, if that fails."""
    folder = ROOT.joinpath(*KERNEL.split(".")[:-1])
    made = None if os.environ.get(LEFT_OUT) == "0" else _compiled_kernel(folder, warn)
    for old in {*folder.glob("_native*.so"), *folder.glob("_native*.pyd")} - {made}:
        old.unlink()
    return made


def _compiled_kernel(folder: Path, warn: Callable[[str], None]) -> Path | None:
    try:
        from setuptools import Distribution, Extension
        from setuptools.errors import BaseError, CCompilerError
    except ImportError:
        warn("no kernel is compiled, so logs are read more slowly: setuptools is not installed")
        return None
    # No fused operations: the kernel proves its rounding step by step. No debugging information: it contains local paths.
    options = [] if os.name == "nt" else ["-std=c99", "-O2", "-g0", "-ffp-contract=off", "-fvisibility=hidden"]
    extension = Extension(KERNEL, [str(ROOT / KERNEL_SOURCE)], extra_compile_args=options, py_limited_api=True)
    command: Any = Distribution({"name": "receipt-cli", "ext_modules": [extension]}).get_command_obj("build_ext")
    with tempfile.TemporaryDirectory() as scratch:
        command.build_lib, command.build_temp = f"{scratch}/lib", f"{scratch}/temp"
        try:
            command.ensure_finalized()
            command.run()
        except (BaseError, CCompilerError, OSError) as error:
            warn(f"no kernel is compiled, so logs are read more slowly: {error}")
            return None
        (built,) = map(Path, command.get_outputs())
        target = folder / built.name
        replace(target, built.read_bytes(), 0o755)
    return target


def compile_definitions() -> None:
    """Write the changed files of ``receipt_cli/_compiled``, each atomically."""
    sys.path.insert(0, str(ROOT))
    from receipt_cli.definitions import resources
    from receipt_cli.definitions.resources import FOLDER, code_digest, pack

    resources._entries = lambda group: ({}, b"")  # type: ignore[assignment]  # do not read an earlier build
    folder = ROOT / "receipt_cli" / FOLDER
    folder.mkdir(exist_ok=True)
    written: dict[str, str] = {}
    whole = {**dict(definitions()), **dict(make_validators(written))}
    tables: dict[str, dict[str, tuple[Any, ...]]] = {
        "definitions": {where: (value,) for where, value in whole.items()}, "grammars": dict(grammars())
    }  # fmt: skip
    prefix = f"{ROOT / 'receipt_cli'}/"
    files = sorted(str(module.__file__) for name, module in sys.modules.items() if name.startswith("receipt_cli"))
    code = [path.removeprefix(prefix) for path in files if path.startswith(prefix)]
    for group, made in tables.items():
        entries, lines, length = {}, list[str](), 0
        for where, parts in made.items():
            source, ends = ROOT.joinpath(where).read_bytes(), []
            for part in parts:
                lines.append(json.dumps(pack(part), separators=(",", ":")) + "\n")
                length += len(lines[-1])
                ends.append(length)
            entries[where] = (len(source), zlib.crc32(source), *ends)
        table = {"code": code, "crc32": code_digest(tuple(code)), "entries": entries, "length": length}
        written[f"{group}.jsonl"] = "".join([json.dumps(table, separators=(",", ":")) + "\n", *reversed(lines)])
    for name, text in written.items():
        replace(folder / name, text.encode())
    for path in folder.glob("*.*"):
        if path.name not in written and path.suffix != ".part":  # a .part file may be another build's
            path.unlink(missing_ok=True)
    folder.joinpath("definitions.jsonl").touch()  # for make


def replace(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write ``content`` to the file at ``path`` atomically, unless the file already has it."""
    if not path.is_file() or path.read_bytes() != content:
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        partial.write_bytes(content)
        if mode is not None:
            partial.chmod(mode)
        partial.replace(path)


def definitions() -> Iterator[tuple[str, Any]]:
    """Yield (file, definition) for every definition except the grammars."""
    from receipt_cli.definitions.accelerators import PEAKS_PATH, parse_peaks
    from receipt_cli.definitions.failure_markers import MARKERS_PATH, parse_catalogue
    from receipt_cli.definitions.metrics import REGISTRY_PATH, parse_registry
    from receipt_cli.documents.schemas import parse_index as parse_schemas
    from receipt_cli.grammar.catalog import INDUCED_PATH, parse_fixtures, parse_index
    from receipt_cli.learn.vocabulary import read_vocabulary

    readers: dict[str, Callable[[bytes, str], Any]] = {
        f"schemas/{REGISTRY_PATH}": parse_registry,
        f"schemas/{PEAKS_PATH}": parse_peaks,
        "schemas/index.yaml": parse_schemas,
        "grammars/index.yaml": lambda text, where: tuple(parse_index(text, where)),
        "grammars/fixtures.yaml": parse_fixtures,
        f"grammars/{MARKERS_PATH}": parse_catalogue,
        f"grammars/{INDUCED_PATH}": read_vocabulary,
    }
    for where, read in readers.items():
        yield where, read(ROOT.joinpath(where).read_bytes(), where)


def grammars() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield (file, ((grammar without rules, rule heads), rules)) for every grammar.

    Fields stay definitions, because a field is made when a log first needs it.
    """
    for where, grammar in load_grammars().items():
        heads = tuple(head._replace(reading=grammar.rule(number).reading) for number, head in enumerate(grammar.heads))
        rules = []
        for rule in grammar.rules:
            bodies = rule.fields.bodies
            rules.append(changed(rule, fields={name: without_description(body) for name, body in bodies.items()}))
        yield where, ((changed(grammar, rules=(), ignore=()), heads), (tuple(rules), grammar.ignore))


@cache
def load_grammars() -> dict[str, Any]:
    """Return file → grammar for every grammar with rules."""
    from receipt_cli.grammar.catalog import INDUCED, list_grammars
    from receipt_cli.grammar.parse import load_grammar

    files = [f"grammars/{entry.path}" for entry in list_grammars() if entry.id != INDUCED]
    return {where: load_grammar(ROOT.joinpath(where).read_bytes(), where) for where in files}


ANNOTATIONS = {"$schema", "$id", "title", "description"}
"""Keywords that do not restrict a value."""
SCHEMAS_BY_NAME, SCHEMAS, PLAIN = {"properties", "$defs"}, {"items", "additionalProperties", "propertyNames", "not"}, {
    "type", "enum", "required", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "$ref",
}  # fmt: skip
"""Keywords of our schemas with the same meaning in draft 7, the newest draft that fastjsonschema supports."""


def make_validators(written: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Add a module for each JSON Schema, and one that loads them, to ``written``; yield (schema file, function name)."""
    from receipt_cli.documents.schemas import list_schemas

    opened = ['"""A validator of each schema, loaded when it is first called. Generated by hatch_build.py."""\n']
    for entry in list_schemas():
        if entry.path.endswith(".json"):
            where, name = f"schemas/{entry.path}", f"{entry.kind}_{entry.version.replace('.', '_')}"
            code = generate_validator(json.loads(ROOT.joinpath(where).read_bytes()))
            written[f"{name}.py"] = code
            load = f"    from receipt_cli._compiled.{name} import validate\n\n    return validate(document)\n"
            opened.append(f"\n\ndef {name}(document):\n{load}")
            yield where, name
    written["validators.py"] = "".join(opened)


def generate_validator(schema: Any) -> str:
    """Return the source of a module whose ``validate`` raises ``ValueError`` for a value that breaks ``schema``."""
    import fastjsonschema

    draft = {**simplify(schema), "$schema": "http://json-schema.org/draft-07/schema#", "$id": "document"}
    code = fastjsonschema.compile_to_code(draft, use_default=False, use_formats=False, detailed_exceptions=False)
    own = "JsonSchemaValueException = JsonSchemaValuesException = ValueError\nDecimal = float  # JSON has no other numbers"
    code = re.sub(r'("(?:[^"\\]|\\.)*")\.format\(\*\*locals\(\)\)', r"f\1", code)  # halves the time to validate a receipt
    left_out = ("VERSION", "import re", "from fastjsonschema", "from decimal")
    lines = [line.replace(" re.compile(", " compile_later(") for line in code.splitlines() if not line.startswith(left_out)]
    later = "from receipt_cli.patterns import compile_later"
    return "\n".join([later, own, *lines, "", "validate = validate_document", ""])


def simplify(schema: Any) -> Any:
    """Return the draft 2020-12 ``schema`` as an equivalent draft 7 schema. Raises ``ValueError`` for an unknown keyword."""
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in SCHEMAS_BY_NAME:
            made[keyword] = {name: simplify(each) for name, each in value.items()}
        elif keyword in SCHEMAS:
            made[keyword] = simplify(value)
        elif keyword in ("anyOf", "oneOf"):
            made[keyword] = [simplify(each) for each in value]
        elif keyword == "const":
            made["enum"] = [value]
        elif keyword in PLAIN:
            made[keyword] = value
        elif keyword not in ANNOTATIONS:
            raise ValueError(f"unknown schema keyword {keyword}")
    if "$ref" in made and len(made) > 1:  # draft 7 ignores keywords beside $ref
        made["allOf"] = [{"$ref": made.pop("$ref")}]
    return made


def without_description(body: Any) -> Any:
    """Return the definition of a field without its description."""
    return {key: value for key, value in body.items() if key != "description"} if body else body


if __name__ == "__main__":
    if sys.argv[1:] == ["kernel"]:
        print(f"kernel: {compile_kernel(print) or 'left out'}")
    else:
        compile_definitions()
