"""Rules of an evaluation: its columns have equal lengths, its summary agrees with them, and no score is there twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from receipt_cli.documents.invariants.captured import HEADER_RULES
from receipt_cli.documents.invariants.rule import (
    Broken,
    Document,
    Rule,
    check_column,
    check_lengths,
    check_once,
    close,
    each,
    ratio,
)
from receipt_cli.problems import pointer

SCORE_KEY = ("task", "subset", "split", "metric", "filter", "shots")
"""Fields that say what a score is of."""
_COUNTS = (("commit_counts", "commit_count", "commits_per_s"), ("token_counts", "token_count", "tokens_per_s"))


def _recorded(document: Document) -> Iterator[tuple[Document, Document]]:
    """Yield series and summary if steps were recorded: without a series there is nothing to check."""
    if document["series"] is not None and document["summary"] is not None:
        yield document["series"], document["summary"]


def _measured(document: Document) -> Broken:
    if (document["series"] is None) != (document["summary"] is None):
        yield "/summary", "must be null if, and only if, series is"
    elif document["series"] is None and not document.get("scores"):
        yield "/scores", "is empty, and no steps were recorded: nothing was evaluated"


def _scores_once(document: Document) -> Broken:
    for_key = (*SCORE_KEY, "step", "line_number")
    yield from check_once((f"/scores/{n}", tuple(map(score.get, for_key))) for n, score in enumerate(document["scores"]))


def _score_error(document: Document) -> Broken:
    for number, score in enumerate(document["scores"]):
        if score["value"] is None and score["stderr"] is not None:
            yield f"/scores/{number}/stderr", "is given though there is no value"


def _series_length(document: Document) -> Broken:
    series = document["series"]
    if series is not None:
        columns = [(pointer("series", name), series[name]) for name in ("elapsed_s", "commit_counts", "token_counts")]
        columns += [(pointer("series", "metrics", name), column) for name, column in series["metrics"].items()]
        yield from check_lengths(columns, len(series["steps"]))


def _clock(series: Document, summary: Document) -> Broken:
    elapsed = series["elapsed_s"]
    for number, (before, after) in enumerate(pairwise(elapsed), start=1):
        if after < before:
            yield f"/series/elapsed_s/{number}", f"is before the previous step, {before}"
    if elapsed and summary["duration_s"] < max(elapsed):
        yield "/summary/duration_s", f"ends before the last step was recorded, at {max(elapsed)}"


def _totals(series: Document, summary: Document) -> Broken:
    if summary["step_count"] != len(series["steps"]):
        yield "/summary/step_count", f"is {summary['step_count']}, but the series has {len(series['steps'])} steps"
    for column, total, rate in _COUNTS:
        stated = [count for count in series[column] or () if count is not None]
        if series[column] is not None and not stated:
            yield f"/series/{column}", "has no count, so it must be null"
        wanted = sum(map(int, stated)) if stated else None
        if summary[total] != wanted:
            yield f"/summary/{total}", f"is {summary[total]}, but {wanted} in the series"
        elif not close(summary[rate], ratio(summary[total], summary["duration_s"])):
            yield f"/summary/{rate}", f"is not {total} over duration_s"


def _metrics_agree(series: Document, summary: Document) -> Broken:
    recorded, told = series["metrics"], summary["metrics"]
    for name in recorded:
        if name not in told:
            yield pointer("summary", "metrics", name), "is missing though the metric was recorded"
    for name in told:
        if name not in recorded:
            yield pointer("summary", "metrics", name), "was not recorded"


def _figures(series: Document, summary: Document) -> Broken:
    for name, figures in summary["metrics"].items():
        column = series["metrics"].get(name)
        if column is not None:
            yield from check_column(pointer("summary", "metrics", name), figures, column)


_PARTS = ("series", "summary")
EVALUATION_RULES: tuple[Rule, ...] = (
    *HEADER_RULES,
    Rule("series_length", ("series",), _series_length),
    Rule("clock_forward", _PARTS, each(_clock, _recorded)),
    Rule("totals", _PARTS, each(_totals, _recorded)),
    Rule("metrics_agree", _PARTS, each(_metrics_agree, _recorded)),
    Rule("figures_of_series", _PARTS, each(_figures, _recorded)),
    Rule("measured", _PARTS, _measured),
    Rule("scores_once", ("scores",), _scores_once),
    Rule("score_error", ("scores",), _score_error),
)
"""The rules of an evaluation in order of check and report."""
