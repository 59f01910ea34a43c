"""Prove that the program of a log without a known trainer failed before its first step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from receipt_cli.events.banners import is_command
from receipt_cli.events.model import Event
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import behind_heads, plain

RAISED = frozenset({"traceback", "import_error", "cuda_oom", "cuda_error"})
"""Failures raised by the program itself; an external stop may come after any silent time."""
PROGRAMS = frozenset({"trainer", "benchmark"})
"""Layers of grammars that identify the program; libraries and formats do not."""
OPENING = 10
"""First records of a log in which the start of its program must show."""
SILENT = 20
"""Lines before a failure among which a trainer with steps would have printed one."""
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


def shows_beginning(events: Iterable[Event], lines: Mapping[int, bytes], failure: int) -> bool:
    """Return whether a known trainer printed its header, or at least ``SILENT`` lines before the first traceback.

    A traceback alone also names a trainer, but the part of the log before it may be missing.
    """
    return any(event.rule.event == "header" and event.facts for event in events) or _is_silent(lines, failure)


def _is_silent(lines: Mapping[int, bytes], failure: int) -> bool:
    """Return whether at least ``SILENT`` lines precede the first traceback."""
    before = takewhile(lambda number: _FRAME.search(lines[number]) is None, (n for n in lines if n < failure))
    return sum(1 for number in before if lines[number].strip()) >= SILENT


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
    """Return the records of a line without their heads."""
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
