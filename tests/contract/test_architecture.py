"""The rooms of the package: which may import which, and who owns each third-party package."""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "receipt_cli"

# One line a room: the rooms that it may import, each of which stands in a line above.
ROOMS: dict[str, str] = {
    "patterns": "",
    "errors": "",
    "problems": "",
    "definitions": "errors problems",
    "header": "errors problems",
    "records": "",
    "io": "errors problems records",
    "numeric": "errors",
    "grammar": "definitions errors",
    "wrap": "errors io",
    "redaction": "problems records",
    "evidence": "errors redaction",
    "scan": "definitions errors grammar io numeric problems records",
    "documents": "definitions errors header io problems redaction",
    "events": "definitions errors grammar io numeric problems records scan",
    "learn": "definitions errors grammar problems records",
    "analysis": "definitions events grammar numeric problems records scan",
    "detect": "definitions errors events grammar io learn numeric problems records scan",
    "emit": "documents header io",
    "derive": "analysis definitions detect errors events grammar io problems records redaction scan",
    "store": "analysis definitions documents errors io numeric redaction",
    "authoring": "definitions derive detect errors grammar io learn problems records redaction scan",
    "receipts": (
        "analysis authoring definitions derive documents errors events header io numeric problems records redaction scan"
    ),
    "batch": "authoring definitions derive documents errors grammar header io receipts redaction scan store",
    "comparison": "analysis definitions documents errors events io numeric problems receipts redaction store",
    "export": "analysis definitions documents errors events io numeric receipts redaction",
    "follow": "analysis derive documents errors events io receipts scan",
    "gpu_profile": "errors header io numeric problems receipts redaction",
    "importers": (
        "analysis definitions derive detect errors events grammar header io numeric problems receipts records redaction scan"
    ),
    "history": "analysis comparison definitions documents numeric problems",
    "render": "analysis documents follow problems redaction",
    "verification": "derive detect documents errors events grammar header importers io problems receipts redaction",
    "ci": "analysis comparison definitions documents errors io problems render",
    "report": "analysis comparison definitions documents errors history numeric receipts redaction render store",
    "api": (
        "analysis authoring batch comparison definitions documents errors grammar importers io receipts records redaction render "
        "scan store verification"
    ),
    "mcp_server": "errors problems store",
    "cli": (
        "analysis api authoring batch ci comparison definitions derive detect documents errors evidence export follow "
        "gpu_profile grammar history importers io mcp_server problems receipts redaction render report scan store wrap"
    ),
    "__main__": "cli",
}
GROUND = {"patterns", "_compiled"}
"""What every room may import: it holds no logic of the program."""
MOST_AT_ROOT = 6

# The fast paths: the modules that may import each.
SEAMS = {"scan.kernel": ("scan.engine", "scan.presence")}

# One line a module of ``events``: its classes. A record is a row of an ``EventTable``: no other class stands for one.
CLASSES = {
    "events.attempts": "Additions Attempts BySteps",
    "events.copies": "_Prints",
    "events.counters": "Contest",
    "events.doubts": "Hole",
    "events.epochs": "_Lengths _Running",
    "events.file_order": "Lane Part SeveralRuns",
    "events.launches": "Launch _Walk",
    "events.naming.cells": "Ledger Notes Orphans Stretch _Columns _Part",
    "events.naming.digits": "Read _Recipe",
    "events.phases": "Phase _Draft _Sweep",
    "events.printed_digits": "Digits PrintedDigits",
    "events.ranks": "RankFigures",
    "events.runs": "ReadEvents",
    "events.starts": "Alike Known Starts",
    "events.streams": "FileFacts Gathered LogFacts",
    "events.table": "Cell Column EventTable Log Places Row Series Source _Column _Printed _Value",
}

# One line a package: the modules that may import it, at the top of the file or inside a function.
OWNERS: dict[str, tuple[str, ...]] = {
    "accelerate": ("emit.callbacks.accelerate",),
    "ahocorasick_rs": ("records.heuristics", "redaction.forms"),
    "anyio": ("mcp_server.*",),
    "charset_normalizer": ("io.encoding",),
    "cryptography": ("verification.attestation",),
    "duckdb": ("io.duckdb",),
    "fsspec": ("batch.remote",),
    "git": ("header.git",),
    "jsonschema": ("definitions.reading",),
    "keras": ("emit.callbacks.keras",),
    "lightning": ("emit.callbacks.lightning",),
    "matplotlib": ("api.*",),
    "numpy": (
        "numeric.*",
        "analysis.*",
        "api.*",
        "comparison.*",
        "detect.*",
        "events.*",
        "export.*",
        "gpu_profile.*",
        "history.*",
        "receipts.*",
        "report.*",
        "scan.*",
    ),
    "mcp": ("mcp_server.*",),
    "mcp_types": ("mcp_server.*",),
    "mlflow": ("export.mlflow_store",),
    "opentelemetry": ("emit.otel",),
    "pandas": ("api.frames",),
    "psutil": ("follow.loop", "header.host", "wrap.job", "wrap.sampling"),
    "pyarrow": ("api.frames",),
    "pydantic": ("mcp_server.*",),
    "pynvml": ("header.host", "wrap.sampling"),
    "pytorch_lightning": ("emit.callbacks.lightning",),
    "ray": ("batch.ray_engine",),
    "pyroaring": ("numeric.ordinals",),
    "regex": ("patterns", "definitions.*", "grammar.*", "learn.*", "authoring.*", "scan.*"),
    "requests": ("verification.keyless",),
    "rich": ("render.*",),
    "securesystemslib": ("verification.attestation",),
    "sigstore": ("verification.keyless",),
    "sqlalchemy": ("export.mlflow_store",),
    "torch": ("emit.callbacks.lightning",),
    "transformers": ("emit.callbacks.hugging_face",),
    "typer": ("cli.*",),
    "yaml": ("definitions.strict_yaml",),
    "zlib_ng": ("io.compression",),
    "zstandard": ("io.compression",),
}

