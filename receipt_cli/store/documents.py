"""The documents of a store besides receipts: ablations, evaluations, GPU profiles and golden curves, each linked to its run.

A link is by digest if a receipt attaches the document or a file that it was made from, or if the document names the log of a
run; else by name if exactly one run has that of the document. A file that is no valid document of its kind gets a row with the
reason.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import InputError, ReceiptError
from receipt_cli.io.file_kinds import SpecialFile, read_regular
from receipt_cli.redaction.text import mask_texts
from receipt_cli.store.files import Store
from receipt_cli.store.places import marks_files, placed, places_by_log, read_marks, read_places
from receipt_cli.store.views import ABLATION, ABOUT, EVALUATION, GOLDEN, GOLDEN_CURVE, KERNEL, PROFILE, Column, values_of

_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, SpecialFile)


class Refused(ReceiptError):
    """A file in the place of a receipt is not a valid receipt of its log."""


def read_receipt(path: Path, log_sha256: str) -> dict[str, Any]:
    """Return the valid receipt of a log at ``path``, without secrets. Raises as ``read_valid``."""
    document = read_valid(path)
    if not document["schema_version"].startswith("receipt/"):
        raise Refused("not a receipt", why=document["schema_version"])
    if document["derivation"]["log"]["sha256"] != log_sha256:
        raise Refused("the file's name belongs to another log")
    return document


def read_valid(path: Path) -> dict[str, Any]:
    """Return the valid document in a file of a store, without secrets: its writer may have masked less.

    Raises ``Refused`` for a file without one, ``InputError`` if the system cannot read or validate the file: it may be fine, and
    leaving it out would change the answer.
    """
    try:
        data = read_regular(path)
        findings = validate_bytes(data, path.name)
    except OSError as error:
        why = error.strerror or str(error)
        if isinstance(error, _NO_FILE):
            raise Refused("cannot read", why=why) from error
        raise InputError("cannot read the store", where=str(path), why=why) from error
    except ReceiptError as error:
        if isinstance(error.__cause__, OSError):  # one of our schemas
            raise
        raise Refused(error.message, why=error.why) from error
    wrong = [finding for finding in findings if finding.severity == "error"]
    if wrong:
        raise Refused("not valid", why=f"{wrong[0].pointer or '/'}: {wrong[0].reason}")
    masked: dict[str, Any] = mask_texts(json.loads(data))
    return masked


def read_receipts(store: Store, warn: Callable[[str], None], *, excluded: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the current receipt of every run, ordered by the log's digest; call ``warn`` for each skipped file.

    Missing name, lane and preset come from the log's first path (``placed``), a missing lane also from the run's marks. Without
    ``excluded``, runs that a user excluded are left out. Raises ``InputError`` if the store does not exist or cannot be read.
    """
    store.check_exists()
    places, marks = places_by_log(store.root), marks_files(store.root)
    for receipt in store.receipts():
        mine = read_marks(marks.get(receipt.run_id))
        if mine.excluded and not excluded:
            continue
        try:
            document = read_receipt(receipt.path, receipt.log_sha256)
            found = read_places(places.get(receipt.log_sha256, ()))
            document = mask_texts(placed(document, found)) if found else document
            if mine.lane and document["run"]["lane"] is None:
                document = {**document, "run": {**document["run"], "lane": mine.lane}}
            yield document
        except Refused as error:
            name = receipt.path.relative_to(store.root).as_posix()
            warn(f"{name} is skipped: {error}")


KINDS = ("ablation", "evaluation", "gpu_profile", "golden")
"""The kinds that a store keeps besides receipts."""
_NAME = re.compile(r"(?P<sha256>[0-9a-f]{64})\.json")
_DIGITS = re.compile(r"[0-9a-f]{4,64}\Z")
Row = dict[str, Any]
Document = dict[str, Any]


class StoredDocument(NamedTuple):
    """One file below ``documents/``: its path, the kind that its folder names, and the digest that its name is."""

    path: Path
    kind: str
    sha256: str


class RunFacts(NamedTuple):
    """What links a document to a run: identity, log, name and lane of the run, and the digests of its attachments."""

    run_id: str
    log_sha256: str
    name: str | None
    lane: str | None
    attached: Sequence[str] = ()
    excluded: bool = False


