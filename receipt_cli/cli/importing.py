"""What ``receipt import`` does with its options: a document of a run, or a recorded session of GPU events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipt_cli.cli.output import ColorChoice, style, write_stdout
from receipt_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command."""

    format_name: str | None
    session: str | None
    name: str | None
    lane: str | None
    preset: str | None
    attach: Sequence[str]


def import_files(files: Sequence[str], wanted: Wanted, *, output: Path | None, json_output: bool, color: ColorChoice) -> None:
    """Import ``files``; write the document to ``output``, if given, and show it on stdout."""
    from receipt_cli.documents.canonical import canonical_bytes
    from receipt_cli.io.atomic import write_atomically

    document, series = _imported(files, wanted)
    data = canonical_bytes(document)
    if output is not None:
        write_atomically(output, data)
    if json_output:
        write_stdout(data)
    elif series is None:
        from receipt_cli.render.document import render_document

        write_stdout(render_document(document, style=style(color)))
    else:
        from receipt_cli.render.receipt.summary import render_receipt

        write_stdout(render_receipt(document, series=series, style=style(color)))


def _imported(files: Sequence[str], wanted: Wanted) -> tuple[dict[str, Any], Mapping[str, Sequence[float]] | None]:
    """Return the document, and of a receipt the values of its metrics."""
    stated: dict[str, Any] = {"name": wanted.name, "lane": wanted.lane, "preset": wanted.preset, "attachments": wanted.attach}
    if _is_session(files, wanted):
        from receipt_cli.gpu_profile.importing import import_session

        return import_session(files, session=wanted.session, **stated), None
    if wanted.session is not None:
        raise UsageError("--session is for recorded sessions", why="this is none", where=files[0])
    if _is_report(files, wanted):
        from receipt_cli.gpu_profile.importing import import_report

        return import_report(files, **stated), None
    if len(files) > 1:
        raise UsageError("imports one document at a time", why="only a recorded session may be several files")
    from receipt_cli.importers.importing import import_document

    imported = import_document(files[0], wanted=wanted.format_name, **stated)
    return imported.document, imported.series


def _is_session(files: Sequence[str], wanted: Wanted) -> bool:
    from receipt_cli.gpu_profile.format import GPUFL_FORMAT
    from receipt_cli.gpu_profile.importing import is_recording

    return wanted.format_name == GPUFL_FORMAT or (wanted.format_name is None and is_recording(files))


def _is_report(files: Sequence[str], wanted: Wanted) -> bool:
    from receipt_cli.gpu_profile.importing import is_report
    from receipt_cli.gpu_profile.nsys import NSYS_FORMAT

    return wanted.format_name == NSYS_FORMAT or (wanted.format_name is None and is_report(files))
