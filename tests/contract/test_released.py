"""What was released never changes by a byte: schemas, the metric registry, and the valid examples of documents."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

from receipt_cli.documents.schemas import list_schemas

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted((ROOT / "fixtures" / "receipts").glob("*/valid/*.json"))
FREEZE = run_path(str(ROOT / "tests" / "tools" / "freeze.py"))


def test_released_files_are_frozen():
    """Digests that stand outside of schemas/: whoever changes a file and its index has not changed what was released."""
    frozen = FREEZE["frozen"]()
    released = {f"schemas/{entry.path}": entry.sha256 for entry in list_schemas() if entry.status != "draft"}
    assert {path: frozen.get(path) for path in released} == released, "a released file has changed, or is missing from the list"
    assert {path for path in frozen if path.startswith("schemas/")} == set(released), "what was released cannot be a draft again"
    for path, digest in frozen.items():
        assert (ROOT / path).is_file(), f"{path} was released and is gone"
        assert hashlib.sha256((ROOT / path).read_bytes()).hexdigest() == digest, f"{path} was released and has changed"


def test_examples_of_released_documents_are_frozen():
    released = {f"{entry.kind}-{entry.version}" for entry in list_schemas() if entry.status != "draft"}
    examples = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS if path.parents[1].name in released}
    assert examples <= set(FREEZE["frozen"]())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What ``freeze.py`` looks at, in a folder of its own."""
    for folder in ("schemas", "grammars", "fixtures/receipts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "fixtures" / "logs").mkdir()
    (tmp_path / "tests" / "tools").mkdir(parents=True)
    for name in ("freeze.py", "frozen.txt"):
        shutil.copy(ROOT / "tests" / "tools" / name, tmp_path / "tests" / "tools" / name)
    return tmp_path


def freeze(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(folder / "tests" / "tools" / "freeze.py"), *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)


def test_freezing_renews_a_draft_and_refuses_a_released_file(checkout: Path):
    index = checkout / "schemas" / "index.yaml"
    draft = checkout / "schemas" / "metrics" / "v9.yaml"
    draft.write_text("registry: 9\n")
    index.write_text(
        index.read_text() + "  - kind: metrics\n    version: '9'\n    path: metrics/v9.yaml\n    status: draft\n"
        "    since: '0.1.0'\n    sha256: ''\n"
    )
    assert freeze(checkout).returncode == 0
    first = index.read_text()
    assert hashlib.sha256(draft.read_bytes()).hexdigest() in first
    assert freeze(checkout, "--release", "schemas/metrics/v9.yaml").returncode == 0
    assert "schemas/metrics/v9.yaml" in (checkout / "tests" / "tools" / "frozen.txt").read_text()
    draft.write_text("registry: 10\n")
    refused = freeze(checkout)
    assert refused.returncode == 1
    assert "schemas/metrics/v9.yaml" in refused.stderr
    index.write_text(index.read_text().replace("status: released", "status: draft"))
    assert freeze(checkout).returncode == 1, "a draft again, in the index alone"


def test_changing_a_released_schema_and_its_index_is_found(checkout: Path):
    schema, index = checkout / "schemas" / "receipt" / "v1.0.schema.json", checkout / "schemas" / "index.yaml"
    before = hashlib.sha256(schema.read_bytes()).hexdigest()
    schema.write_bytes(schema.read_bytes().replace(b"The run's own name", b"The name of the run"))
    index.write_text(index.read_text().replace(before, hashlib.sha256(schema.read_bytes()).hexdigest()))
    changed = index.read_text()
    refused = freeze(checkout)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == ["schemas/receipt/v1.0.schema.json: was released and has changed or is gone"]
    assert index.read_text() == changed, "nothing is written"
