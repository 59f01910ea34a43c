"""Follow the program as a newcomer does: from a wheel, in an empty home, without a network where the system can cut it off.

``python -m tests.tools.newcomer FOLDER``: FOLDER is an environment into which the wheel was installed. README and the tutorial
as they are written, completion in bash and zsh at a terminal, ``man receipt``. It exits 1 at the first thing that is not as
documented.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pexpect

from tests.contract.test_readme import PAGES, ROOT, lay_out, output_pattern, read_commands

SHELLS = {
    "bash": (
        "--norc --noprofile",
        """PS1='rea''dy> '; bind 'set enable-bracketed-paste off'; eval "$(receipt completion bash)"\n""",
    ),
    "zsh": ("-f", """PS1='rea''dy> '; autoload -Uz compinit; compinit -u; eval "$(receipt completion zsh)"\n"""),
}
TYPED = [("receipt pars\t", "receipt parse "), ("receipt parse -g nanog\t", "nanogpt"), ("receipt completion fi\t", "fish")]


def offline() -> list[str]:
    """Return the words that cut a command off from the network; none where the system does not allow it."""
    words = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        return []
    return words if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0 else []


def follow(name: str, home: Path, env: dict[str, str], prefix: list[str]) -> int:
    """Run the commands of a page and return how many there are. Raises ``SystemExit`` for one that differs."""
    folder = home / Path(name).stem
    lay_out(name, ROOT, folder)
    commands = read_commands(PAGES[name], name)
    for command in commands:
        words = [*prefix, "sh", "-c", command.text]
        done = subprocess.run(
            words, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        shown = not command.output or output_pattern(command.output).fullmatch(done.stdout.rstrip("\n") + "\n")
        if done.returncode != command.exit_code or not shown:
            raise SystemExit(f"newcomer: {name}: {command.text!r} ended with {done.returncode} and printed:\n{done.stdout}")
    return len(commands)


def complete(shell: str, home: Path, env: dict[str, str], prefix: list[str]) -> None:
    """Let a shell at a terminal complete words. Raises ``pexpect.TIMEOUT`` where it does not."""
    options, ready = SHELLS[shell]
    words = [*prefix, shell, *options.split()]
    terminal = pexpect.spawn(words[0], words[1:], env=env, cwd=home, encoding="utf-8", timeout=60, dimensions=(24, 200))
    try:
        terminal.send(ready)
        terminal.expect_exact("ready> ")
        for typed, want in TYPED:
            terminal.send(typed)
            terminal.expect_exact(want)
            terminal.send("\x15")
    finally:
        terminal.close(force=True)


def main(folder: Path) -> None:
    """Do what a newcomer does, and print a line for each thing that is as documented."""
    prefix = offline()
    print(f"newcomer: {'without a network' if prefix else 'with the network: the system does not let us cut it off'}")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        env = {"HOME": name, "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8", "COLUMNS": "80"}
        for page in ("README.md", "docs/tutorial.md"):
            print(f"newcomer: {page}: {follow(page, home, env, prefix)} commands")
        for shell in SHELLS:
            if shutil.which(shell) is None:
                print(f"newcomer: completion in {shell}: not installed")
                continue
            complete(shell, home, env, prefix)
            print(f"newcomer: completion in {shell}: {len(TYPED)} words")
        if shutil.which("man") is None:
            print("newcomer: man: not installed")
            return
        manual = subprocess.run([*prefix, "man", "receipt"], env=env, capture_output=True, text=True, check=True).stdout
        if "receipt parse" not in manual:
            raise SystemExit("newcomer: man receipt is not the manual of this program")
        print(f"newcomer: man receipt: {len(manual.splitlines())} lines")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
