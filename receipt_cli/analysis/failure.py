"""Marker hits and phases → how the run ended: completed, failed for a named reason, or unknown.

A marker counts only if the run did not continue after it. The most specific cause wins over later, consequential errors.
The scheduler's record of the job completes the ending.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from receipt_cli.analysis.completed import distance, is_completed, reached_plan, saved_plan
from receipt_cli.analysis.stated import JobEnd
from receipt_cli.analysis.survival import CONVICTING, FATAL, FRAME, HEAD, INTERRUPTED, Progress
from receipt_cli.analysis.torchrun import Verdict, find_verdict, is_victim
from receipt_cli.definitions.failure_markers import Catalogue, Marker
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import last_finite, place_of
from receipt_cli.numeric.statistics import exact_median, finite, value_range
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Problem
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.records.place import LOGGED, PRINTED
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.segment import SegmentBody

SIGNALS = {1: "killed", 2: "interrupted", 7: "segfault", 9: "killed", 11: "segfault", 15: "killed"}
"""Failure reason by signal number. A signal alone does not show whether the host ran out of memory."""
CATEGORIES = {"killed": "signal", "interrupted": "signal", "segfault": "code", "child_failed": "unknown", "unknown": "unknown"}
_NAN_TEXT = compile_later(r"(?i)(?<![\w-])(?:nans?|inf|infs|infinite|infinity|non-?finite|not finite|invalid values)(?![\w-])")
_USAGE = compile_later(r"can.t open file '|\.py: error: (?:argument|unrecognized|the following|ambiguous)")
_TOP = compile_later(r'", line (\d{1,7}), in <module>')
TOP_LINES = 100
"""Lines at the top of a script within which its imports are."""
DIVERGED = Marker("loss_diverged", None, "numerics", "observation", 3, 1, (), "", (), ())
DIVERGED_RECORDS = 20
DIVERGED_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class MarkerMatch:
    """A marker in a log: count, lines, and the text of the hit that counts."""

    marker: Marker
    count: int
    first_line: int
    last_line: int
    at: int
    line: int
    message: str
    exit_code: int | None
    open: bool
    """Whether the run did not continue after some hit."""
    rank: int = NO_RANK
    """The rank named on its line."""
    host: str | None = None
    form: int = PRINTED
    """Form of its text: an error printed by a logger does not prove that its process ended."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. ``reason`` is a failure slug or None; ``completed``: proven success, proven failure, or None."""

    reason: str | None
    category: str | None
    line_number: int | None
    message: str | None
    completed: bool | None
    exit_code: int | None
    matches: tuple[MarkerMatch, ...]
    died: bool = False
    """Whether an error or stop ended a process of the run, so that its exit code was not zero."""
    failure: MarkerMatch | None = None
    """The marker match that decided."""
    failed_start: MarkerMatch | None = None
    """The failure of a later launch that failed before its first step."""
    problems: tuple[Problem, ...] = ()
    """Problems about the end of the log."""

    @property
    def unnamed(self) -> bool:
        """Return whether only the head of a traceback is left, cut before its error."""
        return self.failure is not None and self.failure.marker.id == HEAD and self.message == self.failure.message


