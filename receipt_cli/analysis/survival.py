"""A marker and the text after it → whether the run continued.

A marker counts by form and place of its text, and only if the run stopped after it: an exception printed by a logger or a Ray
worker ends nothing by itself, and a word in a quotation or an option's help proves nothing.

Some tracebacks end no process. Python prints ``Exception ignored in: ...`` or ``Exception in thread ...`` and a traceback for
exceptions in a finalizer, an exit handler or a thread; the exit code does not change. A thread that collects the batches of a
data loader prints the error of a worker, for which the run waits: that one counts. Extensions that call Python quote the
traceback of a callback in their own error message: if it quotes a Ctrl-C, the error has no other cause.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from receipt_cli.analysis.completed import reached_plan
from receipt_cli.definitions.failure_markers import MANY_PROCESSES, Catalogue, Marker
from receipt_cli.events.phases import Phase
from receipt_cli.patterns import compile_later
from receipt_cli.problems import QUIET_RECORDS
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.records.place import ACTOR, HANDLED, LOGGED, MENTIONED, PRINTED
from receipt_cli.scan.columns import POSITION_BITS, place
from receipt_cli.scan.segment import Hits, SegmentBody

HEAD, FRAME = "traceback_head", "traceback_frame"
UNRAISABLE, CHAINED, INTERRUPTED, KILLED = "unraisable_exception", "chained_exception", "keyboard_interrupt", "external_kill"
RAISED: Final = frozenset((
    "exception", "exception_group", "network_exception", "environment_exception", "missing_module", "optional_tracker_missing",
    "worker_exception", "worker_died", "cuda_fault", "nccl_failure", "nccl_victim",
))  # fmt: skip
"""Markers of the last line of a traceback."""
STOPS: Final = frozenset((
    INTERRUPTED, "cuda_out_of_memory", "gpu_library_alloc_failed", "driver_out_of_memory", "xla_out_of_memory",
    "tensorflow_out_of_memory", "host_allocation_failed", "disk_full",
))  # fmt: skip
"""Markers of a stop or of exhausted memory, which may end a traceback too."""
NEXT = 3
"""Most records between a heading and its traceback, blank lines included."""
BLOCK = 12
"""Most records between two parts of one traceback: source lines, carets and blank lines."""
QUOTED = 5_000
"""Most records of a quoted traceback."""


_OF_WORKER = compile_later(r"\bDataLoader worker ?\(\d+\) caught \w|\bCaught \w+ in DataLoader worker\b")
"""Errors of a data loader's worker, whichever thread prints them."""


class _Part(NamedTuple):
    """A marker hit: its position, its kind of part, and the marker."""

    at: int
    kind: str
    marker: str


def excused(markers: Mapping[str, Hits], ordinal: Callable[[int], int]) -> frozenset[int]:
    """Return the positions of hits that ended no process. ``ordinal`` counts the records before a position."""
    found: set[int] = set()
    first = {name: hits.at[0] for name in (UNRAISABLE, FRAME, INTERRUPTED, KILLED) if (hits := markers.get(name)) and hits.at}
    if UNRAISABLE in first:
        for parts in _by_rank(markers, (HEAD, FRAME, UNRAISABLE, CHAINED), first[UNRAISABLE]):
            found.update(_ignored(parts, ordinal))
        found.difference_update(
            at for name in RAISED if name in markers for at, text, _ in markers[name].texts if _OF_WORKER.search(text)
        )
    stops = [first[name] for name in (INTERRUPTED, KILLED) if name in first]
    if FRAME in first and stops:
        for parts in _by_rank(markers, (HEAD, FRAME, KILLED), min(stops) - place(QUOTED)):
            found.update(_quoting(parts, ordinal))
    return frozenset(found)


def _by_rank(markers: Mapping[str, Hits], names: Collection[str], since: int) -> Iterator[list[_Part]]:
    """Yield, for each rank, the marker hits of its tracebacks from log position ``since`` on, in log order."""
    ranks: dict[int, list[_Part]] = {}
    for name in (*names, *sorted(RAISED), *sorted(STOPS)):
        hits = markers.get(name)
        if hits is not None:
            kind = name if name in names else "raised" if name in RAISED else "stop"
            for index in range(bisect_left(hits.at, since), len(hits.at)):
                ranks.setdefault(hits.rank[index], []).append(_Part(hits.at[index], kind, name))
    for parts in ranks.values():
        yield sorted(parts)


