"""Turn curves (values by name and step, in written order) into a run with one record for each step."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import InputError
from receipt_cli.importers.model import FIGURES, DeclaredPhase, DeclaredStatistic, ForeignRun
from receipt_cli.importers.text import Number, Value
from receipt_cli.importers.values import (
    IGNORED,
    Meaning,
    Names,
    RecordValues,
    as_number,
    metric,
    number_in,
    other,
    read_record,
    whole_step,
)
from receipt_cli.importers.wandb_summary import ANY, DIALECTS

MAX_RECORDS = 1_000_000
"""Most steps of an imported run, because its records are in memory."""
MAX_NAMES = 4_096
STEPS = ("train/global_step", "trainer/global_step", "global_step", "step")
"""Names of the training step, likeliest first; a tracker's own step counts calls unless the program sets it."""
_OWN_STEP = "_step"
_HUGGING_FACE = frozenset({"train/epoch", "train/learning_rate"})
"""Scalar names that identify the Hugging Face Trainer in TensorBoard, where it writes no ``train/global_step``."""
_SPLITS = ("val", "valid", "validation")
_COMMON = {
    **{f"{split}{joint}{kind}": f"val_{kind}" for split in _SPLITS for joint in "_/" for kind in ("loss", "accuracy")},
    **{f"{kind}/{split}": f"val_{kind}" for split in (*_SPLITS, "eval") for kind in ("loss", "accuracy")},
    **{f"{start}{kind}": f"val_{kind}" for start in ("eval/", "validation/epoch_") for kind in ("loss", "accuracy")},
    **dict.fromkeys(("val_acc", "val/acc"), "val_accuracy"),
    **{name: f"test_{kind}" for kind in ("loss", "accuracy") for name in (f"test_{kind}", f"test/{kind}", f"{kind}/test")},
    **dict.fromkeys(
        ("train_loss_step", "train_loss", "train/loss", "loss/train", "train/train_loss", "training_loss", "epoch_loss"), "loss"
    ),
    **dict.fromkeys(
        ("train_accuracy", "train_acc", "train/accuracy", "train/acc", "accuracy/train", "epoch_accuracy"), "train_accuracy"
    ),
    **dict.fromkeys(("train/lr", "train/learning_rate", "lr/pg0"), "learning_rate"),
}
"""Lower-case name → metric, for names with the same meaning in all programs."""
_KERAS = {"accuracy": "train_accuracy", "acc": "train_accuracy", "binary_accuracy": "train_accuracy"}
_OPTIMIZER = re.compile(r"lr-[A-Za-z]{2,30}")
"""Name of Lightning's LearningRateMonitor for an optimizer with one parameter group."""
_EVALUATED = re.compile(r"(?i)(?:val|valid|validation|eval|test|metrics)[_/ ]")
_MEAN = "mean_over_the_run"


@dataclass(frozen=True, slots=True)
class _Place:
    """Key of a record: its phase ("": the primary one), the attempt in that phase, and the step."""

    label: str
    attempt: int
    step: int


@dataclass(slots=True)
class _Row:
    line: int
    clock: float
    values: dict[str, str] = field(default_factory=dict)


