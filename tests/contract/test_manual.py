"""The manual page, the examples of help, and the completion of words in a shell."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

import receipt_cli
from receipt_cli.cli.app import Command
from receipt_cli.cli.commands import COMMANDS
from receipt_cli.store.files import Store
from tests.tools.manual import manual
from tests.tools.usage import read

PAGE = "docs/man/receipt.1"


def test_the_page_is_what_the_declarations_give(check_golden: Callable[[Path, bytes], None], root: Path) -> None:
    check_golden(root / PAGE, manual().encode("ascii"))


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_page_prints_without_a_warning(root: Path) -> None:
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou", root / PAGE], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert all(f"receipt {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_shows_an_example_that_it_reads(name: str) -> None:
    command = Command(name).load()
    about, example = command.about, command.example
    words = shlex.split(example)
    assert about.partition("\n\n")[0].endswith(".")
    assert words[0] == "receipt"
    assert " ".join(words[1:]).startswith(name)
    words = words[: next((i for i, word in enumerate(words) if word in (">", ">>")), len(words))]
    call = read(words[1:])
    function = call[0]
    assert function.__doc__.partition("\n\n")[0].split() == about.partition("\n\n")[0].split()


COMPLETED = [
    ("receipt pars\t", "receipt parse "),
    ("receipt parse -g nanog\t", "nanogpt"),
    ("receipt store sta\t", "receipt store stats"),
    ("receipt plot run.log --metric perp\t", "perplexity"),
    ("receipt plot run.log --me\t", "--metric"),
    ("receipt completion fi\t", "fish"),
    ("receipt parse run.log --lane h\t", "h100"),
    ("receipt compare fir\t", "first-run"),
]
SHELLS = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}
READY = {  # the prompt is spelled in two pieces: what the terminal echoes is not yet the prompt
    "bash": """PS1='rea''dy> '; bind 'set enable-bracketed-paste off'; eval "$(receipt completion bash)"\n""",
    "zsh": """PS1='rea''dy> '; autoload -Uz compinit; compinit -u; eval "$(receipt completion zsh)"\n""",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_at_a_terminal_completes(shell: str, root: Path, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    run = receipt_cli.read(root / "fixtures" / "logs" / "nanogpt" / "char-ok.log", name="first-run", lane="h100")
    Store(tmp_path / "runs").add(run.receipt.to_dict())
    (tmp_path / "receipt.toml").write_text('store = "runs"\n', "utf-8")
    shim = tmp_path / "receipt"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m receipt_cli "$@"\n')
    shim.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": str(root), "HOME": str(tmp_path), "TERM": "dumb"}
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    terminal = pexpect.spawn(shell, SHELLS[shell], env=env, cwd=tmp_path, encoding="utf-8", timeout=60, dimensions=(24, 200))
    try:
        terminal.send(READY[shell])
        terminal.expect_exact("ready> ")
        for typed, want in COMPLETED:
            terminal.send(typed)
            assert terminal.expect_exact(want) == 0
            terminal.send("\x15")  # Ctrl-U: an empty line for the next
    finally:
        terminal.close(force=True)
