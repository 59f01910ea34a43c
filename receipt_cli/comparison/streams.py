"""What two logs print step by step and a rerun repeats: losses and other curves, positions in the data, digests.

Speed, time and memory are not part of it: no two runs print the same. A stream says something of the ``data`` that a step was
trained on, or of the ``numbers`` that it gave.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from receipt_cli.analysis.position import position_kind
from receipt_cli.comparison.comparable import Document
from receipt_cli.definitions.metrics import Metric, load_registry
from receipt_cli.errors import InputError
from receipt_cli.events.table import NO_STEP, Column, EventTable
from receipt_cli.io.source import Source
from receipt_cli.numeric.array_types import Floats, Integers
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.numeric.precision import Printing
from receipt_cli.patterns import compile_later
from receipt_cli.receipts.production import Product
from receipt_cli.store.series_files import SeriesFiles

Role = Literal["data", "numbers"]
Strength = Literal["place", "amount", "none"]
"""What equal values prove of the data: the place in it, only how much of it was used, or nothing."""
_LEVELS = frozenset({"loss_scale", "skipped_step_count", "nan_step_count", "total_weights"})
"""Metrics that are no curves and that a rerun repeats."""
_DIGEST = compile_later(
    rb"\b((?:[A-Za-z]{1,20}[ _]){1,3}(?:hash|digest|checksum|sha256|fingerprint))\s?[:=]\s?(?:sha256:|0x)?([0-9a-fA-F]{6,128})\b"
)
_OF_NUMBERS = compile_later(r"param|weight|grad|loss|logit")
_OF_DATA = compile_later(r"data|row|batch|sample|token|fim|middle|shuffle|order|pack")
MAX_DIGESTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Stream:
    """Values of one figure at ascending steps, each once; ``line_of`` gives the line of a value by its index, from 0."""

    name: str
    role: Role
    strength: Strength
    steps: Floats
    values: Floats
    printing: Printing
    line_of: Callable[[int], int | None] = lambda index: None
    texts: Sequence[str] | None = None
    """The values of a stream of digests, which ``values`` only stand for."""
    decides: bool = False
    """Whether the stream is a result of training: a loss, a reward, an accuracy."""

    def shown(self, index: int) -> str:
        """Return a value as printed."""
        return self.texts[index] if self.texts is not None else self.printing.text(float(self.values[index]))

    def between(self, first: float, last: float) -> Stream:
        """Return the values at the steps from ``first`` to ``last``."""
        return self.chosen(np.flatnonzero((self.steps >= first) & (self.steps <= last)))

    def chosen(self, places: Integers) -> Stream:
        """Return the values at these indices."""
        texts = None if self.texts is None else [self.texts[place] for place in places]

        def line_of(index: int) -> int | None:
            return self.line_of(int(places[index]))

        return replace(self, steps=self.steps[places], values=self.values[places], line_of=line_of, texts=texts)


Streams = Mapping[str, Stream]


def read_streams(product: Product, file: str | None = None) -> dict[str, Stream]:
    """Return the streams of the run in ``product`` by name; digests too, if ``file`` names its log."""
    summary = product.document["summary"] or {}
    table, found = product.series.table, dict[str, Stream]()
    for name in product.series:
        kind = _kind(name)
        if kind is not None:
            _add(found, table, name, kind, product.series.figure(name), summary["metrics"].get(name))
    for name, statistic in (summary.get("other_metrics") or {}).items():
        kind = _kind(name, registered=False)
        if kind is not None and name not in found:
            _add(found, table, name, kind, table.other(name), statistic)
    if file is not None and Path(file).is_file():
        found |= {stream.name: stream for stream in _digests(file, table)}
    return found


def stored_streams(stored: SeriesFiles, document: Document) -> dict[str, Stream] | None:
    """Return the streams of the registry's metrics from the Parquet file of a receipt's log; None without such a file."""
    phase = stored.primary(document)
    if phase is None:
        return None
    found: dict[str, Stream] = {}
    for name, statistic in document["summary"]["metrics"].items():
        kind = _kind(name)
        curve = stored.values(document, phase, name) if kind is not None else None
        if kind is not None and curve:
            steps, values = last_of_each(*(np.array(column, np.float64) for column in curve))
            found[name] = Stream(name, *kind[:2], steps, values, Printing.of(statistic, values), decides=kind[2])
    return found


def _kind(name: str, *, registered: bool = True) -> tuple[Role, Strength, bool] | None:
    """Return role, strength and whether the figure decides; None for one that a rerun does not repeat."""
    position = position_kind(name)
    if position is not None:
        return "data", "place" if position == "cursor" else "amount", False
    if not registered:
        return None
    metric: Metric = load_registry().by_name[name]
    if name == "epoch":
        return "data", "none", False
    if metric.klass == "curve" or name in _LEVELS:
        return "numbers", "none", metric.klass == "curve" and metric.better != "none"
    return None


def _add(
    found: dict[str, Stream],
    table: EventTable,
    name: str,
    kind: tuple[Role, Strength, bool],
    column: Column,
    statistic: Mapping[str, object] | None,
) -> None:
    steps = table.steps_of(column)
    known = np.flatnonzero(~np.isnan(steps))
    if not len(known):
        return
    places, last = last_of_each(steps[known], known.astype(np.float64))
    at = last.astype(np.int64)
    values = np.asarray(column.values)[at]
    role, strength, decides = kind
    if name == "epoch" and (values % 1 != 0).any():
        strength = "amount"
    found[name] = Stream(
        name, role, strength, places, values, Printing.of(statistic, values),
        lambda index: table.line_of(name, column.row(int(at[index]))), decides=decides,
    )  # fmt: skip


def _digests(file: str, table: EventTable) -> Iterator[Stream]:
    """Yield the digests that a log prints with its steps: in the line of a record, or behind it and before the next one."""
    known = np.flatnonzero(table.step != NO_STEP)
    order = np.argsort(table.line[known], kind="stable")
    lines, steps = table.line[known][order], table.step[known][order]
    if not len(lines):
        return
    read: dict[str, list[tuple[int, str, int]]] = {}
    for number, label, text in _read_digests(file):
        at = int(np.searchsorted(lines, number, "right")) - 1
        if at >= 0 and (_OF_DATA.search(label) or _OF_NUMBERS.search(label)):
            read.setdefault(label, []).append((int(steps[at]), text, number))
    for label, entries in read.items():
        by_step = {step: (text, number) for step, text, number in sorted(entries, key=lambda entry: entry[2])}
        places = sorted(by_step)
        texts = [by_step[step][0] for step in places]
        numbers = [by_step[step][1] for step in places]
        role: Role = "data" if _OF_DATA.search(label) else "numbers"
        values = np.array([int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) for text in texts], np.float64)
        strength: Strength = "place" if role == "data" else "none"
        yield Stream(
            label, role, strength, np.array(places, np.float64), values, Printing(decimals=0), numbers.__getitem__, texts
        )  # fmt: skip


def _read_digests(file: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, label and digest of each ``label: digest`` of a log, at most ``MAX_DIGESTS``; nothing if it cannot be read."""
    source, number, rest, count = Source(file), 0, b"", 0
    try:
        for block in source.blocks():
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                number += 1
                for match in _DIGEST.finditer(line) if b"h" in line and len(line) < 1 << 16 else ():
                    count += 1
                    if count > MAX_DIGESTS:
                        return
                    yield number, match[1].decode("ascii").strip().lower().replace(" ", "_"), match[2].decode("ascii").lower()
    except InputError:
        return
    finally:
        source.close()