class Link(NamedTuple):
    """The run of a document, and whether a ``digest`` or its ``name`` says so."""

    run: RunFacts
    by: str


def stored_documents(store: Store) -> Iterator[StoredDocument]:
    """Yield the documents of a store by kind and digest; a name that is no digest is kept whole. Raises ``InputError``."""
    for path in store.documents():
        match = _NAME.fullmatch(path.name)
        yield StoredDocument(path, path.parts[-3], match["sha256"] if match is not None else path.stem)


def read_document(stored: StoredDocument) -> Document:
    """Return the valid document in a file, without secrets.

    Raises ``Refused`` for a file without one, ``InputError`` if the system cannot read it.
    """
    if stored.kind not in KINDS:
        raise Refused(f"the kind {stored.kind!r} is unknown", why=f"known: {', '.join(KINDS)}")
    document = read_valid(stored.path)
    if document["schema_version"].partition("/")[0] != stored.kind:
        raise Refused(f"not of the kind {stored.kind}", why=document["schema_version"])
    return document


class Links:
    """Finds the run of a document among ``runs``."""

    def __init__(self, runs: Iterable[RunFacts]) -> None:
        self._attached: dict[str, list[RunFacts]] = {}
        self._logs: dict[str, list[RunFacts]] = {}
        self._names: dict[str, list[RunFacts]] = {}
        for run in runs:
            for digest in run.attached:
                self._attached.setdefault(digest, []).append(run)
            if run.run_id == run.log_sha256:  # the last run of its log
                self._logs.setdefault(run.log_sha256, []).append(run)
            if run.name is not None:
                self._names.setdefault(run.name, []).append(run)

    def find(self, document: Mapping[str, Any], sha256: str) -> Link | None:
        """Return the run of a document whose file has this digest; None without one, or if several have a claim."""
        made_from, named = _digests(document)
        claims = [run for digest in (sha256, *made_from) for run in self._attached.get(digest, ())]
        claims += [run for digest in (*made_from, *named) for run in self._logs.get(digest, ())]
        if claims:
            return Link(claims[0], "digest") if len({run.run_id for run in claims}) == 1 else None
        own = document.get("run") or {}
        called = [
            run for run in self._names.get(own.get("name") or "", ()) if own["lane"] in (None, run.lane) or run.lane is None
        ]
        return Link(called[0], "name") if len(called) == 1 else None