def _ignored(parts: list[_Part], ordinal: Callable[[int], int]) -> Iterator[int]:
    """Yield the hits in tracebacks directly after an ignored exception's heading, and in tracebacks chained to them.

    If a heading comes before the frames of the last one, the tracebacks are mixed: as many errors as headings belong to them.
    """
    expected, last, before = "", 0, ""  # what may follow: a traceback, more of it, its end, or a chained one
    heads = errors = 0  # headings whose traceback, or whose error, is still to come
    for at, kind, _ in parts:
        here = ordinal(at)
        gap, last = here - last, here
        inside = expected in ("begin", "more") and gap <= BLOCK
        if kind == UNRAISABLE:
            mixed = inside and (gap == 1 or before == HEAD or (errors > 1 and heads))
            heads, errors = (heads + 1, errors + 1) if mixed else (1, 1)
            expected = "begin"
        elif kind == HEAD and heads and (gap <= NEXT if expected == "begin" else inside):
            expected, heads = "more", heads - 1
            yield at
        elif kind == HEAD and expected == "chain" and gap <= NEXT:
            expected = "more"
            yield at
        elif kind == FRAME and inside and (expected == "more" or errors > 1):
            pass
        elif kind == CHAINED and expected in ("end", "more") and gap <= BLOCK:
            expected = "chain"
        elif kind in ("raised", "stop") and ((inside and (expected == "more" or gap == 1)) or (expected == "end" and gap == 0)):
            errors -= gap > 0
            expected = "more" if errors > 0 else "end"
            yield at
        else:
            expected = ""
        before = kind


def _quoting(parts: list[_Part], ordinal: Callable[[int], int]) -> Iterator[int]:
    """Yield the errors whose message quotes a traceback that ended with a Ctrl-C, or an exit on a signal."""
    pending: list[int] = []
    last, inside = 0, False
    for at, kind, name in parts:
        here = ordinal(at)
        gap, last = here - last, here
        if kind == "raised":
            same = pending and not inside and gap == 0
            pending, inside = [*pending, at] if same else [at], False
        elif kind == FRAME and pending and gap <= (BLOCK if inside else 1):
            inside = True
        else:
            if inside and ((name == INTERRUPTED and gap <= BLOCK) or (name == KILLED and gap <= NEXT)):
                yield from pending
            pending, inside = [], False


CONVICTING = ("cause", "stop", "error", "consequence")
FATAL = ("cause", "stop", "error")
FAR = 1 << 62
AT_START = 2
"""Step records after a failure before the first one: the run is another start, or it got over the failure."""
EPOCH = 10
"""Step records that an epoch record counts for if a marker requires many."""
SAID_DONE = "said_to_be_done"
"""Marker of a sentence that training is done: an end if the run printed none before its last record."""
SAID_FINISHED = "said_finished"
"""Marker of a line that only says something is finished; it counts for the run if it is the only one."""
TRAINING_TIME = "training_time_said"
"""Marker of a line with the time of a training, or of a part of it."""
STOPPED_EARLY = "stopped_early"
"""Marker of early stopping, after evaluations stopped improving."""
BY_WRAPPER = "wrapper_success"
"""Marker of a launcher or tracker that reports exit code zero in words."""
SENT = ("wrapped_command_stopped", "wrapped_command_interrupted")
"""Markers of a signal sent to the command, which may then end with zero."""
LOGGING = "logging_error"
LOGGING_BLOCK = 60
"""Most records of the traceback in Python's report of a failed logging call."""
LAST_WORDS = 5
"""Most records that a process prints after a fatal logged error: that it stops, and where its files are."""
WORKER_WORDS = 2
"""``LAST_WORDS`` of a Ray worker, whose death its driver reports, and of a handler that prints its error itself."""
STRIDES = 3
"""Longest gap to the next step record, in usual gaps."""
_TOP = compile_later(r'File "([^"]{1,300}\.py)", line \d{1,7}, in <module>')
_REPORT = compile_later(rb"^.{0,60}\b(?:WARNING|ERROR|CRITICAL|FATAL)\b")
"""The head of a line with which a logger reports an exception: Python prints the traceback below it."""
_BARE = compile_later(r'File "([^"]{1,300}\.py)", line \d{1,7}')
_JOB = compile_later(r"\*\*\* JOB (\d{1,12}) ON \S")


