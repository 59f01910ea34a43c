"""No secret of a log or a header leaves by the commands that answer questions, sign, recover or serve."""

import asyncio
import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce
from receipt_cli.store.answers import QUESTIONS
from tests.cli.test_secrets import GROUPS, Invoke, Watch, log_of, secret_env
from tests.tools.planted import FORMS, leaks

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """Two logs of failed runs in a folder, and the secrets of both."""
    folder, secrets = tmp_path / "logs", []
    folder.mkdir()
    for name, number in (("a.log", 2), ("b.log", 5)):
        data, held = log_of(GROUPS[number], number)
        (folder / name).write_bytes(data)
        secrets += held
    return folder / "a.log", folder / "b.log", secrets


def test_questions_about_figures_and_runs(
    logs: tuple[Path, Path, list[str]], tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, secrets = logs
    r = random.Random(12)
    env, more = secret_env(r)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    said = [FORMS[kind](r) for kind in ("hf", "openai", "gitlab")]
    watch = Watch(invoke, tmp_path, [*secrets, *more, *said])
    watch.given = {a, b}
    out = tmp_path / "out"
    out.mkdir()
    receipt = out / "a.json"
    facts = [
        word for fact in ("devices=8", "tokens_per_step=4096", "power=700W", "price_per_hour=24 USD") for word in ("--fact", fact)
    ]
    watch("parse", a, "-o", receipt, "--name", f"of {said[0]}", *facts)
    watch("parse", a, "--json", "--fact", f"seed={said[1]}", codes=(0, 2))
    lines = a.read_bytes().count(b"\n")
    for turn, form in enumerate(((), ("--json",))):
        watch("explain", a, *form)
        for metric in ("grad_norm", f"reward/{said[0]}", said[1]):
            watch("explain", a, "--metric", metric, *form, codes=(0, 1, 2, 3))
        for pointer in ("/failure", "/failure/message", "/cost", "/header", "/phases/0/summary", f"/{said[2]}"):
            watch("explain", a, "--field", pointer, *form, codes=(0, 1, 2, 3))
        for line in range(1 + 5 * turn, lines, 10):
            watch("explain", a, "--line", line, *form, codes=(0, 2))
        watch("compare", receipt, b, "--align", "samples", *form, codes=(0, 1, 2, 3))
    store = out / "store"
    watch("rederive", a, b, "--store", store, codes=(0, 1))
    first = json.loads(watch("store", "ls", store, "--json").stdout.splitlines()[0])["run_id"]
    for form in ((), ("--json",)):
        for recipe in QUESTIONS:
            watch("store", "ask", store, recipe, *form, codes=(0, 1, 2))
        watch("store", "ask", store, "failures", "--full")
        watch("store", "ask", store, f"best {said[0]}", *form, codes=(2,))
        watch("store", "show", store, first, *form)
        watch("store", "diff", store, a, b, *form, codes=(0, 2, 3))
        watch("store", "ls", store, *form)
        watch("explain", first, "--store", store, *form)
    watch("report", store, "-o", out / "report.html")
    assert watch.files() > 5


def test_an_attestation_states_none(logs: tuple[Path, Path, list[str]], tmp_path: Path, invoke: Invoke) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    a, b, secrets = logs
    key = tmp_path / "key"
    form, none = serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    private = ed25519.Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, none))
    key.chmod(0o600)
    public = tmp_path / "key.pub"
    public.write_bytes(private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH))
    named = FORMS["hf"](random.Random(13))
    watch = Watch(invoke, tmp_path, [*secrets, named])
    watch.given = {a, b, key}
    receipt = tmp_path / "a.json"
    watch("parse", a, "-o", receipt, "--name", f"of {named}")
    watch("attest", receipt, "--key", key, "-o", tmp_path / "a.dsse.json")
    for form in ((), ("--json",)):
        watch("verify", receipt, a, "--attestation", tmp_path / "a.dsse.json", "--signer", public, *form)
    envelope = tmp_path / "a.dsse.json"
    statement = base64.b64decode(json.loads(envelope.read_bytes())["payload"]).decode()
    assert "subject" in statement and not leaks(watch.secrets, statement)
    watch.given |= {envelope, tmp_path / "a.dsse.json.statement.sig"}  # base64 of JSON and of keys: tokens begin like it
    assert watch.files() >= 2


def test_a_recovered_receipt_and_what_the_wrapper_writes(tmp_path: Path) -> None:
    data, secrets = log_of(GROUPS[3], 3)
    (tmp_path / "said").write_bytes(data)
    command = [
        sys.executable,
        "-m",
        "receipt_cli",
        "run",
        "--log",
        "job.log",
        "--",
        "sh",
        "-c",
        "cat said; touch begun; sleep 1; touch over",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    recover = [*command[:4], "--recover", "job.log"]
    while True:
        done = subprocess.run(
            recover, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
        )
        if "the job is not over" not in done.stderr or time.monotonic() > end:
            break
        time.sleep(0.1)
    assert done.returncode == 0, done.stderr
    assert not leaks(secrets, done.stdout + done.stderr)
    written = {path.name: path.read_text("utf-8", "replace") for path in tmp_path.iterdir() if path.suffix == ".json"}
    assert "job.receipt.json" in written
    assert {name: leaks(secrets, text) for name, text in written.items() if leaks(secrets, text)} == {}


def test_answers_of_the_model_context_protocol(logs: tuple[Path, Path, list[str]]) -> None:
    pytest.importorskip("mcp")
    from mcp.client.client import Client

    from receipt_cli.mcp_server.server import Limits, make_server

    a, _, secrets = logs
    (a.parent / "a.receipt.json").write_text(json.dumps(produce(Request(path=str(a), name="a")).document))

    async def work() -> list[str]:
        said = []
        async with Client(make_server([a.parent], None, Limits())) as client:
            calls: list[tuple[str, dict[str, Any]]] = [
                ("parse_log", {"log": "a.log"}),
                ("parse_log", {"log": "b.log"}),
                ("compare", {"runs": ["a.log", "b.log"]}),
                *(
                    ("explain", {"log": "a.log", **about})
                    for about in ({}, {"metric": "loss"}, {"line": 5}, {"field": "/failure"})
                ),
                ("read_run", {"run": "a.receipt.json"}),
            ]
            for tool, arguments in calls:
                result = await client.call_tool(tool, arguments)
                said.append(repr(result))
        return said

    for text in asyncio.run(work()):
        assert not leaks(secrets, text), leaks(secrets, text)
