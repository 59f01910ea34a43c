import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import git
import pytest

from receipt_cli.header import git as subject
from receipt_cli.header import program
from receipt_cli.header.document import merge
from receipt_cli.header.git import git_facts

UNKNOWN = {"commit": None, "branch": None, "dirty": None, "message": None}


@pytest.fixture(autouse=True)
def plain_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of this machine, no variable of a hook that runs the tests."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


def run(folder: Path, *arguments: str, **variables: str) -> str:
    settings = {
        "user.name": "A Trainer",
        "user.email": "trainer@example.org",
        "init.defaultBranch": "main",
        "commit.gpgsign": "false",
        "protocol.file.allow": "always",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    done = subprocess.run(
        ["git", *options, *arguments], cwd=folder, env=os.environ | variables, capture_output=True, check=True, timeout=30
    )
    return done.stdout.decode().strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    run(folder, "init", "-q")
    (folder / "train.py").write_text("lr = 1\n")
    run(folder, "add", ".")
    run(folder, "commit", "-q", "-m", "Train longer\n\nBecause.")
    return folder


def facts(here: Path) -> tuple[dict[str, Any], list[str]]:
    found, notes = git_facts(here, os.environ)
    assert {fact.source for fact in found} <= {"git"}
    values: dict[str, Any] = merge(found)["git"]
    return values, notes


def head(folder: Path) -> str:
    return run(folder, "rev-parse", "HEAD")


def digest(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_clean_repository(repo: Path) -> None:
    want = {"commit": head(repo), "branch": "main", "dirty": False, "message": "Train longer"}
    assert facts(repo) == (want, [])
    below = repo / "a" / "b"
    below.mkdir(parents=True)
    assert facts(below) == (want, [])


def test_a_detached_head_has_no_branch(repo: Path) -> None:
    run(repo, "checkout", "-q", "--detach")
    values, notes = facts(repo)
    assert (values["commit"], values["branch"], values["dirty"], notes) == (head(repo), None, False, [])


def change(repo: Path) -> None:
    (repo / "train.py").write_text("lr = 2\n")


def stage(repo: Path) -> None:
    change(repo)
    run(repo, "add", ".")


def add_new(repo: Path) -> None:
    (repo / "new.py").write_text("")
    run(repo, "add", "new.py")


def delete(repo: Path) -> None:
    (repo / "train.py").unlink()


def leave_untracked(repo: Path) -> None:
    (repo / "notes.txt").write_text("x")


def touch(repo: Path) -> None:
    os.utime(repo / "train.py", (1, 1))


@pytest.mark.parametrize(
    ("edit", "dirty"), [(change, True), (stage, True), (add_new, True), (delete, True), (leave_untracked, False), (touch, False)]
)
def test_dirty_is_a_tracked_change(repo: Path, edit: Callable[[Path], None], dirty: bool) -> None:
    edit(repo)
    assert facts(repo)[0]["dirty"] is dirty


def test_nothing_in_the_repository_is_written(repo: Path) -> None:
    touch(repo)  # a plain `git status` would refresh the index now
    change(repo)
    before = digest(repo)
    facts(repo)
    assert digest(repo) == before


def test_no_program_of_the_repository_runs(repo: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hook = repo / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    run(repo, "config", "core.fsmonitor", str(hook))
    for name in ("post-index-change", "post-checkout", "reference-transaction"):
        shutil.copy(hook, repo / ".git/hooks" / name)
    assert facts(repo)[0]["dirty"] is False
    assert not mark.exists()


def test_a_worktree_has_its_own_head(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    run(repo, "worktree", "add", "-q", "-b", "side", str(tree))
    (tree / "train.py").write_text("lr = 3\n")
    values, notes = facts(tree)
    want = {"commit": head(tree), "branch": "side", "dirty": True, "message": "Train longer"}
    assert (values, notes) == (want, [])
    assert facts(repo)[0]["dirty"] is False


def test_a_submodule_is_a_repository_and_part_of_the_state_around_it(repo: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    run(outer, "init", "-q")
    run(outer, "submodule", "add", "-q", str(repo), "lib")
    run(outer, "commit", "-q", "-m", "Add lib")
    inner = outer / "lib"
    assert facts(inner)[0] == {"commit": head(repo), "branch": "main", "dirty": False, "message": "Train longer"}
    assert facts(outer)[0]["dirty"] is False
    (inner / "untracked").write_text("")
    assert facts(outer)[0]["dirty"] is False
    (inner / "train.py").write_text("lr = 4\n")
    assert facts(inner)[0]["dirty"] is True
    assert facts(outer)[0]["dirty"] is True
    run(outer, "config", "diff.ignoreSubmodules", "all")
    assert facts(outer)[0]["dirty"] is True


def test_no_repository(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert facts(empty) == (UNKNOWN, ["git: no repository here"])
    assert facts(tmp_path / "missing") == (UNKNOWN, ["git: no repository here"])


def test_a_bare_repository_has_no_dirty(repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    run(tmp_path, "clone", "-q", "--bare", str(repo), str(bare))
    values, notes = facts(bare)
    want = {"commit": head(repo), "branch": "main", "dirty": None, "message": "Train longer"}
    assert (values, notes) == (want, ["git: dirty unknown: a bare repository has no working tree"])


def test_a_repository_without_commits(tmp_path: Path) -> None:
    folder = tmp_path / "fresh"
    folder.mkdir()
    run(folder, "init", "-q")
    want = {"commit": None, "branch": "main", "dirty": False, "message": None}
    assert facts(folder) == (want, ["git: commit unknown: HEAD names no commit"])
    add_new(folder)
    assert facts(folder)[0]["dirty"] is True


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1", "the repository belongs to another user (git's safe.directory can allow it)"),
        ("PATH", "no-such-folder", "there is no git program on PATH"),
    ],
)
def test_where_git_cannot_be_asked_the_files_are_read(
    repo: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str
) -> None:
    commit = head(repo)
    monkeypatch.setenv(variable, value)
    want = {**UNKNOWN, "commit": commit, "branch": "main"}
    assert facts(repo) == (want, [f"git: message unknown: {why}", f"git: dirty unknown: {why}"])


def test_gitpython_loads_without_a_git_program(repo: Path) -> None:
    program_text = (
        "import os, sys; from pathlib import Path; from receipt_cli.header.git import git_facts;"
        "found, notes = git_facts(Path(sys.argv[1]), os.environ);"
        "print([f.pointer for f in found], len(notes), os.environ.get('GIT_PYTHON_REFRESH'))"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program_text, str(repo)],
        cwd=root,
        env={"PATH": str(repo)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == ("['/git/commit', '/git/branch'] 2 None", "")


def fake_git(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    path = folder / "git"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_a_git_program_that_hangs_is_asked_once(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def quick(arguments: list[str], *, environ: dict[str, str]) -> program.ProgramResult:
        asked.append(arguments[5])
        return program.run_program(arguments, environ=environ, timeout_s=0.2)

    commit = head(repo)
    monkeypatch.setattr(subject, "run_program", quick)
    fake_git(tmp_path / "bin", "/bin/sleep 30", monkeypatch)
    values, notes = facts(repo)
    assert values == {"commit": commit, "branch": "main", "dirty": None, "message": None}
    assert asked == ["cat-file"]
    assert notes == [f"git: {name} unknown: git gave no answer in 0.2 s" for name in ("message", "dirty")]


def test_references_that_files_do_not_hold_come_from_the_program(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reftable repository keeps a placeholder in HEAD; the stand-in program plays a git that knows better."""
    (repo / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    commit = "ab" * 32
    answers = (
        f'case "$*" in *rev-parse*) echo {commit};; *symbolic-ref*) echo refs/heads/main;;'
        " *cat-file*) printf 'tree x\\n\\nFrom the table\\n';; esac"
    )
    fake_git(tmp_path / "bin", answers, monkeypatch)
    want = {"commit": commit, "branch": "main", "dirty": False, "message": "From the table"}
    assert facts(repo) == (want, [])


def test_a_sha256_repository(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    run(folder, "init", "-q", "--object-format=sha256")
    add_new(folder)
    run(folder, "commit", "-q", "-m", "Long names")
    values, notes = facts(folder)
    assert len(values["commit"]) == 64
    want = {"commit": head(folder), "branch": "main", "dirty": False, "message": "Long names"}
    assert (values, notes) == (want, [])


def test_a_half_written_reference_is_no_commit(repo: Path) -> None:
    (repo / ".git/refs/heads/main").write_bytes(b"")
    values, notes = facts(repo)
    assert (values["commit"], values["branch"], values["message"]) == (None, "main", None)
    assert notes[0].startswith("git: commit unknown")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".git/config", b"[core\nbroken = \xff"),
        (".git/index", b"DIRC broken"),
        (".git/HEAD", b""),
        (".git/HEAD", b"\xff\xfe\x00"),
        (".git/packed-refs", b"# pack-refs with: nothing known\nzzz"),
    ],
)
def test_a_broken_repository_is_notes(repo: Path, path: str, content: bytes) -> None:
    run(repo, "pack-refs", "--all")
    (repo / path).write_bytes(content)
    values, notes = facts(repo)
    assert notes
    assert values["dirty"] is not True or path.endswith("packed-refs")


def test_a_bare_repository_with_a_broken_configuration_is_a_note(repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    run(tmp_path, "clone", "-q", "--bare", str(repo), str(bare))
    (bare / "config").write_bytes(b"no section = 1\n")
    values, notes = facts(bare)
    assert values == UNKNOWN
    assert len(notes) == 1
    assert notes[0].startswith("git: the repository cannot be read (")


def test_a_missing_object_leaves_the_message_unknown(repo: Path) -> None:
    commit = head(repo)
    (repo / ".git/objects" / commit[:2] / commit[2:]).unlink()
    values, notes = facts(repo)
    assert (values["commit"], values["message"]) == (commit, None)
    assert notes[0].startswith("git: message unknown: git failed with status")


@pytest.mark.parametrize(
    ("text", "want"),
    [("x" * 100, "x" * 80), ("Grüße an alle", "Grüße an alle"), ("\n\n  Late first line\nmore", "Late first line")],
)
def test_the_message_is_one_short_line(repo: Path, text: str, want: str) -> None:
    run(repo, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", text)
    assert facts(repo)[0]["message"] == want


def test_a_message_in_another_encoding(repo: Path) -> None:
    path = repo.parent / "message"
    path.write_bytes("Grüße".encode("latin-1"))
    run(repo, "-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-F", str(path))
    assert facts(repo)[0]["message"] == "Grüße"
    run(repo, "-c", "i18n.commitEncoding=no-such", "commit", "-q", "--allow-empty", "-m", "plain")
    assert facts(repo)[0]["message"] == "plain"


def test_variables_of_a_hook_do_not_point_elsewhere(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    run(other, "init", "-q")
    want = {"commit": head(repo), "branch": "main", "dirty": False, "message": "Train longer"}
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert facts(repo) == (want, [])


def test_the_import_of_gitpython_leaves_the_environment_alone(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_PYTHON_REFRESH", "warn")
    facts(repo)
    assert os.environ["GIT_PYTHON_REFRESH"] == "warn"
    assert git.Git.GIT_PYTHON_GIT_EXECUTABLE
