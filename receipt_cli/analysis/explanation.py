"""How a run ended → its explanation: exception and frame, culprit, victims, and whether a retry would fail too.

All of it comes from marker hits, except exceptions whose type no marker knows: these are read from the log's last lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from receipt_cli.analysis.failure import Ending, MarkerMatch
from receipt_cli.analysis.goodput.timestamps import Stamps
from receipt_cli.analysis.survival import FRAME, HEAD
from receipt_cli.analysis.torchrun import Verdict, failed_ranks, find_verdict
from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.events.phases import Phase
from receipt_cli.numeric.statistics import exact_median
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import NO_RANK, plain, starts
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.segment import SegmentBody, count_between

PROGRESS = "collective_progress"
WAITING = ("nccl_timeout", "nccl_victim")
"""Markers of ranks that waited for another rank in vain."""
APART = 24
"""Most lines from one frame to the next, or to the exception: source, blank lines, lines of other ranks."""
DEEPEST = 2000
"""Most records of one traceback; Python prints at most about a thousand frames."""
STALL_RATIO, STALL_SECONDS = 10, 300
"""A silence is a stall if it exceeds ``STALL_RATIO`` usual gaps between records, and ``STALL_SECONDS``."""
PACE_RECORDS = 100
ROOT_ERRORS = 4
"""Most lines from an exception to the first of its root errors, of which another process may print each, too."""
_LISTED = compile_later(r"\d{1,4} root error\(s\) found\.")
_ROOT_ERROR = compile_later(r"\(0\) ([A-Z_]{2,40}: .*\S)")
_TYPE = compile_later(r"((?:[A-Za-z_]\w{0,100}\.){0,12}[A-Za-z_]\w{0,100})(?:: ([^\r\n]*))?\s*\Z")
_NAMED = compile_later(r"(?:Error|Exception|Interrupt|Exit|Iteration|Unsupported|OutOfResources)\Z|exc\.|errors\.|exceptions\.")
_FRAME = compile_later(r'File "([^"\r\n]{1,300})", line (\d{1,7})(?:, in ([^\r\n]{1,120}?))?\s*\Z')
_WORK = compile_later(r"last enqueued (?:NCCL )?work: (\d{1,12}), last completed (?:NCCL )?work: (\d{1,12})")
_INSTALLED = compile_later(
    r"[\\/](?:site-packages|dist-packages)[\\/]|[\\/]lib(?:64)?[\\/]python\d[\w.]{0,4}[\\/]|[\\/]bin[\\/][\w-]{1,60}\Z|\A<"
    r"|\.pyx\Z|[\\/]torchinductor_"
)
_ABSOLUTE = compile_later(r"/|[A-Za-z]:|\\\\")
_HOSTS = compile_later(
    r"\bsrun: error: ([\w.-]{1,100}): task|\bON ([\w.-]{1,100}) (?:CANCELLED|FAILED)|\bon node ([\w.-]{1,100}) exited on"
    r"|\Aslot\S{0,20}@([\w.-]{1,100})"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback."""

    file: str
    line: int
    function: str | None
    relative: str | None = None
    """The file below the folder of the first own file of the traceback; None if it is not own."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as printed by its traceback."""

    type: str
    message: str | None
    line_number: int
    frame: Frame | None
    own: bool = False
    """Whether it was raised in the user's own file, not inside an installed package."""


@dataclass(frozen=True, slots=True)
class Party:
    """A rank or host involved in a failure. ``enqueued`` and ``completed`` count collectives."""

    rank: int | None
    host: str | None
    reason: str | None
    line_number: int | None
    enqueued: int | None = None
    completed: int | None = None


REPEATED = frozenset({"SyntaxError", "ImportError", "ModuleNotFoundError", "NameError", "TypeError", "AttributeError"})
"""Exceptions that the same code raises again on any data and machine."""
NOBODY = Party(None, None, None, None)


@dataclass(frozen=True, slots=True)
class LastProgress:
    """The last step record, the silence after it, and the usual gap between two records, in seconds."""

    line_number: int
    step: int | None
    silence_s: float | None
    usual_s: float | None
    stalled: bool | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a failure."""

    exception: Raised | None = None
    culprit: Party | None = None
    victims: tuple[Party, ...] = ()
    retry: Literal["would_repeat"] | None = None
    retry_rule: str | None = None
    progress: LastProgress | None = None

    def improved(self, ending: Ending) -> Ending:
        """Return ``ending`` with the exception's line and message if it points to the head of a traceback."""
        if self.exception is None or ending.failure is None or ending.failure.marker.id != HEAD:
            return ending
        said = self.exception
        message = said.type if said.message is None else f"{said.type}: {said.message}"
        return replace(ending, message=message, line_number=said.line_number)


