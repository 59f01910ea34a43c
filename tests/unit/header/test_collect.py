import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.header import collect
from receipt_cli.header.collect import collect_header
from receipt_cli.header.document import empty_header, log_facts, merge
from receipt_cli.header.header_file import header_document
from receipt_cli.header.values import HeaderFact

NOW = "2026-01-31T12:00:00Z"
LOG = [
    HeaderFact("/model/parameter_count", 1000, "log:1"),
    HeaderFact("/software/torch", "2.0-log", "log:2"),
    HeaderFact("/hardware/cpu_count", 3, "log:3"),
    HeaderFact("/software/python", "3.log", "log:4"),
]


def file_of(*facts: HeaderFact) -> dict[str, Any]:
    return header_document({}, merge(facts))


def header_of(**given: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {"environ": {}, "header_file": None, "log_facts": [], "here": None, "now": None}
    header, notes = collect_header(**defaults | given)
    assert all(isinstance(note, str) and note for note in notes)
    return header


def test_without_here_nothing_local_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every local collector is armed to fail, and everything around says something."""

    def forbidden(*_: object) -> None:
        raise AssertionError("asked the local machine")

    monkeypatch.setattr(collect, "_local", forbidden)
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True, timeout=30)
    environ = dict(os.environ) | {"CUDA_VISIBLE_DEVICES": "0", "PWD": str(tmp_path)}
    header, notes = collect_header(environ=environ, header_file=None, log_facts=[], here=None, now=NOW)
    assert header == empty_header()
    assert notes == []


def test_without_here_sources_name_no_local_origin() -> None:
    header = header_of(
        environ={"RECEIPT_GIT_BRANCH": "main", "RECEIPT_BUILD_PROVENANCE": '{"cwd": "/job"}'},
        header_file=file_of(HeaderFact("/software/platform", "Linux-trainer", "host")),
        log_facts=LOG,
        now=NOW,
    )
    kinds = {source.partition(":")[0] for source in header["sources"].values()}
    assert kinds == {"env", "blob", "file", "log"}
    assert header["software"]["platform"] == "Linux-trainer"
    assert header["cwd"] == "/job"
    assert header["collected_at"] is None


def test_here_adds_the_machine_under_everything_else(tmp_path: Path) -> None:
    header, notes = collect_header(environ={"PATH": str(tmp_path)}, header_file=None, log_facts=LOG, here=tmp_path, now=NOW)
    assert header["software"]["python"] == "3.log"
    assert header["software"]["platform"] == platform.platform()
    assert header["hardware"]["cpu_count"] == 3
    assert header["hardware"]["ram_bytes"] > 0
    assert header["cwd"] == str(tmp_path)
    assert header["collected_at"] == NOW
    assert header["git"] == empty_header()["git"]
    assert header["sources"]["/hardware/cpu_count"] == "log:3"
    assert header["sources"]["/hardware/ram_bytes"] == "host"
    assert header["sources"]["/collected_at"] == "host"
    assert any(note.startswith("git: no repository") for note in notes)


def test_here_without_a_clock_has_no_time(tmp_path: Path) -> None:
    assert header_of(here=tmp_path, environ={"PATH": str(tmp_path)})["collected_at"] is None


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("environ", "commit", "branch"),
    [
        ({"GITHUB_SHA": COMMIT, "GITHUB_REF": "refs/heads/feature/x"}, "GITHUB_SHA", "feature/x"),
        ({"GITHUB_SHA": COMMIT, "GITHUB_REF": "refs/pull/7/merge", "GITHUB_HEAD_REF": "x"}, "GITHUB_SHA", None),
        ({"GITHUB_SHA": COMMIT, "GITHUB_REF": "refs/tags/v1"}, "GITHUB_SHA", None),
        ({"CI_COMMIT_SHA": COMMIT, "CI_COMMIT_BRANCH": "main"}, "CI_COMMIT_SHA", "main"),
        ({"BUILDKITE_COMMIT": COMMIT, "BUILDKITE_BRANCH": "main"}, "BUILDKITE_COMMIT", "main"),
        ({"BUILDKITE_COMMIT": "HEAD", "BUILDKITE_BRANCH": "main"}, None, None),
        ({"CIRCLE_SHA1": COMMIT, "CIRCLE_BRANCH": "main"}, "CIRCLE_SHA1", "main"),
        ({"BITBUCKET_COMMIT": COMMIT, "BITBUCKET_BRANCH": "main"}, "BITBUCKET_COMMIT", "main"),
        ({"BUILD_SOURCEVERSION": COMMIT, "BUILD_SOURCEBRANCH": "refs/heads/main"}, "BUILD_SOURCEVERSION", "main"),
        ({"JENKINS_URL": "x", "GIT_COMMIT": COMMIT, "GIT_BRANCH": "origin/main"}, "GIT_COMMIT", "main"),
        ({"GIT_COMMIT": COMMIT, "GIT_BRANCH": "main"}, None, None),  # of an image, perhaps
        ({"GITHUB_SHA": COMMIT, "CI_COMMIT_SHA": COMMIT, "CI_COMMIT_BRANCH": "other"}, "GITHUB_SHA", None),
        ({"GITHUB_SHA": COMMIT, "CI_COMMIT_SHA": "f" * 40}, None, None),
        ({"GITHUB_SHA": COMMIT[:8]}, None, None),
        ({"GITHUB_SHA": ""}, None, None),
    ],
)
def test_without_a_repository_a_ci_system_names_the_commit(
    tmp_path: Path, environ: dict[str, str], commit: str | None, branch: str | None
) -> None:
    given = {"PATH": str(tmp_path), **environ}
    header, notes = collect_header(environ=given, header_file=None, log_facts=[], here=tmp_path, now=None)
    assert header["git"]["commit"] == (COMMIT if commit else None)
    assert (header["sources"].get("/git/commit"), header["git"]["branch"]) == (commit and f"env:{commit}", branch)
    assert any(note.startswith("git: no repository") for note in notes) is (commit is None)
    assert header_of(environ=given, here=None) == empty_header()


def test_the_repository_counts_before_what_a_ci_system_names(tmp_path: Path) -> None:
    for command in (
        ["init", "-q", "-b", "own"],
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "c"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, timeout=30)
    environ = {"PATH": os.environ["PATH"], "GITHUB_SHA": COMMIT, "GITHUB_REF": "refs/heads/main"}
    header = header_of(environ=environ, here=tmp_path)
    assert (header["git"]["branch"], header["sources"]["/git/commit"]) == ("own", "git")
    assert header["git"]["commit"] != COMMIT


def test_the_order_of_sources() -> None:
    commit, branch = "a" * 40, "RECEIPT_GIT_BRANCH"
    blob = {"RECEIPT_BUILD_PROVENANCE": '{"branch": "blob", "commit": "' + commit + '"}'}
    document = file_of(HeaderFact("/git/branch", "file", "git"), HeaderFact("/git/commit", commit, "git"))
    log, _ = log_facts({"git_branch": ("log", 4), "git_commit": (commit[:7], 4)})
    every = {"environ": {branch: "env"} | blob, "header_file": document, "log_facts": log}
    layers = [("env:" + branch, "env"), ("blob", "blob"), ("file", "file"), ("log:4", "log")]
    steps: list[dict[str, Any]] = [
        every,
        every | {"environ": blob},
        every | {"environ": {}},
        every | {"environ": {}, "header_file": None},
    ]
    for sources, (source, value) in zip(steps, layers, strict=True):
        header = header_of(**sources)
        assert (header["git"]["branch"], header["sources"]["/git/branch"]) == (value, source)


def test_git_facts_of_another_commit_are_not_mixed_in() -> None:
    document = file_of(
        HeaderFact("/git/commit", "b" * 40, "git"),
        HeaderFact("/git/dirty", False, "git"),
        HeaderFact("/git/message", "other work", "git"),
        HeaderFact("/hardware/cpu_count", 8, "host"),
    )
    environ = {"RECEIPT_GIT_COMMIT": "a" * 40}
    header, notes = collect_header(environ=environ, header_file=document, log_facts=[], here=None, now=None)
    assert header["git"] == {"commit": "a" * 40, "branch": None, "dirty": None, "message": None}
    assert header["hardware"]["cpu_count"] == 8
    assert notes == ["git: file has another commit than env:RECEIPT_GIT_COMMIT; its git facts are left out"]


@pytest.mark.parametrize("short", ["bbbb", "b" * 40])
def test_a_shortened_commit_is_the_same_commit(short: str) -> None:
    document = file_of(HeaderFact("/git/commit", "b" * 40, "git"), HeaderFact("/git/dirty", True, "git"))
    header = header_of(environ={"RECEIPT_GIT_COMMIT": short}, header_file=document)
    assert header["git"] == {"commit": short, "branch": None, "dirty": True, "message": None}