def judge(
    body: SegmentBody,
    catalogue: Catalogue,
    phases: Sequence[Phase],
    exit_code: int | None,
    *,
    whole: bool = True,
    running: bool = False,
    closing: Callable[[], bool] = bool,
    spent: Callable[[], bool] = bool,
    unread_after: bool = False,
    started: Callable[[int], bool] | None = None,
    ran: Callable[[], bool] = bool,
    above: Callable[[int], bytes] = bytes,
) -> Ending:
    """Return how the run ended. ``exit_code`` is the one the caller knows, or None.

    Without ``whole`` the log lacks output at its end and cannot prove completion. With ``running`` the job may go on after the
    log, so a missing end or step is no failure. ``closing`` returns whether new text follows the last record, ``spent`` whether a
    counter of early stopping reached its limit there, ``started`` whether another program begins between the last record and a
    line, ``ran`` whether unread lines show that a program ran, ``above`` the line before one.
    ``unread_after``: unread training records follow the last record.
    """
    progress = Progress(body, catalogue, phases, exit_code, above)
    matches = [s for m in catalogue.among(body.markers) if m.role != "detail" and (s := _match(m, body, progress)) is not None]
    codes = [s for s in matches if s.marker.role == "exit_code" and s.open and s.exit_code]
    failures = sorted(
        (s for s in matches if s.open and s.marker.role in CONVICTING and s.marker.reason),
        key=lambda s: (s.marker.priority, s.at >> POSITION_BITS),  # on the same line the catalogue's order decides
    )
    last = phases[-1] if phases else None
    done, early = (None, ()) if last is None else _completed(last, progress, body, unread_after, closing, spent, started)
    start = _failed_start(failures, body, progress, started if done else None, ran) if exit_code is None else None
    if start is not None:
        matches = [replace(s, open=False) if s in failures or s in codes else s for s in matches]
        failures, codes = [], []
    stated = max(codes, key=lambda s: s.at, default=None)
    zeros = (s for s in matches if s.marker.role == "exit_code" and s.exit_code == 0 and s.at > progress.last_step)
    zero = 0 if not failures and any(zeros) else None  # it was printed after the last step, and no error ended the run
    code = exit_code if exit_code is not None else stated.exit_code if stated else zero
    diverged = _diverged(phases)
    matches += [diverged] if diverged is not None else []
    done = None if done and not whole else done
    verdict = find_verdict(body, progress.begin)
    nan = _nan_loss(phases)
    if failures and failures[0].marker.priority <= 1 and not (nan is not None and _of_nan(failures[0], nan)):
        first = _first_of_culprit(verdict, failures[0], catalogue, body, progress) if verdict is not None else None
        return _ending(first or failures[0], code, matches)
    if nan is not None:
        died = bool(failures) and failures[0].marker.priority <= 1 and failures[0].form != LOGGED
        message = "the loss is not a finite number from here to the end"
        return Ending("nan_loss", "numerics", nan, message, False if died or code else done, code, tuple(matches), died)
    if failures and verdict is not None and _only_launcher(failures[0], verdict):
        reason = reason_of_code(verdict.exit_code, "child_failed")
        ending = Ending(reason, CATEGORIES[reason], verdict.line, verdict.message, False, code, tuple(matches))
        return replace(ending, failure=replace(failures[0], line=verdict.line, message=verdict.message, host=verdict.host))
    if failures:
        return _ending(failures[0], code, matches)
    if code:
        line = stated.line if stated and exit_code is None else None
        reason = reason_of_code(code, "unknown")
        return Ending(reason, CATEGORIES[reason], line, f"exit code {code}", False, code, tuple(matches))
    if last is not None and last.failed_end:
        event = [e for e in last.standalone_events if e.rule.event == "end" and "status" in e.texts][-1]
        message = f"the run ended with status {event.texts['status']}"
        return Ending("unknown", "unknown", event.line, message, False, code, tuple(matches))
    if not whole:
        message = "output is missing at the end of the log: it could not be written whole"
        return Ending("truncated", "unknown", None, message, done, code, tuple(matches))
    if running and not done:
        return Ending(None, None, None, None, None, code, tuple(matches), failed_start=start)
    if done is False:
        message = "the log ends before the run does"
        return Ending("truncated", "unknown", None, message, False, code, tuple(matches), failed_start=start)
    return Ending(None, None, None, None, done, code, tuple(matches), failed_start=start, problems=early)


def _ending(failure: MarkerMatch, code: int | None, matches: Sequence[MarkerMatch]) -> Ending:
    marker = failure.marker
    died = marker.role in FATAL and (marker.role != "error" or failure.form != LOGGED or bool(code))
    return Ending(marker.reason, marker.category, failure.line, failure.message, False, code, tuple(matches), died, failure)


def _failed_start(
    failures: Sequence[MarkerMatch],
    body: SegmentBody,
    progress: Progress,
    started: Callable[[int], bool] | None,
    ran: Callable[[], bool],
) -> MarkerMatch | None:
    """Return the failure of a later launch: another program, or the same one with a wrong name, command line or import.

    Only errors after the last step count. A run with steps had working imports at the top of its script. What a shell does not
    find is no program that ran before, whether its records were read or not.
    """
    if failures and not progress.steps and failures[0].marker.id == "missing_program":
        return failures[0] if ran() else None
    if not failures or len(progress.steps) < 2 or min(s.at for s in failures) < progress.steps[-1]:
        return None
    cause = failures[0]
    if started is not None and started(min(s.line for s in failures)):
        return cause
    if cause.marker.reason != "import_error":
        return cause if cause.marker.id == "plain_error" and _USAGE.search(cause.message) else None
    if cause.marker.id == "missing_program":
        return cause
    frames = body.markers.get(FRAME)
    texts = [text for at, text, _ in frames.texts if progress.steps[-1] < at < cause.at] if frames is not None else []
    tops = [int(found[1]) for text in texts if (found := _TOP.search(text))]
    return cause if tops and len(tops) == len(texts) and tops[0] <= TOP_LINES else None


