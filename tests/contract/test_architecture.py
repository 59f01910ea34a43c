"""The import table: which room of the package may know which other, and who owns each third-party package."""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "receipt_cli"

# One line a module: the modules of ours that it may import, each of which stands in a line above.
TABLE: dict[str, str] = {
    "errors": "",
    "units": "",
    "model": "",
    "literals": "",
    "magnitude": "",
    "statistics": "magnitude",
    "records": "",
    "looks": "",
    "columns": "",
    "resources": "errors",
    "definition_cache": "",
    "yaml_text": "errors",
    "definitions": "definition_cache yaml_text",
    "redact": "model records",
    "envelope": "columns records",
    "decompress": "",
    "ahead": "",
    "pipe": "",
    "source": "ahead decompress errors model pipe",
    "schemas": "definitions errors resources",
    "registry": "definitions errors resources units",
    "blindness": "",
    "grammar": "blindness",
    "grammar_field": "definitions errors grammar registry units",
    "grammar_file": "definitions errors grammar grammar_field registry",
    "grammar_bundle": "definition_cache definitions grammar grammar_field grammar_file resources",
    "markers": "definitions errors resources",
    "catalog": "definitions errors grammar grammar_bundle grammar_file resources",
    "match": "envelope grammar literals units",
    "stretch": "columns looks model records",
    "layout": "blindness envelope grammar markers match units",
    "examine": "columns envelope grammar layout markers match model stretch",
    "gate": "",
    "decimals": "units",
    "templates": "columns decimals envelope examine layout match model",
    "order": "columns templates",
    "bulk": "columns envelope examine gate layout model order records stretch templates",
    "scan": "bulk columns envelope examine gate grammar layout looks markers model records stretch",
    "parallel": "errors grammar markers scan source stretch",
    "runs": "columns",
    "frame": "columns grammar magnitude runs",
    "bars": "columns frame grammar",
    "copies": "columns frame grammar",
    "regular": "columns frame grammar runs",
    "timeline": "bars columns copies grammar match model regular runs scan stretch",
    "ranks": "columns copies frame runs timeline",
    "epochs": "columns frame timeline",
    "numbering": "bars frame regular timeline",
    "launches": "columns markers stretch timeline",
    "lanes": "errors source timeline",
    "gather": "columns lanes model parallel scan source stretch timeline",
    "inputs": "decompress errors",
    "phases": "grammar timeline",
    "consistency": "columns grammar magnitude phases scan statistics stretch",
    "ordinals": "magnitude",
    "detect": "columns consistency grammar ordinals scan stretch",
    "figures": "runs timeline",
    "rates": "figures runs timeline",
    "steady": "figures phases runs statistics timeline",
    "summary": "consistency figures phases rates registry statistics steady timeline",
    "rootcause": "columns stretch",
    "failure": "columns figures markers model phases rootcause stretch",
    "checks": "failure phases summary",
    "learn": "",
    "learn.vocabulary": "definitions errors registry",
    "learn.tokens": "envelope",
    "learn.forms": "columns envelope layout learn.tokens",
    "learn.mining": "layout learn.forms learn.tokens records",
    "learn.naming": "learn.mining learn.tokens learn.vocabulary",
    "learn.counting": "learn.mining learn.naming learn.tokens learn.vocabulary",
    "learn.choosing": "learn.counting learn.mining learn.naming learn.tokens learn.vocabulary",
    "learn.patterns": "learn.mining learn.naming learn.tokens",
    "learn.rules": "grammar learn.choosing learn.counting learn.naming learn.patterns learn.tokens learn.vocabulary",
    "learn.blocks": "grammar learn.choosing learn.counting learn.naming learn.patterns learn.rules learn.vocabulary",
    "learn.progress": "grammar learn.choosing learn.patterns learn.rules",
    "learn.learned": "learn.blocks learn.choosing learn.counting learn.mining learn.progress learn.rules learn.vocabulary",
    "learn.draft": "",
    "fallback": (
        "catalog detect epochs errors gather grammar grammar_file learn.learned learn.vocabulary markers model "
        "numbering registry scan source stretch timeline"
    ),
    "derive": (
        "catalog checks consistency detect epochs errors failure fallback gather grammar launches looks markers model "
        "numbering phases ranks redact registry scan source stretch summary timeline"
    ),
    "receipt": "derive failure model ranks redact statistics summary",
    "matrix": "catalog grammar registry",
    "lint": "definitions errors grammar grammar_file learn.vocabulary match model registry",
    "proof": "catalog derive grammar_file lint markers model resources source",
    "explain": "catalog derive envelope grammar looks match records redact source",
    "propose": (
        "derive errors explain fallback grammar grammar_file learn.draft learn.learned learn.rules learn.vocabulary "
        "lint redact source"
    ),
    "invariants": "",
    "invariants.rule": "",
    "invariants.statistics": "invariants.rule registry",
    "invariants.header": "invariants.rule",
    "invariants.receipt": "invariants.header invariants.rule invariants.statistics model",
    "shape": "",
    "validate": "errors invariants.header invariants.receipt invariants.rule schemas shape",
    "write": "errors",
    "header": "",
    "header.values": "",
    "header.facts": "header.values",
    "header.program": "",
    "header.document": "header.facts header.values",
    "header.environment": "errors header.document header.facts header.values",
    "header.header_file": "errors header.document header.facts header.values",
    "header.git": "header.facts header.program",
    "header.host": "header.facts header.values",
    "header.accelerators": "header.document header.facts header.program",
    "header.from_log": "header.facts",
    "header.collect": (
        "header.accelerators header.document header.environment header.facts header.git header.header_file header.host"
    ),
    "produce": (
        "derive errors header.collect header.from_log header.header_file header.host header.values inputs lanes "
        "receipt redact source validate"
    ),
    "render": "",
    "render.scale": "",
    "render.fields": "",
    "render.spark": "",
    "render.style": "",
    "render.text": "",
    "render.page": "render.style render.text",
    "render.progress": "render.style render.text",
    "render.table": "render.page render.style render.text",
    "render.identity": "render.fields render.page render.scale",
    "render.metrics": "render.fields render.page render.scale render.spark render.table",
    "render.outcome": "render.fields render.page render.scale render.style render.text",
    "render.phases": "render.fields render.page render.scale render.table",
    "render.receipt": "render.identity render.metrics render.outcome render.page render.phases render.style",
    "render.findings": "render.page render.scale render.style render.text",
    "render.explain": "render.fields render.page render.scale render.style render.table",
    "render.learned": "render.fields render.page render.scale render.style render.table",
    "cli": "",
    "cli.output": "errors render.progress render.style render.text",
    "cli.options": "",
    "cli.plain": "",
    "cli.parsing": "cli.output errors parallel produce receipt render.receipt write",
    "cli.parse": "cli.options cli.parsing",
    "cli.show": "cli.options cli.output errors render.receipt validate",
    "cli.checking": "checks cli.output errors parallel produce validate",
    "cli.check": "cli.checking cli.options",
    "cli.validate": "cli.options cli.output errors model render.findings validate",
    "cli.header": "cli.output produce receipt write",
    "cli.grammar": (
        "catalog cli.options cli.output errors explain fallback matrix produce proof propose render.explain "
        "render.findings render.learned render.table write"
    ),
    "cli.schema": "cli.options cli.output render.table schemas",
    "cli.app": "cli.check cli.grammar cli.header cli.parse cli.schema cli.show cli.validate",
    "cli.main": "cli.app cli.checking cli.output cli.parsing cli.plain errors",
    "__init__": "",
    "__main__": "cli.main",
}