class Progress:
    """Evidence of progress: positions of steps, of new attempts and of proofs of completion."""

    def __init__(
        self, body: SegmentBody, catalogue: Catalogue, phases: Sequence[Phase], exit_code: int | None,
        above: Callable[[int], bytes] = bytes,
    ) -> None:  # fmt: skip
        """``above`` returns the line before a line, empty if it is not kept."""
        places = [p.every.at for p in phases]  # once each, even if repeated
        self.steps = (places[0] if len(places) == 1 else np.sort(np.concatenate([np.empty(0, np.int64), *places]))).data
        by_epoch = (p.steps.of_sources(lambda source: source.rule.counts == "epoch").at for p in phases)
        self.epochs = sorted(at for found in by_epoch for at in found.tolist())
        self.attempts = [at for p in phases for at in p.begun.at.tolist()]
        replanned = (p for before, p in pairwise(phases) if (p.name, p.grammar) == (before.name, before.grammar))
        self.attempts += [p.step_events[0].at for p in replanned if len(p.step_events) > 1]  # restarted with another plan
        ends = (row for p in phases for row in p.standalone_events.of_sources(lambda source: source.rule.event == "end"))
        self.ends = [row.at for row in ends if row.texts.get("status", "ok").lower() in ("ok", "success")]
        found = [(marker.role, body.markers[marker.id]) for marker in catalogue.among(body.markers)]
        by_wrapper = body.markers.get(BY_WRAPPER)
        self.ends += [at for role, hits in found for at in hits.at if role == "completion" and hits is not by_wrapper]
        self.zeros = [*by_wrapper.at] if by_wrapper is not None else []
        self.zeros += [at for role, hits in found if role == "exit_code" for at, _, code in hits.texts if code == 0]
        self.zeros += [FAR] if exit_code == 0 else []
        self.failed = bool(exit_code)
        said, early = body.markers.get(SAID_DONE), body.markers.get(STOPPED_EARLY)
        self.said_done = [] if said is None else list(zip(said.at, said.line, strict=True))
        alone = body.markers.get(SAID_FINISHED)
        lines = set() if alone is None else {at >> POSITION_BITS for at in alone.at}
        timed = body.markers[TRAINING_TIME].at if TRAINING_TIME in body.markers else [-1]
        self.said_finished = max(timed[-1], alone.at[-1] if alone is not None and len(lines) == 1 else -1)
        self.stopped_early = early.at[-1] if early is not None else -1
        convicting = [hits for role, hits in found if role in CONVICTING]
        stating = [hits for role, hits in found if role == "exit_code"]
        placed = (zip(hits.at, hits.form, strict=True) for hits in (*convicting, *stating))
        self.forms = {at: form for pairs in placed for at, form in pairs if form != PRINTED}
        stated = (text for hits in stating for text in hits.texts)
        self.bad_code = max((at for at, _, code in stated if code and self.forms.get(at) != MENTIONED), default=-1)
        self.heads = body.markers[HEAD].at if HEAD in body.markers else array("q")
        self._body, self._above = body, above
        self._errors = [at for role, hits in found if role in ("cause", "error") for at in hits.at]
        self._empty = body.copied
        every = body.markers.values() if body.copied else ()
        self._lines = {at: line for hits in every for at, line in zip(hits.at, hits.line, strict=True)}
        done = self.reached = bool(phases) and reached_plan(phases[-1])
        last_step = self.last_step = self.steps[-1] if self.steps else -1
        self.excused = excused(body.markers, self._ordinal)
        self.begins, self.finishes = self._blocks([*convicting, *(h for name in (FRAME,) if (h := body.markers.get(name)))])
        self.confirmed = max(self._confirmations(found), default=-1)
        self.logging = body.markers[LOGGING].at if LOGGING in body.markers else array("q")
        self.records = body.records - len(body.copied)
        counted = (at for h in convicting for at in h.at if self.forms.get(at) != MENTIONED and at not in self.excused)
        last = max(counted, default=0)
        silent = self.records - self._ordinal(last)
        done = done and last >> POSITION_BITS > last_step >> POSITION_BITS
        self.quiet_end = silent > QUIET_RECORDS and (not self.steps or done)
        self.quiet = silent > QUIET_RECORDS
        first, end = (self.steps[0], self.steps[-1]) if len(self.steps) > 1 else (0, 0)
        stride = ((end - first) >> POSITION_BITS) / max(1, len(self.steps) - 1)  # mean records between two steps
        self.early = self.quiet and silent < STRIDES * stride * self.records / max(1, body.records)
        self.begin = max(_last_job(body), _last_process(body), _last_edit(body))

    def _ordinal(self, at: int) -> int:
        """Return how many records precede a hit, blanked lines excluded."""
        return (at >> POSITION_BITS) - (bisect_right(self._empty, self._lines[at]) if at in self._lines else 0)

    def _confirmations(self, found: Iterable[tuple[str, Hits]]) -> Iterator[int]:
        """Yield the position of the last hit of each marker that neither a logger nor a worker printed."""
        for role, hits in found:
            if role in CONVICTING:
                formless = role in ("consequence", "stop")
                for at in reversed(hits.at):
                    if at in self.excused:
                        continue
                    form = self.form(at)
                    if form == PRINTED or (formless and form != MENTIONED):
                        yield at
                        break

    def got_over(self, at: int, marker: Marker) -> bool:
        """Return whether the run continued far enough after ``at`` that the marker there was not its end."""
        if self.forms.get(at) == MENTIONED or at <= self.begin or at in self.excused:
            return True
        if marker.role in ("error", "consequence") and self._of_logging(at):
            return True
        if marker.role == "error" and self._reported(at):
            return True
        later = len(self.steps) - bisect_right(self.steps, at)
        if marker.role in ("cause", "error") and self._only_logged(at):
            return True
        if marker.role == "error" and marker.priority and self._printed_on(at, later):
            return True
        if marker.role == "cause" and later > 1 and (self.quiet or self.reached) and at > self.bad_code:
            return True
        if marker.overcome_after > EPOCH:
            later += (EPOCH - 1) * (len(self.epochs) - bisect_right(self.epochs, at))
        ended = any(end > at and (end != FAR or marker.id not in SENT) for end in (*self.ends, *self.zeros))
        needed = min(marker.overcome_after, AT_START) if self.steps and at < self.steps[0] else marker.overcome_after
        return ended or any(a > at for a in self.attempts) or later >= needed

    def _only_logged(self, at: int) -> bool:
        """Return whether only a logger or a handler reported an error, the run went on, and nothing later confirms a failure."""
        form = self.form(at)
        if form not in (LOGGED, HANDLED) or self.failed or max(self.bad_code, self.confirmed) > at:
            return False
        most = LAST_WORDS if form == LOGGED else WORKER_WORDS
        return self.records - self._ordinal(self.finishes[self._block(at)]) - 1 > most or at < self.last_step

    def _reported(self, at: int) -> bool:
        """Return whether a logger's line heads the traceback of an error, and one of the same process that no logger heads
        ends with an error later."""
        here, hits = bisect_right(self.heads, at), self._body.markers
        if not 0 < here < len(self.heads) or CHAINED in hits or _is_parallel(self._body, MANY_PROCESSES - {"child_failed"}):
            return False
        later = zip(self.heads[here - 1 :], hits[HEAD].line[here - 1 :], strict=True)
        above = [(head, self._above(line)) for head, line in later]
        own = next((head for head, line in above if line.strip() and not _REPORT.search(line)), FAR)  # a chained one has a blank
        logged = _REPORT.search(above[0][1]) is not None and self._block(above[0][0]) == self._block(at)
        return logged and any(error > own for error in self._errors)

    def _printed_on(self, at: int, later: int) -> bool:
        """Return whether the process that printed an error went on; ``later`` steps follow."""
        if at <= self.bad_code:
            return False
        if self.quiet_end or (self.quiet and (later or self.early)):
            return True
        block = self._block(at)
        if self.confirmed > self.finishes[block]:
            return False
        return self.form(at) == ACTOR and self.records - self._ordinal(self.finishes[block]) - 1 >= WORKER_WORDS

    def _block(self, at: int) -> int:
        """Return the index of the block of tracebacks and errors that contains ``at``."""
        return bisect_right(self.begins, at) - 1

    def form(self, at: int) -> int:
        """Return the form of the text at ``at``; the last line of a traceback without a form has that of the first."""
        own = self.forms.get(at, PRINTED)
        before = bisect_right(self.heads, at)
        if own != PRINTED or not before or self._block(self.heads[before - 1]) != self._block(at):
            return own
        return self.forms.get(self.heads[before - 1], PRINTED)

    def _of_logging(self, at: int) -> bool:
        """Return whether ``at`` is in Python's report of a failed logging call, after which the program goes on."""
        head = bisect_right(self.heads, at)
        first = self.heads[head - 1] if head else at
        before = bisect_right(self.logging, first)
        near = before > 0 and self._ordinal(first) - self._ordinal(self.logging[before - 1]) <= BLOCK
        return near and self._ordinal(at) - self._ordinal(first) <= LOGGING_BLOCK

    def _blocks(self, parts: Sequence[Hits]) -> tuple[array[int], array[int]]:
        """Return start and end of each block: hits at most ``BLOCK`` records apart."""
        begins, finishes = array("q"), array("q")
        for at in sorted(chain.from_iterable(hits.at for hits in parts)):
            if finishes and self._ordinal(at) - self._ordinal(finishes[-1]) <= BLOCK:
                finishes[-1] = at
            else:
                begins.append(at)
                finishes.append(at)
        return begins, finishes


