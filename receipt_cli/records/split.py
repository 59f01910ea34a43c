"""Cut raw bytes into records: line ends, progress-bar redraws, terminal sequences, NULs, length cap."""

from __future__ import annotations

import re
from codecs import utf_8_decode
from collections.abc import Callable
from dataclasses import dataclass

from receipt_cli.patterns import compile_later

RECORD_CAP = 64 * 1024
"""Bytes of a record that are read; a longer record is a problem."""
_WINDOW = RECORD_CAP // 2

_CSI = compile_later(
    rb"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\r\n]*+(?:\x07|\x1b\\)?|[PX^_][^\x07\x1b\r\n]*+(?:\x1b\\)?|[ -/]*+[0-~])"
)
_ECHO = compile_later(rb"\^\[(?:\[[0-9;]*+[A-Za-z~]|O[A-Z])")
_BACKSPACE = compile_later(rb"\x08++")
_OVERWRITTEN = compile_later(rb"\x08++(?= \d{1,9}+/\d{1,9}+ ?(?:[\r\n]|\Z))")
"""Backspaces before a counter that overwrites the end of a bar: `` [===>….] | Loss: 2.1      12/391 ``."""
_BLANK = compile_later(rb"[\n\r](?=[ \t]*+[\n\r])")


@dataclass(slots=True)
class Fragment:
    """The first ``RECORD_CAP`` bytes of a record without a known end, and its length so far.

    ``carriage``: a ``\\r`` follows; the next byte decides whether it is half of ``\\r\\n``.
    """

    data: bytes = b""
    length: int = 0
    carriage: bool = False

    def extend(self, raw: bytes) -> None:
        """Add bytes to the open record. They must hold no record end; a last ``\\r`` may prove to be one."""
        if raw.endswith(b"\r"):
            self.carriage = True
            raw = raw[:-1]
        if len(self.data) < RECORD_CAP:
            self.data += raw[: RECORD_CAP - len(self.data)]
        self.length += len(raw)

    @property
    def empty(self) -> bool:
        """Whether no byte was added, not even a ``\\r``."""
        return not self.length and not self.carriage


def first_end(raw: bytes) -> int:
    """Return the offset after the first record end in ``raw``, which must contain a certain one."""
    newline, carriage = raw.find(b"\n"), raw.find(b"\r")
    if carriage < 0 or 0 <= newline < carriage:
        return newline + 1
    return carriage + (2 if raw[carriage + 1 : carriage + 2] == b"\n" else 1)


def last_end(raw: bytes) -> int:
    """Return the offset after the last certain record end in ``raw``, or 0.

    A final ``\\r`` is not certain: the next byte may be its ``\\n``.
    """
    newline = raw.rfind(b"\n")
    carriage = raw.rfind(b"\r", newline + 1, len(raw) - 1)
    return max(newline, carriage) + 1