def _of_nan(error: MarkerMatch, line: int) -> bool:
    """Return whether the exception reports an earlier NaN loss."""
    return error.marker.reason == "traceback" and error.line > line and _NAN_TEXT.search(error.message) is not None


def reason_of_code(code: int, other: str) -> str:
    """Return the failure reason of an exit code; a negative code, or one above 128, is a signal."""
    return SIGNALS.get(-code if code < 0 else code - 128, other)


def _only_launcher(best: MarkerMatch, verdict: Verdict) -> bool:
    """Return whether only the launcher's summary explains the failure: then the rank it names decides."""
    if best.marker.role != "consequence" or best.marker.reason not in ("child_failed", "killed", "segfault", "nccl_error"):
        return False
    return best.marker.reason != "nccl_error" or verdict.exit_code != -6  # aborted by its NCCL watchdog


def _first_of_culprit(
    verdict: Verdict, best: MarkerMatch, catalogue: Catalogue, body: SegmentBody, progress: Progress
) -> MarkerMatch | None:
    """Return the first error of the rank that failed first, if the first error of all is another rank's."""
    if best.marker.role != "error" or best.rank in (NO_RANK, verdict.rank, verdict.local_rank):
        return None
    found = [
        s
        for m in catalogue.markers
        if m.role == "error" and m.priority == 1 and (s := _match(m, body, progress, verdict.rank)) is not None and s.open
    ]
    return min(found, key=lambda s: s.at >> POSITION_BITS, default=None)


def _match(marker: Marker, body: SegmentBody, progress: Progress, rank: int | None = None) -> MarkerMatch | None:
    """Return the match of a marker: the first hit after which the run did not continue, else the first hit.

    Consequences on ranks that only followed another one do not count. With ``rank`` only its hits count.
    """
    hits = body.markers.get(marker.id)
    if hits is None or not hits.at:
        return None
    own = range(len(hits.at)) if rank is None else [i for i, said in enumerate(hits.rank) if said == rank]
    if not own:
        return None
    followed = marker.role == "consequence"
    chosen = next(
        (i for i in own if not progress.got_over(hits.at[i], marker) and not (followed and is_victim(hits.at[i], body.markers))),
        None,
    )
    if marker.role == "exit_code":
        chosen = len(hits.at) - 1 if chosen is not None else None
    if marker.id == INTERRUPTED and chosen is not None:  # what was interrupted tells more than the launcher that says so
        raised = {at for at, text, _ in hits.texts if text.strip().startswith("KeyboardInterrupt")}
        raised -= {at for at in raised if progress.got_over(at, marker)}
        chosen = next((i for i in own if i >= chosen and hits.at[i] in raised), chosen)
    index = own[0] if chosen is None else chosen
    at = hits.at[index]
    text, code = next(((t, c) for a, t, c in hits.texts if a >= at), (hits.texts[-1][1], hits.texts[-1][2]))
    said = hits.rank[index] if index < len(hits.rank) else NO_RANK
    first, last = min(hits.line), max(hits.line)  # hits are in time order, and ranks may write to separate files
    host, form = hits.hosts.get(at), progress.form(at)
    return MarkerMatch(marker, len(hits.at), first, last, at, hits.line[index], text, code, chosen is not None, said, host, form)


