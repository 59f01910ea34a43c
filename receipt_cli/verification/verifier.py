"""Verify that a log, read with the definitions recorded in a receipt, gives the same derived part."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from receipt_cli.derive import Options, read_log
from receipt_cli.detect.choose import Choice, Chosen
from receipt_cli.documents.canonical import canonical_bytes, is_touched
from receipt_cli.documents.diff import Difference, differences
from receipt_cli.documents.schemas import keep_known
from receipt_cli.documents.validate import Finding, validate_bytes
from receipt_cli.errors import InputError, UsageError
from receipt_cli.events.file_order import SeveralRuns
from receipt_cli.grammar.catalog import INDUCED, find_recorded, shipped_by
from receipt_cli.grammar.model import Grammar
from receipt_cli.grammar.site import NO_SITE, Site
from receipt_cli.header.collect import renew_log_facts
from receipt_cli.header.document import log_facts
from receipt_cli.importers.importing import import_document
from receipt_cli.importers.trackers.recognise import runs_in
from receipt_cli.io.compression import unpacked
from receipt_cli.io.discovery import names_of
from receipt_cli.io.source import Progress, Source, Stream
from receipt_cli.problems import split_pointer, value_at
from receipt_cli.receipts.assembly import Document, assemble, derived_bytes, derived_part
from receipt_cli.receipts.production import find_paths, missing_notes, open_streams, times_note
from receipt_cli.redaction.text import mask_texts


class RecordedFile(NamedTuple):
    """One of several files of a receipt's log: its name, and the digest of its decompressed bytes."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The inputs of a derivation. ``grammars`` are the receipt's entries; ``launch`` is the index of the run, from 0."""

    grammars: tuple[Mapping[str, Any], ...]
    options: Options
    launch: int | None
    files: tuple[RecordedFile, ...]
    tool_version: str
    times: str | None = None
    """Digest of the file of times, if the receipt has times from one."""
    samples: str | None = None
    """Digest of the file of samples, if the receipt has a class of lost time from one."""

    @classmethod
    def of(cls, derivation: Mapping[str, Any]) -> Recorded:
        """Return the inputs recorded in the block ``derivation`` of a valid receipt."""
        options, launches = derivation["options"], derivation.get("launches")
        return cls(
            grammars=tuple(derivation["grammars"]),
            options=Options.recorded(options),
            launch=launches["used"] - 1 if launches else None,
            files=tuple(RecordedFile(file["name"], file["sha256"]) for file in derivation["log"].get("files", ())),
            tool_version=derivation["tool_version"],
            times=(derivation.get("times") or {}).get("sha256"),
            samples=(derivation.get("samples") or {}).get("sha256"),
        )

    def forced(self, own: Sequence[Grammar] = ()) -> Grammar | None:
        """Return the grammar that the caller chose, or None without such a choice.

        ``own`` are a site's grammars. Raises ``DataError`` for an unknown grammar.
        """
        name, _, version = (self.options.grammar or "").partition("@v")
        if not name or name == INDUCED:
            return None
        digest = next((entry["sha256"] for entry in self.grammars if entry["id"] == name), "")
        return find_recorded(name, int(version) if version.isdecimal() else 0, digest, own)

    def choice(self, own: Sequence[Grammar] = ()) -> Choice | None:
        """Return the detected grammars, or None if the caller chose one.

        The candidates are ``own`` and the grammars of the same release, so that later ones have no effect. Raises as
        ``forced`` does.
        """
        if self.options.grammar is not None:
            return None
        known = [entry for entry in self.grammars if entry["id"] != INDUCED]
        chosen = tuple(Chosen(find_recorded(e["id"], e["version"], e["sha256"], own), e["chosen_by"]) for e in known)
        among = {grammar.ref: grammar for grammar in (*shipped_by(self.tool_version), *own, *(c.grammar for c in chosen))}
        catalogue = sorted(among.values(), key=lambda grammar: (grammar.id, grammar.version))
        return Choice(chosen, tuple(catalogue), generic=len(known) < len(self.grammars))


INPUTS = {
    "log": ("/derivation/log/sha256", "/derivation/log/files/{}/sha256"),
    "times": ("/derivation/times", "/derivation/times/sha256", "/derivation/times/size_bytes"),
    "samples": ("/derivation/samples", "/derivation/samples/sha256", "/derivation/samples/size_bytes"),
    "grammar": tuple(f"/derivation/grammars/{{}}/{part}" for part in ("id", "version", "sha256")),
    "markers": ("/derivation/markers/version", "/derivation/markers/sha256"),
    "registry": ("/derivation/registry/version", "/derivation/registry/sha256"),
    "peaks": ("/derivation/peaks/version", "/derivation/peaks/sha256"),
    "rules": ("/derivation/rules",),
}
"""Input of a derivation → the fields that identify it; ``{}`` stands for an index."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The differences between the derived parts of a receipt (``old``) and of its log (``new``).

    They include header values whose source is the log. ``invalid`` are errors in the receipt itself. ``refs`` are the
    grammars that read the log now, or the format of the imported document. ``touched``: whether the captured parts changed
    after the receipt was written; None if unknown. ``tool_version`` wrote the receipt.
    """

    differences: tuple[Difference, ...]
    invalid: tuple[Finding, ...]
    refs: tuple[str, ...]
    notes: tuple[str, ...]
    touched: bool | None = None
    tool_version: str = ""

    @property
    def verified(self) -> bool:
        """Whether the derived parts are equal byte for byte, and the receipt is valid and not known to be changed."""
        return not self.differences and not self.invalid and not self.touched

    @property
    def other(self) -> tuple[str, ...]:
        """The inputs that differ from the recorded ones (keys of ``INPUTS``), and ``values`` if anything else differs."""
        changed = {re.sub(r"(?<=/)\d+(?=/|\Z)", "{}", difference.pointer) for difference in self.differences}
        values = () if changed <= set().union(*INPUTS.values()) else ("values",)
        return (*(name for name, fields in INPUTS.items() if not changed.isdisjoint(fields)), *values)

    def document(self) -> dict[str, object]:
        """Return the verification as JSON values."""
        return {
            "identical": not self.differences,
            "other": list(self.other),
            "captured": _CAPTURED[self.touched],
            "grammars": list(self.refs),
            "invalid": [{"pointer": f.pointer, "rule": f.rule, "reason": f.reason} for f in self.invalid],
            "differences": [difference.document() for difference in self.differences],
        }


_CAPTURED = {True: "changed", False: "as_written", None: "unknown"}


def read_receipt(data: bytes, where: str) -> tuple[Document, tuple[Finding, ...]]:
    """Return the receipt in ``data`` and its errors; its ``derivation`` has no schema errors.

    Raises ``InputError`` if it has, and ``DataError`` for an unknown version.
    """
    findings = tuple(found for found in validate_bytes(data, where) if found.severity == "error")
    document = json.loads(data)
    if isinstance(document, dict) and not str(document.get("schema_version")).startswith("receipt/"):
        raise InputError("is not a receipt", where=where, why=f"its schema_version is {document.get('schema_version')!r}")
    for found in findings:
        needed = found.pointer in ("", "/schema_version") or f"{found.pointer}/".startswith("/derivation/")
        unread = found.rule == "json_value"  # then nothing else was checked
        if unread or (needed and found.rule.startswith("schema")):
            why = f"{found.pointer or 'the document'}: {found.reason}"
            raise InputError("is not a valid receipt", where=where, why=why, try_=f"receipt schema check {where}")
    return document, findings


def verify(
    document: Mapping[str, Any],
    logs: Sequence[str],
    *,
    invalid: tuple[Finding, ...] = (),
    own: Sequence[Grammar] = (),
    newest: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
    site: Site = NO_SITE,
) -> Verification:
    """Derive ``document``, as returned by ``read_receipt``, from its ``logs`` again and compare.

    Fields that its schema version does not have are ignored. An imported receipt is imported again: ``logs`` is then the
    imported document.

    ``own`` are additional grammars, ``site`` the definitions of the search path. With ``newest`` the log is read with
    current definitions, else with the recorded grammars and options. Raises ``InputError`` for a log that cannot be read,
    ``DataError`` for an unknown grammar, and ``UsageError`` for stdin among several files, or if current definitions find
    several runs in the recorded files.
    """
    origin = document["derivation"].get("origin")
    notes: list[str] = []
    if origin is not None:
        if len(logs) > 1:
            raise UsageError("the receipt was imported from one document", why=f"{len(logs)} files are given")
        facts = Options.recorded(document["derivation"]["options"]).facts
        several = len(runs_in(logs[0])) > 1  # the receipt's run is known by its name
        session = document["run"]["name"] if several else None
        made = import_document(logs[0], wanted=origin["format"], facts=facts, session=session)
        refs: tuple[str, ...] = (origin["format"],)
    else:
        made = _derive(document, logs, own, newest, workers, progress, notes, site)
        refs = tuple(f"{entry['id']}@v{entry['version']}" for entry in made["derivation"]["grammars"])
    known = keep_known(made, str(document.get("schema_version")))
    now = derived_bytes(known)
    found = [] if derived_bytes(document) == now else list(differences(derived_part(document), json.loads(now)))
    found += differences({"header": document["header"]}, {"header": _with_sources_of_its_values(known["header"])})
    return Verification(tuple(found), invalid, refs, tuple(notes), is_touched(document), document["derivation"]["tool_version"])


def _with_sources_of_its_values(header: Document) -> Document:
    """Return a header without sources of fields that it does not have: its version does not know them."""
    sources = header["sources"]
    return {**header, "sources": {at: sources[at] for at in sources if value_at(header, split_pointer(at)) is not None}}


def _derive(
    document: Mapping[str, Any],
    logs: Sequence[str],
    own: Sequence[Grammar],
    newest: bool,
    workers: int | None,
    progress: Progress | None,
    notes: list[str],
    site: Site,
) -> Document:
    """Return the receipt of the logs, with only the header of its captured parts; adds to ``notes``."""
    recorded = Recorded.of(document["derivation"])
    notes += site.notes
    own = (*own, *site.grammars)
    paths, _ = find_paths(logs)
    names: list[str] | None = None
    if recorded.files and len(paths) > 1:
        paths, names, left_out = call_as_recorded(paths, recorded.files)
        notes += [f"ignored {left_out} files that do not belong to this receipt"] if left_out else []
    forced = recorded.forced(own)
    if newest and forced is not None:
        forced = replace(recorded, options=replace(recorded.options, grammar=forced.id), grammars=()).forced(own)
    choice = None if newest else recorded.choice(own)
    times, samples = recorded.times is not None, recorded.samples is not None
    streams = open_streams(paths, names, progress=progress, times=times, samples=samples)
    notes += missing_notes(streams, times=times, samples=samples)
    try:
        reading = read_log(streams, recorded.options, workers=workers, using=forced, choice=choice, site=site)
        notes += [*times_note(streams), *(["the log changed while it was read"] if reading.gathered.changed else [])]
        there = recorded.launch is not None and recorded.launch < len(reading.launches)
        derivation = reading.derivation(recorded.launch if there else None)
        header = mask_texts(renew_log_facts(document["header"], log_facts(derivation.facts)[0]))
        return assemble(derivation, run={}, header=header)
    except SeveralRuns as error:
        made = _with_files(document, streams)
        if not differences(document, made):
            raise  # the same files: current definitions find several runs in them
        notes.append(f"{error.message}: {error.why}")
        return made
    finally:
        for part in (part for stream in streams for part in stream.parts):
            part.close()


def _with_files(document: Mapping[str, Any], streams: Sequence[Stream]) -> Document:
    """Return the receipt with the current digests of its files, which are no longer one run."""
    made: Document = json.loads(canonical_bytes(document))
    log = made["derivation"]["log"]
    parts = [(name, part) for stream in streams for name, part in zip(stream.names, stream.parts, strict=True)]
    before = {file["name"]: file for file in log.get("files", ())}
    log["files"] = [{**before.get(name, {"name": name}), "sha256": part.sha256} for name, part in parts]
    return made


def call_as_recorded(paths: Sequence[str], files: Sequence[RecordedFile]) -> tuple[list[str], list[str], int]:
    """Return the ``paths`` of a receipt's ``files``, their recorded names, and the number of other paths.

    Files are matched by their names below the common folder, compressed or not, if all names match; else first by digest,
    so that an archive may rename and regroup files. No path is left out while a file is missing. Raises ``InputError``.
    """
    names = names_of(paths)
    called = {unpacked(file.name): file.name for file in files}
    if sorted(map(unpacked, names)) == sorted(called):
        return list(paths), [called[unpacked(name)] for name in names], 0
    missing = list(files)
    known: dict[str, str] = {}
    digests = {path: Source(path).measure().sha256 for path in paths}
    for path in paths:
        _assign(known, missing, path, [file for file in missing if file.sha256 == digests[path]])
    for path, name in zip(paths, names, strict=True):
        _assign(known, missing, path, [file for file in missing if unpacked(file.name) == unpacked(name)])
    taken = [(path, known.get(path, name)) for path, name in zip(paths, names, strict=True) if missing or path in known]
    return [path for path, _ in taken], [name for _, name in taken], len(paths) - len(taken)


def _assign(known: dict[str, str], missing: list[RecordedFile], path: str, alike: Sequence[RecordedFile]) -> None:
    """Assign ``path`` to the first of the matching files, unless it has one."""
    if alike and path not in known:
        known[path] = alike[0].name
        missing.remove(alike[0])