class Curves:
    """The values of a run. ``own``: our own export wrote them, so their names are registry names.

    If the step of a name decreases, another attempt begins, as in a log; the last value of a repeated step counts.
    """

    def __init__(self, foreign: ForeignRun, *, own: bool = False) -> None:
        self.own = own
        self.keras = False
        self.namespace = ""
        """What a program puts before the names of its metrics, such as ``metrics/``."""
        self._foreign = foreign
        self._rows: dict[_Place, _Row] = {}
        self._reached: dict[tuple[str, str], int] = {}
        self._attempts: Counter[str] = Counter()
        self._names: Counter[str] = Counter()
        self._declared: dict[str, DeclaredPhase] = {}
        self._last: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, step: int, name: str, value: float | str, *, line: int = 0, clock: float = math.nan, label: str = "") -> None:
        """Add a value (a number, or its written text) of ``name`` at ``step``. Raises ``InputError`` for too many steps."""
        if self.own and not label:
            label, name = _without_label(name)
        text = value if isinstance(value, str) else _text(value)
        if self.own and name.startswith(("summary/", "derived/")):
            self.add_figure(name, float(text), step=step, label=label)
            return
        if name not in self._names and len(self._names) >= MAX_NAMES:
            self._foreign.problems.add("name_left_out", line or None, f"more than {MAX_NAMES} names")
            return
        if step < self._reached.get((label, name), step):
            self._attempts[label] += 1
            self._reached = {key: reached for key, reached in self._reached.items() if key[0] != label}
        self._reached[label, name] = step
        self._names[name] += 1
        place = _Place(label, self._attempts[label], step)
        row = self._rows.get(place)
        if row is None:
            if len(self._rows) >= MAX_RECORDS:
                raise InputError("has too many steps to be imported", where=self._foreign.name, why=f"more than {MAX_RECORDS}")
            row = self._rows[place] = _Row(line or len(self._rows) + 1, clock)
        row.values[name] = text

    def add_calls(self, rows: Sequence[Mapping[str, Value]], tracker: str) -> None:
        """Add the records of calls of ``tracker``; ``_step`` and ``_timestamp`` (seconds) of each are the tracker's own.

        The step is the likeliest step name that any record has, else ``_step``, with a problem.
        """
        names = {name for row in rows for name in row}
        step_name = _OWN_STEP if self.own else next((name for name in STEPS if name in names), _OWN_STEP)
        if step_name == _OWN_STEP and not self.own and rows:
            detail = f"no record has a training step: used {tracker}'s own {_OWN_STEP}"
            self._foreign.problems.add("step_counts_calls", None, detail)
        for row in rows:
            printed_step = row.get(step_name)
            step = whole_step(printed_step) if isinstance(printed_step, Number) else None
            if step is None:
                if any(isinstance(value, Number) for name, value in row.items() if not name.startswith("_")):
                    detail = f"{step_name} is missing or not a whole number"
                    self._foreign.problems.add("record_without_step", None, detail)
                continue
            clock = number_in(row.get("_timestamp"))
            for name, value in row.items():
                printed = as_number(value)
                if printed is not None and name != step_name and not name.startswith("_"):
                    self.add(step, name, str(printed), clock=math.nan if clock is None else clock)

    def add_last(self, name: str, value: str) -> None:
        """Add the last value of ``name``, whose steps are unknown."""
        self._names[name] += 1
        self._last[name] = value

    def declare(self, name: str, statistic: DeclaredStatistic, label: str) -> None:
        """Add a declared statistic of a metric, which is used if no record has the metric."""
        phase = self._declared.setdefault(label, DeclaredPhase(name=label or None))
        known = load_registry().by_name
        if name in known:
            phase.metrics.setdefault(name, statistic)
        else:
            phase.others.setdefault(name.removeprefix("other/"), statistic)

    def add_figure(self, name: str, value: float, *, step: int = 0, label: str = "") -> None:
        """Add the first ``summary/NAME/STATISTIC`` of our own exports; recomputed values are ignored and recomputed again.

        ``step`` is the last step of the phase, 0 if unknown.
        """
        inner, _, figure = name.removeprefix("summary/").rpartition("/")
        label, inner = _without_label(inner) if not label else (label, inner)
        if not inner or figure not in FIGURES or inner.startswith("derived/") or name.startswith("derived/"):
            return
        phase = self._declared.setdefault(label, DeclaredPhase(name=label or None, last=step or None))
        registered = load_registry().by_name.get(inner)
        into = phase.metrics if registered is not None else phase.others
        key = inner.removeprefix("other/")
        before = into.get(key) or DeclaredStatistic({}, window=registered.window if registered is not None else "all")
        into[key] = DeclaredStatistic({figure: value, **before.figures}, window=before.window)

    def finish(self) -> ForeignRun:
        """Add the records to the run, and return it."""
        foreign = self._foreign
        names = self._meanings()
        labels = sorted(dict.fromkeys(place.label for place in self._rows), key=lambda label: label == "")
        for label in labels:  # the primary phase, without a label, comes last and so ends the one before it
            mine = sorted((place for place in self._rows if place.label == label), key=lambda p: (p.attempt, p.step))
            records = [(place, self._rows[place], self._record(place, names)) for place in mine]
            if len(labels) > 1:
                foreign.add_event("phase", RecordValues(), mine[0].step, phase=label or None)
            printed = {name for _, _, values in records for name in values.metrics}
            shares = [(place, row, self._shares(place, values, printed)) for place, row, values in records]
            _drop_superseded([(place, parts) for place, _, parts in shares])
            for place, row, parts in shares:
                for kind, share in parts.items():
                    if share.metrics or share.others or share.facts:
                        foreign.add_event(kind, share, row.line, clock=row.clock, phase=place.label or None)
        foreign.matched += len(self._rows)
        foreign.stated_first = self.own
        if self._last:
            values = read_record(_values(self._last), names, foreign.problems, None, "")
            self._declared.setdefault("", DeclaredPhase()).add_last(values)
        if self._rows:
            foreign.declared += [phase for label, phase in self._declared.items() if not label]
        else:
            foreign.declared += self._declared.values()
        return foreign

    def _record(self, place: _Place, names: Names) -> RecordValues:
        row = self._rows[place]
        return read_record(_values(row.values), names, self._foreign.problems, row.line, f"/{place.step}")

    def _shares(self, place: _Place, values: RecordValues, printed: Set[str]) -> dict[str, RecordValues]:
        """Return the values of a step by kind of event: training, evaluation and end.

        ``printed`` are the metrics of the phase: if they contain a loss, a step record must have a loss.
        """
        evaluation = _evaluations()
        shares: dict[str, RecordValues] = {kind: RecordValues(step=place.step) for kind in ("step", "eval", "end")}
        for name, value in values.metrics.items():
            scope, definition = values.meanings.get(name, (None, None))
            kind = "end" if definition == _MEAN else "eval" if name in evaluation else "step"
            shares[kind].metrics[name] = value
            shares[kind].meanings[name] = (scope, definition)
        for name, value in values.others.items():
            shares["eval" if _EVALUATED.match(name) else "step"].others[name] = value
        shares["end"].facts = values.facts
        counted = self._is_step(shares["step"], printed, bool(shares["eval"].metrics))
        return shares if counted else {"header" if kind == "step" else kind: share for kind, share in shares.items()}

    def _is_step(self, share: RecordValues, printed: Set[str], evaluated: bool) -> bool:
        """Return whether ``share`` is a step record; in our own exports all records are, except those of evaluations."""
        if "loss" in printed and (evaluated or not self.own):
            return "loss" in share.metrics
        return bool(share.metrics) or not printed - _evaluations()

    def _meanings(self) -> Names:
        """Return the meaning of each name; only the likeliest name of a metric means it, the rest are other metrics."""
        known = load_registry().by_name
        if self.own:
            return Names({n: metric(n) if n in known else other(n.removeprefix("other/")) for n in self._names})
        dialect = self._dialect()
        table: dict[str, Meaning] = {}
        chosen: dict[str, str] = {}
        for name in sorted(self._names, key=lambda n: (n not in known, not n.endswith("_step"), -self._names[n])):
            meaning = self._meaning(name, dialect)
            if meaning.kind == "metric" and chosen.setdefault(meaning.name, name) != name:
                meaning = other(name)
            table[name] = meaning
        return Names(table)

    def _dialect(self) -> Names:
        signs = {*self._names, *(("train/global_step",) if self._names.keys() >= _HUGGING_FACE else ())}
        found, trainer, names = next(dialect for dialect in DIALECTS if dialect[0] <= signs)
        if trainer is not None:
            self._foreign.trainer = trainer
        return names if found else ANY

    def _meaning(self, name: str, dialect: Names) -> Meaning:
        lowered = name.lower().removeprefix(self.namespace)
        if self.keras and lowered in _KERAS:
            return metric(_KERAS[lowered])
        if dialect is ANY:
            if lowered in _COMMON:
                return metric(_COMMON[lowered])
            if _OPTIMIZER.fullmatch(name):
                return metric("learning_rate")
        return dialect.meaning(name.removeprefix(self.namespace)) or (IGNORED if name.startswith("_") else other(name))


