"""Types of the API, as a type checker of its users sees them."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import receipt_cli
from receipt_cli.api import results
from receipt_cli.documents.canonical import canonical_bytes
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
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", os.devnull, user]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    lines = enumerate(user.read_text("utf-8").splitlines(), 1)
    wanted = {(number, found[1]) for number, line in lines if (found := REFUSED.search(line))}
    refused = {(int(found[1]), found[2]) for line in done.stdout.splitlines() if (found := ERROR.search(line))}
    assert len(wanted) > 20
    assert refused == wanted, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if ": error: " in line]) == len(refused), done.stdout


def test_results_have_what_their_stub_declares(tmp_path: Path) -> None:
    logs = [ROOT / "fixtures" / "logs" / "nanochat" / f"{name}.log" for name in ("speedrun-2025-10", "base-2026-03-oom")]
    run = receipt_cli.read(logs[0])
    receipt = tmp_path / "a.json"
    document = run.receipt.to_dict()
    document["summary"]["metrics"]["loss"]["last"] += 1
    document["phases"][0]["summary"]["steps"]["planned"] = None
    receipt.write_bytes(canonical_bytes(document))
    verification = receipt_cli.verify(receipt, logs[0])
    comparison = receipt_cli.compare(*logs)
    receipt.write_bytes(canonical_bytes(run.receipt.to_dict()))
    made = {
        "Metric": run.metrics["loss"],
        "Verification": verification,
        "Difference": verification.differences[0],
        "Invalid": verification.invalid[0],
        "Comparison": comparison,
        "Contrast": comparison.contrasts[0],
        "Migration": receipt_cli.migrate(receipt),
        "Finding": receipt_cli.validate("no-such.json")[0],
    }
    stub = ast.parse(Path(results.__file__).with_suffix(".pyi").read_text("utf-8"))
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    assert classes.keys() == made.keys()
    for name, node in classes.items():
        declared = {field.name for field in node.body if isinstance(field, ast.FunctionDef)}
        assert declared >= set(made[name]) - {"old", "new"}, name
        assert [field for field in declared if not hasattr(made[name], field)] == [], name
