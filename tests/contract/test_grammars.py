"""What ships in ``grammars/`` proves itself, alone and together, and what was released never changes."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from git import InvalidGitRepositoryError, NoSuchPathError, Repo

from receipt_cli.authoring.explain import lint_shipped
from receipt_cli.authoring.lint import lint_grammar, lint_together
from receipt_cli.definitions.failure_markers import MARKERS_PATH
from receipt_cli.grammar.catalog import Entry, list_grammars, read_entry, shipped
from receipt_cli.grammar.model import Grammar
from receipt_cli.problems import Finding
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = list_grammars()
DRAFTS = [entry for entry in ENTRIES if entry.status == "draft"]
FIXED = [(entry,) for entry in ENTRIES if entry.status != "draft"]
"""Those that never change: only another lint could find something in them."""


def test_the_index_lists_exactly_the_files() -> None:
    files = {p.relative_to(ROOT / "grammars").as_posix() for p in (ROOT / "grammars").glob("*/v*.yaml")}
    assert {path for path in files if not path.startswith("markers/")} == {entry.path for entry in ENTRIES}
    assert ENTRIES


@pytest.mark.parametrize("entry", [*DRAFTS, *one_in(4, FIXED)], ids=lambda e: e.ref)
def test_a_grammar_proves_itself(entry: Entry) -> None:
    assert lint_grammar(read_entry(entry), f"grammars/{entry.path}") == []


def test_the_index_has_the_digest_of_each() -> None:
    digests = {entry.path: hashlib.sha256((ROOT / "grammars" / entry.path).read_bytes()).hexdigest() for entry in ENTRIES}
    assert digests == {entry.path: entry.sha256 for entry in ENTRIES}


def test_no_sample_is_read_as_another_grammars() -> None:
    assert lint_together(shipped(with_samples=True)) == []


def test_everything_that_ships_is_linted_and_its_findings_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """That each definition has no finding is asked above, and of the markers in ``test_markers.py``."""
    linted: dict[str, bytes] = {}
    together: list[list[str]] = []

    def lint(text: bytes, where: str) -> list[Finding]:
        linted[where] = text
        return [Finding("error", where, "found")] if where in told else []

    def lint_all(grammars: Sequence[Grammar]) -> list[Finding]:
        together.append([grammar.ref for grammar in grammars if all(rule.samples for rule in grammar.rules)])
        return []

    monkeypatch.setattr("receipt_cli.authoring.explain.lint_grammar", lint)
    monkeypatch.setattr("receipt_cli.authoring.explain.lint_catalogue", lint)
    monkeypatch.setattr("receipt_cli.authoring.explain.lint_together", lint_all)
    paths = [f"grammars/{path}" for path in (*(entry.path for entry in ENTRIES), MARKERS_PATH)]
    told: list[str] = []
    assert lint_shipped() == ([], len(ENTRIES) + 1)
    assert linted == {path: (ROOT / path).read_bytes() for path in paths}
    assert together == [[grammar.ref for grammar in shipped()]]
    told = [paths[0], paths[-1]]
    assert [finding.where for finding in lint_shipped()[0]] == told


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