def explain(
    ending: Ending,
    body: SegmentBody,
    catalogue: Catalogue,
    phases: Sequence[Phase],
    stamps: Stamps,
    lines: Sequence[tuple[int, bytes]],
) -> Explanation:
    """Return the explanation of the failure ``ending``.

    ``stamps``: timestamps of the log's last lines; ``lines``: these lines with their numbers.
    """
    failure = ending.failure
    exception = _exception(failure, body, lines) if failure is not None else None
    verdict = find_verdict(body)
    work = _work(body)
    culprit = _culprit(ending, verdict, work)
    victims = tuple(_victims(culprit, body, catalogue, work, verdict))
    explanation = Explanation(exception, culprit, victims, progress=_progress(phases, stamps))
    if exception is None or not exception.own or exception.type not in REPEATED:
        return explanation
    return replace(explanation, retry="would_repeat", retry_rule=f"exception:{exception.type}")


def _exception(failure: MarkerMatch, body: SegmentBody, lines: Sequence[tuple[int, bytes]]) -> Raised | None:
    """Return the exception of ``failure``; for a traceback head, the one in its last line."""
    if failure.marker.id == HEAD:
        return _read_traceback(failure.line, lines)
    found = _TYPE.match(failure.message.strip())
    if found is None or not _NAMED.search(found[1]):
        return None
    frames = _frames(failure, body)
    message, line = _root_error(failure.line, lines) or ((found[2] or "").strip() or None, failure.line)
    return Raised(found[1], message, line, _innermost(frames), _is_own(frames))


def _root_error(line: int, lines: Sequence[tuple[int, bytes]]) -> tuple[str, int] | None:
    """Return text and line of the first root error that TensorFlow lists directly after the exception of ``line``."""
    listed, seen = False, set[str]()
    for number, raw in lines:
        if line < number and len(seen) < ROOT_ERRORS:
            text = _without_prefix(raw).strip()
            seen.add(text)
            listed = listed or _LISTED.match(text) is not None
            if listed and (found := _ROOT_ERROR.match(text)) is not None:
                return found[1], number
    return None


def _frames(failure: MarkerMatch, body: SegmentBody) -> list[Frame]:
    """Return the frames of the traceback that ends with ``failure``: those of its rank after the nearest head.

    Without a head (the log may lack it, or a bar may precede it) the close frames before ``failure`` count. Frames without a
    label are of another traceback if they precede labelled ones.
    """
    hits, heads = body.markers.get(FRAME), body.markers.get(HEAD)
    if hits is None:
        return []
    tagged = failure.rank != NO_RANK
    among = zip(heads.at, heads.rank, strict=True) if heads is not None else ()
    own = [at for at, rank in among if at <= failure.at and (not tagged or rank in (failure.rank, NO_RANK))]
    begin = own[-1] if own else -1
    if (failure.at - begin) >> POSITION_BITS > DEEPEST:
        begin = -1
    places = {at: (rank, line) for at, rank, line in zip(hits.at, hits.rank, hits.line, strict=True)}
    found: list[Frame] = []
    below, latest = failure.line, NO_RANK
    for at, text, _ in reversed(hits.texts):
        rank, line = places[at]
        if at >= failure.at or rank not in (failure.rank, NO_RANK):
            continue
        if rank == NO_RANK != latest:
            break
        latest = rank
        if at <= begin or (begin < 0 and below - line - count_between(body.copied, line, below) > APART):
            break
        below = line
        found += filter(None, [_read_frame(text)])
    return found[::-1]


def _read_frame(text: str) -> Frame | None:
    found = _FRAME.match(text.strip())
    return Frame(found[1], int(found[2]), found[3] or None) if found is not None else None


