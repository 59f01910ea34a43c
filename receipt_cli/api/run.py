"""Read a log as a run: its receipt, its metrics, and its records one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, Unpack

from receipt_cli.api.frames import draw, make_frame
from receipt_cli.api.receipt import Receipt
from receipt_cli.api.results import Metric
from receipt_cli.batch.remote import fetched_logs, is_url
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import ReceiptError, UsageError
from receipt_cli.importers.wall_time import read_wall
from receipt_cli.io.source import Progress
from receipt_cli.receipts.production import Product, Request, produce, produce_all, refusal, rfc3339_now
from receipt_cli.receipts.series_file import SeriesRows
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.scan.workers import AUTO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

FilePath: TypeAlias = "str | os.PathLike[str]"
Paths: TypeAlias = "FilePath | Sequence[FilePath]"
_CHUNK = 4096
"""Records converted to Python objects at once."""


class ReadOptions(TypedDict, total=False):
    """Options of ``read``: the options of ``receipt parse`` that affect the receipt."""

    grammar: FilePath | None
    """Grammar to read with: its id, ``ID@vN``, or a file; by default chosen by the log."""
    exit_code: int | None
    """Exit code of the training command."""
    wall: float | FilePath | None
    """Wall time of the job: seconds, a duration such as ``3h10m``, or a file that contains it."""
    name: str | None
    """Name of the run."""
    lane: str | None
    """Line of comparable runs: hardware and recipe together."""
    preset: str | None
    """Name of the recipe."""
    attachments: Mapping[str, str] | Sequence[str]
    """Large artefacts by reference: URIs by kind, or ``KIND=URI``."""
    header: FilePath | None
    """Header file written by ``receipt header`` at the job's start."""
    here: bool | FilePath
    """Record this machine and the git repository in the current folder (True) or a given one as the run's."""
    workers: int | None
    """Processes that scan: 1 by default and with the compiled kernel; None for as many as pay off, forked from this process if
    the system can fork."""
    progress: Progress | None
    """Called with the bytes read so far and the size of the log."""
    unrecognised: bool
    """Return a run without metrics for a log that no grammar recognises; by default that raises ``GrammarChoiceError``."""


