"""Nothing is asked of a network: a socket that a command would connect, or a name that it would look up, ends it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
HOOK = """
import os, sys

def refuse(event, given):
    network = event in ("socket.getaddrinfo", "socket.gethostbyname")
    if network or event in ("socket.connect", "socket.sendto") and isinstance(given[1], tuple):  # a path is no network
        with open(os.environ["ASKED"], "a") as asked:
            print(event, file=asked)
        raise OSError("no network here")

sys.addaudithook(refuse)
"""
COMMANDS = """
import json, sys
from receipt_cli.cli.main import main

for line in json.load(sys.stdin):
    sys.argv = ["receipt", *line]
    try:
        main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"{line}: {end.code}")
"""
Offline = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """Where everything that was asked of a network is noted."""
    return tmp_path / "asked"


@pytest.fixture
def offline(tmp_path: Path, asked: Path) -> Offline:
    """Run Python code in a process that has no network, nor have those that it starts."""
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "ASKED": str(asked)}

    def run(code: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, input=text, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    return run


def test_nothing_is_asked_of_a_network(offline: Offline, asked: Path) -> None:
    log = str(LOG)
    lines = [
        ["header", "-C", str(ROOT), "-o", "header.json"],
        ["parse", log, "--header", "header.json", "-o", "made.json", "--html", "run.html"],
        ["parse", log, "--here"],
        ["validate", "made.json"],
        ["verify", "made.json", log],
        ["compare", "made.json", log],
        ["ci", "made.json"],
        ["export", "made.json", "--to", "otlp-json"],
        ["rederive", log, "--store", "store"],
        ["history", "store"],
        ["report", "store", "-o", "report.html"],
    ]
    done = offline(COMMANDS, json.dumps(lines))
    assert done.returncode == 0, done.stderr
    assert not asked.exists()


def test_what_asks_is_found(offline: Offline, asked: Path) -> None:
    done = offline("import socket; socket.create_connection(('127.0.0.1', 9))")
    assert "no network here" in done.stderr
    assert asked.read_text().startswith("socket.")
