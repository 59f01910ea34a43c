"""A log → a run: its receipt, its metrics, and its records one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from receipt_cli.api.receipt import Receipt
from receipt_cli.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from receipt_cli.io.source import Progress
    from receipt_cli.receipts.production import Product, Request
    from receipt_cli.receipts.series_file import SeriesRows

FilePath: TypeAlias = "str | os.PathLike[str]"
Paths: TypeAlias = "FilePath | Sequence[FilePath]"
_CHUNK = 4096
"""Records that become Python objects at once."""


class ReadOptions(TypedDict, total=False):
    """Options of ``read``: those of ``receipt parse`` that decide what the receipt says."""

    grammar: FilePath | None
    """Read by this grammar: its id, ``ID@vN``, or a file; by default the log decides."""
    exit_code: int | None
    """Exit code of the training command."""
    wall: float | FilePath | None
    """Wall time of the job: seconds, a duration such as ``3h10m``, or a file that has it."""
    name: str | None
    """Name of the run."""
    lane: str | None
    """Line of comparable runs: hardware and recipe together."""
    preset: str | None
    """Name of the recipe."""
    attachments: Mapping[str, str] | Sequence[str]
    """Heavy artefacts, by reference: their URIs by kind, or ``KIND=URI``."""
    header: FilePath | None
    """Header file that ``receipt header`` wrote when the job began."""
    here: bool | FilePath
    """Whether this machine and the git repository in the current folder, or in this one, are the run's: record them."""
    workers: int | None
    """Processes that scan: 1 by default; None for as many as pay, each a copy of this process where the system can copy one."""
    progress: Progress | None
    """Called with the bytes read so far, and with the size of the log."""
    unrecognised: bool
    """Return a run without metrics for a log that no grammar recognises; by default that raises ``GrammarChoiceError``."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Statistics of one metric in a run's primary phase, in the base unit.

    ``min`` to ``median`` and ``record_count`` are over ``window``: all records of the phase, or those of its steady state. A
    statistic is None where no finite value was printed.
    """

    name: str
    id: int | None
    """Number in the registry; None for a metric outside of it."""
    unit: str | None
    """Base unit (``"1"``: a number); None where nobody knows."""
    source: Literal["reported", "derived", "other"]
    """reported: printed by the trainer; derived: recomputed; other: printed, outside of the registry."""
    window: Literal["all", "steady"]
    scope: Literal["global", "device", "rank"] | None
    definition: str | None
    record_count: int
    nonfinite_count: int
    first: float | None
    last: float | None
    min: float | None
    max: float | None
    mean: float | None
    median: float | None
    headline: float | None
    """The statistic that speaks for the run: the last value of a curve or counter, else the median."""


class Record(NamedTuple):
    """One record of a log that stands: a step, or another line that prints metrics.

    ``line`` is its line in the log, from 1; of several files, in all of them together. ``metrics`` has the finite values in base
    units, by the names of ``Run.columns``; ``nonfinite`` names those that print NaN or an infinity.
    """

    step: int | None
    line: int
    rank: int | None
    phase_index: int
    phase: str | None
    event: str
    metrics: dict[str, float]
    nonfinite: tuple[str, ...]