# Slow to load, and of no use to whoever only derives.
NOT_FOR_DERIVE = {"git", "jsonschema", "psutil", "pynvml", "rich", "typer"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if "_compiled" not in path.parts}


@cache
def imported_names(source: str) -> tuple[list[tuple[str, int]], list[str]]:
    """Return every ``(dotted name, line)`` that ``source`` imports anywhere, and what has a wrong form."""
    names: list[tuple[str, int]] = []
    wrong: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(level=level) if level:
                wrong.append(f"line {node.lineno}: relative import")
            case ast.ImportFrom(module=str(module)):
                names += [(f"{module}.{alias.name}", node.lineno) for alias in node.names]
            case ast.Import():
                names += [(alias.name, node.lineno) for alias in node.names]
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"), args=[first, *_]
            ):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    names.append((first.value, node.lineno))
                elif not ast.unparse(first).startswith("f'{__name__}."):  # a module below the own one
                    wrong.append(f"line {node.lineno}: import of a computed name")
    return names, wrong


def behind_seams(module: str, source: str) -> list[str]:
    """Return what ``source`` imports of a fast path that its module may not."""
    wrong: list[str] = []
    for name, line in imported_names(source)[0]:
        target = resolve(name.removeprefix("receipt_cli."))
        for seam, importers in SEAMS.items():
            if not is_inside(target, seam) or is_inside(module, seam):
                continue
            if module not in importers:
                wrong.append(f"line {line}: {seam} is imported by {' and '.join(importers)} alone")
    return wrong


