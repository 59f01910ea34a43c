"""What ``receipt export`` does, once its command line is read."""

from __future__ import annotations

import os
from pathlib import Path

from receipt_cli.cli.output import note, progress, write_stdout
from receipt_cli.errors import UsageError
from receipt_cli.export.names import Name


def run_export(file: str, name: Name, output: Path | None, *, max_steps: int | None, at: str | None) -> None:
    """Export what ``file`` holds, and say on stderr what was left out and how to open the result. Raises ``ReceiptError``."""
    from receipt_cli.export.formats import FORMATS, export
    from receipt_cli.export.run import gather
    from receipt_cli.receipts.open import read_given
    from receipt_cli.receipts.production import refusal

    most = FORMATS[name].most
    if max_steps is not None and not most:
        raise UsageError(f"--max-steps says nothing of {name}", why="it takes figures, or records as they are")
    document, product = read_given(file, environ=dict(os.environ), progress=progress, masked=False)
    refused = None if product is None else refusal(product.derivation, file)
    if refused is not None:
        raise refused
    run = gather(document, product if most else None, most=max_steps or most, at=at)
    notes = [*(product.notes if product else ()), *run.notes]
    if most and not run.curves:
        why = "a receipt has figures, no curves: export its log for these" if product is None else "no metric has step numbers"
        notes.append(f"{why}; figures alone are exported")
    note(dict.fromkeys(notes))
    data, opened = export(run, product, name, output)
    if data is not None:
        write_stdout(data)
    if opened:
        note([opened])
