"""What was released never changes by a byte: schemas, the metric registry, and the valid examples of documents."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest
import yaml

from receipt_cli.documents.schemas import list_schemas

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted((ROOT / "fixtures" / "receipts").glob("*/valid/*.json"))
CODE = ("receipt_cli/__init__.py", "receipt_cli/receipts/versions.py", "receipt_cli/definitions/metrics.py")
"""Modules that name a version."""
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
    for name in ("freeze.py", "frozen.txt", "release.py"):
        shutil.copy(ROOT / "tests" / "tools" / name, tmp_path / "tests" / "tools" / name)
    for name in (*CODE, "CHANGELOG.md", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run_tool(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(folder / "tests" / "tools" / name), *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)


def freeze(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_tool(folder, "freeze.py", *arguments)


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


def test_the_next_versions_are_drafted_beside_the_released_ones(checkout: Path) -> None:
    def draft(name: str) -> str:
        done = run_tool(checkout, "release.py", "draft", name)
        return done.stderr.strip() if done.returncode else "drafted"

    def newest(kind: str, key: str, name: str) -> list[dict[str, str]]:
        index = yaml.safe_load((checkout / kind / "index.yaml").read_text())[kind]
        return [entry for entry in index if entry[key] == name][-2:]

    assert run_tool(checkout, "release.py", "set", "99.0.0rc1").returncode == 0
    assert run_tool(checkout, "release.py", "set", "99.0.0rc1").returncode == 1, "once"
    assert "## [99.0.0rc1] - " in (checkout / "CHANGELOG.md").read_text()
    assert "version: 99.0.0rc1\n" in (checkout / "CITATION.cff").read_text()
    assert freeze(checkout, "--release", "all").returncode == 0
    released = {path: path.read_bytes() for kind in ("grammars", "schemas") for path in (checkout / kind).glob("*/v*")}
    assert "is the version of a release" in draft("nanogpt")
    assert run_tool(checkout, "release.py", "set", "99.0.0rc2.dev0").returncode == 0
    assert {name: draft(name) for name in ("nanogpt", "receipt", "metrics", "rules", "markers")} == dict.fromkeys(
        ("nanogpt", "receipt", "metrics", "rules", "markers"), "drafted"
    )
    assert "is no grammar" in draft("nanogtp")
    old, new = newest("grammars", "id", "nanogpt")
    assert (old["status"], old["until"], new["status"], new["since"]) == ("deprecated", "99.0.0rc2", "draft", "99.0.0rc2")
    assert f"{new['path']} is draft" in draft("nanogpt")
    old, new = newest("schemas", "kind", "receipt")
    assert (old["status"], new["status"]) == ("released", "draft")
    assert f"receipt/{new['version']}" in (checkout / "schemas" / new["path"]).read_text()
    assert f'SCHEMA_VERSION = "receipt/{new["version"]}"' in (checkout / CODE[1]).read_text()
    assert f'REGISTRY_PATH = "{newest("schemas", "kind", "metrics")[-1]["path"]}"' in (checkout / CODE[2]).read_text()
    rules = [run_path(str(folder / CODE[1]))["RULES"] for folder in (ROOT, checkout)]
    assert int(rules[1].removeprefix("derive/")) == int(rules[0].removeprefix("derive/")) + 1
    assert freeze(checkout).returncode == 0
    assert {path: path.read_bytes() for path in released} == released
