"""Whether a run completed: a table whose first matching row decides, and how far the last phase came.

Also the proof that the program of a log without a known trainer failed before its first step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np

from receipt_cli.events.banners import is_command
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import EventTable, not_nan, numbered_steps
from receipt_cli.numeric.spill import pieces
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Problem
from receipt_cli.records.envelope import behind_heads, form_of_heads, plain

FAR = 0.01
"""Share of a plan that may be missing at an end line, if this exceeds a logging interval."""
_WORD = compile_later(rb"[A-Za-z_\x80-\xff]{2,}")
_WARNING = compile_later(rb"\wWarning: |\bWARN(?:ING)?\b|^\s{0,20}warnings\.warn\(|^W\d{4} \d\d:")


def is_completed(
    *, failed: bool, reached: bool, ended: bool, far: bool, stopped_early: bool, short: bool, spoken: bool, unread: bool,
    closing: Callable[[], bool],
) -> bool | None:  # fmt: skip
    """Return whether a run completed, by the first matching row of the table; None if the log does not show it.

    ``failed``: its last launch did. ``reached``: its last planned step. ``ended``: the trainer's own end line follows the last
    record; ``far``: that is far below the plan, as from a `finally:` block; ``stopped_early``: a line after it announces a stop.
    ``short``: the plan needs another record; ``spoken``: an end line, or known words for being done, are anywhere in the log;
    ``unread``: unread records follow. ``closing`` tells whether new text follows, and is called only if nothing else decides.
    """
    if failed:
        return False
    if reached:
        return True
    if ended and not stopped_early:
        return None if far else True
    if stopped_early:
        return True
    return False if short and not (spoken or unread or closing()) else None


class Distance(NamedTuple):
    """Steps missing between the last numbered record and the plan.

    ``stride``: steps from one record to the next. ``begin``: first step; if it is 0, the last step is the plan minus one. If the
    log begins later, as after a resume, it does not show whether epochs count from 0 or 1: the last one may be either.
    """

    step: int
    planned: int
    missing: int
    stride: int
    begin: int

    @property
    def short(self) -> bool:
        """Return whether reaching the plan needs another record, whether steps start at 0 or 1."""
        return self.missing >= self.stride + (self.begin > 0)

    @property
    def far(self) -> bool:
        """Return whether more than a logging interval and more than 1 % of the plan is missing."""
        return self.missing > max(self.stride, FAR * self.planned)

    def problem(self, line: int) -> Problem:
        """Return the problem of an end line this far before the plan."""
        detail = f"end line after step {self.step} of {self.planned}: a run may print it before its plan is done"
        return Problem("end_before_plan", line, detail, "", (line,), (str(self.step), str(self.planned)), ("/checks/completed",))


def distance(phase: Phase) -> Distance | None:
    """Return how far a phase is from its plan; None without a plan or without step numbers: unread steps prove nothing.

    If no record has a step, those of the checkpoints count.
    """
    planned = phase.planned
    numbered = numbered_steps(phase.steps)
    steps = [int(step) for step in numbered[-3:]]
    if planned is not None and not steps and phase.steps:
        return _by_checkpoints(phase, planned)
    if planned is None or not steps:
        return None
    begin = int(min(piece.min() for piece in pieces(numbered)))
    last_at = planned - (begin == 0) + (begin == 1 and first_epoch(phase))
    strides = [after - before for before, after in pairwise(steps) if after > before]
    return Distance(steps[-1], planned, last_at - steps[-1], max(strides, default=1), begin)


def _by_checkpoints(phase: Phase, planned: int) -> Distance | None:
    """Return the distance by the steps of the checkpoints and the number of records before and after the last of them."""
    saved = [row for row in phase.standalone_events if row.rule.event == "checkpoint" and row.step]
    before = int(np.searchsorted(phase.steps.at, saved[-1].at)) if saved else 0
    if not before:
        return None
    step = saved[-1].step or 0
    behind = math.ceil(step * (len(phase.steps) - before) / before)
    stride = max(step - (saved[-2].step or 0) if len(saved) > 1 else step, behind)
    return Distance(step, planned, planned - step, stride + behind, 0)


def reached_plan(phase: Phase) -> bool:
    """Return whether the last record is the last planned step."""
    planned, steps = phase.planned, phase.steps.where(not_nan(phase.steps.steps))
    last = steps[-1].step if steps else None
    if last is None or planned is None or last < planned - 1 or _within_epoch(phase, planned):
        return False
    first = steps[0]  # if every step from 1 on has a record, the last step is the plan itself
    from_one = first.step == 1 and first.rule.counts != "epoch" and len(steps) == last
    return last >= planned or not from_one


def saved_plan(phase: Phase) -> bool:
    """Return whether a checkpoint line after the last record names the last planned step."""
    planned, last = phase.planned, phase.steps[-1] if phase.steps else None
    if last is None or planned is None or last.rule.counts == "epoch":
        return False
    saved = (e for e in phase.standalone_events if e.rule.event == "checkpoint" and e.at > last.at)
    return any(event.step == planned for event in saved)


def first_epoch(phase: Phase) -> int:
    """Return the number of the first epoch if the last record counts epochs, else 0."""
    last = phase.steps[-1]
    by_epoch = last.rule.counts == "epoch" or (last.counters and "epoch_step" not in last.counters)
    return (last.rule.epochs_from or 0) if by_epoch else 0


def _within_epoch(phase: Phase, planned: int) -> bool:
    """Return whether the last record counts epochs and lies in an unfinished epoch, or before the last one."""
    last = phase.steps[-1]
    if last.rule.counts != "epoch" and (not last.counters or "epoch_step" in last.counters):
        return False
    counters = last.counters
    inside, length = counters.get("epoch_step"), counters.get("epoch_steps")
    early = last.step is not None and last.step < planned - 1 + (last.rule.epochs_from or 0)
    return early or (inside is not None and length is not None and inside < length)


def closes(lines: Mapping[int, bytes], last: int) -> bool:
    """Return whether a text with new words follows line ``last``; ``lines`` are both ends of the log by number.

    A final line that is the beginning of a known one is cut and does not count, nor do lines without words. A counter of early
    stopping that has reached its limit counts though its words are known.
    """
    if any(number > last for number, *_ in _spent(lines)):
        return True
    after = [words for _, words in told({number: line for number, line in lines.items() if number > last})]
    before = {words for _, words in told({number: line for number, line in lines.items() if number <= last})} if after else ()
    if after and any(b" ".join(known).startswith(b" ".join(after[-1])) for known in before):
        after.pop()
    return any(words not in before for words in after)


def spends_patience(lines: Mapping[int, bytes], last: int) -> bool:
    """Return whether a counter of early stopping reached its limit after line ``last`` only; ``lines``: see ``closes``.

    A counter that goes on at its limit ends the run as soon as it exceeds it.
    """
    counts = [(number, excess) for number, label, excess in _spent(lines) if label[:1] in b"eE"]
    before = max((excess for number, excess in counts if number <= last), default=-1)
    return any(number > last and excess > before for number, excess in counts)


def _spent(lines: Mapping[int, bytes]) -> Iterable[tuple[int, bytes, int]]:
    """Return line number, label and excess (1 beyond, 0 at it) of each counter of patience that has reached its limit."""
    said = b"\n".join(lines.values()).lower()
    asked = lines.items() if b"early" in said or b"patience" in said else ()
    found = ((number, one) for number, line in asked for one in _PATIENCE.findall(line))
    return ((number, label, int(count) > int(limit)) for number, (label, count, limit) in found if int(count) >= int(limit))


_SCRIPT = compile_later(rb"(?<!\w)\w{1,80}+\.(?:py|sh)\b")


def begins_program(lines: Mapping[int, bytes], last: int, until: int) -> bool:
    """Return whether a program begins between lines ``last`` and ``until``: by its command, or the log's first words.

    ``lines``: see ``closes``.
    """
    return any(is_command(line) for number, line in lines.items() if last < number < until) or begins_again(lines, last) < until


def begins_again(lines: Mapping[int, bytes], last: int, since: int = 0) -> float:
    """Return the line after line ``last`` at which the log's first lines come again, up to the first with words; or infinity.

    ``lines``: see ``closes``. Words repeated between ``since`` and ``last`` do not count; names of scripts count as equal.
    """
    known = told(lines, lambda text: plain(_SCRIPT.sub(b"script", text)))
    number, first = next(known, (math.inf, ()))
    found = next((at for at, words in known if at > since and words == first), math.inf) if number <= last else math.inf
    return max(last + 1, found - number + min(lines)) if found > last else math.inf


def told(lines: Mapping[int, bytes], among: Callable[[bytes], bytes] = plain) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """Yield the number and the words of each record of ``lines``: see ``words_of``. All of them are ``among`` others at once."""
    texts = among(b"\n".join([b"", *lines.values(), b""])).split(b"\n")[1:]
    return ((number, words) for number, text in zip(lines, texts, strict=False) for words in _words_in(text))


def words_of(text: bytes) -> list[tuple[bytes, ...]]:
    """Return the words of each record of a text, without its heads; warnings and records without words are left out."""
    return _words_in(plain(text + b"\n").replace(b"\n", b"\r"))


def _words_in(text: bytes) -> list[tuple[bytes, ...]]:
    forms = ((form_of_heads(record), record) for record in text.split(b"\r"))
    return [words for form, record in forms if (words := _read_words(record) if form is None else _words(form))]


def _read_words(record: bytes) -> tuple[bytes, ...]:
    own = behind_heads(record)
    return () if _WARNING.search(record) or _WARNING.search(own) else tuple(_WORD.findall(own))


_words = lru_cache(maxsize=4096)(_read_words)
"""The words of a record with the form of its heads: they have no digits, and no digit decides about them."""


_PATIENCE = compile_later(
    rb"((?i:early[ _-]?stop\w*|patience))(?:[ :=-]{1,3}[A-Za-z]+)?[ :=(]{1,3}(\d{1,7}) ?(?:/|of|out of) ?(\d{1,7})\b"
)
"""The label of a counter of evaluations without improvement, the counter, and its limit."""
RAISED = frozenset({"traceback", "import_error", "cuda_oom", "cuda_error"})
"""Failures raised by the program itself; an external stop may come after any silent time."""
PROGRAMS = frozenset({"trainer", "benchmark"})
"""Layers of grammars that identify the program; libraries and formats do not."""
OPENING = 10
"""First records of a log in which the start of its program must show."""
SILENT = 20
"""Lines before a failure among which a trainer with steps would have printed one."""
KINDS = 6
"""Kinds that must be among them: a few lines that others repeat, as heartbeats, are no program's."""
LONGEST = 400
"""Most lines of a traceback."""
_BEGINS = compile_later(
    rb"nohup: ignoring input|Setting OMP_NUM_THREADS environment variable|values were not passed to `accelerate launch`"
    rb"|This TensorFlow binary is optimized|Successfully opened dynamic library|oneDNN custom operations are on"
    rb"|^(?:Collecting [\w.-]+|Requirement already satisfied: |Looking in (?:indexes|links): )"
    rb"|^(?i:(?:un)?loading|removing) [\w.+-]+(?: version)? v?\d|(?i:currently loaded modules|environment information)"
    rb"|(?i:^(?:using |running on )?device(?: is)?[:=]? ?(?:cuda|cpu|mps)\b|^(?:global |random )?seed(?: set)?(?: to|[:=]) ?\d)"
    rb"|Distributed (?:training|mode|init)|Namespace\(| were not used when initializing |weights .{0,200}newly initialized"
)
"""Lines that launchers, shells, package managers and libraries print before the program."""
_TRACEBACK = b"Traceback (most recent call last)"
_FRAME = compile_later(rb'Traceback \(most recent call last|File "[^"\n]{1,400}", line \d')
_TOP = compile_later(rb'^ *File ".{1,400}", line \d{1,7}, in <module>')
_IMPORT = compile_later(rb"^ *(?:import [\w.]+|from [\w.]+ import )")


