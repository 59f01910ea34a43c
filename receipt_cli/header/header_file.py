"""Facts that are stated: variables of the environment, and the header file that ``receipt header`` writes at a job's start.

An empty variable counts as unset, because CI systems export empty ones. No message quotes a variable's value: it may be a
misplaced secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from receipt_cli.errors import InputError, UsageError, system_errors
from receipt_cli.header.document import ShapeError, facts_of, parse_object, unknown_note
from receipt_cli.header.values import FactCollector, HeaderFact, checked, text, timestamp
from receipt_cli.patterns import compile_later

GIT_VARIABLES = {
    "RECEIPT_GIT_COMMIT": "/git/commit",
    "RECEIPT_GIT_BRANCH": "/git/branch",
    "RECEIPT_GIT_DIRTY": "/git/dirty",
    "RECEIPT_GIT_MESSAGE": "/git/message",
}
BLOB_VARIABLE = "RECEIPT_BUILD_PROVENANCE"
MAX_BLOB_BYTES = 64 * 1024
"""Largest blob read, in bytes."""

_OBJECT = compile_later(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?")
"""A whole git object name, of SHA-1 or of SHA-256."""
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_FLAT_GIT_KEYS = ("commit", "branch", "dirty", "message")


def variable_facts(environ: Mapping[str, str]) -> tuple[list[HeaderFact], list[str]]:
    """Return the facts of ``RECEIPT_GIT_COMMIT``, ``_BRANCH``, ``_DIRTY``, ``_MESSAGE``, and no notes.

    A commit is 4 to 64 hexadecimal digits; dirty is true, false, 1, 0, yes or no in any case; a message is cut to its first
    line and 80 characters. Raises ``UsageError`` with the variable's name.
    """
    facts: list[HeaderFact] = []
    for name, pointer in GIT_VARIABLES.items():
        text = environ.get(name, "").strip()
        if not text:
            continue
        try:
            value = _truth(text) if pointer == "/git/dirty" else text
            facts.append(HeaderFact(pointer, checked(pointer, value), f"env:{name}"))
        except ValueError as error:
            raise UsageError(f"{name} {error}", where=f"environment variable {name}") from None
    return facts, []


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError("must be one of true, false, 1, 0, yes, no")
    return _TRUTH[text.lower()]


def blob_facts(environ: Mapping[str, str]) -> tuple[list[HeaderFact], list[str]]:
    """Return the facts of the JSON in ``RECEIPT_BUILD_PROVENANCE`` and a note of the keys ignored.

    The object has the header's form; ``commit``, ``branch``, ``dirty`` and ``message`` may also be at its top. Raises
    ``UsageError`` with the variable's name for over 64 KiB, invalid JSON, a value of the wrong type, and a git key in both
    places.
    """
    text = environ.get(BLOB_VARIABLE, "").strip()
    if not text:
        return [], []
    where = f"environment variable {BLOB_VARIABLE}"
    if len(text) > MAX_BLOB_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BLOB_BYTES:
        raise UsageError(f"{BLOB_VARIABLE} is too large", why=f"at most {MAX_BLOB_BYTES} bytes", where=where)
    try:
        facts, unknown = facts_of(_nested(parse_object(text)), "blob")
    except ShapeError as error:
        raise UsageError(
            f"{BLOB_VARIABLE} cannot be used",
            why=str(error),
            try_='give a JSON object such as {"commit": "0123abcd", "dirty": false}',
            where=where,
        ) from None
    return facts, unknown_note(BLOB_VARIABLE, unknown)


def _nested(blob: dict[str, Any]) -> dict[str, Any]:
    flat = {name: blob[name] for name in _FLAT_GIT_KEYS if name in blob}
    if not flat:
        return blob
    nested = blob.get("git")
    if nested is None:
        nested = {}
    if not isinstance(nested, dict):
        raise ShapeError("/git must be an object")
    twice = sorted(flat.keys() & nested.keys())
    if twice:
        raise ShapeError(f"/{twice[0]} and /git/{twice[0]} are both given")
    rest = {name: value for name, value in blob.items() if name not in flat}
    return rest | {"git": nested | flat}


CI_VARIABLES = {
    "GITHUB_SHA": "GITHUB_REF",
    "CI_COMMIT_SHA": "CI_COMMIT_BRANCH",  # GitLab, Woodpecker
    "BUILDKITE_COMMIT": "BUILDKITE_BRANCH",
    "CIRCLE_SHA1": "CIRCLE_BRANCH",
    "BITBUCKET_COMMIT": "BITBUCKET_BRANCH",
    "BUILD_SOURCEVERSION": "BUILD_SOURCEBRANCH",  # Azure Pipelines
    "GIT_COMMIT": "GIT_BRANCH",
}
"""Variable with the commit of a CI system, and the one with its branch."""
_JENKINS = "GIT_COMMIT"
_OF_JENKINS = ("JENKINS_URL", "JENKINS_HOME")
"""Variables of Jenkins, without which ``GIT_COMMIT`` may be that of a container's image."""
_BRANCHES, _REFERENCES, _REMOTE = "refs/heads/", "refs/", "origin/"
"""What precedes a branch; what precedes other references, such as tags and merges; what Jenkins writes before a branch."""