# One line a package: the modules that may import it, at the top of the file or inside a function.
OWNERS: dict[str, tuple[str, ...]] = {
    "ahocorasick_rs": ("gate",),
    "git": ("header.git",),
    "hyperscan": ("gate",),
    "jsonschema": ("validate",),
    "numpy": (
        "bars", "bulk", "columns", "consistency", "copies", "decimals", "figures", "frame", "numbering", "ordinals",
        "rates", "records", "regular", "runs", "statistics", "steady", "templates",
    ),
    "psutil": ("header.host",),
    "pynvml": ("header.accelerators",),
    "regex": ("grammar", "grammar_field", "grammar_file", "learn.tokens", "lint", "markers", "match"),
    "rich": ("render.*",),
    "typer": ("cli.*",),
    "yaml": ("yaml_text",),
    "zlib_ng": ("decompress",),
    "zstandard": ("decompress",),
}

# Slow to load, and of no use to whoever only derives.
NOT_FOR_DERIVE = {"git", "hyperscan", "jsonschema", "numpy", "psutil", "pynvml", "rich", "typer"}

COMPLETE = "__main__"
"""Once this module exists, a line of the table without a file is an error; until then it is a plan."""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_names(tree: ast.AST) -> tuple[list[tuple[str, int]], list[str]]:
    """Return every ``(dotted name, line)`` that ``tree`` imports anywhere, and what has a wrong form."""
    names: list[tuple[str, int]] = []
    wrong: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(level=level) if level:
                wrong.append(f"line {node.lineno}: relative import")
            case ast.ImportFrom(module=str(module)):
                names += [(f"{module}.{alias.name}", node.lineno) for alias in node.names]
            case ast.Import():
                names += [(alias.name, node.lineno) for alias in node.names]
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[first, *_],
            ):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    names.append((first.value, node.lineno))
                else:
                    wrong.append(f"line {node.lineno}: import of a computed name")
    return names, wrong