def _is_parallel(body: SegmentBody, signs: Collection[str] = MANY_PROCESSES) -> bool:
    """Return whether several processes, such as ranks, printed the log side by side; ``signs`` are markers of them."""
    several = body.copied or any(rank != NO_RANK for found in body.markers.values() for rank in found.rank)
    return bool(several or body.markers.keys() & signs)


def _last_process(body: SegmentBody) -> int:
    """Return the end of the last but one of several successive processes of one script, or -1.

    Each ended with an uncaught error, of which a process raises only one; with named ranks, a launcher or a collective each
    rank may raise one. A Ctrl-C after an error stops the rest of the same job.
    """
    hits, frames = body.markers, body.markers.get(FRAME)
    if frames is None or HEAD not in hits or _is_parallel(body):
        return -1
    raised = sorted((at, text) for name in RAISED | STOPS if name in hits for at, text, _ in hits[name].texts)
    begun = list[tuple[int, str]]()
    for at, text, _ in frames.texts:
        top = _TOP.search(text)
        head = bisect_right(hits[HEAD].at, at) - 1
        if top is not None and head >= 0 and (at >> POSITION_BITS) - (hits[HEAD].at[head] >> POSITION_BITS) == 1:
            begun.append((hits[HEAD].at[head], top[1]))
    last = -1
    for (begin, script), (again, other) in pairwise(begun):
        found = [(at, text) for at, text in raised if begin < at < again]
        after = [text for at, text in raised if at > again and not text.startswith("KeyboardInterrupt")]
        chained = any(begin < at < again for at in (hits[CHAINED].at if CHAINED in hits else ()))
        if script == other and found and after and not chained and found[0][1] != after[0]:
            last = found[-1][0]
    return last


def _last_edit(body: SegmentBody) -> int:
    """Return the log position at which a script must have been edited, or -1: it ran before, and then has syntax errors only."""
    frames, heads = body.markers.get(FRAME), body.markers.get(HEAD)
    if frames is None or heads is None:
        return -1
    after_head = {(at >> POSITION_BITS) + 1 for at in heads.at}
    scripts, last, end = set[str](), -1, 0
    for at, text, _ in frames.texts:
        top, record = _TOP.search(text), at >> POSITION_BITS
        if top is not None and record in after_head:
            scripts.add(top[1])
        elif (unread := _BARE.fullmatch(text.strip())) is not None and unread[1] in scripts:
            last = at - 1 if record - end > BLOCK else last
            end = record
    return last


def _last_job(body: SegmentBody) -> int:
    """Return the end of the last but one of several scheduler jobs in one log, or -1."""
    texts = sorted(text for hits in body.markers.values() for text in hits.texts if "*** JOB" in text[1])
    jobs = [(at, job[1]) for at, text, _ in texts if (job := _JOB.search(text))]
    return max((at for at, job in jobs if job != jobs[-1][1]), default=-1)
