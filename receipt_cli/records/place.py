"""Decide how a failure text stands on its line: printed by the program, logged by it, or only mentioned."""

from __future__ import annotations

from functools import lru_cache

from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import starts

PRINTED, LOGGED, ACTOR, MENTIONED, HANDLED = range(5)
"""Forms of a text: directly after the heads of launchers; after a logger's level; after the head of a Ray worker, whose driver
may survive it; a word in a quotation, an option's help, a comment, a list or a key's value; and after the words of a handler."""

_LEVEL = compile_later(
    rb"(?<![A-Za-z_])(?:(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![A-Za-z_])"
    rb"(?! \d{4}-\d\d-\d\dT[\d:.]{8,20}Z \[resource)"
    rb"|(?:debug|info|warn(?:ing)?|error|critical) ?\||\[NeMo [A-Z] )"
)
_RAY = compile_later(rb"\((?!(?:raylet|autoscaler)\b)[^()\r\n]{1,60}(?:\([^()\r\n]{0,40}\))?[ ,]{1,2}pid=\d[^()\r\n]{0,80}\) ")
_HELP = compile_later(rb"\s{0,20}(?:-{1,2}[A-Za-z][\w-]{0,60}[ ,=]|#(?![#=\d])|//|usage:|[-*+] {1,4}\Z)")
_ITEM = compile_later(rb"\s{0,20}[-*] {1,4}")
_QUOTES = compile_later(rb"(?<![A-Za-z0-9_])['\"`]|['\"`](?![A-Za-z0-9_])")
_CODE = compile_later(
    rb"\s{0,40}(?:# (?!Ended \()|--[a-z][\w-]{0,60}[ ,=]|usage: |(?:raise|assert|return|elif|except) [\w\"'(]"
    rb"|(?:print|echo|log(?:ger|ging)?\.\w{1,20}|warnings\.warn)(?:\(| ['\"]))"
)
"""A line of source code, help or comment; the text may begin anywhere on it."""
_INDENT = (b"    ", b"\t")
"""Indentation of source code: markers are not searched after it (see ``head`` of the markers)."""
_GLUED = compile_later(rb"(?:\[default\d{1,7}\]|<std(?:out|err|diag)>):\Z")
_OPENING = compile_later(rb"(?:[\w.]{0,40}[\[(=]){0,3}['\"`](?!\w{1,40}\":)")
"""A quotation that begins with the text."""
_OUTCOME = compile_later(
    rb"(?i:\b(?:reason|state|status|err(?:or)?|message|msg|exception|exc_info|failure|log|text|traceback|details?|event))\"\s{0,4}[:=]"
)
"""Keys that hold the outcome in JSON lines and descriptions of jobs."""
_KEY = 16
"""Bytes before and after the text's start within which its key may be."""
_HANDLER = compile_later(rb"(?i)\s{0,4}(?:error|failed|failure|exception)(?: [a-z]{2,20}){1,5}: {1,2}\Z")
_REPEATED = compile_later(rb"(?:Error|Exception)\([bru]?['\"]\Z")
_MEASURED = compile_later(rb"\d [KMGT]i?B\b|\d bytes\b")
"""An amount of memory, which a real memory error prints and help about it rarely does."""


_HOST = compile_later(
    rb"(?:^|(?<= )|(?<=[A-Za-z_]:)|(?<=\t))(?:slurmstepd-)?"
    rb"(?:((?=[a-z0-9.-]{0,60}\d)[a-z][a-z0-9-]{1,40}(?:\.[a-z0-9-]{1,40}){0,4}|\d{1,3}(?:\.\d{1,3}){3}): "
    rb"|([\w.-]{1,64}) [\w./@-]{1,64}\[\d{1,10}\]: "
    rb"|([\w.-]{1,64}):\d{1,5}\t[\w.]{1,100}:\d{1,7}\t)"
    rb"|[( ,]ip=([\w.:-]{1,64})[,)]"
)


@lru_cache(maxsize=64)
def read_host(prefix: bytes) -> str | None:
    """Return the last host name in the heads of ``prefix`` (pdsh, journald, OLMo, Ray), or None."""
    names = [name for found in _HOST.findall(prefix) for name in found if name]
    return names[-1].decode("ascii", "replace") if names else None


def is_indented(record: bytes, start: int) -> bool:
    """Return whether only blanks, as before source code, are between the record's heads and the text at ``start``.

    One blank belongs to the head, unless a launcher prints none; after a word, such as a level, all do.
    """
    begin = max((at for at in starts(record) if at <= start), default=0)
    head = record[:begin].rstrip(b" ")
    if head and not head[-1:].isalnum():
        begin = min(begin, len(head) + (_GLUED.search(head) is None))
    return bool(head) and record.startswith(_INDENT, begin) and not record[begin:start].strip()


def form_of(record: bytes, start: int) -> int:
    """Return the form of the text at ``start`` of a record: ``PRINTED``, ``LOGGED``, ``ACTOR``, ``MENTIONED`` or ``HANDLED``."""
    prefix = record[:start]
    begin = max((at for at in starts(record) if at <= start), default=0)
    if _is_mentioned(record, begin, start):
        return MENTIONED
    if _RAY.search(prefix):
        return ACTOR
    if _LEVEL.search(prefix):
        return LOGGED
    return HANDLED if _HANDLER.match(record[begin:start]) else PRINTED


def _is_mentioned(record: bytes, begin: int, start: int) -> bool:
    lead = record[begin:start]
    rest = record[start : start + 512]
    if _CODE.match(record, begin):
        return True
    if _MEASURED.search(rest) or _OUTCOME.search(record, max(begin, start - _KEY), start + _KEY):
        return False
    item = _ITEM.match(record, begin)
    if _HELP.match(lead) or (item is not None and item.end() >= start):  # a marker's text may include the list mark
        return True
    opening = _OPENING.match(rest)
    if opening is not None and not lead.endswith(b"Error: "):
        lead += opening[0]
    opened = [mark.group() for mark in _QUOTES.finditer(lead)]
    odd = {mark for mark in opened if opened.count(mark) % 2}
    if odd and (opened[-1] in odd or odd != {b"'"}) and not _REPEATED.search(lead):
        return True
    return lead.endswith(b"(") and b")" in rest and not lead[:-1].rstrip().endswith(b":")
