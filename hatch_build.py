"""Compile the shipped definitions into ``receipt_cli/_compiled``, and the kernel of the scan where there is a compiler.

A build hook of hatchling for wheels and editable installations; ``make compile`` and ``make kernel`` call it, too.
``receipt_cli.definitions.compiled`` and ``receipt_cli.scan.kernel`` read what it writes.
"""

from __future__ import annotations

import array
import base64
import contextlib
import gc
import json
import os
import re
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as changed
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


KERNEL = "receipt_cli.scan.kernel._native"
KERNEL_SOURCE = "native/kernel.c"
LEFT_OUT = "RECEIPT_KERNEL"
"""The environment variable that leaves the kernel out where it is ``0``: of a wheel, too."""


class Compile(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles before the files of a wheel are collected."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the compiled files and make them part of the wheel, although git ignores them."""
        compile_definitions(self.app.display_warning)
        build_data["artifacts"].extend(f"/receipt_cli/_compiled/*.{kind}" for kind in ("jsonl", "py"))
        made = compile_kernel(self.app.display_warning)
        if made is not None:
            build_data["artifacts"].append(f"/{made.relative_to(ROOT).as_posix()}")
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_kernel(warn: Callable[[str], None]) -> Path | None:
    """Compile the kernel into the package and return its file; None, after a warning, where that cannot be done."""
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
        warn("the kernel is left out, and logs are read more slowly: setuptools is not installed")
        return None
    # No fused operations: the kernel proves its rounding step by step. No debugging information: it names folders.
    options = [] if os.name == "nt" else ["-std=c99", "-O2", "-g0", "-ffp-contract=off", "-fvisibility=hidden"]
    extension = Extension(KERNEL, [str(ROOT / KERNEL_SOURCE)], extra_compile_args=options, py_limited_api=True)
    command: Any = Distribution({"name": "receipt-cli", "ext_modules": [extension]}).get_command_obj("build_ext")
    with tempfile.TemporaryDirectory() as scratch:
        command.build_lib, command.build_temp = f"{scratch}/lib", f"{scratch}/temp"
        try:
            command.ensure_finalized()
            command.run()
        except (BaseError, CCompilerError, OSError) as error:
            warn(f"the kernel is left out, and logs are read more slowly: {error}")
            return None
        (built,) = map(Path, command.get_outputs())
        target = folder / built.name
        replace(target, built.read_bytes(), 0o755)
    return target


def compile_definitions(warn: Callable[[str], None]) -> None:
    """Write what changed in ``receipt_cli/_compiled``; a program that runs meanwhile finds each file whole.

    Patterns are left out, after a warning, where an engine is not as this code knows it.
    """
    sys.path.insert(0, str(ROOT))
    from receipt_cli.definitions import compiled
    from receipt_cli.definitions.compiled import FOLDER, code_digest, pack

    compiled._entries = lambda group: ({}, b"")  # type: ignore[assignment]  # nothing is made of what an earlier build made
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
    try:
        patterns = dict(make_patterns())
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        warn(f"a start takes longer, as it compiles its patterns: {error}")
        patterns = {}
    for name, text in patterns.items():
        written[name] = text
        replace(folder / name, text.encode())
    for path in folder.glob("*.*"):
        if path.name not in written and path.suffix != ".part":  # another build's
            path.unlink(missing_ok=True)
    folder.joinpath("definitions.jsonl").touch()  # for make


def replace(path: Path, content: bytes, mode: int | None = None) -> None:
    """Give the file at ``path`` its ``content`` in one step; it is left as it is where it has that."""
    if not path.is_file() or path.read_bytes() != content:
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        partial.write_bytes(content)
        if mode is not None:
            partial.chmod(mode)
        partial.replace(path)


def definitions() -> Iterator[tuple[str, Any]]:
    """Yield every definition but the grammars, with its file."""
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
    """Yield every grammar with its file: without its rules but with their heads, and the rules.

    Of a field its definition stays: it is made when a log first needs it.
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
    """Return every grammar with rules, by its file."""
    from receipt_cli.grammar.catalog import INDUCED, list_grammars
    from receipt_cli.grammar.parse import load_grammar

    files = [f"grammars/{entry.path}" for entry in list_grammars() if entry.id != INDUCED]
    return {where: load_grammar(ROOT.joinpath(where).read_bytes(), where) for where in files}


Source = tuple[str | bytes, int]
"""The text of a pattern, and its flags."""


def make_patterns() -> Iterator[tuple[str, str]]:
    """Yield the files of ``receipt_cli.lazy_pattern``: what the engines make of the patterns of modules, grammars and markers.

    Left out are modules whose packages are not here.
    """
    from receipt_cli import lazy_pattern as lazy
    from receipt_cli.grammar.digit_sensitivity import digits_compared
    from receipt_cli.records.envelope import ENVELOPE

    lazy._opened.update({engine: ({}, b"") for engine in lazy.STORES})  # type: ignore[attr-defined]  # as above
    digits_compared.cache_clear()
    # The order of sets decides the order of codes: each build shall write the same.
    import_module("regex._regex_core").RegexBase.__hash__ = lambda part: steady_digest(part._key)
    of_re, of_regex = sources_of_modules()
    of_regex |= {(source, 0) for source in sources_of_definitions()}
    patterns = {source if isinstance(source, str) else source.decode("latin-1") for source, _ in of_regex}
    compared = {pattern: digits_compared(pattern) for pattern in {*patterns, ENVELOPE.pattern.decode("latin-1")}}
    digits: dict[Source, list[Any]] = {
        (pattern, 0): [each and [sorted(texts) for texts in each]] for pattern, each in compared.items()
    }
    yield pack_patterns("digits", digits)
    yield pack_patterns("re", {each: given_to_engine("re", *each) for each in of_re})
    regex_parts = {each: given_to_engine("regex", *each) for each in of_regex}
    # Left out are the names by number, which are those by name, and lists with names, which we have none of.
    made = {each: [*parts[:3], *parts[6:]] for each, parts in regex_parts.items() if not parts[4]}
    yield pack_patterns("regex", made)


def pack_patterns(engine: str, made: Mapping[Source, Sequence[Any]]) -> tuple[str, str]:
    """Return name and content of an engine's file: its release, where each pattern begins, counted from the end, the patterns."""
    from receipt_cli import lazy_pattern as lazy

    keys, places, lines, length = [], [], [], 0
    for source, flags in sorted(made, key=repr):
        text = source if isinstance(source, str) else source.decode("latin-1")
        line = json.dumps([type(source).__name__, text, flags, *made[source, flags]], separators=(",", ":")) + "\n"
        length += len(line)
        lines.append(line)
        keys.append(lazy.key_of(source, flags))  # type: ignore[attr-defined]
        places.append(length)
    release = [sys.byteorder, *lazy.release_of(engine)]  # type: ignore[attr-defined]
    head = json.dumps([release, length, in_base64(keys), in_base64(places)], separators=(",", ":"))
    return lazy.STORES[engine], "".join([head, "\n", *reversed(lines)])  # type: ignore[attr-defined]


def in_base64(numbers: Sequence[int]) -> str:
    """Return numbers of 32 bits as text."""
    return base64.b64encode(array.array("I", numbers)).decode()


def sources_of_modules() -> tuple[set[Source], set[Source]]:
    """Return the patterns that our modules compile later, as ``re`` and as ``regex`` read them."""
    from receipt_cli import lazy_pattern as lazy

    invalidate_caches()
    for path in sorted(ROOT.joinpath("receipt_cli").rglob("*.py")):
        if b"_later" not in path.read_bytes():
            continue
        with contextlib.suppress(ImportError):
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    later = [value.given for value in gc.get_objects() if type(value) is lazy.Later]  # type: ignore[attr-defined]
    of_regex = {(source, flags) for make, source, flags in later if make is lazy.compile_regex}
    return {(source, flags) for _, source, flags in later} - of_regex, of_regex


def given_to_engine(name: str, source: str | bytes, flags: int) -> list[Any]:
    """Return what ``re`` or ``regex`` gives its engine in C for a pattern, behind the source."""
    module = import_module({"re": "re._compiler", "regex": "regex._main"}[name])
    inner = {"re": "_sre", "regex": "_regex"}[name]
    engine, given = getattr(module, inner), list[Any]()

    class Listening:
        """Takes down what the engine is given."""

        def __getattr__(self, attribute: str) -> Any:
            return getattr(engine, attribute)

        def compile(self, *arguments: Any) -> Any:
            given[:] = arguments
            return engine.compile(*arguments)

    setattr(module, inner, Listening())
    try:
        public = import_module(name)
        public.purge()
        public.compile(source, flags)
    finally:
        setattr(module, inner, engine)
    _, all_flags, code, *rest = given
    return [all_flags, in_base64(code), *rest]


def steady_digest(key: Any) -> int:
    """Return a digest of what a part of a pattern is, which is the same in each process, as ``hash`` of a class is not."""
    if isinstance(key, tuple | list):
        return zlib.crc32(repr([*map(steady_digest, key)]).encode())
    return zlib.crc32(repr(key).encode()) if not hasattr(key, "_key") else steady_digest(key._key)


def sources_of_definitions() -> set[str | bytes]:
    """Return the patterns of grammars and failure markers as their readers compile them."""
    from receipt_cli.definitions.failure_markers import load_catalogue
    from receipt_cli.grammar import model

    found = set[str | bytes]()

    def listen(source: str | bytes, flags: int = 0) -> None:
        found.add(source)

    compile_regex, model.compile_regex = model.compile_regex, listen  # type: ignore[attr-defined]
    try:
        for rule in (rule for grammar in load_grammars().values() for rule in (*grammar.rules, *grammar.ignore)):
            wanted = ["stop", "cells", "opening"]
            wanted += [*["start"] * bool(rule.pattern or rule.pairs), *["table_patterns"] * bool(rule.table)]
            wanted += ["block_patterns"] * bool(rule.block)
            for name in wanted:
                getattr(type(rule), name).func(rule)  # the rule itself keeps nothing of it
            found |= {field.value.pattern for field in rule.fields.values() if field.value is not None}
    finally:
        model.compile_regex = compile_regex  # type: ignore[attr-defined]
    for marker in load_catalogue().markers:
        found |= {source.encode("ascii") for source in (marker.source, marker.core) if source is not None}
    return found


ANNOTATIONS = {"$schema", "$id", "title", "description"}
"""Keywords that demand nothing."""
SCHEMAS_BY_NAME, SCHEMAS, PLAIN = {"properties", "$defs"}, {"items", "additionalProperties", "propertyNames", "not"}, {
    "type", "enum", "required", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "$ref",
}  # fmt: skip
"""Keywords that our schemas use, which mean the same in draft 7, the newest that fastjsonschema knows."""


def make_validators(written: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Add a module for each JSON Schema, and one that opens them, to ``written``; yield each schema with its function's name."""
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
    """Return a module of plain Python whose ``validate`` raises ``ValueError`` for what does not keep ``schema``."""
    import fastjsonschema

    draft = {**simplify(schema), "$schema": "http://json-schema.org/draft-07/schema#", "$id": "document"}
    code = fastjsonschema.compile_to_code(draft, use_default=False, use_formats=False, detailed_exceptions=False)
    own = "JsonSchemaValueException = JsonSchemaValuesException = ValueError\nDecimal = float  # JSON has no other numbers"
    code = re.sub(r'("(?:[^"\\]|\\.)*")\.format\(\*\*locals\(\)\)', r"f\1", code)  # half the time of a receipt
    left_out = ("VERSION", "import re", "from fastjsonschema", "from decimal")
    lines = [line.replace(" re.compile(", " compile_later(") for line in code.splitlines() if not line.startswith(left_out)]
    later = "from receipt_cli.lazy_pattern import compile_later"
    return "\n".join([later, own, *lines, "", "validate = validate_document", ""])


def simplify(schema: Any) -> Any:
    """Return ``schema``, of draft 2020-12, as draft 7 with the same meaning. Raises ``ValueError`` for an unknown keyword."""
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
            raise ValueError(f"{keyword} is not known here")
    if "$ref" in made and len(made) > 1:  # in draft 7 the others would not count
        made["allOf"] = [{"$ref": made.pop("$ref")}]
    return made


def without_description(body: Any) -> Any:
    """Return the definition of a field without what is only for people to read."""
    return {key: value for key, value in body.items() if key != "description"} if body else body


if __name__ == "__main__":
    if sys.argv[1:] == ["kernel"]:
        print(f"kernel: {compile_kernel(print) or 'left out'}")
    else:
        compile_definitions(print)