def ci_facts(environ: Mapping[str, str]) -> tuple[list[HeaderFact], list[str]]:
    """Return commit and branch that a CI system names, for a job in a folder without a repository, and notes.

    A commit counts if it is a whole object name; different ones prove nothing. A reference that is no branch is left out.
    """
    collector = FactCollector()
    known = {name: environ.get(name, "").strip() for name in CI_VARIABLES}
    if not any(environ.get(name, "").strip() for name in _OF_JENKINS):
        known.pop(_JENKINS)
    named = [name for name, value in known.items() if _OBJECT.fullmatch(value)]
    if len({known[name].lower() for name in named}) > 1:
        collector.note(f"git: {' and '.join(named)} name different commits: none is used")
        return collector.facts, collector.notes
    for name in named[:1]:
        collector.add("/git/commit", known[name], f"env:{name}")
        branch = environ.get(CI_VARIABLES[name], "").strip().removeprefix(_BRANCHES)
        if branch and not branch.startswith(_REFERENCES):
            branch = branch.removeprefix(_REMOTE) if name == _JENKINS else branch
            collector.add("/git/branch", branch, f"env:{CI_VARIABLES[name]}")
    return collector.facts, collector.notes


SCHEMA_VERSION = "header/1.1"
_WITHOUT_DATA = "header/1.0"
"""The version that holds a header of which neither the data nor a digest of the parameters is known."""
MAX_BYTES = 1 << 20
"""Largest header file read, in bytes."""
RUN_KEYS = ("name", "lane", "preset", "started_at")
_MAJOR = "header/1."


def header_document(run: Mapping[str, str | None], header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to write: ``{schema_version, run{name, lane, preset, started_at}, header}``, in the lowest version.

    Missing keys of ``run`` become null; ``started_at`` is RFC 3339 with ``Z`` and whole seconds. Raises ``ValueError`` for a
    run value of the wrong type or an unknown run key.
    """
    unknown = sorted(run.keys() - set(RUN_KEYS))
    if unknown:
        raise ValueError(f"run has no key {unknown[0]}")
    newer = "data" in header or "parameter_digest" in header["model"]
    return {"schema_version": SCHEMA_VERSION if newer else _WITHOUT_DATA, "run": _run(run), "header": dict(header)}


def read_header_file(path: Path) -> dict[str, Any]:
    """Return the checked document in ``path``: ``run`` with all four keys, ``header`` unchanged.

    Reads every later minor version of ``header/1``. Raises ``InputError`` if the file is missing, unreadable, over 1 MiB,
    not JSON, of another kind, or has a value of the wrong type.
    """
    where = str(path)
    with system_errors(InputError, "cannot read the header file", where), path.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputError("header file is too large", why=f"at most {MAX_BYTES} bytes", where=where)
    try:
        document = parse_object(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("header file is not UTF-8", where=where) from None
    except ShapeError as error:
        raise InputError("header file is not a JSON document", why=str(error), where=where) from None
    return checked_document(document, where)


def checked_document(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a header file's document with all four keys of ``run``, if it can be used; unknown keys are ignored later.

    ``where`` names the file in messages. Raises ``InputError`` for another kind of document or a value of the wrong type.
    """
    _opened(document, where)
    run = document.get("run")
    try:
        return {**document, "run": _run({} if run is None else run)}
    except ValueError as error:
        raise InputError("header file cannot be used", why=str(error), where=where) from None


def file_facts(document: Mapping[str, Any]) -> tuple[list[HeaderFact], list[str]]:
    """Return the facts of a header file's document, all with source ``file``, and a note of keys ignored.

    Raises ``InputError`` for another kind of document or a value of the wrong type.
    """
    facts, unknown = _opened(document, "header file")
    return facts, unknown_note("header file", unknown)


def _opened(document: Mapping[str, Any], where: str) -> tuple[list[HeaderFact], list[str]]:
    version = document.get("schema_version")
    if not isinstance(version, str) or not version.startswith(_MAJOR):
        raise InputError(
            "not a header file",
            why=f"its schema_version is not {SCHEMA_VERSION}",
            try_="write one with `receipt header` when the job starts",
            where=where,
        )
    header = document.get("header")
    if not isinstance(header, Mapping):
        raise InputError("header file has no header object", where=where)
    try:
        return facts_of(header, "file")
    except ShapeError as error:
        raise InputError("header file cannot be used", why=str(error), where=where) from None


def _run(run: object) -> dict[str, str | None]:
    if not isinstance(run, Mapping):
        raise ValueError("/run must be an object")
    result: dict[str, str | None] = {}
    for name in RUN_KEYS:
        value = run.get(name)
        check = timestamp if name == "started_at" else text
        try:
            result[name] = None if value is None else check(value)
        except ValueError as error:
            raise ValueError(f"/run/{name} {error}") from None
    return result