def is_inside(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def resolve(rest: str) -> str:
    """Return the module that ``receipt_cli.<rest>`` is or is in: the longest name that is known."""
    parts = rest.split(".")
    for length in range(len(parts), 0, -1):
        candidate = ".".join(parts[:length])
        if candidate in FILES:
            return candidate
    return "__init__" if len(parts) == 1 else parts[0]  # a name of the façade, or a module that does not exist


def room_of(module: str) -> str:
    return module.split(".")[0]


def examine(
    module: str, source: str, rooms: Mapping[str, str] = ROOMS, owners: Mapping[str, tuple[str, ...]] = OWNERS
) -> tuple[set[str], list[str]]:
    """Return the modules of ours that ``source`` imports and what it violates."""
    names, malformed = imported_names(source)
    wrong = list(malformed)
    ours: set[str] = set()
    room = room_of(module)
    if room not in rooms and module != "__init__":
        wrong.append("unlisted room: give it a line in ROOMS")
    allowed = {room, *GROUND, *rooms.get(room, "").split()}
    for name, line in names:
        top, _, rest = name.partition(".")
        if top == "receipt_cli":
            if rest == "__version__":
                continue
            target = resolve(rest) if rest else "__init__"
            ours.add(target)
            if room in rooms and room_of(target) not in allowed:
                wrong.append(f"line {line}: imports {target}, whose room its line in ROOMS does not list")
            elif room_of(target) != room and rest.rpartition(".")[2].startswith("_"):
                wrong.append(f"line {line}: {rest} is private to the room {room_of(target)}")
        elif top not in sys.stdlib_module_names and not any(fnmatchcase(module, o) for o in owners.get(top, ())):
            wrong.append(f"line {line}: stray third party {top}: OWNERS gives it to {owners.get(top, 'nobody')}")
    return ours, list(dict.fromkeys(wrong))  # several names of one statement are one violation


def upward(rooms: Mapping[str, str]) -> list[str]:
    """Return the entries of ``rooms`` that name a room not in a line above."""
    above: set[str] = set()
    wrong: list[str] = []
    for room, imports in rooms.items():
        wrong += [f"{room}: {name} is not in a line above" for name in imports.split() if name not in above]
        above.add(room)
    return wrong


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of imports, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@cache
def texts() -> dict[str, str]:
    """Return what every module says."""
    return {module: path.read_text("utf-8") for module, path in FILES.items()}


@cache
def imports() -> dict[str, tuple[set[str], list[str]]]:
    """Return what every module imports of ours, and what it violates."""
    return {module: examine(module, text) for module, text in texts().items()}


def test_imports_follow_the_rooms() -> None:
    assert {module: wrong for module, (_, wrong) in imports().items() if wrong and module not in GROUND} == {}
    assert len(imports()) > 350


def test_fast_paths_have_one_importer() -> None:
    wrong = {module: found for module, text in texts().items() if (found := behind_seams(module, text))}
    assert wrong == {}
    for seam, importers in SEAMS.items():
        for importer in importers:
            assert any(is_inside(target, seam) for target in imports()[importer][0]), f"{importer} does not import {seam}"


@pytest.mark.parametrize(
    ("module", "source", "want"),
    [
        ("analysis.rates", "from receipt_cli.scan.kernel import reader", "by scan.engine and scan.presence alone"),
        ("scan.workers", "def f():\n    from receipt_cli.scan import kernel", "line 2: scan.kernel is imported"),
    ],
)
def test_a_way_around_a_seam_is_found(module: str, source: str, want: str) -> None:
    [wrong] = behind_seams(module, source)
    assert want in wrong


def test_the_rooms_run_one_way() -> None:
    assert upward(ROOMS) == []


def test_imports_have_no_cycle() -> None:
    assert cycle({module: ours for module, (ours, _) in imports().items()}) == []


def test_every_line_is_a_room_and_every_import_of_it_is_used() -> None:
    assert {module for module in map(room_of, FILES) if module != "__init__"} == set(ROOMS)
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, (ours, _) in imports().items():
        used.get(room_of(module), set()).update(map(room_of, ours))
    assert {room: set(names.split()) - used[room] for room, names in ROOMS.items() if set(names.split()) - used[room]} == {}


def test_a_record_is_a_row_of_the_table() -> None:
    ours = {module: text for module, text in texts().items() if room_of(module) == "events"}
    made = {module: re.findall(r"^class (\w+)", text, re.MULTILINE) for module, text in ours.items()}
    assert {module: " ".join(sorted(names)) for module, names in made.items() if names} == CLASSES


def test_few_modules_stand_at_the_root() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_AT_ROOT


def test_every_dependency_has_an_owner() -> None:
    listed = {pattern for owners in OWNERS.values() for pattern in owners}
    assert {o for o in listed if not any(fnmatchcase(module, o) for module in FILES)} == set()


def test_deriving_loads_no_terminal_git_or_schema_package() -> None:
    names = ", ".join(f"receipt_cli.{m}" for m in FILES if room_of(m) in {"derive", *closure("derive")})
    program = f"import sys, {names}; print(*sorted({NOT_FOR_DERIVE!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def closure(room: str) -> set[str]:
    """Return the rooms that ``room`` stands on."""
    below = set(ROOMS[room].split())
    return below.union(*(closure(name) for name in below))


SMALL = {"errors": "", "problems": "errors", "header": "", "wrap": "problems header", "cli": "problems header"}


@pytest.mark.parametrize(
    ("module", "source", "want"),
    [
        pytest.param("surprise", "import json", "unlisted room", id="unlisted"),
        pytest.param("errors", "from receipt_cli.problems import Problem", "imports problems", id="upward"),
        pytest.param("cli.main", "from receipt_cli.header.git import _facts", "is private", id="private"),
        pytest.param("errors", "from receipt_cli import derive_all", "imports __init__", id="façade"),
        pytest.param("problems", "def f():\n    from receipt_cli.header import git", "line 2", id="lazy"),
        pytest.param(
            "problems",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from receipt_cli.cli.main import app",
            "imports cli.main",
            id="only-for-types",
        ),
        pytest.param("problems", "import rich.table", "stray third party rich", id="not-the-owner"),
        pytest.param("problems", "import polars", "nobody", id="not-a-dependency"),
        pytest.param("problems", "import importlib\nimportlib.import_module('rich')", "stray third party rich", id="by-name"),
        pytest.param("problems", "__import__(name)", "computed name", id="computed-name"),
        pytest.param("problems", "from .errors import ReceiptError", "relative import", id="relative"),
    ],
)
def test_a_violation_is_found(module: str, source: str, want: str) -> None:
    _, wrong = examine(module, source, SMALL)
    assert len(wrong) == 1
    assert want in wrong[0]


def test_an_upward_line_is_found() -> None:
    assert upward({"errors": "problems", "problems": ""}) == ["errors: problems is not in a line above"]
    assert upward({"errors": "errors"}) == ["errors: errors is not in a line above"]


def test_a_cycle_is_found() -> None:
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


POSSESSIVE_GROUP = re.compile(r"\)(?:[?*+]|\{[\d,]+\})\+|\(\?>")


def test_the_standard_re_gets_no_possessive_groups() -> None:
    """CPython before 3.11.5 leaves such a group half matched (gh-106052): other bytes on another Python."""
    found = []
    for module, text in texts().items():
        for call in ast.walk(ast.parse(text)) if POSSESSIVE_GROUP.search(text) else ():
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[first, *_]):
                    constants = [str(n.value) for n in ast.walk(first) if isinstance(n, ast.Constant)]
                    found += [f"{module}:{call.lineno}" for constant in constants if POSSESSIVE_GROUP.search(constant)]
    assert found == []
