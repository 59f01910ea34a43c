"""Rules of an evaluation: its columns have equal lengths, and its summary agrees with them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from receipt_cli.documents.invariants.captured import HEADER_RULES
from receipt_cli.documents.invariants.rule import Broken, Document, Rule, check_column, close, pointer, ratio

_COUNTS = (("commit_counts", "commit_count", "commits_per_s"), ("token_counts", "token_count", "tokens_per_s"))


def _columns(document: Document) -> Iterator[tuple[str, list[Any]]]:
    series = document["series"]
    for name in ("elapsed_s", "commit_counts", "token_counts"):
        if series[name] is not None:
            yield pointer("series", name), series[name]
    for name, column in series["metrics"].items():
        yield pointer("series", "metrics", name), column


def _series_length(document: Document) -> Broken:
    wanted = len(document["series"]["steps"])
    for at, column in _columns(document):
        if len(column) != wanted:
            yield at, f"has {len(column)} entries for {wanted} steps"


def _clock(document: Document) -> Broken:
    elapsed = document["series"]["elapsed_s"]
    for number, (before, after) in enumerate(pairwise(elapsed), start=1):
        if after < before:
            yield f"/series/elapsed_s/{number}", f"is before the previous step, {before}"
    if elapsed and document["summary"]["duration_s"] < max(elapsed):
        yield "/summary/duration_s", f"ends before the last step was recorded, at {max(elapsed)}"


def _totals(document: Document) -> Broken:
    series, summary = document["series"], document["summary"]
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


def _metrics_agree(document: Document) -> Broken:
    recorded, told = document["series"]["metrics"], document["summary"]["metrics"]
    for name in recorded:
        if name not in told:
            yield pointer("summary", "metrics", name), "is missing though the metric was recorded"
    for name in told:
        if name not in recorded:
            yield pointer("summary", "metrics", name), "was not recorded"


def _figures(document: Document) -> Broken:
    for name, figures in document["summary"]["metrics"].items():
        column = document["series"]["metrics"].get(name)
        if column is not None:
            yield from check_column(pointer("summary", "metrics", name), figures, column)


_PARTS = ("series", "summary")
EVALUATION_RULES: tuple[Rule, ...] = (
    *HEADER_RULES,
    Rule("series_length", ("series",), _series_length),
    Rule("clock_forward", _PARTS, _clock),
    Rule("totals", _PARTS, _totals),
    Rule("metrics_agree", _PARTS, _metrics_agree),
    Rule("figures_of_series", _PARTS, _figures),
)
"""The rules of an evaluation in order of check and report."""
