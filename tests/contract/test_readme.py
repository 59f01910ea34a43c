"""Run the commands of README and ``docs/``, and compare what they print with what the pages show.

In a ``console`` block every command starts with ``$ receipt`` (``> `` continues it). The blocks of a page run in order,
in one folder with copies of ``fixtures/`` and ``grammars/``; those of README start the program, others only if a shell
has to read them. A command exits with 0, or with N if it ends in ``# exit N``. The lines below a command must be what
it prints, stdout and stderr together; ``...`` replaces a part of a line, or alone on a line any lines. Without lines
below it, only the exit code counts. Blocks of the language ``sh`` are examples with the reader's own files:
``test_documents.py`` parses their commands. A block with a title is a file of that name, which lies in the folder.
README names the reader's ``train.py`` (here ``OWN``) and ``logs/``. Of its set-up commands ``make demo`` is run below
without its installation, ``make test`` runs this file, and ``make newcomer`` installs the package.
"""

import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from receipt_cli.cli import main as entry
from receipt_cli.cli.commands import COMMANDS

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text("utf-8") for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
FILE = re.compile(r'^```\w+ title="([\w.-]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
HELP = re.compile(r"(<!-- begin: (receipt[^>]*--help) -->\n```text\n)(.*?)(```\n<!-- end -->)", re.DOTALL)
EXIT = re.compile(r"# exit (\d+)$")
OWN = {"train.py": 'for step in range(1, 21):\n    print(f"step {step}/20: loss {4 / step + 1:.4f}, lr 3.0e-4", flush=True)\n'}


@dataclass
class Command:
    line: int
    text: str
    output: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        found = EXIT.search(self.text)
        return int(found[1]) if found else 0


def read_commands(page: str, name: str) -> list[Command]:
    commands: list[Command] = []
    for block in BLOCK.finditer(page):
        first = page.count("\n", 0, block.start()) + 2
        in_block: list[Command] = []
        for number, line in enumerate(block[1].splitlines(), start=first):
            if line.startswith("$ "):
                assert line.startswith("$ receipt "), f"{name}:{number}: a console block runs only receipt"
                in_block.append(Command(number, line[2:]))
            elif line.startswith("> ") and in_block and not in_block[-1].output:
                in_block[-1].text += "\n" + line[2:]
            else:
                assert in_block, f"{name}:{number}: output without a command"
                in_block[-1].output.append(line)
        for command in in_block:
            while command.output and not command.output[-1]:
                command.output.pop()  # blank lines between commands
        commands += in_block
    return commands


def output_pattern(lines: list[str]) -> re.Pattern[str]:
    parts = [
        r"(?:[^\n]*\n)*?" if line == "..." else r"[^\n]*".join(map(re.escape, line.split("..."))) + r"[ ]*\n" for line in lines
    ]
    return re.compile("".join(parts))


def lay_out(name: str, root: Path, work: Path) -> None:
    """Make the folder in which the commands of the page ``name`` run."""
    for folder in ("fixtures", "grammars"):
        shutil.copytree(root / folder, work / folder)
    if name == "README.md":
        shutil.copytree(root / "fixtures" / "logs" / "nanogpt", work / "logs")
    for file, content in [*OWN.items(), *FILE.findall(PAGES[name])]:
        (work / file).write_text(content)


@pytest.fixture
def shell(root: Path, tmp_path: Path) -> dict[str, str]:
    """An environment in which ``receipt`` is this checkout's, and nothing else of ours is set."""
    shim = tmp_path / "bin" / "receipt"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m receipt_cli "$@"\n')
    shim.chmod(0o755)
    return {
        "PATH": os.pathsep.join([str(shim.parent), str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "PYTHONPATH": str(root),
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }


def run(command: str, cwd: Path, env: dict[str, str], alone: bool = True) -> tuple[int, str]:
    """Return how a command ended and what it printed; if not ``alone`` and no shell is needed, it runs in this process."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if not alone and words[1] != "run" and not set("|&;<>$*") & set(command):
        return call(words, cwd, env)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def call(words: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str]:
    """Run a command of ``receipt`` in this process; return its exit code, and what it printed on both streams."""
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch, open(os.devnull) as nothing, pytest.raises(SystemExit) as end:
        for name, value in {"argv": words, "stdin": nothing, "stdout": printed, "stderr": printed}.items():
            patch.setattr(sys, name, value)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.setattr(entry, "gc", SimpleNamespace(disable=lambda: None, freeze=lambda: None))  # this process lives on
        patch.chdir(cwd)
        entry.main()
    return int(end.value.code or 0), printed.buffer.getvalue().decode()


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if BLOCK.search(page)])
def test_commands_of_a_page_do_what_it_shows(name: str, root: Path, tmp_path: Path, shell: dict[str, str]) -> None:
    work = tmp_path / "work"
    lay_out(name, root, work)
    wrong = []
    for command in read_commands(PAGES[name], name):
        code, output = run(command.text, work, shell, alone=name == "README.md")
        place = f"{name}:{command.line}: $ {command.text}"
        if code != command.exit_code:
            wrong.append(f"{place}\nexit {code}, not {command.exit_code}\n{output}")
        elif command.output and not output_pattern(command.output).fullmatch(output.rstrip("\n") + "\n"):
            wrong.append(f"{place}\nprints\n{output}")
    assert not wrong, "\n".join(wrong)


def test_the_readme_runs_what_it_shows() -> None:
    assert len(read_commands(PAGES["README.md"], "README.md")) > 10


def test_make_demo_prints_the_card_of_the_readme(root: Path, tmp_path: Path, shell: dict[str, str]) -> None:
    venv = tmp_path / "venv"
    shutil.copytree(tmp_path / "bin", venv / "bin")
    for stamp in (".made", ".installed-core"):
        (venv / stamp).touch()  # installed after the last change of pyproject.toml
    code, printed = run(f"make --no-print-directory --directory '{root}' demo VENV='{venv}'", tmp_path, shell)
    card = read_commands(PAGES["README.md"], "README.md")[0]
    assert code == 0, printed
    assert printed.strip().splitlines() == [
        f"$ {venv}/bin/{card.text}",
        *card.output,
        "",
        f"The command is {venv}/bin/receipt; try it with a log of yours.",
    ]


def test_the_python_of_the_readme_does_what_it_shows(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    examples = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGES["README.md"], re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "README.md", "README.md", 0)
    assert test.examples
    wrong: list[str] = []
    doctest.DocTestRunner().run(test, out=wrong.append)
    assert not wrong, "".join(wrong)


def test_a_page_has_the_help_of_every_command() -> None:
    assert [found[2] for found in HELP.finditer(PAGES["docs/commands.md"])] == [
        "receipt --help",
        *(f"receipt {name} --help" for name in COMMANDS),
    ]


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if "<!-- begin: receipt" in page])
def test_help_in_a_page_is_the_help_of_the_program(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rewrite_goldens: bool
) -> None:
    monkeypatch.setattr(entry, "gc", SimpleNamespace(disable=lambda: None, freeze=lambda: None))  # this process lives on

    def current(block: re.Match[str]) -> str:
        monkeypatch.setattr(sys, "argv", block[2].split())
        with pytest.raises(SystemExit) as end:
            entry.main()
        code, output = end.value.code or 0, capsys.readouterr().out
        assert code == 0, output
        trimmed = "".join(f"{line.rstrip()}\n" for line in output.strip("\n").splitlines())
        return f"{block[1]}{trimmed}{block[4]}"

    fresh, count = HELP.subn(current, PAGES[name])
    assert count == PAGES[name].count("<!-- begin: receipt")
    if rewrite_goldens:
        (root / name).write_text(fresh, "utf-8")
    else:
        assert fresh == PAGES[name], "run `make goldens`"


@pytest.mark.parametrize(
    ("lines", "output", "want"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a"], "a\nb\n", False),
        (["loss ... 2.7"], "loss 11.1 to 2.7\n", True),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a.c"], "abc\n", False),
    ],
)
def test_shown_output_is_compared_line_by_line(lines: list[str], output: str, want: bool) -> None:
    assert bool(output_pattern(lines).fullmatch(output)) is want