def cap_records(raw: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """Cut records in ``raw`` (whole records) to ``RECORD_CAP`` bytes; return it and ``(offset, full length)`` of each cut.

    Offsets refer to the returned bytes.
    """
    cuts: list[tuple[int, int]] = []
    if len(raw) <= RECORD_CAP:
        return raw, cuts
    pieces: list[bytes] = []
    done = removed = at = 0
    while at + _WINDOW <= len(raw):
        if raw.find(b"\n", at, at + _WINDOW) >= 0 or raw.find(b"\r", at, at + _WINDOW) >= 0:
            at += _WINDOW
            continue
        start = max(raw.rfind(b"\n", 0, at), raw.rfind(b"\r", 0, at)) + 1
        ends = [e for e in (raw.find(b"\n", at), raw.find(b"\r", at)) if e >= 0]
        end = min(ends) if ends else len(raw)
        if end - start > RECORD_CAP:
            pieces.append(raw[done : start + RECORD_CAP])
            cuts.append((start - removed, end - start))
            removed += end - start - RECORD_CAP
            done = end
        at = max(at + _WINDOW, end)
    if not cuts:
        return raw, cuts
    pieces.append(raw[done:])
    return b"".join(pieces), cuts


def normalise(raw: bytes) -> bytes:
    """Return whole records with one-byte ends: ``\\n``, or ``\\r`` if only a carriage return (a redraw) ends one.

    Removes terminal sequences, echoed key presses and NULs. Backspaces become a redraw, except before the ``12/391`` that
    ends a bar. The number of ``\\n`` never changes, so line numbers hold.
    """
    if b"\r" in raw:  # searching for one byte is several times faster than for two
        raw = raw.replace(b"\r\n", b"\n")
    if b"\x00" in raw:
        raw = raw.replace(b"\x00", b"")
    if b"\x1b" in raw:
        raw = _CSI.sub(b"", raw)
    if b"^" in raw and b"^[" in raw:
        raw = _ECHO.sub(b"", raw)
    if b"\x08" in raw:
        raw = _BACKSPACE.sub(b"\r", _OVERWRITTEN.sub(b" ", raw))
    return raw


_NONFINITE_SIGNS = (
    (b"nan", (b"(nan)", b"nan(", b"nan.", b"NaN.", b"NaN(", b"NAN")),
    (b"inf", (b"nfinity", b"+inf", b"Inf")),
    (b"#", (b"#QNAN", b"#SNAN", b"#IND", b"#INF")),
)
"""Each non-standard spelling of a non-finite number contains one of these; those of a group have its first text in small letters
in common, which most records lack."""
_NONFINITE = compile_later(
    rb"(?<=[\s:=(\[,|\"'>])(?P<sign>[+-]?)"
    rb"(?:(?P<nan>1\.\#(?:QNAN|SNAN|IND)\d*|(?<![\dnf] )\(nan\)|nan(?:\.0*|\((?:ind|q?nan|snan)[\w]*\))"
    rb"|(?<![\"']:)(?<![\"']: )nan)"
    rb"|(?P<inf>1\.\#INF\d*|inf\.0*|(?<![\"']:)(?<![\"']: )(?:infinity|inf)))"
    rb"(?=[\s,;)\]}|\"'<%]|\Z)(?!\.?[ \t]+[a-z]+(?:[ \t]+[a-z]|[.!]))",
    re.IGNORECASE,
)


def may_spell(raw: bytes) -> bool:
    """Return whether the records may contain NaN or infinity in a spelling that ``spell_nonfinite`` rewrites."""
    lowered = raw.lower()
    return any(common in lowered and any(sign in raw for sign in signs) for common, signs in _NONFINITE_SIGNS)


def spell_nonfinite(raw: bytes, may: Callable[[bytes], bool] = may_spell) -> bytes:
    """Spell every non-finite number in the records ``nan``, ``inf`` or ``-inf``; ``may`` is as ``may_spell``, or faster.

    The only table of spellings, for grammars, learned rules and tables: ``1.#QNAN``, ``-nan(ind)``, ``nan.0``, ``+Inf``.
    """
    if not may(raw):
        return raw
    return _NONFINITE.sub(lambda found: b"nan" if found["nan"] else b"-inf" if found["sign"] == b"-" else b"inf", raw)


_GLYPH = rb"(?:\xe2[\x86-\x93\x97-\xaf][\x80-\xbf]|\xf0\x9f[\x80-\xbf]{2})(?:\xef\xb8\x8f)?+"
_MARKED = compile_later(
    rb"(?:(?<=[:|,;] )(?:(?<!\]: )[*!~]|(?<!: )>|" + _GLYPH + rb")|(?<![^\r\n])\xe2[\xa0-\xa3][\x80-\xbf]) "
    rb"(?=[A-Za-z][\w/.-]*+(?: [A-Za-z][\w/.-]*+){0,2}+[ \t]*+[:=]?[ \t]*+[-+]?(?:\.?\d|(?i:nan|inf)\b))"
)


_APART = ((b"*", b" * "), (b"!", b" ! "), (b"~", b" ~ "), (b">", b" > "))
"""Each mark, which most records lack, and the mark between blanks."""


def without_marks(raw: bytes) -> bytes:
    """Return records without the marks, and the frames of spinners, that stand before a label: ``step 3 | * loss 0.5``."""
    marked = any(mark in raw and apart in raw for mark, apart in _APART)
    if not marked and (raw.isascii() or not (b" \xe2" in raw or b" \xf0" in raw or _spins(raw))):
        return raw
    pieces: list[bytes] = []
    done = until = 0
    for place in _MARK.finditer(raw):  # a search for what precedes a mark would look at every byte
        found = _MARKED.match(raw, place.start()) if place.start() >= until else None
        if found is None:
            continue
        until = found.end()
        if _ONE_WORD.search(raw[max(0, found.start() - 64) : found.start()]) is None:
            pieces.append(raw[done : found.start()])
            done = until
    return b"".join([*pieces, raw[done:]]) if pieces else raw


_MARK = compile_later(rb"[*!~>\xe2\xf0]")
_ONE_WORD = compile_later(rb"(?:\A|[\r\n])[\w.-]+ *\| \Z")
"""A single word before a bar: the service that Docker Compose puts before a line, whose own beginning follows."""


def _spins(raw: bytes) -> bool:
    return any(b"\xe2" + bytes([page]) in raw for page in range(0xA0, 0xA4))


class Walk:
    """Finds records in a normalised buffer from front to back; reads each byte once, even in long lines of redraws."""

    def __init__(self, buffer: bytes, redraws: bool) -> None:
        self.end = -1
        self._buffer = buffer
        self._redraws = redraws
        self._newline = -1

    def around(self, at: int) -> tuple[int, int]:
        """Return the span of the record at ``at``; each call must ask for a later record."""
        buffer, since = self._buffer, self.end + 1
        start = max(buffer.rfind(b"\n", since, at) + 1, since)
        if at > self._newline:
            found = buffer.find(b"\n", at)
            self._newline = found if found >= 0 else len(buffer)
        self.end = self._newline
        if self._redraws:
            start = max(buffer.rfind(b"\r", start, at) + 1, start)
            carriage = buffer.find(b"\r", at, self._newline)
            self.end = carriage if carriage >= 0 else self._newline
        return start, self.end


def invalid_records(buffer: bytes, redraws: bool) -> list[int]:
    """Return the offsets of the records that are not UTF-8."""
    starts: list[int] = []
    if buffer.isascii():
        return starts
    at = 0
    rest = memoryview(buffer)
    records = Walk(buffer, redraws)
    while True:
        try:
            utf_8_decode(rest[at:], "strict", True)
        except UnicodeDecodeError as error:
            start, end = records.around(at + error.start)
            starts.append(start)
            at = end + 1
        else:
            return starts


def count_ends(raw: bytes) -> tuple[int, int]:
    """Return the numbers of ``\\n`` and ``\\r`` that end the whole records ``raw`` after ``normalise``."""
    lines = raw.count(b"\n")
    if b"\x08" in raw:
        return lines, normalise(raw).count(b"\r")
    return lines, raw.count(b"\r") - raw.count(b"\r\n") if b"\r" in raw else 0


def redraws_by_backspaces(raw: bytes) -> list[int]:
    """Return the offsets of the backspaces in whole records ``raw`` that become a redraw in ``normalise``."""
    if b"\x08" not in raw:
        return []
    return [found.start() for found in _BACKSPACE.finditer(raw) if _OVERWRITTEN.match(raw, found.start()) is None]


def count_blank(records: bytes) -> int:
    """Count blank records in normalised ``records``."""
    return len(_BLANK.findall(b"\n" + records))


def display_lines(raw: bytes, limit: int) -> list[str]:
    """Return the last ``limit`` lines of ``raw`` as a terminal shows them: the last frame of redrawn lines."""
    lines = []
    for line in normalise(raw).split(b"\n"):
        frames = [frame for frame in line.split(b"\r") if frame.strip()]
        lines.append(frames[-1].decode("utf-8", "replace").rstrip() if frames else "")
    while lines and not lines[-1]:
        lines.pop()
    return lines[-limit:]


_CELLS = compile_later(rb"(?<=%\|)(?=\xe2\x96)((?:\xe2\x96\x88)*+)(\xe2\x96[\x89-\x8f])?( *+)(?=\|)")
"""A bar between its marks: full cells, a partly full one, empty ones."""
_FULL, _PART = b"\xe2\x96\x88", b"\xe2\x96\x8c"
KEPT = 2
"""Cells of each kind that stay: searches for a bar or a run of cells still match."""


def short_bars(record: bytes) -> bytes:
    """Shorten each bar of a record to ``KEPT`` full and ``KEPT`` empty cells, with one form of a partly full cell."""
    return _CELLS.sub(_short, record) if b"%|" in record else record


def _short(bar: re.Match[bytes]) -> bytes:
    full, blank = min(KEPT, len(bar[1]) // len(_FULL)), min(KEPT, len(bar[3]))
    return full * _FULL + (_PART if bar[2] else b"") + blank * b" "
