"""Export a run as an in-toto statement about its log, ready for signing (as the payload of a DSSE envelope).

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

from __future__ import annotations

from typing import Any

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.export.run import ExportedRun

STATEMENT = "https://in-toto.io/Statement/v1"


def in_toto(run: ExportedRun) -> bytes:
    """Return the statement: the log's files are its subjects, the receipt is its predicate."""
    return canonical_bytes(
        {"_type": STATEMENT, "subject": _subjects(run), "predicateType": predicate_type(run), "predicate": dict(run.document)}
    )


def predicate_type(run: ExportedRun) -> str:
    """Return the predicate type with the receipt's major version; minor versions only add fields."""
    kind, _, version = run.document["schema_version"].partition("/")
    return f"urn:receipt:predicate:{kind}:{version.partition('.')[0]}"


def _subjects(run: ExportedRun) -> list[dict[str, Any]]:
    """Return the log as subject, or each of its files: a digest over several files belongs to none of them."""
    log, name = run.document["derivation"]["log"], run.document["run"]["name"]
    if "files" in log:
        return [{"name": file["name"], "digest": {"sha256": file["sha256"]}} for file in log["files"]]
    return [{**({"name": name} if name else {}), "digest": {"sha256": run.digest}}]
