"""One reading of the command line: every spelling gives the same values, and what is wrong is refused with a way out."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.cli.app import ABOUT, Command, run
from receipt_cli.cli.commands import ALIASES, COMMANDS, GROUPS, SECTIONS, load, summaries
from receipt_cli.errors import ExitCode, UsageError
from tests.tools.usage import read

ROOT = Path(__file__).resolve().parents[2]


def values(*words: str) -> dict[str, Any]:
    """Return what a line gives to its command, without what is left to the defaults."""
    call = read(words)
    assert call is not None
    function, found = call
    defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    assert set(found) == set(defaults)
    return {name: value for name, value in found.items() if value != defaults[name]}


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("parse a.log", {"logs": ["a.log"]}),
        ("parse - --json", {"logs": ["-"], "json_output": True}),
        ("parse a b -o r --workers=2", {"logs": ["a", "b"], "output": Path("r"), "workers": 2}),
        ("parse a -or b --workers 2", {"logs": ["a", "b"], "output": Path("r"), "workers": 2}),
        ("parse a --output=r", {"logs": ["a"], "output": Path("r")}),
        ("parse a --lane=x=y", {"logs": ["a"], "lane": "x=y"}),
        ("parse a --lane one --lane two", {"logs": ["a"], "lane": "two"}),
        ("parse a --json --json", {"logs": ["a"], "json_output": True}),
        ("parse a --name -x", {"logs": ["a"], "name": "-x"}),
        ("parse -- -a --json", {"logs": ["-a", "--json"]}),
        ("parse a --attach k=u --attach=k=v", {"logs": ["a"], "attach": ["k=u", "k=v"]}),
        ("parse a --full", {"logs": ["a"], "full": True}),
        ("check a --job-exit 1 --proven", {"file": "a", "exit_code": 1, "proven": True}),
        ("check a --job-exit -1", {"file": "a", "exit_code": -1}),
        ("check a --no-annotations", {"file": "a", "annotations": False}),
        ("check a --annotations --baseline x --baseline y", {"file": "a", "annotations": True, "baseline": ["x", "y"]}),
        ("run --name x -- python t.py -o y", {"name": "x", "command": ["python", "t.py", "-o", "y"]}),
        ("run -q python -- --json", {"quiet": True, "command": ["python", "--", "--json"]}),
        ("run --output r true", {"output": Path("r"), "command": ["true"]}),
        ("run --out r true", {"output": Path("r"), "command": ["true"]}),
        ("compare a b --tolerance 1e-3", {"runs": ["a", "b"], "tolerance": 0.001}),
        ("store build --store s", {"store": "s"}),
        ("store build a b --store s --again", {"paths": ["a", "b"], "store": "s", "again": True}),
        ("verify r a b -g x -g y", {"receipt": "r", "logs": ["a", "b"], "grammar": [Path("x"), Path("y")]}),
        ("grammar lint", {}),
        ("store query s", {"store": Path("s")}),
        ("store stats s goodput --by week", {"store": Path("s"), "question": "goodput", "by": "week"}),
        ("export a --to csv", {"file": "a", "to": "csv"}),
        ("parse a --exit-code 3", {"logs": ["a"], "exit_code": 3}),
        ("compare a b --exit-code", {"runs": ["a", "b"], "fail": True}),
        ("compare a b --series s", {"runs": ["a", "b"], "series": Path("s")}),
        ("store ask s best --last 3", {"store": Path("s"), "question": "best", "limit": 3}),
        ("ci a --summary s.md", {"file": "a", "markdown": Path("s.md")}),
    ],
)  # fmt: skip
def test_what_a_line_means(line: str, want: dict[str, Any]) -> None:
    assert values(*line.split(" ")) == want


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("pars a", "no such command: pars (similar: parse)"),
        ("store ad", "no such command: ad (similar: add)"),
        ("--colour", "no such option: --colour"),
        ("parse", "missing argument: LOG"),
        ("store show r", "missing argument: RUN"),
        ("export a", "missing option: --to"),
        ("check a b", "unexpected argument: b"),
        ("parse a --folow", "no such option: --folow (similar: --follow"),
        ("parse a --js", "no such option: --js"),
        ("parse a -x", "no such option: -x"),
        ("parse a --lane", "--lane"),
        ("parse a --json=1", "--json"),
        ("parse a --workers 0", "--workers cannot be '0'\n  why: must be 1 to 256\n"),
        ("parse a --workers 257", "--workers cannot be '257'"),
        ("parse a --idle 0", "--idle cannot be '0'\n  why: must be at least 1\n"),
        ("parse a --workers two", "--workers cannot be 'two'\n  why: must be a whole number\n"),
        ("parse a --workers 1.5", "--workers cannot be '1.5'"),
        ("compare a b --exit-code 0", "--exit-code takes no value in compare, where it is called --fail now\n"),
        ("history s --exit-code 1", "--exit-code takes no value in history, where it is called --fail now\n"),
        ("compare a b --tolerance x", "--tolerance cannot be 'x'\n  why: must be a number\n"),
        ("parse a --color green", "--color cannot be 'green'\n  why: must be one of auto, always, never\n"),
        ("store stats s loss", "QUESTION cannot be 'loss'"),
    ],
)
def test_what_is_refused(line: str, what: str) -> None:
    words = line.split()
    command = next((name for name in (" ".join(words[:2]), words[0]) if name in {*COMMANDS, *GROUPS}), "")
    with pytest.raises(UsageError) as refused:
        read(words)
    shown = refused.value.render()
    assert shown.startswith(f"receipt: error: {what}")
    assert shown.endswith(f"\n  try: receipt {command} --help".replace("  --help", " --help"))


@pytest.mark.parametrize(
    ("word", "way"),
    [
        ("run.log", "receipt parse run.log"),
        ("logs/my run", "receipt parse 'logs/my run'"),
        ("a.receipt.json", "receipt show a.receipt.json"),
    ],
)
def test_a_file_in_place_of_a_command_is_told_one(word: str, way: str) -> None:
    with pytest.raises(UsageError, match="no such command") as refused:
        read([word])
    assert refused.value.try_ == way


WORDS = ["parse", "grammar", "a.log", "-", "--", "--json", "-o", "--workers", "--attach", "k=u", "7", "-1", "\x1b", "\udcff"]


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=6))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        call = read(words)
    except UsageError as error:
        assert error.try_.endswith("--help") or error.try_.startswith(("receipt parse ", "receipt show "))
    except SystemExit as stopped:
        assert (stopped.code, [word for word in words if word in GROUPS] or words) == (ExitCode.USAGE, words)
    else:
        assert call is None or set(call[1]) <= set(inspect.signature(call[0]).parameters)


@pytest.mark.parametrize("command", ["", *GROUPS, *COMMANDS])
def test_help_is_printed_whatever_else_is_missing(command: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    words = command.split()
    for asked in (["-h"], ["--help"], *([["--help", "a", "b", "c"]] if command in COMMANDS else [])):
        run([*words, *asked])
        out, err = capfdbinary.readouterr()
        assert (f"Usage: receipt {command}".rstrip().encode() + b" " in out, err) == (True, b"")


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_help_shows_each_parameter(path: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    run([*path.split(), "--help"])
    shown = capfdbinary.readouterr().out.decode()
    assert max(map(len, shown.splitlines())) <= 80
    command = Command(path).load()
    assert all(each.metavar in shown for each in command.arguments)
    assert all(name in shown for each in command.options for name in (*each.opts, *each.secondary_opts))
    assert (inspect.getdoc(load(path)) or "").split(".")[0].split(":")[0][:40] in " ".join(shown.split())
    assert re.search(r"<(str|int|float|path|list)|x>=|\[\[|--no-(?!annotations|times)", shown) is None  # no type of Python's


def shown(*words: str, capfdbinary: pytest.CaptureFixture[bytes]) -> list[str]:
    run(words)
    return capfdbinary.readouterr().out.decode().splitlines()


def test_help_fits_a_screen_and_help_all_has_every_command(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    short, full = shown("--help", capfdbinary=capfdbinary), shown("help", "--all", capfdbinary=capfdbinary)
    assert (len(short) <= 30, short[0]) == (True, ABOUT.split("\n")[0])
    assert max(map(len, [*short, *full])) <= 80
    listed: dict[str, list[str]] = {}
    for line in full:
        if line.startswith("  "):
            list(listed.values())[-1].append(line.split()[0])
        elif line:
            listed[line] = []
    top = [name for title in SECTIONS for name in listed[title] if name not in GROUPS]
    members = [f"{group} {name}" for group in GROUPS for name in listed[f"receipt {group}"]]
    assert sorted(COMMANDS) == sorted([*top, *members])
    assert [line.split()[0] for line in short if line.startswith("  ")] == list(summaries())[: -len(SECTIONS["More"])]


def test_help_of_a_topic(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    codes = [line.split(maxsplit=1) for line in shown("help", "exit-codes", capfdbinary=capfdbinary)[1:]]
    assert codes == [[str(int(code)), code.meaning] for code in ExitCode]
    for topic in ("store", "store build", "parse"):
        assert shown("help", *topic.split(), capfdbinary=capfdbinary) == shown(*topic.split(), "--help", capfdbinary=capfdbinary)
    with pytest.raises(UsageError, match="no such command: pars"):
        run(["help", "pars"])


@pytest.mark.parametrize(("old", "new"), ALIASES.items())
def test_a_name_of_an_earlier_release_is_accepted_and_not_shown(
    old: str, new: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert new in COMMANDS
    assert shown(old, "--help", capfdbinary=capfdbinary) == shown(*new.split(), "--help", capfdbinary=capfdbinary)
    assert not any(line.startswith(f"  {old} ") for line in shown("help", "--all", capfdbinary=capfdbinary)[:40])


def test_nothing_asked_for_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["store"]):
        with pytest.raises(SystemExit) as stopped:
            run(words)
        assert stopped.value.code == ExitCode.USAGE
        assert "Usage: receipt" in capsys.readouterr().err


def test_a_group_has_its_commands_and_every_command_its_function() -> None:
    assert {name.partition(" ")[0] for name in COMMANDS if " " in name} == set(GROUPS)
    for name in COMMANDS:
        known = {each.name for each in Command(name).load().params}
        assert known == set(inspect.signature(load(name)).parameters) | {"quiet", "color"}


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("receipt gram", ["grammar"]),
        ("receipt grammar l", ["list", "learn", "lint"]),
        ("receipt parse --wo", ["--workers"]),
        ("receipt parse --color a", ["auto", "always"]),
    ],
)
def test_a_shell_completes_words(words: str, want: list[str]) -> None:
    asked = {"_RECEIPT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "receipt_cli"], capture_output=True, text=True, env={**os.environ, **asked}, cwd=ROOT, check=False
    )
    assert (done.stdout.split(), done.stderr) == (want, "")
