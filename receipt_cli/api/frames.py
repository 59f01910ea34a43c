"""Records as a table of pandas or Arrow, and as curves of matplotlib; these packages are optional."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from receipt_cli.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_TRY = "pip install 'receipt-cli[notebook]'"


def make_frame(columns: Mapping[str, Any]) -> Any:
    """Return columns (arrays or lists [n]) as a ``pandas.DataFrame``, or without pandas as a ``pyarrow.Table``.

    NaN and masked values are missing; whole numbers stay whole. Raises ``UsageError`` if neither is installed.
    """
    import numpy as np

    masked = {name: column for name, column in columns.items() if isinstance(column, np.ma.MaskedArray)}
    try:
        import pandas as pd
    except ImportError:
        pass
    else:
        return pd.DataFrame({**columns, **{name: pd.arrays.IntegerArray(c.data, c.mask) for name, c in masked.items()}})
    try:
        import pyarrow as pa
    except ImportError as error:
        raise UsageError("a table needs pandas or pyarrow", why="neither is installed", try_=_TRY) from error
    arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items() if name not in masked}
    arrays |= {name: pa.array(column.data, mask=column.mask) for name, column in masked.items()}
    return pa.table({name: arrays[name] for name in columns})


def draw(curves: Mapping[str, Mapping[str, tuple[NDArray[Any], NDArray[Any]]]], units: Mapping[str, str | None]) -> list[Axes]:
    """Return axes with the curves (steps and values, [n] each) of each metric, labelled by phase.

    Raises ``UsageError`` if matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise UsageError("a plot needs matplotlib", why=str(error), try_=_TRY) from error
    count = len(curves)
    _figure, grid = pyplot.subplots(count, 1, sharex=True, squeeze=False, figsize=(7, 1 + 2.5 * count), layout="constrained")
    found: list[Axes] = list(grid[:, 0])
    for axes, (name, phases) in zip(found, curves.items(), strict=True):
        for phase, (steps, values) in phases.items():
            axes.plot(steps, values, label=_plain(phase))
        unit = units.get(name)
        axes.set_ylabel(_plain(name if unit in (None, "1") else f"{name} ({unit})"))
        if len(phases) > 1:
            axes.legend()
    found[-1].set_xlabel("step")
    return found


def _plain(text: str) -> str:
    """Escape dollar signs, between which matplotlib expects mathematics."""
    return text.replace("$", r"\$")
