"""What ``receipt store add`` and ``receipt store ls`` do, once their command line is read."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipt_cli.cli.output import ColorChoice, print_line, read_bytes, style, tell, write_stdout
from receipt_cli.errors import ExitCode, OutputError, ReceiptError

if TYPE_CHECKING:
    from receipt_cli.store.files import Store, StoredReceipt


def run_add(root: Path, files: Sequence[Path], json_output: bool) -> None:
    """Add the documents in ``files`` to the store, and say what became of each."""
    from receipt_cli.documents.canonical import canonical_line
    from receipt_cli.store.files import Store

    store, worst = Store(root), int(ExitCode.OK)
    for file in files:
        try:
            outcome = store.add(_valid(file))
        except OutputError:
            raise
        except ReceiptError as error:
            tell(error)
            worst = max(worst, error.exit_code)
            continue
        line = {"file": str(file), "outcome": outcome.change, "path": outcome.path}
        write_stdout(canonical_line(line) if json_output else f"{outcome.change:9}  {file}  {outcome.path}\n")
    if worst:
        sys.exit(worst)


class InvalidDocument(ReceiptError):
    """A document breaks its contract."""

    exit_code = ExitCode.NO


def _valid(file: Path) -> dict[str, Any]:
    from receipt_cli.documents.validate import validate_bytes

    data = read_bytes(file)
    wrong = next((finding for finding in validate_bytes(data, str(file)) if finding.severity == "error"), None)
    if wrong is not None:
        why = f"{wrong.pointer}: {wrong.reason}"
        raise InvalidDocument("is not a valid document", where=str(file), why=why, try_=f"receipt validate {file}")
    document: dict[str, Any] = json.loads(data)
    return document


def run_ls(root: Path, quarantine: bool, json_output: bool, color: ColorChoice) -> None:
    """List what the store holds. Raises ``InputError`` where there is none."""
    from receipt_cli.store.files import Store

    store = Store(root)
    store.check_exists()
    if quarantine:
        _list_quarantine(store, json_output, color)
        return
    rows = (_row(root, stored) for stored in store.receipts())
    if json_output:
        from receipt_cli.documents.canonical import canonical_line

        for row in rows:
            write_stdout(canonical_line(row))
        return
    from receipt_cli.render.store import render_receipts

    write_stdout(render_receipts(list(rows), style(color)))


def _row(root: Path, stored: StoredReceipt) -> dict[str, Any]:
    """Return what is listed of a receipt; of one that cannot be read only where it is. An import's grammar is its format."""
    found: dict[str, Any] = {"log_sha256": stored.log_sha256, "generation": stored.generation}
    found["path"] = stored.path.relative_to(root).as_posix()
    from receipt_cli.analysis.checks import healthy
    from receipt_cli.redaction.text import mask_texts

    try:
        document = mask_texts(json.loads(stored.path.read_bytes()))
        grammars, summary = document["derivation"]["grammars"], document["summary"]
        origin = document["derivation"].get("origin") or {}
        return {
            **found,
            "name": document["run"]["name"],
            "grammar": f"{grammars[0]['id']}@v{grammars[0]['version']}" if grammars else origin.get("format"),
            "last_step": summary["steps"]["last"] if summary else None,
            "healthy": healthy(document["checks"], document["failure"]),
            "failure": document["failure"]["reason"] if document["failure"] else None,
        }
    except (OSError, ValueError, LookupError, TypeError) as error:
        print_line(f"receipt: note: {stored.path} is damaged: {type(error).__name__}: passed over")
        return {**found, **dict.fromkeys(("name", "grammar", "last_step", "healthy", "failure"))}


def _list_quarantine(store: Store, json_output: bool, color: ColorChoice) -> None:
    from dataclasses import asdict

    records = sorted(store.quarantined(), key=lambda record: record.path)
    if json_output:
        from receipt_cli.documents.canonical import canonical_line

        for record in records:
            write_stdout(canonical_line(asdict(record)))
        return
    from receipt_cli.render.batch import render_quarantine

    shown = [(r.path, f"{r.error}: {r.why}" if r.why else r.error) for r in records]
    write_stdout(render_quarantine(shown, len(shown), style(color)))