def _digests(document: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the digests of the files that a document was made from, and those that it names otherwise."""
    files = [file["sha256"] for part in ("derivation", "origin") for file in (document.get(part) or {}).get("files", ())]
    attached = [each["sha256"] for each in document.get("attachments", ()) if each["sha256"] is not None]
    return files, [*attached, *(run for reference in document.get("references", ()) for run in reference["runs"])]


def document_rows(store: Store, links: Links) -> Iterator[Row]:
    """Yield the row of each document: the columns of its view in ``views``. Raises ``InputError``."""
    for stored in stored_documents(store):
        row: Row = {"kind": stored.kind, "sha256": stored.sha256, "path": stored.path.relative_to(store.root).as_posix()}
        try:
            document = read_document(stored)
        except Refused as error:
            yield {**row, "refusal": str(error)}
            continue
        link = links.find(document, stored.sha256)
        row |= values_of(ABOUT, document) | {"title": title_of(document), "run_at": time_of(document), "run_id": None}
        row |= {"run_name": None, "linked_by": None, "excluded": False, "refusal": None}
        if link is not None:
            row |= {"run_id": link.run.run_id, "linked_by": link.by, "run_name": link.run.name, "excluded": link.run.excluded}
            row["lane"] = row["lane"] or link.run.lane
        columns, more = _OF_KIND[stored.kind]
        yield row | values_of(columns, document) | more(document)


def find_document(root: Path, given: str) -> StoredDocument | None:
    """Return the document that ``given`` names: first digits of its digest (at least four), its name or its title.

    ``KIND:NAME`` names one of a kind. None without a match; raises ``InputError`` if several match, which it lists.
    """
    kind, colon, name = given.partition(":")
    wanted = [kind] if colon and kind in KINDS else list(KINDS)
    name = name if colon and kind in KINDS else given
    files = [stored for stored in stored_documents(Store(root)) if stored.kind in wanted]
    found = [stored for stored in files if _DIGITS.match(name) and stored.sha256.startswith(name)]
    found = found or [stored for stored in files if name in _names(stored)]
    if len(found) > 1:
        shown = ", ".join(f"{stored.kind} {stored.sha256[:12]}" for stored in found[:6])
        why = f"{shown}{f', and {len(found) - 6} more' if len(found) > 6 else ''}"
        raise InputError(f"{len(found)} documents are called {given!r}", where=str(root), why=why, try_="name one by its digits")
    return found[0] if found else None


def _names(stored: StoredDocument) -> set[str]:
    with contextlib.suppress(ReceiptError):
        document = read_document(stored)
        return {name for name in ((document.get("run") or {}).get("name"), title_of(document)) if name}
    return set()


def title_of(document: Mapping[str, Any]) -> str:
    """Return what a document is called by what it is about: variant, model or program, label, systems."""
    kind = document["schema_version"].partition("/")[0]
    if kind == "ablation":
        return str(document["ablation"]["variant"])
    if kind == "gpu_profile":
        return str(document["profile"]["label"])
    if kind == "golden":
        systems = [reference["system"] for reference in document["references"]]
        named = [s["lane"] or " × ".join(str(v) for v in (s["world_size"], s["device"]) if v) or "any system" for s in systems]
        return ", ".join(named)
    model, origin = document.get("model") or {}, document.get("origin") or {}
    own = (document.get("run") or {}).get("name")
    return str(model.get("name") or origin.get("producer") or origin.get("format") or own or "evaluation")


def time_of(document: Mapping[str, Any]) -> str | None:
    """Return the time of a document, RFC 3339 in UTC: start or end of its run, of its session, or of collecting its header."""
    run, header, events = document.get("run") or {}, document.get("header") or {}, document.get("events") or {}
    found = run.get("started_at") or run.get("finished_at") or events.get("started_at") or header.get("collected_at")
    return None if found is None else str(found)


def _ablation(document: Document) -> Row:
    changes = json.dumps(document["ablation"]["changes"], ensure_ascii=False)
    return {"changes": changes, "curves": _curves(document["summary"]["curves"])}


def _curves(figures_of: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    return [{"metric": name, **figures} for name, figures in figures_of.items()]


def _evaluation(document: Document) -> Row:
    step, origin = (document.get("model") or {}).get("step"), document.get("origin") or {}
    return {
        "producer": origin.get("producer") or origin.get("format"),
        "scores": [{**score, "step": step if score["step"] is None else score["step"]} for score in document.get("scores", ())],
        "curves": _curves((document["summary"] or {}).get("metrics") or {}),
    }


def _gpu_profile(document: Document) -> Row:
    events = document["events"] or {}
    devices = events.get("devices") or ()
    names = list(dict.fromkeys(device["name"] for device in devices if device["name"]))
    return {
        "device_name": " + ".join(names) or None,
        "device_count": len(devices) if document["events"] else None,
        "lane_count": len(document["lanes"]),
        "kernels": [values_of(KERNEL, kernel) for kernel in (events.get("kernels") or {}).get("top", ())],
        "stalls": list(events.get("stall_reasons", ())),
    }


def _golden(document: Document) -> Row:
    references = document["references"]
    curves = [(reference["system"], curve, curve["steps"]) for reference in references for curve in reference["curves"]]
    return {
        "reference_count": len(references),
        "golden_runs": sorted({run for reference in references for run in reference["runs"]}),
        "golden_curves": [
            {**system, **values_of(GOLDEN_CURVE, curve), "step_count": len(steps), "first_step": steps[0], "last_step": steps[-1]}
            for system, curve, steps in curves
        ],
    }


_OF_KIND: Mapping[str, tuple[Sequence[Column], Callable[[Document], Row]]] = {
    "ablation": (ABLATION, _ablation),
    "evaluation": (EVALUATION, _evaluation),
    "gpu_profile": (PROFILE, _gpu_profile),
    "golden": (GOLDEN, _golden),
}
"""Kind → its columns with a source, and a function that returns the values of the others."""
