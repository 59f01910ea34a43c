"""What ships in ``grammars/`` proves itself, alone and together, and what was released never changes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml
from git import InvalidGitRepositoryError, NoSuchPathError, Repo

from receipt_cli.authoring.check import lint_shipped
from receipt_cli.authoring.lint import lint_grammar, lint_together
from receipt_cli.grammar.catalog import list_grammars, read_entry, shipped

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = list_grammars()


def test_the_index_lists_exactly_the_files() -> None:
    files = {p.relative_to(ROOT / "grammars").as_posix() for p in (ROOT / "grammars").glob("*/v*.yaml")}
    assert files - {"markers/v1.yaml"} == {entry.path for entry in ENTRIES}
    assert ENTRIES


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.ref)
def test_a_grammar_proves_itself(entry) -> None:  # type: ignore[no-untyped-def]
    assert lint_grammar(read_entry(entry), f"grammars/{entry.path}") == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.ref)
def test_the_index_has_its_digest(entry) -> None:  # type: ignore[no-untyped-def]
    assert hashlib.sha256((ROOT / "grammars" / entry.path).read_bytes()).hexdigest() == entry.sha256


def test_no_sample_is_read_as_another_grammars() -> None:
    assert lint_together(shipped(with_samples=True)) == []


def test_everything_that_ships_has_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    linted: list[str] = []
    monkeypatch.setattr("receipt_cli.authoring.check.lint_grammar", lambda text, where: linted.append(where) or [])
    monkeypatch.setattr("receipt_cli.authoring.check.lint_together", lambda grammars: [])
    findings, count = lint_shipped()
    assert findings == []
    assert linted == [f"grammars/{entry.path}" for entry in ENTRIES]
    assert count == len(ENTRIES) + 1


def test_every_grammar_has_a_fixture_log() -> None:
    folders = {p.parent.name for p in (ROOT / "fixtures" / "logs").glob("*/*.log")}
    assert {entry.id for entry in ENTRIES} - folders <= {"deepspeed-chat"}  # its log lies beside the engine's


def test_every_version_is_in_the_changelog() -> None:
    text = (ROOT / "grammars" / "CHANGELOG.md").read_text("utf-8")
    assert [e.ref for e in ENTRIES if e.id not in text] == []


def test_no_released_file_was_changed_since_the_last_tag() -> None:
    try:
        repo = Repo(ROOT)
    except (InvalidGitRepositoryError, NoSuchPathError):
        pytest.skip("not a checkout")
    with repo:
        tags = sorted((tag for tag in repo.tags if tag.name.startswith("v")), key=lambda tag: tag.commit.committed_date)
        if not tags:
            pytest.skip("no release yet")
        then = yaml.safe_load(repo.git.show(f"{tags[-1].name}:grammars/index.yaml"))["grammars"]
    now = {entry.path: entry.sha256 for entry in ENTRIES}
    assert [e["path"] for e in then if e["status"] != "draft" and now.get(e["path"]) != e["sha256"]] == []
