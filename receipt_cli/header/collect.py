"""Compose the header from the environment, the header file, the log and, on request, this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from receipt_cli.header.document import merge
from receipt_cli.header.header_file import blob_facts, ci_facts, file_facts, variable_facts
from receipt_cli.header.values import FactCollector, HeaderFact, is_pointer
from receipt_cli.problems import split_pointer, value_at

Collected = tuple[list[HeaderFact], list[str]]
"""The result of a collector: facts, and notes for stderr."""

_COMMIT = "/git/commit"


def collect_header(
    *,
    environ: Mapping[str, str],
    header_file: Mapping[str, Any] | None,
    log_facts: Sequence[HeaderFact],
    here: Path | None,
    now: str | None,
    python: str | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Return the header document and notes for stderr.

    Priority: git variables of ``environ``, its JSON blob, ``header_file`` (a document from ``read_header_file``),
    ``log_facts``, and, only if ``here`` is a folder, this machine and the repository of that folder, or the commit that a
    CI system names if it has none. ``now`` is the RFC 3339 time for ``collected_at``, used only with ``here``. ``python`` is
    the path of the job's interpreter; None takes the one that ``environ`` names, "" means unknown. No clock is read. Raises
    ``UsageError`` for a bad variable and ``InputError`` for a bad header file.
    """
    groups: list[Collected] = [variable_facts(environ), blob_facts(environ)]
    if header_file is not None:
        groups.append(file_facts(header_file))
    groups.append((list(log_facts), []))
    if here is not None:
        clock = FactCollector()
        clock.add("/collected_at", now, "host")
        groups += [(clock.facts, clock.notes), *_local(here, environ, python)]
    facts, notes = _of_one_commit([facts for facts, _ in groups])
    return merge(facts), [note for _, noted in groups for note in noted] + notes


def renew_log_facts(header: Mapping[str, Any], log_facts: Sequence[HeaderFact]) -> dict[str, Any]:
    """Return ``header`` with the values read from a log replaced by ``log_facts``; other values stay.

    A header with sources in another form than ``merge`` writes is returned unchanged.
    """
    if not all(map(is_pointer, header["sources"])):
        return dict(header)
    kept = [
        HeaderFact(at, value_at(header, split_pointer(at)), source)
        for at, source in header["sources"].items()
        if not source.startswith("log:")
    ]
    facts, _ = _of_one_commit([kept, list(log_facts)])
    return merge(facts)


def _local(here: Path, environ: Mapping[str, str], python: str | None) -> list[Collected]:
    """Return the facts of this machine and of the repository of ``here``; imports their modules only now."""
    from receipt_cli.header.host import accelerator_facts, host_facts

    return [_interpreter(environ, python), host_facts(here), accelerator_facts(environ), _repository(here, environ)]


def _repository(here: Path, environ: Mapping[str, str]) -> Collected:
    """Return the git facts of a folder; without a repository those that a CI system states."""
    from receipt_cli.header.git import git_facts

    facts, notes = git_facts(here, environ)
    if facts:
        return facts, notes
    stated, more = ci_facts(environ)
    return stated, more if stated else [*notes, *more]


def _interpreter(environ: Mapping[str, str], python: str | None) -> Collected:
    """Return the facts of the job's interpreter, or notes if there is none or it does not answer."""
    from receipt_cli.header.host import ask_interpreter, job_interpreter

    collector = FactCollector()
    path = job_interpreter(environ) if python is None else python
    if not path:
        collector.note("python: the job's interpreter is unknown; its version and packages are left out")
        return collector.facts, collector.notes
    facts, problem = ask_interpreter(path, environ)
    if problem:
        collector.note(f"{path}: {problem}")
    for pointer, value in facts.items():
        collector.add(pointer, value, "host")
    return collector.facts, collector.notes


def _of_one_commit(groups: Sequence[list[HeaderFact]]) -> tuple[list[HeaderFact], list[str]]:
    """Flatten ``groups``, without the git facts of a source with another commit than the first.

    Branch, dirty and message describe a commit; beside a different commit they would be false.
    """
    kept: list[HeaderFact] = []
    notes: list[str] = []
    chosen: HeaderFact | None = None
    for group in groups:
        own = next((fact for fact in group if fact.pointer == _COMMIT), None)
        names = sorted([str(fact.value) for fact in (chosen, own) if fact is not None], key=len)  # one may be shortened
        if chosen is not None and own is not None and not names[1].startswith(names[0]):
            kept += [fact for fact in group if not fact.pointer.startswith("/git/")]
            notes.append(f"git: {own.source} has another commit than {chosen.source}; its git facts are left out")
        else:
            kept += group
            chosen = chosen or own
    return kept, notes
