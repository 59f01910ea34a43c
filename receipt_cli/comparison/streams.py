"""What two logs print step by step and a rerun repeats: losses and other curves, positions in the data, digests.

Speed, time and memory are not part of it: no two runs print the same. A stream says something of the ``data`` that a step was
trained on, or of the ``numbers`` that it gave.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from receipt_cli.analysis.position import COUNTED, position_kind
from receipt_cli.comparison.comparable import Document
from receipt_cli.definitions.metrics import Metric, load_registry
from receipt_cli.errors import InputError
from receipt_cli.events.table import NO_STEP, Column, EventTable
from receipt_cli.io.source import Source, numbered_lines
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
_UNIT = r"samples|examples|tokens|images|sequences|documents"
_AMOUNT = rf"(?:consumed|seen)[ _](?:train[ _])?(?:{_UNIT})|(?:{_UNIT})[ _](?:seen|consumed)"
_PLACE = (
    r"pq|rg|row[ _]group|shard(?:[ _](?:idx|index|id))?|(?:file|doc|document)[ _](?:idx|index)"
    r"|(?:data|data ?loader|sampler|dataset|shard|file|doc|row[ _]group)[ _](?:step|pos|position|offset|cursor|state|idx|index)"
)
_CELL = compile_later(
    rf"(?i)(?<![\w.])(?:(?P<amount>{_AMOUNT})|(?P<place>{_PLACE})"
    r"|(?P<digest>(?:[A-Za-z]{1,20}[ _]){1,3}(?:hash|digest|checksum|sha256|fingerprint)))"
    r"(?: ?[:=] *| +)(?:sha256:)?(?P<value>[0-9a-f]{6,128}|\d[\d,]*(?:\.\d+)?[KMBT]?)(?![\w.])"
)
"""A cell that shows the place in the data or a digest: a label that means nothing else, and a number or hexadecimal digits."""
_ITS_OFFSET = compile_later(r"(?i)(?<![\w.])(?:offset|pos|position)(?: ?[:=] *| +)(\d[\d,]*)(?![\w.])")
"""A place in what the cells before it name."""
_BATCH = compile_later(
    r"(?i)(?<![\w.])epoch:? ?[:=]? *\[?(\d+)[^|\n]{0,12}?[ ,|\]]+batch(?:[ _](?:idx|index))?:? ?[:=]? *\[?(\d+)(?![\w.])"
)
"""An epoch and the batch in it."""
_HINTS = b"hash digest checksum sha256 fingerprint shard pq group seen consumed batch sampler loader data file doc".split()
_OF_NUMBERS = compile_later(r"param|weight|grad|loss|logit")
_OF_DATA = compile_later(r"data|row|batch|sample|token|fim|middle|shuffle|order|pack")
MAX_CELLS = 5_000_000
_LONGEST = 1 << 14
"""Bytes of a line in which cells are sought."""
_LOOKED = 2000
"""Records that show whether a log has such cells."""
_LEAST_DIGEST = 6
"""Fewest hexadecimal digits of a digest."""
_EPOCH_AND_BATCH = "epoch_and_batch"


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
    by_order: bool = False
    """Whether no record has a step: ``steps`` are the numbers of the records then, from 0."""

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
        counted = bool(COUNTED.keys() & found.keys())
        known = {name.lower().replace(" ", "_"): name for name in found}
        for stream in _printed(
            file, table, {label for label, name in known.items() if found[name].role == "data"}, counted=counted
        ):
            name = known.get(stream.name, "")
            if not name or len(stream.steps) > len(found[name].steps):  # hexadecimal digits are seldom a number
                found[name or stream.name] = stream
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
    by_order = bool(len(steps)) and bool(np.isnan(steps).all())
    steps = np.arange(len(steps), dtype=np.float64) if by_order else steps
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
        lambda index: table[column.row(int(at[index]))].line_of(name), decides=decides, by_order=by_order,
    )  # fmt: skip


class _Cell(NamedTuple):
    """A cell of a log: the line, its label, the value as printed, and what it says of a run."""

    line: int
    label: str
    text: str
    role: Role
    strength: Strength


def _printed(file: str, table: EventTable, known: Collection[str], *, counted: bool) -> Iterator[Stream]:
    """Yield places in the data and digests that a log prints in the line of a record, or behind it and before the next one.

    ``known`` are the labels of figures that show a place already, and ``counted`` says that samples or tokens are one. If several
    ranks or micro batches print a cell at a step, their values are compared together, in no order.
    """
    numbered = np.flatnonzero(table.step != NO_STEP)
    order = np.argsort(table.line[numbered], kind="stable")
    lines, steps = table.line[numbered][order], table.step[numbered][order]
    if not len(lines):
        return
    read: dict[str, dict[int, list[_Cell]]] = {}
    looked = int(lines[min(_LOOKED, len(lines) - 1)])
    """The line up to which a log shows whether it has such cells."""
    for cell in _cells(file, looked, known, counted=counted):
        at = int(np.searchsorted(lines, cell.line, "right")) - 1
        if at >= 0:
            read.setdefault(cell.label, {}).setdefault(int(steps[at]), []).append(cell)
    for label, by_step in read.items():
        usual = max(map(len, by_step.values()))
        last = max(by_step)
        if len(by_step) > 1 and len(by_step[last]) < usual:
            del by_step[last]  # the log may end within it
        places = sorted(by_step)
        texts = [" ".join(sorted(cell.text for cell in by_step[step])) for step in places]
        numbers = [by_step[step][0].line for step in places]
        values = np.array([int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) for text in texts], np.float64)
        one = by_step[places[0]][0]
        line_of = numbers.__getitem__
        yield Stream(label, one.role, one.strength, np.array(places, np.float64), values, Printing(decimals=0), line_of, texts)


def _cells(file: str, looked: int, known: Collection[str], *, counted: bool) -> Iterator[_Cell]:
    """Yield the cells of a log that show a place in the data or a digest, at most ``MAX_CELLS``; none if it cannot be read.

    Amounts are left out if they are ``counted`` otherwise. If there are none up to the line ``looked`` but those in ``known``,
    there are none.
    """
    count, new = 0, False
    with suppress(InputError), closing(numbered_lines(Source(file), _LONGEST + 1, open_end=False)) as lines:
        for number, line in lines:
            if number > looked and not new:
                return
            lowered = line.lower()
            if len(line) > _LONGEST or not any(hint in lowered for hint in _HINTS):
                continue
            for cell in _cells_of(number, line.decode("utf-8", "replace")):
                if counted and cell.strength == "amount" and cell.label != _EPOCH_AND_BATCH:
                    continue
                count, new = count + 1, new or cell.label not in known
                if count > MAX_CELLS:
                    return
                yield cell


def _cells_of(number: int, line: str) -> Iterator[_Cell]:
    within: str | None = None
    for match in _CELL.finditer(line):
        kind = (
            match.lastgroup if match["value"] is None else next(k for k in ("amount", "place", "digest") if match[k] is not None)
        )
        label, text = match[kind or ""].lower().replace(" ", "_"), match["value"].lower()
        if kind == "digest":
            if len(text) >= _LEAST_DIGEST and (_OF_DATA.search(label) or _OF_NUMBERS.search(label)):
                of_data = _OF_DATA.search(label) is not None
                yield _Cell(number, label, text, "data" if of_data else "numbers", "place" if of_data else "none")
        else:
            yield _Cell(number, label, text, "data", "place" if kind == "place" else "amount")
            within = label if kind == "place" else within
    if within is not None and (offset := _ITS_OFFSET.search(line)) is not None:
        yield _Cell(number, "offset", offset[1], "data", "place")
    if (batch := _BATCH.search(line)) is not None:
        yield _Cell(number, _EPOCH_AND_BATCH, f"{batch[1]} {batch[2]}", "data", "amount")
