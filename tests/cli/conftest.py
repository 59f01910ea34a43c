"""The command line, called two ways: in this process where that is enough, in one of its own where it is not."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from receipt_cli.cli import main as entry

ROOT = Path(__file__).resolve().parents[2]
# A command turns the collection of garbage off for its short life; this process has thousands of tests before it.
pytest.MonkeyPatch().setattr(entry, "gc", SimpleNamespace(disable=lambda: None, freeze=lambda: None))


@dataclass(frozen=True)
class Done:
    """How a command ended and what it printed."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document on stdout."""
        return json.loads(self.stdout)

    @property
    def problems(self) -> list[tuple[str, int | None]]:
        """Kind and line of the problems that the receipt tells one by one."""
        return [(p["kind"], p["line_number"]) for p in self.document["derivation"]["problems"]["first"]]


Invoke = Callable[..., Done]


def query(invoke: Invoke, store: Path, sql: str) -> list[dict[str, Any]]:
    """Return the rows that a store answers."""
    done = invoke("store", "query", store, sql, "--json")
    assert done.code == 0, done.stderr
    return list(done.document)


def tree(store: Path) -> dict[str, bytes]:
    """Return everything in a store but its cache."""
    paths = (path for path in store.rglob("*") if path.is_file() and ".cache" not in path.parts)
    return {path.relative_to(store).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Invoke:
    """Call ``receipt`` in this process."""

    def call(*arguments: str | Path, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["receipt", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(stdin)), isatty=lambda: False))
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as stopped:
            entry.main()
        out, err = capsysbinary.readouterr()
        return Done(int(stopped.value.code or 0), out, err.decode())

    return call


@pytest.fixture
def process() -> Invoke:
    """Call ``receipt`` in a process of its own."""

    def call(
        *arguments: str | Path | bytes, python: tuple[str, ...] = (), env: dict[str, str] | None = None, **more: Any
    ) -> Done:
        done = subprocess.run(
            [sys.executable, *python, "-m", "receipt_cli", *arguments],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            timeout=120,
            check=False,
            **more,
        )
        return Done(done.returncode, done.stdout, done.stderr.decode())

    return call
