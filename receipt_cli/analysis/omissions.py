"""Problems of a summary: its loss is missing, its figures depend on which of two records counts, doubts name them, or parts
of it are left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from receipt_cli.analysis.checks import LOSSES
from receipt_cli.analysis.summary import Summary
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.events.counters import JUMP, Contest, jumps_at_end
from receipt_cli.events.phases import LOOKED_BACK, Phase, last_steps
from receipt_cli.events.ranks import RankFigures
from receipt_cli.events.starts import FOLDS
from receipt_cli.events.table import Column, EventTable, Row, chosen, mask_of, numbers_in
from receipt_cli.grammar.model import Rule
from receipt_cli.numeric.array_types import Floats, Mask
from receipt_cli.numeric.statistics import Statistic, finite
from receipt_cli.patterns import compile_later
from receipt_cli.problems import MAX_FIELDS, MAX_NAMED, Problem, pointer
from receipt_cli.scan.segment import ABSENT, Doubt, RuleKey

MIN_LOSSLESS = 3
"""Step records without a loss that prove it missing; the first may come before any loss."""
MANY = 8
"""Most other records a step, on average, that may be several results of it; if there are more, the step is another counter."""
STANDS_FOR_NONE = -1.0
"""The loss printed by a rank that does not have it."""
GRADIENTS = {"learning_rate", "grad_norm", "loss_scale", "val_loss"}
"""Metrics that imply training with a loss."""
_OF_LAST = ("steps/last", "metrics/epoch/last", "metrics/epoch/max", "checkpoints")
"""Figures of a summary that depend on the last step record."""
STATISTICS = ("first", "last", "min", "max", "mean", "median")
"""The statistics of a metric that one record can change."""


def loss_missing(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return a problem for each phase whose rule reads a training loss but found none: it may have another name.

    Only if gradient metrics and unnamed numbers are printed, and no other training loss.
    """
    found: list[Problem] = []
    for phase, summary in zip(phases, summaries, strict=True):
        steps, names = phase.steps, summary.metrics.keys()
        losses = [name for name in names if name.endswith("loss") and not name.startswith(("val_", "test_"))]
        if losses or summary.record_count < MIN_LOSSLESS or not names & GRADIENTS:
            continue
        rules = [source.rule for source, rows, _ in sorted(steps.parts, key=lambda part: numbers_in(part[1])[0])]
        rule = next((rule for rule in rules if any(f.target == ("metric", "loss") for f in rule.fields.values())), None)
        unnamed = steps.other_names()
        if rule is not None and unnamed:
            detail = f"none of the {summary.record_count} step records has the training loss that {rule.name} reads; they have "
            found.append(Problem("loss_missing", steps[0].line, detail + ", ".join(unnamed[:8]), ""))
    return found


