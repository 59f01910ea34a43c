"""Export a run as a TensorBoard event file: TFRecords of Event messages, each protected by CRC-32C.

Messages: tensorboard/compat/proto/{event,summary,tensor}.proto; framing: ``io.protobuf``. Written without TensorFlow or
TensorBoard, and deterministic.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from receipt_cli.export.run import STATISTICS, ExportedRun
from receipt_cli.io.atomic import make_folder, write_atomically
from receipt_cli.io.protobuf import block, double, framed, integer, single

_VERSION = "brain.Event:2"
_SCALARS, _TEXT = "scalars", "text"
_DT_STRING = 7
FIGURES = "figures"
"""Tag of the text with the statistics."""


def write_event_file(run: ExportedRun, folder: Path) -> str:
    """Write the event file into ``folder``; return how to open it. Raises ``OutputError``.

    TensorBoard requires ``tfevents`` in its name, and sorts by the seconds after it.
    """
    make_folder(folder)
    write_atomically(folder / f"events.out.tfevents.{int(_wall_time(run)):010d}.receipt-{run.identity}", event_file(run))
    return f"open it: tensorboard --logdir {quote(str(folder))}"


def event_file(run: ExportedRun) -> bytes:
    """Return the event file: curves, figures without a curve (at the last step of their phase), facts as a text.

    Scalars have single precision, as everywhere in TensorBoard. All events have the time of the run, else of the log's first
    stamp (1970 without both).
    """
    time = _wall_time(run)
    values = {step: b"".join(parts) for step, parts in _scalars(run).items()}
    events = [double(1, time) + block(3, _VERSION), _event(time, 0, _text("receipt", _table(run)))]
    if run.figures:
        events.append(_event(time, 0, _text(FIGURES, _figures(run))))
    events += [_event(time, step, value) for step, value in sorted(values.items())]
    return b"".join(map(framed, events))


def _scalars(run: ExportedRun) -> dict[int, list[bytes]]:
    scalars: dict[int, list[bytes]] = {}
    for curve in run.curves:
        known = curve.metric
        meaning = f"{known.description} Unit: {known.unit}." if known else "As printed; the registry does not know it."
        for number, (step, value) in enumerate(zip(curve.steps, curve.values, strict=True)):
            scalars.setdefault(step, []).append(_scalar(curve.key, value, meaning if number == 0 else None))
    drawn = {curve.key for curve in run.curves}
    for figure in run.figures:
        if figure.key not in drawn:
            values = scalars.setdefault(run.last_step(figure.phase), [])
            values += [_scalar(f"summary/{figure.key}/{name}", value, None) for name, value in figure.known.items()]
    return scalars


def _scalar(tag: str, value: float, meaning: str | None) -> bytes:
    """Return one value of a summary; the first of a tag contains its description."""
    metadata = block(9, block(1, block(1, _SCALARS)) + block(3, meaning)) if meaning else b""
    return block(1, block(1, tag) + metadata + single(2, value))


def _text(tag: str, text: str) -> bytes:
    tensor = integer(1, _DT_STRING) + block(2, block(2, integer(1, 1))) + block(8, text)
    return block(1, block(1, tag) + block(9, block(1, block(1, _TEXT))) + block(8, tensor))


def _event(time: float, step: int, values: bytes) -> bytes:
    return double(1, time) + integer(2, step) + block(5, values)


def _table(run: ExportedRun) -> str:
    """Return the facts as a Markdown table."""
    rows = [f"| {_cell(key)} | {_cell(str(value))} |" for key, value in run.facts().items()]
    return "\n".join(["| fact | value |", "|---|---|", *rows])


def _figures(run: ExportedRun) -> str:
    """Return the statistics as a Markdown table in full precision; scalars are thinned, and single precision."""
    numbers = {_cell(figure.key): [_number(figure.known.get(name)) for name in STATISTICS] for figure in run.figures}
    rows = [f"| {' | '.join([key, *texts])} |" for key, texts in numbers.items()]
    return "\n".join([f"| {' | '.join(('metric', *STATISTICS))} |", "|---" * (1 + len(STATISTICS)) + "|", *rows])


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _wall_time(run: ExportedRun) -> float:
    return run.dated_ns / 1e9
