"""What each command prints with ``--json`` keeps its schema: ``receipt schema show output``, or that of its document."""

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from receipt_cli.cli.app import Command
from receipt_cli.cli.commands import COMMANDS
from receipt_cli.documents.schemas import find_entry, get_json_schema
from receipt_cli.documents.validate import validate_bytes
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "fixtures" / "logs" / "nanogpt"
SCHEMA = get_json_schema(find_entry("output/1.1"))

# (field of the schema, command): it has the name of the command; other forms of it have another word behind it
PRINTED = [
    ("check", "check ok.log --json"),
    ("check", "check nan.receipt.json --json"),
    ("ci", "check ok.log --json --no-annotations"),
    ("ci", "check nan.log --baseline ok.log --json --no-annotations"),
    ("compare", "compare ok.log nan.log --json"),
    ("compare", "compare ok.receipt.json nan.receipt.json --json"),
    ("compare_reproducibility", "compare --reproducibility ok.log ok.log --json"),
    ("compare_reproducibility", "compare --reproducibility ok.log nan.log --json"),
    ("compare_scaling", "compare --scaling ok.log nan.log --json"),
    ("compare_documents", "compare baseline.json baseline.json --json"),
    ("compare_documents", "compare scores.json tracked.json --json"),
    ("compare_documents", "compare inside_kernels.json stream.json --json"),
    ("compare_documents", "compare exact.json spread.json --json"),
    ("config", "config --json"),
    ("compare", "compare ok.log nan.log --target loss=2.9 --json"),
    ("explain", "explain ok.log --json"),
    ("explain", "explain ok.log --line 19 --json"),
    ("explain", "explain ok.log --field /failure --json"),
    ("grammar_explain", "grammar explain ok.log --json"),
    ("grammar_explain", "grammar explain junk.log --json"),
    ("grammar_lint", "grammar lint wrong.yaml --json"),
    ("grammar_list", "grammar list --json"),
    ("grammar_matrix", "grammar matrix --json"),
    ("grammar_test", "grammar test nanogpt --json"),
    ("history", "history runs --json"),
    ("migrate", "schema migrate old.json ok.receipt.json --json"),
    ("rederive", "store build logs --store again --workers 1 --json"),
    ("rederive", "store build logs --store runs --workers 1 --dry-run --json"),
    ("schema_diff", "schema diff receipt/1.0 receipt/1.3 --json"),
    ("schema_list", "schema list --json"),
    ("schema_show", "schema show receipt --fields --json"),
    ("store_add", "store add few nan.receipt.json --json"),
    ("store_ask", "store ask runs --json"),
    ("store_ask_rows", "store ask runs latest --json"),
    ("store_diff", "store diff runs ok.log nan.log --json"),
    ("store_export", "store export runs -o views.parquet --json"),
    ("store_ls", "store ls runs --json"),
    ("store_ls_documents", "store ls runs --kind evaluation --json"),
    ("store_ls_documents", "store ls runs --kind golden --json"),
    ("store_ls_quarantine", "store ls runs --quarantine --json"),
    ("store_query", "store query runs 'SELECT name, loss_last FROM runs' --json"),
    ("store_query_views", "store query runs --json"),
    ("store_stats", "store stats runs memory --json"),
    ("store_stats_all", "store stats runs --json"),
    ("validate", "schema check bad.json old.json --json"),
    ("verify", "verify ok.receipt.json ok.log --json"),
    ("verify", "verify ok.receipt.json nan.log --json"),
    ("watch", "watch ok.log nan.log --once --json"),
]
DOCUMENTS = [
    "parse ok.log --json",
    "parse ok.log --all-runs --json",
    "show nan.receipt.json --json",
    "store show runs ok.log --json",
]
OF_KINDS = (
    "ablation-1.0/valid/baseline.json", "evaluation-2.0/valid/scores.json", "evaluation-2.0/valid/tracked.json",
    "gpu_profile-1.2/valid/inside_kernels.json", "gpu_profile-1.0/valid/stream.json",
    "golden-1.0/valid/exact.json", "golden-1.0/valid/spread.json",
)  # fmt: skip
IMPORTED = "import"
"""Prints a receipt, too: tests/cli/test_import.py validates those."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with logs, receipts, a store and documents of every state that the commands print."""
    import receipt_cli

    folder = tmp_path_factory.mktemp("json")
    (folder / "logs").mkdir()
    for name in ("ok", "nan"):
        shutil.copy(LOGS / f"char-{name}.log", folder / f"{name}.log")
        shutil.copy(LOGS / f"char-{name}.log", folder / "logs" / f"{name}.log")
        run = receipt_cli.read(folder / f"{name}.log", name=name, lane="lane")
        (folder / f"{name}.receipt.json").write_bytes(json.dumps(run.receipt.to_dict()).encode())
    (folder / "junk.log").write_text("nothing that is known\n" * 30, "utf-8")
    (folder / "logs" / "empty.log").write_bytes(b"")
    shutil.copy(min((ROOT / "fixtures" / "receipts" / "receipt-1.0" / "valid").glob("*.json")), folder / "old.json")
    for path in OF_KINDS:
        shutil.copy(ROOT / "fixtures" / "receipts" / path, folder / Path(path).name)
    (folder / "bad.json").write_text('{"schema_version": "receipt/1.2"}', "utf-8")
    (folder / "wrong.yaml").write_text("id: wrong\nversion: 1\n", "utf-8")
    yield folder


