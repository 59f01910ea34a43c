"""Log lines packed by a collector → the original lines: unwrap JSON objects, join lines cut into parts.

Docker's json-file driver, Fluent Bit, Loki, Filebeat, Cloud Logging, journald and JSON loggers put each line into an object;
CRI and Docker cut lines over 16 KiB. The number of lines stays: a packed line keeps its number, line ends inside it become
redraws (``\\r``), and all parts of a cut line but the last become empty. Seconds that ``ts -s`` puts before every line become a
head that no table cell looks like. Only an indented document of events (CloudWatch, Cloud Logging) is reduced to the lines of
its events.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping
from copy import copy
from itertools import pairwise
from typing import Any

from receipt_cli.patterns import compile_later

LONGEST = 1 << 20
"""Longest packed line, in bytes, held back until its end; a longer line stays packed."""
CUT_AT = 16 << 10
"""Size, in bytes, at which Docker cuts a line; such a part has no line end."""
_ENDED = compile_later(rb'^\{"log" ?: ?"[^"\\\n]*(?:\\.[^"\\\n]*)*\\n", ?"stream"', re.MULTILINE)
"""A Docker entry with its line end. If a log has one, an entry without a line end is a part of a cut line."""
_LOOKED_AT = 4096
"""Bytes of an indented document within which its first event begins."""
_MARK = b"\xef\xbb\xbf"
_DEEPEST = 3
"""Most envelopes around one line: Loki around Fluent Bit around Docker."""
_LINES = ("log", "line", "message", "MESSAGE", "msg", "textPayload")
"""Keys of the line, best first: ``log`` is the container's whole output, of which ``message`` may be a part."""
_TIMES = (
    "time", "timestamp", "@timestamp", "ts", "date", "asctime", "datetime", "__REALTIME_TIMESTAMP", "created", "eventTime",
)  # fmt: skip
_LEVELS = ("level", "levelname", "severity", "lvl", "log.level")
_OUTSIDE = ("jsonPayload", "_source")
"""Keys of a nested object that holds the line."""
_RAISED = ("exc_info", "exception", "stack_trace", "traceback", "exc_text")
_NUMBERS = frozenset((
    *_TIMES, *_LEVELS, "levelno", "priority", "facility", "pid", "tid", "process", "thread", "process_id", "thread_id",
    "rank", "local_rank", "global_rank", "node_rank", "world_size", "lineno", "line_number", "offset", "seq", "v", "partial_id",
    "partial_ordinal", "msecs", "relativeCreated", "monotonic", "ingestionTime", "ingestion_time", "observed_timestamp",
))  # fmt: skip
"""Keys of numbers that are no metrics. An object with any other number is a record of its own, not an envelope."""
_OBJECT = compile_later(rb'(?:[^{}\s][^{}\n]{0,120}\t)?\[?\{ ?"[^\n]*\}\]?,?\r?\Z')
_BRACE = compile_later(rb'\{ ?"')
"""Start of an object. A dict printed by Python starts differently, and may be every line of a log."""
_HAS_LINE = compile_later(rb'"(?:%b)" ?: ?["\[]' % "|".join(_LINES).encode())
_OPENING = (b"", b"\n", b"\t", b"[")
"""Bytes allowed before an object: start of text, line end, tab, or the bracket of an array."""
_CUT_LINE = (b" stdout P", b" stderr P")
_PART = compile_later(rb"^(\d{4}-\d\d-\d\dT\S{8,30}) (stdout|stderr) ([FP])(?::[\w:]{1,20})? ([^\n]*)$", re.MULTILINE)
_EVENT = compile_later(rb'^[ \t]*"(?:message|textPayload|log|line)": ("[^"\\\n]*(?:\\.[^"\\\n]*)*"),?[ \t\r]*$')
_EVENT_KEY = compile_later(rb'\n[ \t]*"(?:message|textPayload|log|line)": "')
_EVENT_TIME = compile_later(rb'^[ \t]*"(?:timestamp|time)": (\d{10,19}|"[^"\\\n]{10,40}"),?[ \t\r]*$')
_DOCUMENT = compile_later(rb'[ \t]*(?:\{[ \t\r]*\n[ \t]*"events": )?\[[ \t\r]*\n[ \t]*\{[ \t\r]*\n')
_SECONDS = compile_later(rb"^(\d{1,7}\.\d{6}) ", re.MULTILINE)
_WORDS = compile_later(rb"[A-Za-z]{3}")
_FEWEST_SECONDS = 4
"""Fewest first lines with non-decreasing seconds that show that the seconds come from ``ts -s``."""
_STAMP = compile_later(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\Z")
_DECODER = json.JSONDecoder()
_WORD = {"WARN": "WARNING", "ERR": "ERROR", "PANIC": "FATAL"}
_LEVEL_WORDS = frozenset(("DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "FATAL"))


class Unpacker:
    """Unpack a stream of bytes; the result does not depend on how the stream is cut into pieces."""

    def __init__(self, native: Any = None) -> None:
        """``native``: the compiled kernel, which is faster with the same result."""
        self._native = native
        self._open = b""
        self._begun = False  # a byte order mark was looked for
        self._passing = False  # inside a line that is too long to hold back
        self._parts: dict[bytes, tuple[bytes, bytes]] = {}  # stream → head of a cut line, and its parts so far
        self._document: bool | None = None  # whether it is an indented document of events; None until known
        self._timed = False  # whether ``ts -s`` seconds precede every line; set with ``_document``
        self._time = b""
        self._ended = False  # whether Docker entries have line ends; set with ``_document``
        self.emptied: array[int] = array("q")
        """Numbers of the empty lines, ascending from 1: parts of a cut line that a later line completes."""
        self.line_count = 0
        """Line ends in the text returned so far."""
        self._kept_parts = False

    def mark(self) -> Callable[[Any], Unpacker]:
        """Return a function that makes an unpacker to go on from here, given the compiled kernel or None."""
        here, parts, count = copy(self), dict(self._parts), len(self.emptied)

        def go_on(native: Any) -> Unpacker:
            other = copy(here)
            other._native, other._parts, other.emptied = native, dict(parts), here.emptied[:count]
            return other

        return go_on

    @property
    def held(self) -> int:
        """The bytes of an unfinished line that are held back."""
        return len(self._open)

    def feed(self, block: bytes) -> bytes:
        """Return the lines that end in ``block``; hold back an unfinished one."""
        whole = self._whole_lines(block)
        if self._passing:
            first = whole.find(b"\n") + 1
            head, whole = (whole[:first], whole[first:]) if first else (b"", b"")
            self._passing = not first
        else:
            head = b""
        if self._document is None and whole:
            line = whole.split(b"\n", 1)[0].rstrip()
            undecided = (line[:1] in (b"{", b"[") and line[-1:] in (b"{", b"[")) or _SECONDS.match(whole) is not None
            undecided |= whole.startswith(b'{"log') and not _is_ended(whole)
            if not undecided or len(whole) >= _LOOKED_AT:
                self._decide(whole)
            else:  # its first event, or enough lines, may be in the next block
                self._open, whole = whole + self._open, b""
        self.line_count += head.count(b"\n")
        text, ends = self._lines(whole)
        if self._kept_parts:
            self._note_emptied(whole, text)
        self.line_count += ends
        text = head + text if head else text
        if self._passing or len(self._open) > LONGEST:
            text, self._open, self._passing, self._document = text + self._open, b"", True, bool(self._document)
        return text

    def _decide(self, head: bytes) -> None:
        """Note what the beginning of the log shows."""
        self._document, self._timed, self._ended = _is_document(head), _is_timed(head), _is_ended(head)

    def _whole_lines(self, block: bytes) -> bytes:
        """Return the held-back text and the lines that end in ``block``; hold back the unfinished one."""
        end = block.rfind(b"\n") + 1
        if self._begun and end:
            whole = b"".join((self._open, memoryview(block)[:end])) if self._open or end < len(block) else block
            self._open = block[end:]
            return whole
        data = self._open + block
        if not self._begun and (len(data) >= len(_MARK) or b"\n" in data):
            self._begun = True
            data = data.removeprefix(_MARK)
        end = data.rfind(b"\n") + 1
        self._open = data[end:]
        return data[:end]

    def rest(self) -> bytes:
        """Return the held-back text, unpacked as if the log ended here; changes nothing."""
        other = copy(self)
        other._native, other._parts = None, dict(self._parts)
        if self._document is None:
            other._decide(self._open)
        end = self._open.rfind(b"\n") + 1
        text = other._lines(self._open[:end])[0] + other._lines(self._open[end:])[0]
        cut = b"\r".join(head + parts for _, (head, parts) in sorted(other._parts.items()))
        return text + b"\r" * bool(cut and text[-1:].strip()) + cut

    def _lines(self, text: bytes) -> tuple[bytes, int]:
        """Return whole lines unpacked, and the number of their line ends."""
        if self._document:
            events = b"".join(self._event(line) for line in text.splitlines())
            return events, events.count(b"\n")
        text = _SECONDS.sub(rb"\1s\t", text) if self._timed else text
        if self._native is None:
            text = self._objects(text)
            ends, cut, find = text.count(b"\n"), _cut_line(text, 0), _cut_line
        else:
            text, ends, cut = self._native.unpack(text, self._parts, self._unpack, *([True] if self._ended else []))
            find = self._native.cut_line
        first = 0 if self._parts else _first_part(text, cut, find)
        return (text if first < 0 else text[:first] + _PART.sub(self._part, text[first:])), ends

    def _note_emptied(self, before: bytes, after: bytes) -> None:
        lines = zip(before.split(b"\n"), after.split(b"\n"), strict=False)
        self.emptied.extend(self.line_count + number for number, (was, line) in enumerate(lines, 1) if was and not line)
        self._kept_parts = False

    def _objects(self, text: bytes) -> bytes:
        """Return whole lines with packed ones unpacked; a line may be packed if its first brace begins an object."""
        made: list[bytes] = []
        done, found = 0, _BRACE.search(text)
        while found is not None:
            at = found.start()
            end = text.find(b"\n", at)
            if end < 0:
                end = len(text)
            start = text.rfind(b"\n", 0, at) + 1
            if text[at - 1 : at] in _OPENING and text.find(b"{", start, at) < 0:
                made += (text[done:start], self._unpack(text[start:end]))
                done = end
            found = _BRACE.search(text, end)
        return b"".join((*made, text[done:])) if made else text

    def _unpack(self, packed: bytes) -> bytes:
        """Return the line inside a packed object, or the object unchanged if it packs none."""
        if not (_OBJECT.match(packed) and _HAS_LINE.search(packed)):
            return packed
        start = packed.index(b"{")
        line = _line_of(packed[start : packed.rindex(b"}") + 1], packed[:start].split(b"\t")[0].decode("ascii", "replace"))
        if line is None:
            return packed
        head, text = line
        if head.endswith(b"stdout F ") or head.endswith(b"stderr F "):
            stream = b"json " + head[-9:-3]
            if (self._ended or len(text) == CUT_AT) and not text.endswith(b"\n"):
                return self._keep(stream, head, text)
            if stream in self._parts:
                head, before = self._parts.pop(stream)
                text = before + text
        return head + _on_one_line(text)

    def _part(self, found: re.Match[bytes]) -> bytes:
        """Return a CRI line joined with the parts before it, or "" for a part that is continued."""
        time, stream, kind, text = found.groups()
        if stream not in self._parts and kind == b"F":
            return found[0]
        head = b"%b %b F " % (time, stream)
        if kind == b"P":
            return self._keep(stream, head, text)
        head, before = self._parts.pop(stream)
        return head + before + text

    def _keep(self, stream: bytes, head: bytes, text: bytes) -> bytes:
        self._kept_parts = True
        head, before = self._parts.get(stream, (head, b""))
        self._parts[stream] = (head, before + text if len(before) < LONGEST else before)
        return b""

    def _event(self, line: bytes) -> bytes:
        """Return the log line, with its end, in a line of an indented document; "" for other keys."""
        time = _EVENT_TIME.match(line)
        if time is not None:
            self._time = _stamp(json.loads(time[1])) or b""
        found = _EVENT.match(line)
        if found is None:
            return b""
        try:
            text: str = json.loads(found[1])
        except ValueError:
            return b""
        return self._time + _on_one_line(text.encode("utf-8", "replace")) + b"\n"


def _cut_line(text: bytes, start: int) -> int:
    """Return the next offset, from ``start`` on, of the words before a part of a cut line, or -1."""
    return min((at for words in _CUT_LINE if (at := text.find(words, start)) >= 0), default=-1)


def _first_part(text: bytes, at: int, find: Callable[[bytes, int], int]) -> int:
    """Return the offset of the first line that is a part of a cut line, or -1.

    ``find`` is ``_cut_line`` or a faster equivalent; ``at`` is the first offset that it finds.
    """
    while at >= 0:
        start = text.rfind(b"\n", 0, at) + 1
        if _PART.match(text, start):
            return start
        end = text.find(b"\n", at)
        at = find(text, end) if end >= 0 else -1
    return -1


def _is_document(text: bytes) -> bool:
    """Return whether the text begins an indented array of events, as ``aws logs`` and ``gcloud logging read`` print it."""
    return _DOCUMENT.match(text) is not None and _EVENT_KEY.search(text[: 2 * _LOOKED_AT]) is not None


def _is_ended(text: bytes) -> bool:
    """Return whether Docker entries keep their line ends."""
    return text.startswith(b'{"log') and _ENDED.search(text[:_LOOKED_AT]) is not None


def _is_timed(text: bytes) -> bool:
    """Return whether non-decreasing seconds precede every line, and words follow some; only numbers would be table cells."""
    lines = [line for line in text[:_LOOKED_AT].split(b"\n")[:-1] if line.strip()]
    found = [match for line in lines if (match := _SECONDS.match(line)) is not None]
    if len(found) < max(_FEWEST_SECONDS, len(lines)) or not any(_WORDS.search(match.string, match.end()) for match in found):
        return False
    return all(float(one[1]) <= float(other[1]) for one, other in pairwise(found))


def _line_of(packed: bytes, beside: str = "", depth: int = 1) -> tuple[bytes, bytes] | None:
    """Return the head and the line packed in the object ``packed``, or None if the object is a record of its own.

    ``beside``: a time that may precede the object.
    """
    try:
        outer = _DECODER.decode(packed.decode("utf-8", "surrogatepass"))  # json.loads would first detect the encoding
    except (ValueError, RecursionError):
        return None
    if not isinstance(outer, dict):
        return None
    inner = next((value for key in _OUTSIDE if key in outer and isinstance(value := outer[key], dict)), outer)
    key, text = next(((key, text) for key in _LINES if key in inner and (text := _text(inner[key])) is not None), ("", ""))
    if not key:
        return None
    entry = {**inner, **{name: value for name, value in outer.items() if name not in _OUTSIDE}} if inner is not outer else outer
    times = (*(entry[name] for name in _TIMES if name in entry), beside)
    time = next((stamp for value in times if (stamp := _stamp(value)) is not None), b"")
    stream = entry.get("stream") if entry.get("stream") in ("stdout", "stderr") else None
    level = _level(entry) if key != "textPayload" and inner is outer else b""  # Cloud Logging marks all of stderr as errors
    if not (time or stream or level) or any(_is_figure(name, value) for name, value in entry.items()):
        return None
    raised = (entry[name] for name in _RAISED if name in entry)
    text += "".join("\n" + value for value in raised if isinstance(value, str) and "Traceback" in value)
    line = text.encode("utf-8", "replace")
    within = line.strip()
    if depth < _DEEPEST and within[:1] == b"{" and within[-1:] == b"}":
        unpacked = _line_of(within, beside, depth + 1)
        if unpacked is not None:
            return unpacked
    if isinstance(stream, str):
        return b"%b%b F " % (time, stream.encode()), line
    return time + (_journal(entry) if key == "MESSAGE" else level), line


def _text(value: object) -> str | None:
    """Return the text of a line; journald gives a line with control characters as a list of byte values."""
    if isinstance(value, list) and value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _is_figure(name: str, value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and name not in _NUMBERS and not name.startswith("_")


def _stamp(value: object) -> bytes | None:
    """Return a time as the head of a line, or None: an ISO time unchanged, a number as seconds since 1970."""
    if isinstance(value, str):
        if _STAMP.match(value):
            return value.encode() + b" "
        if not (value.isascii() and value.isdigit() and len(value) <= 19):
            return None
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1e9 <= value < 3e18:
        return None
    if isinstance(value, float) and value < 3e9:
        return b"%.6f " % value
    places = next(places for places in (0, 3, 6, 9) if value < 3 * 10 ** (9 + places))
    whole, part = divmod(int(value), 10**places)
    return b"%d.%0*d " % (whole, max(places, 3), part)


def _level(entry: Mapping[str, Any]) -> bytes:
    said = next((value for name in _LEVELS if isinstance(value := entry.get(name), str)), "").upper()
    word = _WORD.get(said, said)
    return word.encode() + b": " if word in _LEVEL_WORDS else b""


def _journal(entry: Mapping[str, Any]) -> bytes:
    """Return the head of a line as ``journalctl`` prints it."""
    named = (entry.get("_HOSTNAME"), entry.get("SYSLOG_IDENTIFIER"), entry.get("_PID"))
    if not all(isinstance(part, str) and re.match(r"[\w./@-]{1,64}\Z", part) for part in named):
        return b""
    return "{} {}[{}]: ".format(*named).encode()


def _on_one_line(text: bytes) -> bytes:
    """Return a text without its final line end; line ends inside become redraws."""
    text = text.removesuffix(b"\n").removesuffix(b"\r")
    return text.replace(b"\r\n", b"\r").replace(b"\n", b"\r") if b"\n" in text else text


def unpacked(
    blocks: Iterator[bytes], unpacker: Unpacker, note: Callable[[bytes], None] | None = None
) -> Generator[bytes, None, None]:
    """Yield the text of ``blocks`` unpacked; call ``note`` with each block after the unpacker has read it."""
    for block in blocks:
        text = unpacker.feed(block)
        if note is not None:
            note(block)
        if text:
            yield text
    if rest := unpacker.rest():
        yield rest
