"""Follow the program as a newcomer does: from a wheel, in an empty home, without a network where the system can cut it off.

``python -m tests.tools.newcomer FOLDER``: FOLDER is an environment into which the wheel was installed. Completion in bash and
zsh at a terminal, ``man receipt``, and the tutorial as it is written. It exits 1 at the first thing that is not as documented.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pexpect

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
FILE = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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


def follow_tutorial(home: Path, env: dict[str, str], prefix: list[str]) -> int:
    """Run the commands of the tutorial and return how many there are. Raises ``SystemExit`` for one that differs."""
    page, count = TUTORIAL.read_text("utf-8"), 0
    for name, text in FILE.findall(page):
        (home / name).write_text(text, "utf-8")
    for block in CONSOLE.findall(page):
        for part in block.split("$ ")[1:]:
            line, _, wanted = part.partition("\n")
            command, _, code = line.partition("  # exit ")
            done = subprocess.run([*prefix, "sh", "-c", command], cwd=home, env=env, capture_output=True, text=True, check=False)
            printed = done.stdout + done.stderr
            pattern = ".*".join(re.escape(each.strip()) for each in re.split(r"^\.\.\.$|\.\.\.|\n", wanted, flags=re.MULTILINE))
            if done.returncode != int(code or 0) or not re.search(pattern, printed, re.DOTALL):
                raise SystemExit(f"newcomer: the tutorial's {command!r} ended with {done.returncode} and printed:\n{printed}")
            count += 1
    return count


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
        env = {"HOME": name, "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8"}
        print(f"newcomer: tutorial: {follow_tutorial(home, env, prefix)} commands")
        for shell in SHELLS:
            if shutil.which(shell) is None:
                print(f"newcomer: completion in {shell}: not installed")
                continue
            complete(shell, home, env, prefix)
            print(f"newcomer: completion in {shell}: {len(TYPED)} words")
        if shutil.which("man") is None:
            print("newcomer: man: not installed")
            return
        page = subprocess.run([*prefix, "man", "receipt"], env=env, capture_output=True, text=True, check=True).stdout
        if "receipt parse" not in page:
            raise SystemExit("newcomer: man receipt is not the manual of this program")
        print(f"newcomer: man receipt: {len(page.splitlines())} lines")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