@pytest.fixture
def desk(folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    if not (folder / "runs").exists():
        assert invoke("store", "build", "logs", "--store", "runs", "--workers", "1").code in (0, 1, 3)
        assert invoke("store", "add", "runs", *(Path(path).name for path in OF_KINDS)).code == 0
    return folder


def outputs(stdout: bytes) -> list[Any]:
    """Return the value on stdout, or those of its lines."""
    try:
        return [json.loads(stdout)]
    except ValueError:
        return [json.loads(line) for line in stdout.splitlines()]


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMA["properties"][name])


@pytest.mark.parametrize(("name", "command"), PRINTED, ids=[command for _, command in PRINTED])
def test_output_keeps_its_schema(name: str, command: str, desk: Path, invoke: Invoke) -> None:
    done = invoke(*shlex.split(command))
    values = outputs(done.stdout)
    assert values, done.stderr
    for value in values:
        assert [error.message for error in validator(name).iter_errors(value)] == []
    first = next((value[0] if isinstance(value, list) else value for value in values if value), None)
    if required := (node := SCHEMA["properties"][name]).get("items", node).get("required"):
        assert isinstance(first, dict)  # a list of nothing would keep any schema
        broken = dict(first)
        del broken[required[0]]
        assert not validator(name).is_valid([broken] if isinstance(values[0], list) else broken)


@pytest.mark.parametrize("command", DOCUMENTS)
def test_other_commands_print_documents(command: str, desk: Path, invoke: Invoke) -> None:
    for value in outputs(invoke(*shlex.split(command)).stdout):
        assert [found for found in validate_bytes(json.dumps(value).encode(), "it") if found.severity == "error"] == []


def test_every_command_that_prints_json_has_a_schema() -> None:
    printing = {name for name in COMMANDS if any(each.name == "json_output" for each in Command(name).options)}
    longest_first = sorted(COMMANDS, key=len, reverse=True)
    tested = {next(name for name in longest_first if command.startswith(f"{name} ")) for _, command in PRINTED}
    documents = {"parse", "show", "store show", IMPORTED}
    assert printing == tested | documents
    assert {name for name, _ in PRINTED} == set(SCHEMA["properties"])


def test_every_output_and_field_is_described() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    for name, node in SCHEMA["properties"].items():
        fields = node.get("items", node).get("properties", {})
        assert node["description"] and all(field.get("description") for field in fields.values()), name
