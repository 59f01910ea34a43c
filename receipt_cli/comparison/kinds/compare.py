"""Load documents of one kind besides receipts, and compare each with the first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from receipt_cli.comparison.golden import compare_goldens
from receipt_cli.comparison.kinds.ablations import compare_ablations
from receipt_cli.comparison.kinds.contrast import Document
from receipt_cli.comparison.kinds.evaluations import compare_evaluations
from receipt_cli.comparison.kinds.profiles import compare_profiles
from receipt_cli.comparison.load import short_names
from receipt_cli.documents.schemas import read_version
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import InputError, UsageError
from receipt_cli.receipts.production import document_in
from receipt_cli.redaction.text import mask_texts
from receipt_cli.store.documents import title_of

SCHEMA_VERSION = "document_comparison/1.0"
_RULES: Mapping[str, Callable[[Document, Document], dict[str, Any]]] = {
    "ablation": compare_ablations,
    "evaluation": compare_evaluations,
    "gpu_profile": compare_profiles,
    "golden": compare_goldens,
}
RECEIPT = "receipt"
"""The kind of receipts, and of logs, which give one."""


def kinds_of(files: Sequence[str]) -> list[str]:
    """Return the kind of document in each file; ``RECEIPT`` for a log and for a kind without rules. Raises ``InputError``."""
    every = (None if file == "-" else document_in(file) for file in files)
    stated = ({} if data is None else json.loads(data.decode("utf-8-sig")) for data in every)
    versions = (read_version(document.get("schema_version")) for document in stated)
    return [version[0] if version is not None and version[0] in _RULES else RECEIPT for version in versions]


def check_alike(files: Sequence[str], kinds: Sequence[str]) -> str:
    """Return the kind of all files. Raises ``UsageError`` if they are of several, or fewer than two."""
    if len(set(kinds)) > 1:
        other = next(place for place, kind in enumerate(kinds) if kind != kinds[0])
        what = {RECEIPT: "a run"}
        named = [f"{files[i]} is {what.get(kinds[i], _article(kinds[i]))}" for i in (0, other)]
        raise UsageError(
            "documents of different kinds cannot be compared", why=", ".join(named), try_=f"receipt show {files[other]}"
        )
    if len(files) < 2:
        raise UsageError("a comparison needs two documents", try_=f"receipt compare {files[0]} OTHER")
    return kinds[0]


def _article(kind: str) -> str:
    noun = kind.replace("gpu_", "GPU ").replace("golden", "document of golden curves")
    return f"{'an' if noun[0] in 'ae' else 'a'} {noun}"


def compare_documents(files: Sequence[str], kind: str) -> dict[str, Any]:
    """Return the comparison (``document_comparison/1.0``) of each of ``files`` with the first. Raises ``InputError``."""
    names = short_names(files)
    loaded = [_load(file) for file in files]
    sides = [_side(name, data, document) for name, (data, document) in zip(names, loaded, strict=True)]
    baseline = loaded[0][1]
    found = [
        {"candidate": side, **_RULES[kind](baseline, document)}
        for side, (_, document) in zip(sides[1:], loaded[1:], strict=True)
    ]  # fmt: skip
    return {"schema_version": SCHEMA_VERSION, "kind": kind, "baseline": sides[0], "comparisons": found}


def is_worse(document: Mapping[str, Any]) -> bool:
    """Return whether a document is not comparable with the first, or has a score that is worse beyond its error."""
    return any(
        each["verdict"] == "not_comparable" or any(score["outcome"] == "worse" for score in each.get("scores", ()))
        for each in document["comparisons"]
    )


def _load(file: str) -> tuple[bytes, Document]:
    data = document_in(file) or b""
    if has_errors(validate_bytes(data.removeprefix(b"\xef\xbb\xbf"), file)):
        raise InputError("is not a valid document", where=file, try_=f"receipt schema check {file}")
    masked: Document = mask_texts(json.loads(data.decode("utf-8-sig")))  # its writer may have masked less
    return data, masked


def _side(name: str, data: bytes, document: Document) -> dict[str, Any]:
    run = document.get("run") or {}
    about = {"file": name, "title": title_of(document), "sha256": hashlib.sha256(data).hexdigest()}
    return {**about, "name": run.get("name"), "lane": run.get("lane"), "step": (document.get("model") or {}).get("step")}