def shows_beginning(events: EventTable, lines: Mapping[int, bytes], failure: int) -> bool:
    """Return whether a known trainer printed its header, or at least ``SILENT`` lines before the first traceback.

    A traceback alone also names a trainer, but the part of the log before it may be missing.
    """
    return any(row.facts for row in events.of_sources(lambda source: source.rule.event == "header")) or _is_silent(lines, failure)


def _is_silent(lines: Mapping[int, bytes], failure: int) -> bool:
    """Return whether at least ``SILENT`` lines of ``KINDS`` kinds precede the first traceback."""
    before = takewhile(lambda number: _FRAME.search(lines[number]) is None, (n for n in lines if n < failure))
    shown = {number: lines[number] for number in before if lines[number].strip()}
    return len(shown) >= SILENT and len({words for _, words in told(shown)}) >= KINDS


def fails_at_start(lines: Mapping[int, bytes], failure: int) -> bool:
    """Return whether the program that failed at line ``failure`` certainly took no step before.

    ``lines`` are the first and last lines of the log, by number. The log begins with the program, or has many lines before the
    failure, or an import of the script failed.
    """
    records = (record for number, line in lines.items() if number < failure for record in _records(line))
    first = [record for _, record in zip(range(OPENING), records, strict=False)]
    begins = any(_BEGINS.search(record) or is_command(record) for record in first)
    return begins or _is_silent(lines, failure) or _fails_at_import(lines, failure)


def _records(line: bytes) -> Iterable[bytes]:
    """Return the records of a line (each carriage return ends one), without the time stamps and prefixes before them."""
    return (behind_heads(record) for record in plain(line + b"\n").replace(b"\r", b"\n").split(b"\n") if record.strip())


def _fails_at_import(lines: Mapping[int, bytes], failure: int) -> bool:
    """Return whether the traceback ending at line ``failure`` passes through an import at the top of the script."""
    block: list[bytes] = []
    for number in range(failure, max(0, failure - LONGEST), -1):
        if number not in lines:
            return False
        text = plain(lines[number] + b"\n")
        if _TRACEBACK in text:
            break
        block.append(behind_heads(text).rstrip(b"\n"))
    else:
        return False
    top, source = (*reversed(block), b"", b"")[:2]
    return _TOP.match(top) is not None and _IMPORT.match(source) is not None
