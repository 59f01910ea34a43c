"""Facts of the git repository of a folder. Only reads: no lock, no refresh, no hook, no network.

GitPython reads commit and branch from the repository's files, without a git program and also for another owner's
repository. The git program reads other formats (reftable, SHA-256), message and dirty, with a time limit for each call.
**Dirty** means that a tracked file differs from the commit, staged or not, including a submodule's commit and content;
untracked files do not count.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from receipt_cli.header.program import ProgramResult, find_program, run_program
from receipt_cli.header.values import FactCollector, HeaderFact

if TYPE_CHECKING:
    import git

_SOURCE = "git"
_REFTABLE_HEAD = "refs/heads/.invalid"
_HEADS = "refs/heads/"
_READ_ERRORS = (OSError, ValueError, TypeError, AssertionError)
"""Errors of GitPython for a missing, half-written or unknown reference."""
_OTHER_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_REPLACE_REF_BASE", "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
)  # fmt: skip
"""Variables, set inside a hook, that would point git at another repository."""
_READ_ONLY = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}


def git_facts(here: Path, environ: Mapping[str, str]) -> tuple[list[HeaderFact], list[str]]:
    """Return commit, branch, dirty and message of the repository of ``here``, and notes.

    ``environ`` has ``PATH`` and git's settings. Never raises: no repository, a broken or untrusted one, no git program and a
    program that hangs become notes and leave facts unknown.
    """
    collector = FactCollector()
    git_module = _import_git()
    try:
        repo = git_module.Repo(here.absolute(), search_parent_directories=True, expand_vars=False)
    except (git_module.exc.InvalidGitRepositoryError, git_module.exc.NoSuchPathError):
        collector.note("git: no repository here")
        return collector.facts, collector.notes
    except (git_module.exc.GitError, configparser.Error, *_READ_ERRORS) as error:
        collector.note(f"git: the repository cannot be read ({type(error).__name__})")
        return collector.facts, collector.notes
    with repo:
        executable = git_module.Git.GIT_PYTHON_GIT_EXECUTABLE or "git"
        _read_repository(repo, _Program(repo, executable, environ), collector)
    return collector.facts, collector.notes


def _import_git() -> ModuleType:
    """Import GitPython without its error on a machine without a git program."""
    name = "GIT_PYTHON_REFRESH"
    before = os.environ.get(name)
    os.environ[name] = "quiet"
    try:
        import git
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    return git


class _Program:
    """The git program, applied to one repository."""

    def __init__(self, repo: git.Repo, executable: str, environ: Mapping[str, str]) -> None:
        self._folder = os.fspath(repo.working_dir)
        self._environ = {n: v for n, v in environ.items() if n not in _OTHER_REPOSITORY} | _READ_ONLY
        self._path = executable if os.path.isabs(executable) else find_program(executable, environ)
        self.refusal = "" if self._path else "there is no git program on PATH"

    def ask(self, *arguments: str) -> ProgramResult:
        """Run one git command; run nothing after git refused the whole repository."""
        if self._path is None or self.refusal:
            return ProgramResult(None, b"", self.refusal)
        command = [self._path, "-C", self._folder, "-c", "core.fsmonitor=false", *arguments]
        result = run_program(command, environ=self._environ)
        if "dubious ownership" in result.problem:
            self.refusal = "the repository belongs to another user (git's safe.directory can allow it)"
            return ProgramResult(result.status, b"", self.refusal)
        if result.status is None:
            self.refusal = result.problem
        return result


def _read_repository(repo: git.Repo, program: _Program, collector: FactCollector) -> None:
    commit = _commit(repo, program)
    collector.add("/git/commit", commit, _SOURCE)
    collector.add("/git/branch", _branch(repo, program), _SOURCE)
    if commit is None:
        collector.note(f"git: commit unknown: {program.refusal or 'HEAD names no commit'}")
    else:
        answer = program.ask("cat-file", "commit", commit)
        if answer.problem:
            collector.note(f"git: message unknown: {answer.problem}")
        else:
            collector.add("/git/message", _message(answer.stdout), _SOURCE)
    if repo.bare:
        collector.note("git: dirty unknown: a bare repository has no working tree")
        return
    answer = program.ask("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=untracked", "--no-renames")
    if answer.problem:
        collector.note(f"git: dirty unknown: {answer.problem}")
    else:
        collector.add("/git/dirty", bool(answer.stdout.strip()), _SOURCE)


def _commit(repo: git.Repo, program: _Program) -> str | None:
    with suppress(*_READ_ERRORS):
        return repo.head.dereference_recursive(repo, repo.head.path)
    answer = program.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return answer.stdout.decode("ascii", "replace").strip() or None if not answer.problem else None


def _branch(repo: git.Repo, program: _Program) -> str | None:
    """Return the branch that HEAD names; None if HEAD is detached or names no branch."""
    try:
        target = str(repo.head.reference.path)
    except _READ_ERRORS:
        target = _REFTABLE_HEAD if not repo.head.is_detached else ""
    if target == _REFTABLE_HEAD:
        answer = program.ask("symbolic-ref", "--quiet", "HEAD")
        target = "" if answer.problem else answer.stdout.decode("utf-8", "replace").strip()
    return target.removeprefix(_HEADS) if target.startswith(_HEADS) else None


def _message(raw: bytes) -> str | None:
    """Return the message of a raw commit object, decoded by its ``encoding`` header, else as UTF-8."""
    headers, _, body = raw.partition(b"\n\n")
    encoding = "utf-8"
    for line in headers.split(b"\n"):
        if line.startswith(b"encoding "):
            encoding = line[9:].decode("ascii", "replace").strip()
    try:
        text = body.decode(encoding, "replace")
    except (LookupError, ValueError):
        text = body.decode("utf-8", "replace")
    return text if text.strip() else None