class Run:
    """One run of a log. Made by ``read`` and ``read_all``.

    ``notes`` are sentences for the person who asked, such as that the log holds several runs. ``product`` is what the run is made
    of; it is no part of the API and may change.
    """

    def __init__(self, product: Product, source: str) -> None:
        self.product, self.source = product, source
        self.notes: tuple[str, ...] = product.notes

    @property
    def receipt(self) -> Receipt:
        """The receipt: the document that ``receipt parse --json`` prints."""
        return Receipt(self.product.document)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of the primary phase by name: printed ones, recomputed ones that are not printed, then ``other.NAME``."""
        return dict(_metrics(self.product.document["summary"] or {}))

    @cached_property
    def _rows(self) -> SeriesRows:
        from receipt_cli.receipts.series_file import SeriesRows

        return SeriesRows(self.product.derivation)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the metrics that records print, of all phases; those outside of the registry as ``other.NAME``."""
        return tuple(self._rows.names)

    def records(self) -> Iterator[Record]:
        """Yield the records of all phases: the rows that ``receipt parse --series`` writes."""
        from receipt_cli.records.envelope import NO_RANK

        rows, arrays = self._rows, self._rows.arrays()
        values = [(name, arrays[f"v{number}"], arrays.get(f"n{number}")) for number, name in enumerate(rows.names)]
        whole = [arrays[name] for name in ("step", "no_step", "line_number", "rank", "phase_index", "event")]
        for start in range(0, rows.count, _CHUNK):
            part = slice(start, start + _CHUNK)
            made: list[dict[str, float]] = [{} for _ in whole[0][part]]
            bad: dict[int, tuple[str, ...]] = {}
            for name, numbers, nonfinite in values:
                for row, number in enumerate(numbers[part].tolist()):
                    if number == number:
                        made[row][name] = number
                for row in () if nonfinite is None else nonfinite[part].nonzero()[0].tolist():
                    bad[row] = (*bad.get(row, ()), name)
            for row, (step, no_step, line, rank, phase, event) in enumerate(zip(*(a[part].tolist() for a in whole), strict=True)):
                known = None if no_step else step, line, None if rank == NO_RANK else rank
                yield Record(*known, phase, rows.phases[phase], rows.kinds[event], made[row], bad.get(row, ()))

    def frame(self, *metrics: str) -> Any:
        """Return the records that print any of ``metrics`` (by default all of them, of all metrics) as a table.

        A ``pandas.DataFrame``, or without pandas a ``pyarrow.Table``. Columns: ``step`` to ``event`` as in a ``Record``, then a
        float64 for each metric, missing where the record does not print it or prints NaN or an infinity. Raises ``UsageError``
        for a metric that no record prints, and where neither package is installed.
        """
        import numpy as np

        from receipt_cli.api.frames import make_frame
        from receipt_cli.records.envelope import NO_RANK

        rows, arrays = self._rows, self._rows.arrays()
        values = {name: self._values(name, arrays) for name in metrics or rows.names}
        shown = ~np.isnan([*values.values()]).all(axis=0) if metrics else np.ones(rows.count, np.bool_)
        texts = {name: np.array([*labels, None], object)[arrays[of]] for name, of, labels in (
            ("phase", "phase_index", rows.phases), ("event", "event", rows.kinds))}  # fmt: skip
        columns: dict[str, NDArray[Any]] = {
            "step": np.ma.array(arrays["step"], mask=arrays["no_step"]),
            "line": arrays["line_number"],
            "rank": np.ma.array(arrays["rank"], mask=arrays["rank"] == NO_RANK),
            "phase_index": arrays["phase_index"],
            **texts,
            **values,
        }
        return make_frame({name: column[shown] for name, column in columns.items()})

    def plot(self, *metrics: str) -> list[Axes]:
        """Draw ``metrics`` (by default the loss) over the step with matplotlib; return the axes, one for each metric.

        A phase is a line; records without a step are left out. Raises as ``frame`` does.
        """
        from receipt_cli.api.frames import draw

        rows, arrays = self._rows, self._rows.arrays()
        chosen = metrics or ("loss" if "loss" in rows.names or not rows.names else rows.names[0],)
        curves: dict[str, dict[str, tuple[NDArray[Any], NDArray[Any]]]] = {}
        for name in chosen:
            values = self._values(name, arrays)
            curves[name] = {}
            for index, phase in enumerate(rows.phases):
                mine = (arrays["phase_index"] == index) & ~arrays["no_step"] & (values == values)
                if mine.any():
                    label = phase or f"phase {index}"
                    curves[name][label] = arrays["step"][mine], values[mine]
        return draw(curves, {name: metric.unit for name, metric in self.metrics.items()})

    def _values(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        names = self._rows.names
        if name not in names:
            raise UsageError(f"no record prints the metric {name!r}", why=f"records print: {', '.join(names) or 'none'}")
        return arrays[f"v{names.index(name)}"]

    def _repr_html_(self) -> str:
        """Return a small table for a notebook."""
        return self.receipt._repr_html_()

    def __repr__(self) -> str:
        return f"Run({self.source!r}, metrics=[{', '.join(self.metrics)}])"


def read(source: Paths, **options: Unpack[ReadOptions]) -> Run:
    """Return the run of a log; of several runs in it, the last.

    ``source`` is a file (also compressed), a folder, ``-`` for stdin, a URL that fsspec opens, or a sequence of the files of one
    run. ``options`` are those of ``ReadOptions``. Raises ``InputError`` for a log that cannot be read, ``GrammarChoiceError`` for
    one that no grammar recognises, or two do, and ``UsageError`` for files of several runs and options that cannot be.
    """
    return _runs(source, options, every=False)[0]


def read_all(source: Paths, **options: Unpack[ReadOptions]) -> list[Run]:
    """Return every run of a log, or of files of several runs, in order: else as ``read``."""
    return _runs(source, options, every=True)


def _runs(source: Paths, options: ReadOptions, every: bool) -> list[Run]:
    from receipt_cli.receipts.production import produce, produce_all, refusal
    from receipt_cli.redaction.mask import mask_secrets

    given = as_paths(source)
    shown = mask_secrets(given[0])
    with _at_hand(given) as paths:
        request = _request(paths, **options)
        products = list(produce_all(request)) if every else [produce(request)]
    for product in products:
        error = None if options.get("unrecognised") else refusal(product.derivation, shown)
        if error is not None:
            raise error
    return [Run(product, shown) for product in products]


def as_paths(source: Paths) -> list[str]:
    """Return a path, or several, as texts. Raises ``UsageError`` for none."""
    given = [source] if isinstance(source, str | bytes | os.PathLike) else source
    paths = [os.fsdecode(path) for path in given]
    if not paths:
        raise UsageError("no log was named")
    return paths


@contextmanager
def _at_hand(given: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give the paths of logs that can be opened here; those behind URLs are copied. What is wrong with a copy names its URL."""
    from receipt_cli.batch.remote import fetched_logs, is_url
    from receipt_cli.errors import ReceiptError

    if not any(map(is_url, given)):
        yield given
        return
    if not all(map(is_url, given)):
        raise UsageError("some of the logs are behind a URL and some are not", why="the files of one run stand together")
    with fetched_logs(given) as copies:
        try:
            yield list(copies)
        except ReceiptError as error:
            for local, url in copies.items():
                error.where = error.where.replace(local, url)
            raise


def _request(
    paths: Sequence[str],
    *,
    grammar: FilePath | None = None,
    wall: float | FilePath | None = None,
    attachments: Mapping[str, str] | Sequence[str] = (),
    header: FilePath | None = None,
    here: bool | FilePath = False,
    workers: int | None = 1,
    unrecognised: bool = False,
    **same: Any,
) -> Request:
    """Return the request that options mean; ``same`` are called as the request calls them."""
    from receipt_cli.importers.wall_time import read_wall
    from receipt_cli.receipts.production import Request, rfc3339_now
    from receipt_cli.scan.workers import AUTO

    unknown = sorted(same.keys() - ReadOptions.__annotations__.keys())
    if unknown:
        raise TypeError(f"read() has no option {unknown[0]!r}")
    pairs = [f"{kind}={uri}" for kind, uri in attachments.items()] if isinstance(attachments, Mapping) else attachments
    return Request(
        path=paths[0],
        more=tuple(paths[1:]),
        grammar=None if grammar is None else os.fsdecode(grammar),
        wall=None if wall is None else read_wall(str(wall)),
        attachments=[pairs] if isinstance(pairs, str) else pairs,
        header_file=None if header is None else Path(header),
        here=None if here is False else Path.cwd() if here is True else Path(here),
        workers=workers or AUTO,
        environ=dict(os.environ),
        now=rfc3339_now() if here is not False else None,
        **same,
    )


def _metrics(summary: Mapping[str, Any]) -> Iterator[tuple[str, Metric]]:
    """Yield the metrics of a phase's summary by name."""
    from receipt_cli.definitions.metrics import load_registry

    known = load_registry().by_name
    blocks = (("reported", "", "metrics"), ("derived", "", "derived"), ("other", "other.", "other_metrics"))
    printed: Mapping[str, Any] = summary.get("metrics", {})
    for source, prefix, block in blocks:
        for name, statistic in summary.get(block, {}).items():
            if source != "derived" or name not in printed:
                metric = known.get(name) if source != "other" else None
                headline = metric.headline if metric is not None else "last"
                facts = {field.name: statistic.get(field.name) for field in fields(Metric)}
                told = {"name": prefix + name, "unit": metric and metric.unit, "source": source, "headline": statistic[headline]}
                yield prefix + name, Metric(**{**facts, **told})
