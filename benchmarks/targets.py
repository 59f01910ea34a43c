"""Targets of this program against others, as data, and the table rows of measured ratios."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measure import Sample, per_byte, ratio

ONE, TWO = "receipt, one worker", "receipt, two workers"
OPTIONS = {ONE: ("--workers", "1"), TWO: ("--workers", "2")}


@dataclass(frozen=True, slots=True)
class Target:
    """``over`` ÷ ``under``, in time per byte, at most or at least ``bound``; ``stretch`` is a better, optional bound."""

    source: str
    over: str
    under: str
    at_most: bool
    bound: float
    stretch: float | None = None

    @property
    def measure(self) -> str:
        """Text of the ratio."""
        return f"{self.over} ÷ {self.under}"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table. ``value`` is None if it was not measured, for the reason in ``note``."""

    source: str
    measure: str
    value: float | None
    spread: tuple[float, float] | None
    unit: str
    at_most: bool
    bound: float
    stretch: float | None
    note: str = ""
    wrong: bool = False

    @property
    def verdict(self) -> str:
        """``stretch``, ``met``, ``missed``, ``not measured``, or ``wrong figures`` if a case read wrong values."""
        if self.value is None:
            return "not measured"
        if self.wrong:
            return "wrong figures"
        if self.stretch is not None and self._within(self.stretch):
            return "stretch"
        return "met" if self._within(self.bound) else "missed"

    def _within(self, bound: float) -> bool:
        assert self.value is not None
        return self.value <= bound if self.at_most else self.value >= bound


TARGETS = (
    Target("dense", TWO, "rg -c", True, 1.5, 1.0),
    Target("dense", ONE, "rg -c", True, 2.5, 1.4),
    Target("dense", "hand-written loop", ONE, False, 7, 9),
    Target("dense", "mawk", ONE, False, 2),
    Target("dense", "perl", ONE, False, 3),
    Target("dense", "lnav", ONE, False, 3),
    Target("dense", "mtail", ONE, False, 8),
    Target("dense", "pygrok", ONE, False, 8),
    Target("sparse", ONE, "wc -l", True, 12, 8),
    Target("sparse", "hand-written loop", ONE, False, 15, 30),
    Target("mllog", "mlperf-logging", ONE, False, 20, 40),
    Target("hf", "hand-written loop", ONE, False, 5, 10),
    Target("bars", "hand-written loop", ONE, False, 5, 10),
    Target("ranks", "hand-written loop", ONE, False, 5, 10),
    Target("dense.gz", ONE, "gzip -dc", True, 0.7, 0.5),
    Target("dense.zst", ONE, "zstd -dc", True, 2, 1.6),
    Target("dense", ONE, TWO, False, 1.5, 1.8),
)
SOURCES = {
    "dense": "dense",
    "sparse": "sparse",
    "mllog": "MLLOG",
    "hf": "HF dict lines",
    "bars": "tqdm bars",
    "ranks": "8 ranks, envelopes",
    "dense.gz": "`.gz` of dense",
    "dense.zst": "`.zst` of dense",
}


def row(
    target: Target,
    samples: Mapping[str, Sequence[Sample]],
    sizes: Mapping[str, int],
    notes: Mapping[str, str],
    wrong: Collection[str] = (),
) -> Row:
    """Return the row of one target, from case → samples of its input.

    ``sizes`` are the plain bytes that each case read; ``notes`` has remarks on a case, or why it is absent; ``wrong`` are
    the cases with wrong values.
    """
    told = [notes[name] for name in (target.over, target.under) if name in notes]
    value, spread = None, None
    if samples.get(target.over) and samples.get(target.under):
        value, low, high = ratio(
            per_byte(samples[target.over], sizes[target.over]), per_byte(samples[target.under], sizes[target.under])
        )
        spread = (low, high)
    source = SOURCES[target.source]
    bad = target.over in wrong or target.under in wrong
    bounds = (target.at_most, target.bound, target.stretch)
    return Row(source, target.measure, value, spread, "×", *bounds, note="; ".join(told), wrong=bad)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| input | measure | ours | (least–greatest) | target | stretch | | note |",
        "|---|---|--:|---|---|---|---|---|",
    ]
    for line in rows:
        sign = "≤" if line.at_most else "≥"
        value = "–" if line.value is None else f"{line.value:.3g}{line.unit}"
        spread = "" if line.spread is None else f"{line.spread[0]:.3g}–{line.spread[1]:.3g}"
        stretch = "" if line.stretch is None else f"{sign} {line.stretch:g}{line.unit}"
        cells = (line.source, line.measure, value, spread, f"{sign} {line.bound:g}{line.unit}", stretch, line.verdict, line.note)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
