"""What is read without typer is what typer would have read, and is left to it wherever that is not certain."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.main import get_command

from receipt_cli.cli import check, parse
from receipt_cli.cli.app import app
from receipt_cli.cli.checking import run_check
from receipt_cli.cli.parsing import run_parse
from receipt_cli.cli.plain import OPTIONS, read_plain

ROOT = Path(__file__).resolve().parents[2]
DECLARED = {"parse": (parse.parse, run_parse), "check": (check.check, run_check)}
WORDS = sorted({"--help", "-h", "--", "--js", "-x", "-ofile"}.union(*OPTIONS.values()))
VALUES = [
    *("a.log", "b c.log", "-", "", "ä", "\x1b", "kind=uri", "auto", "Auto", "never"),
    *("0", "1", "007", "256", "257", "-1", "+3", "1_0"),
]


def by_typer(arguments: list[str]) -> dict[str, Any] | None:
    """Return what typer gives to the parameters of the command, or None where it refuses or prints help."""
    command: Any = get_command(app)
    try:
        with command.commands[arguments[0]].make_context(arguments[0], arguments[1:]) as context:
            return {name: list(v) if isinstance(v, tuple) else v for name, v in context.params.items()}
    except Exception as error:  # its kinds of refusal live where we may not import from
        assert type(error).__module__.startswith("typer"), error
        return None


def as_typer_has_it(command: str, given_values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the defaults of what is not given; typer has an empty list where None is the default."""
    signature = inspect.signature(DECLARED[command][0])
    return {name: given_values.get(name, parameter.default) for name, parameter in signature.parameters.items()}


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    word = st.sampled_from(WORDS + VALUES)
    joined = st.tuples(st.sampled_from(WORDS), st.sampled_from(VALUES)).map("=".join)
    pair = st.tuples(st.sampled_from(WORDS), st.sampled_from(VALUES)).map(list)
    parts = draw(st.lists(st.one_of(word.map(lambda w: [w]), joined.map(lambda w: [w]), pair), max_size=6))
    return [draw(st.sampled_from(sorted(OPTIONS))), *(text for part in parts for text in part)]


@settings(max_examples=400, deadline=None)
@given(lines())
def test_read_as_typer_reads(arguments: list[str]) -> None:
    plain = read_plain(arguments, {})
    if plain is None:
        return
    found = by_typer(arguments)
    assert found is not None, "typer refuses this line"
    mine = as_typer_has_it(*plain)
    assert {k: v or None for k, v in found.items()} == {k: v or None for k, v in mine.items()}
    assert {k: type(v) for k, v in found.items() if v} == {k: type(v) for k, v in mine.items() if v}


@pytest.mark.parametrize("command", sorted(OPTIONS))
def test_every_option_is_read(command: str) -> None:
    declared: Any = get_command(app)
    spelled = {o for p in declared.commands[command].params for o in p.opts if o.startswith("-")} - {"--help", "-h"}
    assert set(OPTIONS[command]) == spelled


@pytest.mark.parametrize("command", sorted(OPTIONS))
def test_the_defaults_stand_twice_and_agree(command: str) -> None:
    declared, run = (inspect.signature(function).parameters for function in DECLARED[command])
    assert {n: p.default for n, p in declared.items()} == {n: p.default for n, p in run.items()}


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["parse", "a.log"], ("parse", {"logs": ["a.log"]})),
        (["parse", "-", "--json"], ("parse", {"logs": ["-"], "json_output": True})),
        (["parse", "a", "b", "-o", "r", "--workers=2"], ("parse", {"logs": ["a", "b"], "output": Path("r"), "workers": 2})),
        (["parse", "a", "--attach", "k=u", "--attach=k=v"], ("parse", {"logs": ["a"], "attach": ["k=u", "k=v"]})),
        (["check", "a", "--exit-code", "1", "--proven"], ("check", {"file": "a", "exit_code": 1, "proven": True})),
    ],
)  # fmt: skip
def test_plain_lines(arguments: list[str], want: tuple[str, dict[str, Any]]) -> None:
    assert read_plain(arguments, {}) == want


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["show", "a"],
        ["parse"],
        ["parse", "--help"],
        ["parse", "a", "--json", "--json"],
        ["parse", "a", "--exit-code", "-1"],
        ["parse", "a", "--exit-code"],
        ["parse", "a", "--workers", "0"],
        ["parse", "a", "--color", "green"],
        ["parse", "a", "--json=1"],
        ["parse", "--", "-a"],
        ["parse", "a\udcff"],
        ["check", "a", "b"],
    ],
)
def test_left_to_typer(arguments: list[str]) -> None:
    assert read_plain(arguments, {}) is None


def test_completion_is_left_to_typer() -> None:
    assert read_plain(["parse", "a"], {"_RECEIPT_COMPLETE": "bash_source"}) is None


@pytest.mark.parametrize("command", sorted(OPTIONS))
def test_a_plain_line_loads_only_what_it_needs(command: str) -> None:
    log = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
    heavy = {"typer", "pydantic", "rich", "jsonschema", "numpy", "git", "psutil", "yaml", "email"}
    program = (
        f"import sys; sys.argv = ['receipt', {command!r}, {str(log)!r}]\n"
        "from receipt_cli.cli.main import main\n"
        f"try:\n    main()\nfinally:\n    print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    )
    command_line = [sys.executable, "-c", program]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command_line, capture_output=True, env=env, check=False)  # fills the cache of definitions
    done = subprocess.run(command_line, capture_output=True, text=True, env=env, check=False)
    assert done.stderr.strip() == "[]"