class Record(NamedTuple):
    """One retained record of a log: a step, or another line with metrics.

    ``line`` is its line in the log, from 1; for several files, in all of them together. ``metrics`` has the finite values in base
    units, by the names of ``Run.columns``; ``nonfinite`` lists metrics that are NaN or infinite.
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
    """One run of a log, made by ``read`` or ``read_all``.

    ``notes`` are sentences for the user, for example that the log has several runs. ``product`` is the run's internal form; it is
    not part of the API and may change.
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
        """Metrics of the primary phase by name: printed ones, recomputed ones that are not printed, then ``other.NAME``."""
        return {metric.name: metric for metric in _metrics(self.product.document["summary"] or {})}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all metrics in records of all phases; those outside the registry as ``other.NAME``."""
        return tuple(self._rows.names)

    def records(self) -> Iterator[Record]:
        """Yield the records of all phases: the rows that ``receipt parse --series`` writes."""
        names, arrays = self._rows.names, self._arrays
        for start in range(0, self._rows.count, _CHUNK):
            part = slice(start, start + _CHUNK)
            bad: dict[int, tuple[str, ...]] = {}
            for number, name in enumerate(names):
                for row in arrays[f"n{number}"][part].nonzero()[0].tolist() if f"n{number}" in arrays else ():
                    bad[row] = (*bad.get(row, ()), name)
            values = [arrays[f"v{number}"][part].tolist() for number in range(len(names))]
            places = [column.tolist() for column in self._places(part).values()]
            for row, (step, line, rank, index, phase, event) in enumerate(zip(*places, strict=True)):
                metrics = {name: column[row] for name, column in zip(names, values, strict=True) if column[row] == column[row]}
                yield Record(step, line, rank, index, phase, event, metrics, bad.get(row, ()))

    def frame(self, *metrics: str) -> Any:
        """Return the records with any of ``metrics`` (by default all records and metrics) as a table.

        A ``pandas.DataFrame``, or without pandas a ``pyarrow.Table``. Columns: ``step`` to ``event`` as in a ``Record``, then a
        float64 for each metric, missing if the record does not print it or prints NaN or an infinity. Raises ``UsageError`` for
        a metric that no record prints, and if neither package is installed.
        """
        import numpy as np

        values = {name: self._values(name) for name in metrics or self.columns}
        some: Any = ~np.isnan([*values.values()]).all(axis=0) if metrics else slice(None)
        return make_frame({**self._places(some), **{name: column[some] for name, column in values.items()}})

    def plot(self, *metrics: str) -> list[Axes]:
        """Draw ``metrics`` (by default the loss) over the step with matplotlib; return the axes, one per metric.

        Each phase is a line; records without a step are left out. Raises as ``frame`` does.
        """
        default = "loss" if "loss" in self.columns else next(iter(self.columns), "loss")
        phase, step = self._arrays["phase_index"], self._arrays["step"]
        curves: dict[str, dict[str, tuple[NDArray[Any], NDArray[Any]]]] = {}
        for name in metrics or (default,):
            values = self._values(name)
            known = (values == values) & ~self._arrays["no_step"]
            of_phase = {label or f"phase {index}": known & (phase == index) for index, label in enumerate(self._rows.phases)}
            curves[name] = {label: (step[mine], values[mine]) for label, mine in of_phase.items() if mine.any()}
        return draw(curves, {name: metric.unit for name, metric in self.metrics.items()})

    @cached_property
    def _rows(self) -> SeriesRows:
        return SeriesRows(self.product.derivation)

    @cached_property
    def _arrays(self) -> Mapping[str, NDArray[Any]]:
        return self._rows.arrays()

    def _places(self, part: Any) -> dict[str, NDArray[Any]]:
        """Return the columns that locate records (step, line, rank, phase, event), for the slice or mask ``part``."""
        import numpy as np

        names = ("step", "no_step", "line_number", "rank", "phase_index", "event")
        step, no_step, line, rank, phase, event = (self._arrays[name][part] for name in names)
        return {
            "step": np.ma.array(step, mask=no_step),
            "line": line,
            "rank": np.ma.array(rank, mask=rank == NO_RANK),
            "phase_index": phase,
            "phase": np.array(self._rows.phases, object)[phase],
            "event": np.array(self._rows.kinds, object)[event],
        }

    def _values(self, name: str) -> NDArray[Any]:
        names = self._rows.names
        if name not in names:
            raise UsageError(f"no record prints the metric {name!r}", why=f"records print: {', '.join(names) or 'none'}")
        return self._arrays[f"v{names.index(name)}"]

    def _repr_html_(self) -> str:
        """Return a small table for a notebook."""
        return self.receipt._repr_html_()

    def __repr__(self) -> str:
        return f"Run({self.source!r}, metrics=[{', '.join(self.metrics)}])"


def read(source: Paths, **options: Unpack[ReadOptions]) -> Run:
    """Return the run of a log; the last one if it has several.

    ``source`` is a file (also compressed), a folder, ``-`` for stdin, a URL that fsspec opens, or a sequence of the files of
    one run. ``options`` are those of ``ReadOptions``. Raises ``InputError`` for a log that cannot be read,
    ``GrammarChoiceError`` if no grammar recognises it, or two do, ``UsageError`` for files of several runs and for impossible
    options.
    """
    return _runs(source, options, every=False)[0]


def read_all(source: Paths, **options: Unpack[ReadOptions]) -> list[Run]:
    """Return every run of a log, or of files of several runs, in order; else as ``read``."""
    return _runs(source, options, every=True)


def _runs(source: Paths, options: ReadOptions, every: bool) -> list[Run]:
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
    """Return one path or several as a list of strings. Raises ``UsageError`` for none."""
    given = [source] if isinstance(source, str | bytes | os.PathLike) else source
    paths = [os.fsdecode(path) for path in given]
    if not paths:
        raise UsageError("no log was given")
    return paths


@contextmanager
def _at_hand(given: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield local paths of the logs; URLs are copied. The error of a copy names its URL."""
    if not any("://" in path for path in given):
        yield given
        return

    if not all(map(is_url, given)):
        raise UsageError("some of the logs are URLs and some are not", why="the files of one run must be in one place")
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
    """Return the request for the options; ``same`` have equal names in ``Request``."""
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


def _metrics(summary: Mapping[str, Any]) -> Iterator[Metric]:
    printed: Mapping[str, Any] = summary.get("metrics", {})
    for source, block in (("reported", "metrics"), ("derived", "derived"), ("other", "other_metrics")):
        for name, statistic in summary.get(block, {}).items():
            if source == "derived" and name in printed:
                continue
            known = load_registry().by_name.get(name) if source != "other" else None
            headline, unit = (known.headline, known.unit) if known is not None else ("last", None)
            called = {"name": name if source != "other" else f"other.{name}", "id": None, "unit": unit, "source": source}
            yield Metric({**called, **statistic, "headline": statistic[headline]})
