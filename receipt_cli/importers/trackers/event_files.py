"""Read the scalars of a run from TensorBoard's event files: one file, or the files of a folder.

Messages: tensorboard/compat/proto/{event,summary,tensor}.proto; framing: ``io.protobuf``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from receipt_cli.definitions.units import read_number
from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import Document
from receipt_cli.importers.trackers.curves import Curves
from receipt_cli.io.protobuf import Broken, Malformed, fields, is_record_head, parts, records, signed, text

FORMAT = "tensorboard"
IN_NAME = "tfevents"
_OURS = ".receipt-"
_SCALARS = "scalars"
_FLOAT, _DOUBLE = 1, 2
_KERAS = ("train", "validation")
"""The two folders in which Keras writes one run."""


def is_event_file(head: bytes) -> bool:
    """Return whether ``head`` are the first bytes of an event file."""
    return is_record_head(head) and b"brain.Event:" in head


def files(run: Path) -> list[Path]:
    """Return the event files of a run: a file, those in a folder, or in the two folders that Keras writes."""
    return [run] if run.is_file() else [path for inner in _inner(run) for path in _files(inner)]


def runs(folder: Path) -> list[Path]:
    """Return the folder of each run at and below ``folder``."""
    holding = sorted({path.parent for path in folder.glob(f"**/*{IN_NAME}*") if path.is_file()})
    pairs = {path.parent for path in holding if len(_inner(path.parent)) == len(_KERAS)}
    return sorted({path.parent if path.parent in pairs and path.name in _KERAS else path for path in holding})


def _inner(folder: Path) -> list[Path]:
    """Return the folders with a run's files: ``folder`` itself, or the two that Keras writes."""
    return [folder] if _files(folder) else [folder / name for name in _KERAS if _files(folder / name)]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"*{IN_NAME}*") if path.is_file())


def read(foreign: ForeignRun, documents: Sequence[Document], paths: Sequence[Path]) -> ForeignRun:
    """Return the run of the event files, oldest first. Raises ``InputError``."""
    own = any(_OURS in path.name for path in paths)
    curves = Curves(foreign, own=own)
    curves.keras = {path.parent.name for path in paths} == {*_KERAS}
    foreign.producer = "receipt" if own else "TensorBoard"
    for document, path in zip(documents, paths, strict=True):
        prefix = "validation/" if curves.keras and path.parent.name == _KERAS[1] else ""
        try:
            with path.open("rb") as file:
                for event in records(file):
                    _read_event(foreign, curves, event, prefix)
        except Broken as error:
            foreign.problems.add("file_breaks_off" if error.cut else "file_damaged", None, f"{document.name}: {error}")
            if error.cut and path == paths[-1]:
                foreign.cut = "the last event file ends within a record: the run ended while it was written, or goes on"
        except Malformed as error:
            foreign.problems.add("file_damaged", None, f"{document.name}: {error}")
    return curves.finish()


def _read_event(foreign: ForeignRun, curves: Curves, event: bytes, prefix: str) -> None:
    clock, step, summary = 0.0, 0, b""
    for number, value in fields(event):
        if number == 1 and isinstance(value, bytes):
            (clock,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = signed(value)
        elif number == 5 and isinstance(value, bytes):
            summary = value
        elif number == 10 and isinstance(value, bytes) and not curves.own and (writer := text(value, 1)):
            foreign.producer = writer[:200]
    if curves.own:
        _read_own_figures(curves, summary)
    for tag, found in _scalars(summary):
        if step < 0:
            foreign.problems.add("record_without_step", None, f"{tag[:64]}: step {step}")
        else:
            name = tag if tag.startswith(prefix) else f"{prefix}{tag}"
            curves.add(step, name, found, clock=clock if clock > 0 else float("nan"))


def _read_own_figures(curves: Curves, summary: bytes) -> None:
    """Add the statistics that our own export writes as a Markdown table."""
    for message in parts(summary, 1):
        if text(message, 1) != "figures":
            continue
        table = "\n".join(text(tensor, 8) for tensor in parts(message, 8)).split("\n")
        names = [name.strip() for name in table[0].split("|")[1:-1]]
        for row in table[2:]:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
            key = cells[0].replace("\\|", "|").replace("&lt;", "<").replace("\\\\", "\\")
            for name, cell in zip(names[1:], cells[1:], strict=False):
                if (value := read_number(cell)) is not None:
                    curves.add_figure(f"summary/{key}/{name}", value)


def _scalars(summary: bytes) -> Iterator[tuple[str, str | float]]:
    """Yield (tag, value) of each scalar."""
    for message in parts(summary, 1):
        held = {key: value for key, value in fields(message) if isinstance(value, bytes)}
        tag, plain, tensor = (held.get(key, b"") for key in (1, 2, 8))
        plugin = "".join(text(data, 1) for data in parts(held.get(9, b""), 1))
        number: str | float | None = _single(plain) if len(plain) == 4 else None
        if number is None and tensor and plugin in ("", _SCALARS):
            number = _tensor(tensor)
        if number is not None and tag:
            yield tag.decode("utf-8", "replace"), number


def _tensor(tensor: bytes) -> str | float | None:
    """Return the only number of a tensor of floats; None for any other tensor."""
    kinds = [value for key, value in fields(tensor) if key == 1 and isinstance(value, int)]
    contents = [value for key, value in fields(tensor) if key in (4, 5, 6) and isinstance(value, bytes)]
    form = kinds[-1] if kinds else 0, len(contents[-1]) if contents else 0
    if form == (_DOUBLE, 8):
        number: float = struct.unpack("<d", contents[-1])[0]
        return number
    return _single(contents[-1]) if form == (_FLOAT, 4) else None


def _single(data: bytes) -> str | float:
    """Return the shortest decimal text of a float32; further digits would come from its binary form."""
    number: float = struct.unpack("<f", data)[0]
    if number - number != 0:  # NaN or an infinity
        return number
    texts = (f"{number:.{digits}g}" for digits in range(6, 10))
    return next((shown for shown in texts if struct.pack("<f", float(shown)) == data), number)
