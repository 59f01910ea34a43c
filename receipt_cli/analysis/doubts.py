"""Doubts about records and numbers of a log → problems that name the affected figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from receipt_cli.analysis.checks import LOSSES
from receipt_cli.analysis.omissions import STATISTICS
from receipt_cli.analysis.summary import Summary
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.events.phases import Phase
from receipt_cli.grammar.model import Rule
from receipt_cli.problems import Problem, pointer
from receipt_cli.scan.segment import ABSENT, Doubt, RuleKey

_DETAILS = {
    "foreign_record": "{count} records after the words {words!r} are from another writer: {rule} leaves them out",
    "number_ambiguous": "{count} values of {name} may be parts of longer numbers: a comma or other text follows their digits",
    "unit_ambiguous": "{count} values of {name} have another unit than the rest",
    "record_cut": "{count} records end inside {name}, but similar records continue: the number may be cut",
    "figure_unread": "{count} records print {name}, but not as a number that can be read",
}


def doubts_named(
    doubts: Sequence[Doubt],
    rules: Mapping[RuleKey, Rule],
    phases: Sequence[Phase],
    summaries: Sequence[Summary],
    primary: int | None,
) -> list[Problem]:
    """Return a problem for each doubt about what ``rules`` read, with the statistics it makes null."""
    return [_problem(doubt, rules[doubt.key], phases, summaries, primary) for doubt in doubts if doubt.key in rules]


def losses_left_over(
    dropped: Sequence[tuple[Rule, Mapping[str, int]]], phases: Sequence[Phase], summaries: Sequence[Summary]
) -> list[Problem]:
    """Return problems for lines with several losses, of which only one is read.

    ``dropped`` are the step rules with their unread cells, counted by label.
    """
    alias = load_registry().by_alias
    found: list[Problem] = []
    for rule, cells in dropped:
        labelled = rule.mapping is None  # an object may contain others, with losses of their own
        count = sum(n for label, n in cells.items() if labelled and alias.get(label.lower()) == "loss")
        indices = [i for i, phase in enumerate(phases) if count and any(event.rule is rule for event in phase.steps)]
        for index in indices:
            fields = [pointer("phases", index, "summary", "metrics", "loss", name) for name in STATISTICS]
            fields.append(pointer("phases", index, "summary", "steps", "record_count"))
            line = summaries[index].lines[0]
            detail = f"{count} losses on lines with several losses were not read"
            found.append(Problem("figure_unread", line, detail, "", () if line is None else (line,), (), tuple(fields)))
    return found


def unread_losses(doubts: Sequence[Doubt], rules: Mapping[RuleKey, Rule]) -> bool:
    """Return whether a number of a training or validation loss was left out."""
    targets = (_target(doubt, rules[doubt.key]) for doubt in doubts if doubt.key in rules and doubt.name)
    return any(part == "metrics" and name in LOSSES for part, name in targets)


def _target(doubt: Doubt, rule: Rule) -> tuple[str, str]:
    """Return summary block and name of the figure that a doubt concerns."""
    spec = rule.fields.get(doubt.name)
    if spec is not None and spec.target[0] in ("metric", "other"):
        return ("metrics" if spec.target[0] == "metric" else "other_metrics"), spec.target[1]
    return "other_metrics", doubt.name


def _problem(doubt: Doubt, rule: Rule, phases: Sequence[Phase], summaries: Sequence[Summary], primary: int | None) -> Problem:
    part, name = _target(doubt, rule) if doubt.name else ("", "")
    detail = _DETAILS[doubt.kind].format(count=doubt.rows, words=doubt.words, rule=rule.name, name=name)
    fields = tuple(_fields(doubt, part, name, phases, summaries, primary)) if name and doubt.words != ABSENT else ()
    losses = (summary.metrics[loss] for summary in summaries for loss in LOSSES if loss in summary.metrics)
    if part == "metrics" and name in LOSSES and not any(loss.nonfinite_count for loss in losses):
        fields += ("/checks/finite_losses",)
    return Problem(doubt.kind, doubt.lines[0], detail, "", doubt.lines, doubt.values, fields)


def _fields(
    doubt: Doubt, part: str, name: str, phases: Sequence[Phase], summaries: Sequence[Summary], primary: int | None
) -> Iterator[str]:
    """Yield the statistics that could change if the doubtful numbers counted."""
    for index, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        known = (summary.metrics if part == "metrics" else summary.other_metrics).get(name)
        events = [*phase.step_events, *phase.evals]
        if known is None or not events:
            continue
        if max(event.last_at for event in events) < doubt.at[0] or min(event.at for event in events) > doubt.at[-1]:
            continue
        places = summary.places.get(name)
        ends = (None, None) if places is None else (places.first_line, places.last_line)
        sure = {"first"} if ends[0] is not None and ends[0] < doubt.lines[0] else set()
        sure |= {"last"} if ends[1] is not None and ends[1] > doubt.lines[-1] else set()
        at = ("summary",) if index == primary else ("phases", index, "summary")
        yield from (pointer(*at, part, name, statistic) for statistic in STATISTICS if statistic not in sure)
