"""One kind of record as it is read: what each number is, what counts, and what speaks for and against records of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from receipt_cli.learn.counting import ABSENT, EPOCHS, FEW, GLOBAL, PER_EPOCH, UNNUMBERED, Counter, open_steps
from receipt_cli.learn.names import LOSS, METRIC, PART, SCORE, TIMING, TRAINED, Name, Role, counter_of
from receipt_cli.learn.shapes import Shape
from receipt_cli.learn.tokens import FRACTION, split
from receipt_cli.learn.vocabulary import Vocabulary

WHOLE = 900
"""The rank of a loss of one kind that is the only one on its line."""


@dataclass(frozen=True, eq=False)
class Reading:
    """The interpretation of a shape. ``roles`` maps the column of each readable metric to its role, each metric once."""

    shape: Shape
    vocabulary: Vocabulary
    names: list[Name]
    counter: Counter
    roles: dict[int, Role]
    evaluation: bool
    bar: bool
    glued: int
    doubts: tuple[str, ...] = ()
    """The evidence against these records that others of the log give, or their place in a line."""
    lags: bool = False
    """A bar that shows the loss of the step which it counts next: at 0 that of the first, and at the end the last one again."""
    graded: bool = False
    """A mean error stands beside figures of names that say nothing: one of these may be the loss."""
    numbered: bool = False
    """A bar between the records counts them."""
    apart: bool = False
    """Not of the series whose records begin alike: these are its means, or another program's."""
    rivals: tuple[str, ...] = ()
    """The labels of the loss and of another one, where only the order of the vocabulary chose between them."""

    @property
    def family(self) -> tuple[bytes, ...]:
        """The key of one kind of records: the literals up to the counter, or to the first metric."""
        counters = self.counter.places
        literals = self.shape.literals[: max(counters or list(self.roles)[:1]) + 1]
        kinds = ",".join(self.shape.columns[at].kind for at in counters).encode()
        if self.glued >= 0 and len(literals) == self.glued + 2:
            literals = [literals[-1].lstrip(b"] ")]  # the same record, once behind a bar and once not
        return (kinds, b" " * self.shape.indented, *(b" ".join(text.split()) for text in literals[-2:]))

    @property
    def loss(self) -> int | None:
        """Place of the training loss."""
        return next((at for at, role in self.roles.items() if role.kind == LOSS), None)

    @cached_property
    def figure(self) -> str:
        """The name of the strongest figure that tells that these are records of training; empty if there is none."""
        return next((name for name, holds in FIGURES.items() if holds(self)), "")

    @cached_property
    def against(self) -> frozenset[str]:
        """The names of the evidence that these are no records of training."""
        return frozenset((*self.doubts, *(name for name, holds in CONTRARY.items() if holds(self))))

    @property
    def plain(self) -> bool:
        """Whether a figure tells that these are records of training, and no evidence is against that but a missing counter."""
        return bool(self.figure) and self.against <= {"uncounted"}

    @property
    def sure(self) -> bool:
        """True for a training loss beside what counts."""
        return self.figure == "loss" and not self.against

    @property
    def starts_over(self) -> bool:
        """True where an epoch goes back, or what counts one by one: only a step can separate such attempts."""
        return self.counter.mode == ABSENT and any(
            c.drops and (name.spelled[-1:] == ["epoch"] or (c.integer and c.strides > 0.7 * (c.count - 1) > 2))
            for c, name in zip(self.shape.columns, self.names, strict=True)
        )


def _kinds(r: Reading) -> set[str]:
    return {role.kind for role in r.roles.values()}


def _rises(r: Reading) -> bool:
    return r.counter.epoch is not None and r.shape.columns[r.counter.epoch].rises > 0


def _counts_steps(r: Reading) -> bool:
    return r.counter.mode in (GLOBAL, PER_EPOCH) or (r.counter.mode == UNNUMBERED and r.counter.step is not None)


def _sure_loss(r: Reading) -> bool:
    return r.loss is not None and r.roles[r.loss].rank < WHOLE


def _figures_of_steps(r: Reading) -> bool:
    """Return whether a metric of the registry, a loss of one kind or a part of one stands beside a step."""
    return _counts_steps(r) and bool(_kinds(r) & {METRIC, PART})


def _figures_of_epochs(r: Reading) -> bool:
    """Return whether records, one for each epoch, print parts of a loss, or a perplexity, likelihood or loss that varies."""
    telling = ("perplexity", "policy_loss", "value_loss")
    told = [at for at, role in r.roles.items() if role.metric in telling or "likelihood" in r.names[at].words]
    varies = any(r.shape.columns[at].varies for at in told[:1])
    headed = r.counter.epoch is None and r.counter.heading is not None
    return r.counter.mode == EPOCHS and (headed or _rises(r)) and (PART in _kinds(r) or varies)