def resolve(rest: str, table: Mapping[str, str]) -> str:
    """Return the module that ``receipt_cli.<rest>`` is or is in: the longest name that is known."""
    parts = rest.split(".")
    for length in range(len(parts), 0, -1):
        candidate = ".".join(parts[:length])
        if candidate in table or candidate in FILES:
            return candidate
    return (
        "__init__" if len(parts) == 1 else parts[0]
    )  # a name of the façade, or a module that does not exist


def examine(
    module: str, source: str, table: Mapping[str, str] = TABLE, owners: Mapping[str, tuple[str, ...]] = OWNERS
) -> tuple[set[str], list[str]]:
    """Return the modules of ours that ``source`` imports and what it violates."""
    names, wrong = imported_names(ast.parse(source))
    ours: set[str] = set()
    if module not in table:
        wrong.append("unlisted module: give it a line in TABLE")
    allowed = set(table.get(module, "").split())
    for name, line in names:
        top, _, rest = name.partition(".")
        if top == "receipt_cli":
            if rest == "__version__":
                continue
            target = resolve(rest, table) if rest else "__init__"
            ours.add(target)
            if module in table and target not in allowed:
                wrong.append(f"line {line}: imports {target}, which its line in TABLE does not list")
        elif top not in sys.stdlib_module_names and not any(
            fnmatchcase(module, o) for o in owners.get(top, ())
        ):
            wrong.append(
                f"line {line}: stray third party {top}: OWNERS gives it to {owners.get(top, 'nobody')}"
            )
    return ours, list(dict.fromkeys(wrong))  # several names of one statement are one violation


def upward(table: Mapping[str, str]) -> list[str]:
    """Return the entries of ``table`` that name a module not in a line above."""
    above: set[str] = set()
    wrong: list[str] = []
    for module, imports in table.items():
        wrong += [f"{module}: {name} is not in a line above" for name in imports.split() if name not in above]
        above.add(module)
    return wrong


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of imports, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_there_are_modules() -> None:
    assert {"errors", "units"} <= set(FILES)


@pytest.mark.parametrize("module", FILES)
def test_imports_follow_the_table(module: str) -> None:
    _, wrong = examine(module, FILES[module].read_text("utf-8"))
    assert not wrong, f"{FILES[module].name}: " + "; ".join(wrong)


def test_the_table_runs_one_way() -> None:
    assert upward(TABLE) == []


def test_imports_have_no_cycle() -> None:
    assert (
        cycle({module: examine(module, path.read_text("utf-8"))[0] for module, path in FILES.items()}) == []
    )


def test_every_line_of_the_table_is_a_module() -> None:
    planned = sorted(set(TABLE) - set(FILES))
    assert not planned or COMPLETE not in FILES, f"lines without a module: {planned}"


def test_every_dependency_has_an_owner() -> None:
    listed = {pattern for owners in OWNERS.values() for pattern in owners}
    assert {o for o in listed if not any(fnmatchcase(module, o) for module in TABLE)} == set()