def printed_twice(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return problems for records at one position with different values; figures that depend on them are left out.

    If most records repeat a step, and not each step equally often as ranks do, the step is not their position.
    """
    found: list[Problem] = []
    for index, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        contests = [contest for contest in phase.contests if contest.other.rule.event != JUMP]
        if contests:
            again = sum(contest.stands is not None and contest.other.step is not None for contest in contests)
            detail = f"{len(contests)} records repeat a step with other values, or come out of order, without a restart"
            mostly = len(contests) > summary.record_count
            counted = ["steps/record_count"] if mostly or again < len(contests) else []
            repeats = Counter(Counter(contest.other.step for contest in contests).values())
            if mostly and len(repeats) > 1 and repeats.most_common(1)[0][1] < 0.9 * repeats.total():  # no ranks print it
                counted += ["step_times", "realised", "/goodput"]
            if len(contests) > MANY * summary.record_count:  # it is the counter of something else
                counted += ["steps/first", "steps/last", "/checks/completed"]
            fields = [*counted, *_undecided(contests, summary)]
            found += _problems("step_printed_twice", index, contests, detail, fields)
    return found


def attempts_alike(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return a problem for each phase with many short attempts that begin and end alike: an inner loop may print them.

    Who restarts a run stops it at different positions. In a loop inside another loop all records count.
    """
    found: list[Problem] = []
    for index, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        places, begins = phase.every.positions, phase.begins
        ends = np.append(begins[1:], len(places)) - 1
        short = len(begins) > FOLDS and len(places) < FOLDS * len(begins)  # longer ones are launches
        spans = Counter(zip(places[begins].tolist(), places[ends].tolist(), strict=True)) if short else Counter()
        (first, last), times = max(spans.items(), key=lambda span: span[1], default=((0, 0), 0))
        if first < last and 2 * times > len(begins):
            fields = [f"steps/{name}" for name in ("record_count", "restart_count", "superseded_count")]
            for block, statistics in (("metrics", summary.metrics), ("other_metrics", summary.other_metrics)):
                fields += [pointer(block, name, key)[1:] for name in statistics for key in STATISTICS if key != "last"]
            detail = f"{times} attempts begin and end at the same positions: these are restarts, or a loop inside another"
            again = [Contest(None, row) for row in phase.begun]
            found += _problems("launch_doubtful", index, again, detail, ["/checks/steps_monotonic", *fields])
    return found


def several_figures(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return problems for metrics of which evaluations print several in a row, again and again, as outputs of one name."""
    found: list[Problem] = []
    for index, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        evals = phase.evals
        epochs, held = evals.filled("epoch"), (("metrics", evals.metric), ("other_metrics", evals.other))
        for block, name, figure in ((b, n, read(n)) for b, read in held for n in getattr(summary, b) if phase.steps):

            def follows(part: slice, figure: Column = figure, evals: EventTable = evals, epochs: Floats = epochs) -> Mask:
                both = slice(part.start, part.stop + 1)
                rows = numbers_in(chosen(figure.rows, both))
                kinds = evals.column("source")[rows], evals.rank[rows], np.nan_to_num(epochs[rows])
                moved = np.logical_or.reduce([np.diff(kind) != 0 for kind in kinds])
                anew = (np.diff(evals.line[rows]) == 1) & np.isnan(evals.steps[rows][1:]) & (np.diff(figure.values[both]) != 0)
                found: Mask = anew & ~moved
                return found

            count = len(figure.values)
            beside = mask_of(max(0, count - 1), follows)
            often = np.count_nonzero(np.diff(beside, prepend=False) & beside) > 1 and 2 * np.count_nonzero(beside) >= count
            if often:
                first = int(beside.argmax())
                lines = tuple(int(evals.line[figure.row(at)]) for at in (first, first + 1))
                fields = tuple(f"/phases/{index}/summary{pointer(block, name, key)}" for key in STATISTICS)
                detail = f"an evaluation prints several figures with the name {name}"
                found.append(Problem("several_figures", lines[0], detail, "", lines, fields=fields))
    return found


def steps_jump(phases: Sequence[Phase], summaries: Sequence[Summary], lines: Sequence[tuple[int, bytes]]) -> list[Problem]:
    """Return problems for records whose counter is far ahead, inside a phase or at its end; ``lines`` are the last ones."""
    found: list[Problem] = []
    for index, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        contests = [contest for contest in phase.contests if contest.other.rule.event == JUMP]
        if contests:
            detail = f"{len(contests)} records were left out: their counter is far ahead of the records around them"
            found += _problems("step_jump", index, contests, detail, [*_undecided(contests, summary), "steps/record_count"])
        positions, last = last_steps(phase)
        if last is not None and jumps_at_end(positions, phase.planned):
            detail = "the counter of the last record is far ahead of the records before it"
            values = tuple(map(str, positions[-2:]))
            fields = ["/checks/completed"] if phase.planned is not None else []
            fields += [f"/phases/{index}/summary/{name}" for name in ("steps/last", *_reached(phase, summary, positions[-2]))]
            found.append(Problem("step_jump", last.line, detail, "", (last.line,), values, tuple(fields)))
        elif (far := _beyond(phase, lines if phase is phases[-1] else ())) is not None:
            detail = "a line after the last step record is of a step or an epoch far beyond it: step records are missing"
            fields = [f"/phases/{index}/summary/{name}" for name in _OF_LAST]
            places = (int(phase.steps.line[-1]), far)
            found.append(Problem("training_unread", far, detail, "", places, fields=tuple(fields)))
    return found


_EPOCH = compile_later(rb"(?i)\bepoch[ :=\[#]{0,3}(\d{1,6})/(\d{1,6})(?![\d/.])")


def _beyond(phase: Phase, lines: Iterable[tuple[int, bytes]]) -> int | None:
    """Return the first later line of an evaluation or checkpoint more than a stride beyond the last step record, or None.

    If records count epochs, one of ``lines`` with their total is such a line, too.
    """
    steps = phase.last_attempt
    steps = steps[max(0, len(steps) - LOOKED_BACK) :]
    if not steps:
        return None
    last, step = steps[-1], steps[-1].step
    for number, line in lines if last.rule.counts == "epoch" else ():
        pairs = _EPOCH.findall(line) if step is not None and number > last.line else ()
        if any(int(total) == phase.planned and int(epoch) > (step or 0) + 1 for epoch, total in pairs):
            return number
    told = phase.evals.with_(phase.standalone_events).of_sources(lambda source: source.rule.event in ("eval", "checkpoint"))
    told = told.where(told.at > last.at)
    if not told:
        return None
    counted = told.of_sources(lambda source: source.rule.counts == last.rule.counts)
    epochs = (steps.filled("epoch"), np.fmax(told.filled("epoch"), told.column("epoch_number")))
    for before, after, rows in ((steps.steps, counted.steps, counted), (*epochs, told)):
        known = before[~np.isnan(before)]
        strides = np.diff(known) if len(known) > 1 else known
        far = np.flatnonzero(after > known.max(initial=0) + strides.max(initial=1))
        if len(known) and len(far):
            return int(rows.line[far[0]])
    return None


def _reached(phase: Phase, summary: Summary, before: int) -> list[str]:
    """Return the figures besides the last step that a counter far ahead changes; ``before`` is the step before the last."""
    epochs = [*dict.fromkeys(int(value) for value in finite(phase.steps.metric("epoch").values))]
    found = [f"metrics/epoch/{key}" for key in ("last", "max", "mean")] if jumps_at_end(epochs) else []
    saved = summary.checkpoints
    if saved is not None:
        found += ["checkpoints/unsaved_step_count", "checkpoints/unsaved_time_s"]
        found += ["checkpoints/last_step"] if (saved.last_step or 0) > before else []
        found += [f"checkpoints/latest/{at}/step" for at, one in enumerate(saved.latest) if (one.step or 0) > before]
    return found


def _problems(kind: str, index: int, contests: Sequence[Contest], detail: str, fields: Sequence[str]) -> list[Problem]:
    """Return a problem for each group of ``MAX_FIELDS`` fields of a summary, at least one."""
    pairs = [(one, "loss") for contest in contests for one in contest if one is not None]
    values = [repr(one.metrics[name]) for one, name in pairs if name in one.metrics]
    lines = sorted(one.line for one, _ in pairs[:MAX_NAMED])
    whole = [field if field.startswith("/") else f"/phases/{index}/summary/{field}" for field in fields]
    return [
        Problem(kind, lines[0], detail, "", tuple(lines), tuple(values[:MAX_NAMED]), tuple(whole[at : at + MAX_FIELDS]))
        for at in range(0, max(1, len(whole)), MAX_FIELDS)
    ]


def _undecided(contests: Sequence[Contest], summary: Summary) -> list[str]:
    """Return the figures of a summary that depend on which of two records at one position counts."""
    found: list[str] = []
    for block, statistics in (("metrics", summary.metrics), ("other_metrics", summary.other_metrics)):
        for name in sorted(statistics, key=lambda name: name != "loss"):
            pairs = [(contest, _value(contest.stands, name), _value(contest.other, name)) for contest in contests]
            differ = [(c, one, other) for c, one, other in pairs if other is not None and one != other]
            undecided = set[str]().union(*(_depends(summary, name, statistics[name], *pair) for pair in differ))
            found += [pointer(block, name, key)[1:] for key in STATISTICS if key in undecided]
            if "max" in undecided and summary.spikes is not None and name in summary.spikes.metrics:
                found.append("spikes")
            if name == "loss" and any(math.isfinite(one or 0.0) and not math.isfinite(other) for _, one, other in differ):
                found.append("/checks/finite_losses")
    return found


def _value(event: Row | None, name: str) -> float | None:
    return None if event is None else event.metrics.get(name, event.unregistered.get(name))


def _depends(summary: Summary, name: str, figures: Statistic, contest: Contest, one: float | None, other: float) -> set[str]:
    """Return the statistics that change if ``other`` replaces ``one``, or is added if ``one`` is None."""
    places, stands = summary.places.get(name), contest.stands
    found = {"mean"}
    line = None if stands is None or one is None else stands.line_of(name)
    if places is not None and line is not None:
        found |= {key for key, at in (("first", places.first_line), ("last", places.last_line)) if at == line}
    elif stands is None and contest.other.step is not None and contest.other.rule.event != JUMP:
        found |= {"first"} if contest.other.step <= (summary.first or 0) else set()
    if figures.min is None or figures.max is None or figures.median is None:
        return {*STATISTICS}
    found |= {"min"} if other < figures.min or one == figures.min else set()
    found |= {"max"} if other > figures.max or one == figures.max else set()
    middle = figures.median
    if one is None or not (max(one, other) < middle or min(one, other) > middle):
        found.add("median")
    return found


def loss_doubts(phases: Sequence[Phase], summaries: Sequence[Summary], primary: int | None) -> list[Problem]:
    """Return a problem for each phase that prints a placeholder instead of the loss, or stops printing it.

    Each leaves open whether all losses are finite, unless one is not. If the loss is always a placeholder, all its statistics
    are null.
    """
    found: list[Problem] = []
    printed = [summary.metrics[name] for summary in summaries for name in LOSSES if name in summary.metrics]
    open_ = () if any(loss.nonfinite_count for loss in printed) else ("/checks/finite_losses",)
    for number, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        loss = summary.metrics.get("loss")
        if loss is None:
            continue
        base = "/summary" if number == primary else f"/phases/{number}/summary"
        last = summary.places["loss"].last_line
        if loss.record_count >= MIN_LOSSLESS and loss.min == loss.max == STANDS_FOR_NONE and not loss.nonfinite_count:
            fields = (*open_, *(f"{base}/metrics/loss/{name}" for name in STATISTICS))
            detail = f"all {loss.record_count} losses are -1: the printing rank does not have the loss"
            found.append(Problem("placeholder", summary.places["loss"].first_line, detail, "", (), ("-1",), fields))
        elif zeros := _zeros_at_end(phase):
            detail = f"the last {zeros} losses are 0 but their gradient norms are not finite: 0 is a placeholder here"
            found.append(Problem("placeholder", last, detail, "", (), ("0.0",), open_))
        elif since := _silent_records(phase):
            detail = f"the last {since} step records have no loss, but earlier ones do"
            found.append(Problem("loss_missing", last, detail, "", (), (), open_))
    return found


def _zeros_at_end(phase: Phase) -> int:
    """Return how many final records print a loss of 0 with a gradient norm that is not finite."""
    table = phase.steps
    losses, norms = (table.metric(name).values[::-1] for name in ("loss", "grad_norm"))
    both = min(len(losses), len(norms)) if len(losses) and losses[0] == 0 else 0
    return int(np.append((losses[:both] == 0) & ~np.isfinite(norms[:both]), False).argmin())


def _silent_records(phase: Phase) -> int:
    """Return how many final records have no loss, if far more than ever lay between two losses; else 0."""
    losses = phase.steps.metric("loss")
    after = len(phase.steps) - 1 - losses.row(len(losses.values) - 1) if len(losses.values) else 0
    if after < MIN_LOSSLESS or len(losses.values) < MIN_LOSSLESS:
        return 0
    widest = int(np.diff(numbers_in(losses.rows)).max())
    return after if after > 3 * widest else 0


def rounded_rates(summaries: Sequence[Summary]) -> list[Problem]:
    """Leave out each learning rate of which all decimals, two or more, are printed as 0; return a problem for each: a training
    has one, which is below these digits."""
    found = list[Problem]()
    for index, summary in enumerate(summaries):
        rate, digits = summary.metrics.get("learning_rate"), summary.printed_digits.get("learning_rate")
        if rate is not None and digits is not None and digits.unit and digits.greatest > 1 and rate.min == rate.max == 0:
            line = summary.places.pop("learning_rate").first_line
            del summary.metrics["learning_rate"], summary.printed_digits["learning_rate"]
            detail = f"the learning rate is printed as 0 throughout: below {digits.unit / 2:g}"
            field = pointer("phases", index, "summary", "metrics", "learning_rate")
            found.append(Problem("rounded_to_zero", line, detail, "", () if line is None else (line,), (), (field,)))
    return found


def rates_contradicted(summaries: Iterable[Summary]) -> list[Problem]:
    """Return a problem for each printed rate, except MFU, that the log's steps and times contradict."""
    found = list[Problem]()
    for summary in summaries:
        for one in summary.consistency:
            if not one.consistent and one.metric != "mfu_ratio":
                line = summary.places[one.metric].last_line if one.metric in summary.places else None
                detail = f"{one.metric} is printed as {one.reported:g}, but the log's steps and times give {one.derived:.6g}"
                lines = () if line is None else (line,)
                found.append(Problem("rate_contradicted", line, detail, "", lines, (f"{one.reported:g}", f"{one.derived:.6g}")))
    return found


_DETAILS = {
    "foreign_record": "{count} records after the words {words!r} are from another writer: {rule} leaves them out",
    "number_ambiguous": "{count} values of {name} may be parts of longer numbers: a comma or other text follows their digits",
    "unit_ambiguous": "{count} values of {name} have another unit than the rest",
    "record_cut": "{count} records end inside {name}, but similar records continue: the number may be cut",
    "figure_unread": "{count} records print {name}, but not as a number that can be read",
}


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
        indices = [i for i, phase in enumerate(phases) if count and any(source.rule is rule for source in phase.steps.sources)]
        for index in indices:
            fields = [pointer("phases", index, "summary", "metrics", "loss", name) for name in STATISTICS]
            steps = ["record_count"] if count <= len(phases[index].steps) else ["record_count", "last"]
            fields += [pointer("phases", index, "summary", "steps", name) for name in steps]
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


def doubt_named(doubt: Doubt, rule: Rule, phases: Sequence[Phase], summaries: Sequence[Summary], primary: int | None) -> Problem:
    """Return the problem of a doubt about what ``rule`` read, with the statistics that it makes null."""
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
        events = phase.step_events.with_(phase.evals)
        if known is None or not events or events[-1].at < doubt.at[0] or events[0].at > doubt.at[-1]:
            continue
        places = summary.places.get(name)
        ends = (None, None) if places is None else (places.first_line, places.last_line)
        sure = {"first"} if ends[0] is not None and ends[0] < doubt.lines[0] else set()
        sure |= {"last"} if ends[1] is not None and ends[1] > doubt.lines[-1] else set()
        at = ("summary",) if index == primary else ("phases", index, "summary")
        yield from (pointer(*at, part, name, statistic) for statistic in STATISTICS if statistic not in sure)


MAX_PHASES = 1000
"""Most phases of a receipt: the one with the most step records, those that fail a check, then the longest."""
MAX_FIGURES = 4500
"""Most metrics of all phases together; the statistics of one take some 800 bytes."""
FEW_PHASES = 50
"""Phases that a receipt always lists, however many metrics they have."""
MAX_RANKS = 4096
"""Most ranks of a phase in a receipt; the lowest are kept."""


def largest(phases: Sequence[Phase]) -> list[int]:
    """Return the ascending indices of listed phases: all, or those that decide a check, and the longest."""
    if len(phases) <= FEW_PHASES:
        return list(range(len(phases)))
    sizes = [len(phase.steps) for phase in phases]
    first = max(range(len(phases)), key=lambda index: (sizes[index], -index))
    ranked = sorted(range(len(phases)), key=lambda index: (index != first, not _odd(phases[index]), -sizes[index], index))
    printing = (phases[index].steps.with_(phases[index].evals) for index in ranked)
    sums = accumulate(len({*each.metric_names(), *each.other_names()}) for each in printing)
    return sorted(ranked[: min(MAX_PHASES, max(FEW_PHASES, sum(figures <= MAX_FIGURES for figures in sums)))])


def _odd(phase: Phase) -> bool:
    """Return whether a loss is not finite, an MFU is above 1, or the run restarted."""
    events = phase.steps.with_(phase.evals, phase.standalone_events)
    finite_ = all(np.isfinite(events.metric(name).values).all() for name in LOSSES)
    return bool(phase.restarts) or not finite_ or bool((events.metric("mfu_ratio").values > 1).any())


def lowest(ranks: Mapping[int, RankFigures]) -> dict[int, RankFigures]:
    """Return the ranks that a receipt lists."""
    return {rank: ranks[rank] for rank in sorted(ranks)[:MAX_RANKS]}


def left_out(summaries: Sequence[Summary], phases: int, ranks: Sequence[Mapping[int, RankFigures]]) -> list[Problem]:
    """Return problems for omitted metrics outside the registry, omitted phases (``phases`` of them), and omitted ranks."""
    counts = (summary.dropped_others for summary in summaries if summary.dropped_others)
    problems = [Problem("other_metrics_dropped", None, f"{n} metrics outside the registry were left out", "") for n in counts]
    if phases:
        problems.append(Problem("phases_dropped", None, f"{phases} phases with the fewest step records were left out", ""))
    most = max((len(found) for found in ranks), default=0)
    if most > MAX_RANKS:
        problems.append(Problem("ranks_dropped", None, f"{most - MAX_RANKS} of {most} ranks were left out", ""))
    return problems