def _scores(r: Reading) -> bool:
    """Return whether records print scores beside a step, or one record for each epoch prints scores of the training.

    Their name says so, or the same score of an evaluation beside them; or two scores vary on many records.
    """
    scores = [(at, role) for at, role in r.roles.items() if role.kind == SCORE]
    if _counts_steps(r):
        words = r.names[r.counter.step].spelled if r.counter.step is not None else ()
        return bool(scores) and (not words or counter_of(words, r.vocabulary) is not None)
    evaluated = {" ".join(name.spelled[1:]) for name in r.names if name.evaluation}
    spoken = r.counter.epoch is not None and not r.vocabulary.training.isdisjoint(r.names[r.counter.epoch].spelled)
    spoken = spoken or any(not r.vocabulary.rewards.isdisjoint(r.names[at].spelled) for at, _ in scores)
    told = [at for at, role in scores if role.rank == TRAINED or r.names[at].words in evaluated or spoken]
    many = len(scores) > 1 and r.shape.count >= FEW and all(r.shape.columns[at].distinct > 2 for at, _ in scores)
    return r.counter.mode == EPOCHS and _rises(r) and (many or any(r.shape.columns[at].distinct > 1 for at in told))


def _times(r: Reading) -> bool:
    """Return whether a time stands beside a counter of steps with a total, which loops of benchmarks do not print."""
    step = r.counter.step
    if step is None or r.shape.columns[step].kind != FRACTION or TIMING not in _kinds(r):
        return False
    return r.counter.mode == PER_EPOCH or (_counts_steps(r) and r.names[step].spelled[-1:] in (["step"], ["iteration"], ["iter"]))


def _timed_parts(r: Reading) -> bool:
    """Return whether records without a counter have parts of a loss, and a time that is another in nearly each: of a loop."""
    told = [(at, 4 if role.kind == TIMING else 1) for at, role in r.roles.items() if role.kind in (PART, TIMING)]
    if r.counter.mode != ABSENT or not {PART, TIMING} <= _kinds(r):
        return False
    columns = r.shape.columns
    return all(r.names[at].sure and 5 * columns[at].distinct > often * len(columns[at].values) for at, often in told)


def _uncounted(r: Reading) -> bool:
    return r.counter.mode == ABSENT and r.loss is not None


def _lone(r: Reading) -> bool:
    """Return whether the reading has no counter, and its loss is constant or the only sign of training.

    Other signs are another metric, a training word in the name of the loss, a bar between the records, and a header above rows.
    """
    metrics = sum(role.kind in (METRIC, LOSS) for role in r.roles.values())
    words = r.names[r.loss].spelled if r.loss is not None else ()
    trained = (bool(r.shape.header) or not r.vocabulary.training.isdisjoint(words)) and r.shape.count >= FEW
    return _uncounted(r) and not (r.shape.columns[r.loss or 0].varies and (metrics > 1 or trained or r.numbered))


def _bar_without_steps(r: Reading) -> bool:
    """Return whether a bar shows no step. One without a total shows one if its number changes in each frame of an epoch."""
    step, epoch = r.counter.step, r.counter.epoch
    column = r.shape.columns[step] if step is not None and epoch is not None and open_steps(r.shape) else None
    paired = column is not None and column.rises + column.drops == column.count - 1
    return r.bar and r.counter.mode in (UNNUMBERED, ABSENT) and not paired


def _unnumbered(r: Reading) -> bool:
    """Return whether a counter begins again, and neither an epoch nor a heading says why: epochs, or several launches.

    An epoch alone must rise, and have more records than two writers print: of two it is unknown whose they are. No name before
    it may have numbers in turn (``c0 epoch 3``): these are writers.
    """
    epoch = r.counter.epoch
    if r.counter.mode != UNNUMBERED or (r.counter.heading is not None and r.counter.step is not None):
        return False
    parts, columns = split(r.shape.samples[0]), r.shape.columns
    begun = [at for at in range(epoch or 0) if parts[2 * at][-1:].isalpha() and parts[2 * at + 1][:1].isdigit()]
    turns = any(columns[at].integer and columns[at].drops for at in begun)
    if epoch is None or r.counter.step is not None:
        return epoch is None or turns
    column = r.shape.columns[epoch]
    often = column.rises > 0 and not 3 * (column.rises + 1) < 2 * column.count <= 4 * (column.rises + 1)
    return turns or not (often and r.shape.columns[r.loss or 0].varies and r.loss is not None)


def _ends_back(r: Reading) -> bool:
    """Return whether the last record alone is of an earlier step: a summary. Another launch begins with the first step.

    But that is not printed as the first record was, to the digit.
    """
    column = r.shape.columns[r.counter.step] if r.counter.step is not None and r.counter.mode == GLOBAL else None
    again = r.shape.count <= FEW and r.shape.samples[-1] == r.shape.samples[0]
    return column is not None and column.drops > 0 and not column.since and (column.last != column.first or again)


FIGURES: Mapping[str, Callable[[Reading], bool]] = {  # the strongest first
    "loss": _sure_loss,
    "loss_of_one_kind": lambda r: r.loss is not None and not _sure_loss(r),
    "figures_of_steps": _figures_of_steps,
    "figures_of_epochs": _figures_of_epochs,
    "scores": _scores,
    "times": _times,
    "timed_parts": _timed_parts,
}
CONTRARY: Mapping[str, Callable[[Reading], bool]] = {
    "evaluation": lambda r: r.evaluation,
    "bar_without_steps": _bar_without_steps,
    "unnumbered": _unnumbered,
    "ends_back": _ends_back,
    "uncounted": _uncounted,
    "uncounted_loss_alone": _lone,
}
SEVERAL_COUNTS = "several_counts"
DOUBTS = (SEVERAL_COUNTS, "quoted", "beyond_total", "notice", "results_of_runs", "first_batches", "in_rounds")
"""What other records of the log say against these, or their place in a line."""