def test_deriving_loads_no_terminal_git_or_schema_package() -> None:
    names = list(TABLE)
    pure = [f"receipt_cli.{m}" for m in names[: names.index("derive") + 1] if m in FILES]
    program = f"import sys, {', '.join(pure)}; print(*sorted({NOT_FOR_DERIVE!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


SMALL = {
    "errors": "",
    "model": "errors",
    "header": "",
    "header.git": "errors",
    "cli.main": "model header.git",
}


@pytest.mark.parametrize(
    ("module", "source", "want"),
    [
        pytest.param("surprise", "import json", "unlisted module", id="unlisted"),
        pytest.param("errors", "from receipt_cli.model import Line", "imports model", id="upward"),
        pytest.param(
            "errors", "from receipt_cli import model", "imports model", id="upward-from-the-package"
        ),
        pytest.param("errors", "import receipt_cli.cli.main as m", "imports cli.main", id="upward-dotted"),
        pytest.param(
            "model", "from receipt_cli.header import git", "imports header.git", id="upward-in-subpackage"
        ),
        pytest.param(
            "model", "from receipt_cli.header.git import facts", "imports header.git", id="upward-name"
        ),
        pytest.param("errors", "from receipt_cli import derive_all", "imports __init__", id="façade"),
        pytest.param("errors", "import receipt_cli", "imports __init__", id="bare-package"),
        pytest.param("model", "from receipt_cli.nowhere import x", "imports nowhere", id="unknown-module"),
        pytest.param("model", "def f():\n    from receipt_cli.header import git", "line 2", id="lazy"),
        pytest.param(
            "model",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from receipt_cli.cli.main import app",
            "imports cli.main",
            id="only-for-types",
        ),
        pytest.param("model", "import rich.table", "stray third party rich", id="not-the-owner"),
        pytest.param(
            "errors", "def f():\n    import typer", "stray third party typer", id="lazy-third-party"
        ),
        pytest.param("model", "import pandas", "nobody", id="not-a-dependency"),
        pytest.param("cli.main", "import click", "stray third party click", id="bundled-by-a-dependency"),
        pytest.param(
            "model",
            "import importlib\nimportlib.import_module('rich')",
            "stray third party rich",
            id="by-name",
        ),
        pytest.param("model", "__import__(name)", "computed name", id="computed-name"),
        pytest.param("model", "from .errors import ReceiptError", "relative import", id="relative"),
        pytest.param("model", "from . import errors", "relative import", id="relative-package"),
    ],
)
def test_a_violation_is_found(module: str, source: str, want: str) -> None:
    _, wrong = examine(module, source, SMALL)
    assert len(wrong) == 1
    assert want in wrong[0]


@pytest.mark.parametrize(
    ("module", "source", "ours"),
    [
        ("model", "import json\nfrom receipt_cli.errors import ReceiptError", {"errors"}),
        ("model", "from receipt_cli import __version__, errors", {"errors"}),
        ("header.git", "def f():\n    import git\n    from receipt_cli import errors", {"errors"}),
        ("cli.main", "import typer\nfrom receipt_cli.header import git", {"header.git"}),
    ],
)
def test_what_the_table_allows_passes(module: str, source: str, ours: set[str]) -> None:
    assert examine(module, source, SMALL) == (ours, [])


def test_an_upward_line_is_found() -> None:
    assert upward({"errors": "model", "model": ""}) == ["errors: model is not in a line above"]
    assert upward({"errors": "errors"}) == ["errors: errors is not in a line above"]


def test_a_cycle_is_found() -> None:
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


POSSESSIVE_GROUP = re.compile(r"\)(?:[?*+]|\{[\d,]+\})\+|\(\?>")


def test_the_standard_re_gets_no_possessive_groups() -> None:
    """CPython before 3.11.5 leaves such a group half matched (gh-106052): other bytes on another Python."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("re.") and call.args:
                texts = [str(n.value) for n in ast.walk(call.args[0]) if isinstance(n, ast.Constant)]
                found += [f"{path.name}:{call.lineno}" for text in texts if POSSESSIVE_GROUP.search(text)]
    assert found == []
