"""The scores that a reader takes from results, before they become an evaluation document."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from receipt_cli.definitions.units import read_number
from receipt_cli.importers.model import Foreign
from receipt_cli.importers.text import Number, Value
from receipt_cli.importers.values import spelled_number
from receipt_cli.patterns import compile_later
from receipt_cli.redaction.text import safe_text

MAX_SCORES = 5000
"""Most scores of one document."""
_LONGEST = 500
_MAX_WHOLE = 2**53
_NOT_STATED = frozenset({"", "-", "–", "n/a", "na", "none", "null"})
_STEP = compile_later(
    r"(?i)(?:^|[/_=-])(?:checkpoint[-_]?|global_?step[-_]?|(?:ckpt|step)[-_]?(?=\d{3})|iter(?:ation)?[-_]?(?=\d{5}))0*"
    r"(?P<step>\d{1,12})(?:$|[/_.-])"
)
"""A step in the name of a checkpoint. Few digits behind ``step`` or ``iter`` are part of a model's name, as in Step-3."""
_REVISION = compile_later(r"(?i)(?:^|[/_-])step[-_]?0*(?P<step>\d{1,12})(?:$|[/_.-])")
"""A step in a revision, such as ``step64``."""


@dataclass(frozen=True, slots=True)
class Score:
    """One score, with the fields of ``/scores`` in an evaluation, in schema order."""

    task: str
    subset: str | None = field(default=None, kw_only=True)
    split: str | None = field(default=None, kw_only=True)
    metric: str
    filter: str | None = field(default=None, kw_only=True)
    shots: int | None = field(default=None, kw_only=True)
    value: float | None
    stderr: float | None = None
    sample_count: int | None = None
    higher_is_better: bool | None = None
    task_version: str | None = None
    step: int | None = None
    after_step: int | None = None
    line_number: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What it is a score of, and of which model."""
        return self.task, self.subset, self.split, self.metric, self.filter, self.shots, self.step

    @property
    def named(self) -> str:
        """Task and metric, for problems."""
        return ", ".join(part for part in (self.task, self.subset, self.metric, self.filter) if part)

    def shown(self) -> Score:
        """Return it with its texts cut and without secrets, as a document has them."""
        texts = {name: text for name, text in asdict(self).items() if isinstance(text, str)}
        shown: dict[str, Any] = {name: safe_text(text, _LONGEST) or None for name, text in texts.items()}
        return replace(self, **{**shown, "task": shown["task"] or "?", "metric": shown["metric"] or "?"})


@dataclass
class Results(Foreign):
    """The results in one document.

    ``model`` and ``revision`` say what was evaluated, ``step`` the training step of the checkpoint. ``started_at`` is in
    seconds since 1970.
    """

    model: str | None = None
    revision: str | None = None
    step: int | None = None
    started_at: float | None = None
    complete: bool = True
    config: dict[str, Any] = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)

    def add(self, scores: Iterable[Score]) -> None:
        """Add the scores of one table or file, each once.

        One without a finite value has no standard error, and is a problem. What is stated twice with other values is left
        out, and is a problem; so are scores beyond ``MAX_SCORES``. A later table that repeats a score adds nothing.
        """
        told: dict[tuple[object, ...], Score] = {}
        doubtful: dict[tuple[object, ...], Score] = {}
        for score in (score.shown() for score in scores):
            if score.value is None or not math.isfinite(score.value):
                score = replace(score, value=None, stderr=None)
            other = told.setdefault(score.key, score)
            if replace(other, line_number=None) != replace(score, line_number=None):
                doubtful[score.key] = score
        for key, score in doubtful.items():
            del told[key]
            self.problems.add("contradicting_scores", score.line_number, f"{score.named}: stated twice, with other values")
        latest = {score.key: replace(score, line_number=None) for score in self.scores}
        fresh = [score for key, score in told.items() if latest.get(key) != replace(score, line_number=None)]
        room = MAX_SCORES - len(self.scores)
        for score in fresh[:room]:
            if score.value is None:
                self.problems.add("no_value", score.line_number, f"{score.named}: has no value")
        if len(fresh) > room:
            self.problems.add("too_many_scores", None, f"{len(fresh) - room} scores after the first {MAX_SCORES} are left out")
        self.scores += fresh[:room]


@dataclass(frozen=True, slots=True)
class ResultsFormat:
    """A format whose results are one JSON object."""

    name: str
    title: str
    recognise: Callable[[dict[str, Value]], bool]
    read: Callable[[dict[str, Value]], Results]


def number(value: Value) -> float | None:
    """Return a printed number, also one that is spelled as text; None for any other value."""
    if isinstance(value, Number):
        return read_number(value)
    if not isinstance(value, str) or len(value) > 64 or value.strip().lower() in _NOT_STATED:
        return None
    return read_number(spelled_number(value))


def finite(value: Value) -> float | None:
    """Return a finite number of 0 or more, as a standard error is; None for any other value."""
    found = number(value)
    return found if found is not None and math.isfinite(found) and found >= 0 else None


def whole(value: Value) -> int | None:
    """Return a whole number of 0 or more; None for any other value."""
    found = number(value)
    return int(found) if found is not None and 0 <= found < _MAX_WHOLE and found == int(found) else None


def text(value: Value) -> str | None:
    """Return a text or the text of a number without outer blanks; None if it is empty or says that there is none."""
    if not isinstance(value, str) or value.strip().lower() in _NOT_STATED:
        return None
    return value.strip()


def plain(value: Value, depth: int = 4) -> Any:
    """Return ``value`` as JSON: numbers as numbers, texts cut and without secrets; what is deeper than ``depth`` is null."""
    if isinstance(value, Number):
        found = read_number(value)
        if found is None or not math.isfinite(found):
            return None
        return int(value) if value.lstrip("-").isdecimal() and abs(found) < _MAX_WHOLE else found
    if isinstance(value, dict):
        return {safe_text(key, _LONGEST): plain(item, depth - 1) for key, item in value.items()} if depth else None
    if isinstance(value, list):
        return [plain(item, depth - 1) for item in value] if depth else None
    return safe_text(value, _LONGEST) if isinstance(value, str) else value


def step_in(*names: str | None, revision: str | None = None) -> int | None:
    """Return the training step in the names of a checkpoint, such as ``run7/checkpoint-500``, or in a revision, as ``step64``.

    None without one, or with several.
    """
    found = {int(match["step"]) for name in names if name for match in _STEP.finditer(name)}
    found |= {int(match["step"]) for match in _REVISION.finditer(revision or "")}
    return found.pop() if len(found) == 1 else None


def model_args(value: Value) -> dict[str, Value]:
    """Return the arguments of a model: an object, or ``key=value`` joined by commas."""
    if isinstance(value, dict):
        return value
    pairs: Iterable[str] = value.split(",") if isinstance(value, str) else ()
    return {key.strip(): item for key, equals, item in (pair.partition("=") for pair in pairs) if equals}