def is_known(name: str) -> bool:
    """Return whether a name means the same in all programs."""
    return name.lower() in _COMMON or ANY.meaning(name) is not None


def _drop_superseded(records: Sequence[tuple[_Place, Mapping[str, RecordValues]]]) -> None:
    """Remove the evaluations and final values that a later attempt replaces: those at its first step or beyond.

    An attempt begins with its first training record; for other names also with their own first value. Superseded training
    records stay, because ``events`` counts them as for any restart.
    """
    begins = math.inf
    named: dict[str, float] = {}
    for _, attempt in groupby(reversed(records), key=lambda record: record[0].attempt):
        mine = list(attempt)
        for place, parts in mine:
            for share in (share for kind, share in parts.items() if kind != "step"):
                for values in (share.metrics, share.others):
                    for name in [name for name in values if place.step >= min(begins, named.get(name, math.inf))]:
                        del values[name]
        begins = min([begins, *(place.step for place, parts in mine if "step" in parts and parts["step"].metrics)])
        for place, parts in mine:
            for share in parts.values():
                named.update((name, min(place.step, named.get(name, math.inf))) for name in (*share.metrics, *share.others))


@cache
def _evaluations() -> frozenset[str]:
    """Return the metrics of evaluations: groups of the registry (see ``schemas/metrics``), and the evaluation time."""
    return frozenset(m.name for m in load_registry().metrics if 100 <= m.id < 120 or 170 <= m.id < 200 or m.id in (50, 149))


def _without_label(name: str) -> tuple[str, str]:
    """Return (phase, key) of a name in our own exports; the phase "" is the primary one."""
    first, mark, rest = name.partition("/")
    if not mark or first in ("other", "derived", "summary"):
        return "", name
    return first, rest


def _text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else repr(value)


def _values(values: Mapping[str, str]) -> dict[str, Number]:
    return {name: Number(text) for name, text in values.items()}
