"""Types of the API, as a type checker of its users sees them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import ROOT
from tests.tools import fields

USER = Path(__file__).with_name("typed_user.py")
REFUSED = re.compile(r"# refused: ([a-z-]+)$")
ERROR = re.compile(r"typed_user\.py:(\d+): error: .*\[([a-z-]+)\]$")


def test_the_types_are_those_of_the_schema(check_golden: Callable[[Path, bytes], None]) -> None:
    check_golden(ROOT / fields.PATH, fields.stub().encode())


def test_mypy_accepts_right_uses_and_refuses_wrong_ones(tmp_path: Path) -> None:
    """As for any user: with no settings of this project, and the package found as an installed one."""
    user = tmp_path / USER.name
    user.write_text(USER.read_text("utf-8"))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path / "cache", user]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    lines = enumerate(user.read_text("utf-8").splitlines(), 1)
    wanted = {(number, found[1]) for number, line in lines if (found := REFUSED.search(line))}
    refused = {(int(found[1]), found[2]) for line in done.stdout.splitlines() if (found := ERROR.search(line))}
    assert len(wanted) > 20
    assert refused == wanted, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if ": error: " in line]) == len(refused), done.stdout