def _diverged(phases: Sequence[Phase]) -> MarkerMatch | None:
    """Observe a finite loss that ends far above its start. It is never a failure.

    Rule: take the finite losses of the last phase with any, at least ``DIVERGED_RECORDS``, all above 0. It diverged if the
    median of the last tenth (1 to 10 records) exceeds ``DIVERGED_RATIO`` times the median of the first tenth and twice the
    lowest loss; the line is that of the lowest loss.
    """
    for phase in reversed(phases):
        table = phase.steps
        column = table.metric("loss")
        losses = finite(column.values)
        lowest, _ = value_range(losses)
        if lowest is None:
            continue
        if len(losses) < DIVERGED_RECORDS or lowest <= 0:
            return None
        some = min(10, max(1, len(losses) // 10))
        first, last = (exact_median(part) or math.inf for part in (losses[:some], losses[-some:]))
        if last <= max(DIVERGED_RATIO * first, 2 * lowest):
            return None
        row = column.row(place_of(column.values, lowest) or 0)
        at, line = int(table.at[row]), int(table.line[row])
        message = f"the loss rose from {lowest:g} at its lowest to {losses[-1]:g}; it began with {losses[0]:g}"
        return MarkerMatch(DIVERGED, 1, line, line, at, line, message, None, True)
    return None


def _completed(
    last: Phase,
    progress: Progress,
    body: SegmentBody,
    unread: bool,
    closing: Callable[[], bool],
    spent: Callable[[], bool],
    started: Callable[[int], bool] | None,
) -> tuple[bool | None, tuple[Problem, ...]]:
    """Return whether the last phase completed (None: the log does not show it), and the problem of an end line before its plan.
    Failures of its launch are judged before."""
    way, last_step = distance(last), progress.last_step
    ends = [end for end in progress.ends if end >= last.first_at]
    said = {at: line for at, line in progress.said_done if not last.steps or at > last.step_events[0].at}
    own = bool(last.steps) and not unread and min(said, default=-1) > last_step
    own = own and not (started is not None and started(min(said.values())))
    ended = last.ended or own or any(end > last_step for end in ends)
    done = is_completed(
        failed=last.failed_end,
        reached=reached_plan(last) or saved_plan(last),
        ended=ended,
        far=bool(last.steps) and way is not None and way.far,
        stopped_early=bool(last.steps) and (progress.stopped_early > last_step or (not unread and spent())),
        short=way is not None and way.short,
        spoken=bool(ends or progress.zeros) or max(*said, progress.said_finished, -1) > last_step,
        unread=unread,
        closing=closing,
    )
    if way is None or done is not None or not ended:
        return done, ()
    lines = [event.line for event in last.standalone_events if event.rule.event == "end"] or [*said.values()]
    return None, (way.problem(max(lines, default=body.lines)),)


def _nan_loss(phases: Sequence[Phase]) -> int | None:
    """Return the line from which on no loss is finite, or None if the last one is.

    Without training losses, evaluation losses are used.
    """
    for name in ("loss", "val_loss"):
        for phase in reversed(phases):
            table = phase.steps if name == "loss" else phase.steps.with_(phase.evals, phase.standalone_events)
            column = table.metric(name)
            if len(column.values):
                values = column.values
                last = last_finite(values)
                after = 0 if last is None else last + 1
                return int(table.line[column.row(after)]) if after < len(values) else None
    return None


_OPEN: tuple[str | None, ...] = (None, "truncated", "no_grammar_match", "unknown")
"""Failure reasons that name no cause."""
_STOPPED = (*_OPEN, "killed", "interrupted", "child_failed")
"""Failure reasons of processes that were stopped, or that the launcher found dead."""
_BLIND = (*_STOPPED, "nccl_timeout", "nccl_error")
"""Reasons that do not rule out an OOM: other ranks may have waited for a killed one."""
_CAUSES = {
    "out_of_memory": ("host_oom", "memory", _BLIND),
    "timeout": ("time_limit", "scheduler", _STOPPED),
    "preempted": ("preempted", "scheduler", _STOPPED),
    "node_failure": ("unknown", "hardware", _STOPPED),
    "cancelled": ("killed", "scheduler", _OPEN),
}
"""By job end: reason, category, and the reasons of a log that they replace."""


def complete_ending(ending: Ending, job: JobEnd | None) -> Ending:
    """Return ``ending`` with the scheduler's cause and exit code, if the log does not contradict them.

    Proven completion, and a cause named in the log, remain. Exit code zero counts only for a completed job whose log shows no
    failure: a script may end with 0 after a failed command.
    """
    if job is None:
        return ending
    if job.ended == "completed":
        silent = ending.reason is None and ending.exit_code is None and not ending.died
        return _with_code(ending, 0) if silent and job.exit_code == 0 else ending
    if ending.completed is True or (job.ended != "failed" and job.ended not in _CAUSES):
        return ending
    code = ending.exit_code if ending.exit_code is not None else job.exit_code or None
    if job.ended == "failed":
        if code == 0:
            return ending  # the caller of the command saw it succeed
        reason = "unknown" if code is None else reason_of_code(code, "unknown")
        category, of = CATEGORIES[reason], _OPEN
    else:
        reason, category, of = _CAUSES[job.ended]
    if ending.reason not in of or (ending.reason == reason and ending.exit_code is not None):
        return _with_code(ending, code)
    words = f"{job.source}: {job.state or job.ended}"
    message = words if code is None else f"{words}, exit code {code}"
    return Ending(reason, category, None, message, False, code, ending.matches, ending.died, None, ending.failed_start)


def _with_code(ending: Ending, code: int | None) -> Ending:
    return ending if ending.exit_code == code else replace(ending, exit_code=code)