def _innermost(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame below the folder of the first file that is not installed, or of all if every one is.

    If that file has no absolute path, any file that is not installed counts.
    """
    own = [frame for frame in frames if not _INSTALLED.search(frame.file)]
    if not own:
        return frames[-1] if frames else None
    first = own[0].file
    folder = first[: max(first.rfind("/"), first.rfind("\\")) + 1] if _ABSOLUTE.match(first) else ""
    chosen = next(frame for frame in reversed(own) if frame.file.startswith(folder))
    below = chosen.file[len(folder) :].removeprefix("./")
    return replace(chosen, relative=re.split(r"[/\\]", below)[-1] if _ABSOLUTE.match(below) else below)


def _is_own(frames: Sequence[Frame]) -> bool:
    """Return whether the last frame, which raised, is outside installed packages."""
    return bool(frames) and not _INSTALLED.search(frames[-1].file)


def _read_traceback(line: int, lines: Sequence[tuple[int, bytes]]) -> Raised | None:
    """Return the exception of the traceback with head ``line``: the first unindented text after its frames."""
    frames: list[Frame] = []
    for number, raw in lines:
        if number <= line:
            continue
        text = _without_prefix(raw)
        inner = re.match(r'\s*File "', text)
        if inner is not None and (frame := _read_frame(text)) is not None:
            frames.append(frame)
        elif text[:1].strip() and frames:
            found = _TYPE.match(text)
            named = found is not None and not found[1].islower()
            if found is None or not named:
                return None
            return Raised(found[1], (found[2] or "").strip() or None, number, _innermost(frames), _is_own(frames))
    return None


def _without_prefix(raw: bytes) -> str:
    """Return the text of a line after the prefixes of ranks, hosts and loggers."""
    record = plain(raw + b"\n").strip(b"\r\n")
    return record[max(starts(record), default=0) :].decode("utf-8", "replace")


def _work(body: SegmentBody) -> dict[int, Party]:
    """Return by rank the last enqueued and completed collectives, from the first line that prints them."""
    hits = body.markers.get(PROGRESS)
    found: dict[int, Party] = {}
    if hits is not None:
        places = {at: (rank, line) for at, rank, line in zip(hits.at, hits.rank, hits.line, strict=True)}
        for at, text, _ in hits.texts:
            said = _WORK.search(text)
            rank, line = places[at]
            if said is not None and rank != NO_RANK:
                found.setdefault(rank, Party(rank, hits.hosts.get(at), None, line, int(said[1]), int(said[2])))
    return found


def _culprit(ending: Ending, verdict: Verdict | None, work: Mapping[int, Party]) -> Party | None:
    """Return who failed first; among ranks that waited for each other, the one with the fewest collectives."""
    failure = ending.failure
    rank = failure.rank if failure is not None and failure.rank != NO_RANK else None
    host, line = (failure.host, failure.line) if failure is not None else (None, ending.line_number)
    if failure is not None and failure.marker.id in WAITING:
        behind = sorted(work.values(), key=_done)
        if len(behind) < 2 or _done(behind[0]) == _done(behind[1]):
            return None
        return replace(behind[0], reason=ending.reason)
    if verdict is not None and rank in (None, verdict.rank, verdict.local_rank):
        rank = verdict.rank
        host = host or verdict.host
    named = _HOSTS.search(failure.message) if failure is not None else None
    host = host or (next(filter(None, named.groups()), None) if named is not None else None)
    if rank is None and host is None:
        return None
    done = work.get(-1 if rank is None else rank, NOBODY)
    return Party(rank, host, ending.reason, line, done.enqueued, done.completed)


def _done(party: Party) -> tuple[int, int]:
    return party.enqueued or 0, party.completed or 0


def _victims(
    culprit: Party | None, body: SegmentBody, catalogue: Catalogue, work: Mapping[int, Party], verdict: Verdict | None
) -> Iterator[Party]:
    """Yield by rank who only followed: ranks that waited in vain, and those the launcher killed."""
    reasons = {marker.id: marker.reason for marker in catalogue.markers}
    found: dict[int, Party] = {}
    for name in WAITING:
        hits = body.markers.get(name)
        for at, rank, line in zip(hits.at, hits.rank, hits.line, strict=True) if hits is not None else ():
            if rank != NO_RANK and rank not in found:
                done = work.get(rank, NOBODY)
                host = hits.hosts.get(at, done.host) if hits is not None else None
                found[rank] = Party(rank, host, reasons[name], line, done.enqueued, done.completed)
    for one in failed_ranks(body) if verdict is not None else ():
        if one.exit_code < 0:
            found.setdefault(one.rank, Party(one.rank, one.host, "killed", one.line))
    if culprit is not None and culprit.rank is not None:
        found.pop(culprit.rank, None)
        yield from (found[rank] for rank in sorted(found))


def _progress(phases: Sequence[Phase], stamps: Stamps) -> LastProgress | None:
    """Return the last step record; the usual gap is the median of the last hundred gaps at most."""
    phase = next((phase for phase in reversed(phases) if phase.steps), None)
    if phase is None:
        return None
    table = phase.steps
    line, clocks = int(table.line[-1]), table.clock[-PACE_RECORDS - 1 :].tolist()
    clocks = [] if any(map(math.isnan, clocks)) else clocks
    gaps = [b - a for a, b in pairwise(clocks) if b >= a]
    usual = _rounded(exact_median(gaps)) if len(gaps) > 1 else None
    last = stamps.last if clocks and len(stamps.zones) == 1 else None
    after = last.clock - clocks[-1] if last is not None and last.line >= line else None
    silence = _rounded(after) if after is not None and after >= 0 else None
    stalled = silence > max(STALL_RATIO * usual, STALL_SECONDS) if silence is not None and usual is not None else None
    return LastProgress(line, phase.steps[-1].step, silence, usual, stalled)


def _rounded(seconds: float | None) -> float | None:
    """Round a difference of timestamps to microseconds, the resolution of a double at current dates."""
    return None if seconds is None else round(seconds, 6)
