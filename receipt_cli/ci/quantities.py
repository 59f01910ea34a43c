"""Rule on percentiles, spread, slopes and lines: what only the log of a run shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipt_cli.ci.gates import Gates, LineCount, Quantity, Slope
from receipt_cli.ci.rulings import Ruling
from receipt_cli.comparison.measured import Measured
from receipt_cli.render.scale import measure, percent

_NO_LOG = "unknown: the log shows it; give the log, or --log"


def quantity_rulings(gates: Gates, measured: Measured | None) -> Iterator[Ruling]:
    """Yield a ruling for each percentile, spread, slope and line of the gates; ``measured`` is None without a log."""
    fails = gates.unknown.bounds == "fail"
    for quantity in gates.of_kind(Quantity):
        yield _quantity(quantity, measured, fails)
    for slope in gates.of_kind(Slope):
        yield _slope(slope, measured, fails)
    lines = gates.of_kind(LineCount)
    counts: Sequence[tuple[int, int | None] | None] | None = measured.count_lines(lines) if measured and lines else None
    for line, found in zip(lines, counts or [None] * len(lines), strict=True):
        yield _line(line, found, fails)


def _quantity(gate: Quantity, measured: Measured | None, fails: bool) -> Ruling:
    def shown(value: float) -> str:
        return percent(value) if gate.statistic == "spread" else measure(gate.metric, value)

    wanted = gate.wanted(shown)
    if measured is None:
        return Ruling("gate", gate.name, None, fails, wanted, _NO_LOG)
    spread = gate.statistic == "spread"
    value = measured.spread(gate.metric) if spread else measured.percentile(gate.metric, float(gate.statistic[1:]))
    if value is None:
        return Ruling("gate", gate.name, None, fails, wanted, "unknown: too few values")
    good = gate.allows(value)
    found = shown(value)
    return Ruling("gate", gate.name, good, not good, wanted, f"{value!r}" if found in wanted and not good else found)


def _slope(gate: Slope, measured: Measured | None, fails: bool) -> Ruling:
    """Rule on a slope: yes or no only if the whole 95 % interval is on one side of the limit."""
    wanted = gate.wanted(lambda limit: f"{limit:.4g} per step")
    if measured is None:
        return Ruling("gate", gate.name, None, fails, wanted, _NO_LOG)
    slope = measured.slope(gate.metric, gate.over)
    if slope is None:
        return Ruling("gate", gate.name, None, fails, wanted, "unknown: too few values")
    found = f"{slope.value:.3g} per step (95 %: {slope.low:.3g} to {slope.high:.3g}), steps {slope.first} to {slope.last}"
    beyond = (gate.at_least is not None and slope.high < gate.at_least) or (gate.at_most is not None and slope.low > gate.at_most)
    within = gate.allows(slope.low, slope.high)
    if beyond or within:
        return Ruling("gate", gate.name, within, beyond, wanted, found)
    return Ruling("gate", gate.name, None, fails, wanted, found, "the interval leaves it open")


def _line(gate: LineCount, found: tuple[int, int | None] | None, fails: bool) -> Ruling:
    wanted = "no line" if gate.at_most == 0 else gate.wanted(lambda limit: f"{limit} lines")
    if found is None:
        return Ruling("gate", gate.name, None, fails, wanted, _NO_LOG)
    count, first = found
    good = gate.allows(count)
    told = f"{count} lines" if count != 1 else "1 line"
    return Ruling("gate", gate.name, good, not good, wanted, f"{told}, the first is line {first}" if first is not None else told)
