"""Read the envelope (line prefix) of an event: its rank and its time."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from receipt_cli.patterns import compile_later
from receipt_cli.records.split import normalise, spell_nonfinite, without_marks

NO_RANK = -1
"""Rank of a record whose prefix names none."""
_LEVEL = rb"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SUCCESS|TRACE)"
_CLOCK = rb"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: [AP]M)?"
_DATE = rb"(?:\d{4}[-/]\d\d[-/]\d\d[T ]|\d{8}[T ]|\d\d/\d\d(?:/\d{4}|/\d\d)? |\d\d-\d\d-\d\d |\d{4}-\d\d-\d\d, )"
_MONTH = rb"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_ZONE = rb"(?:Z|[+-]\d\d:?\d\d| (?:UTC|GMT))?"
_MONTH_NAME = rb"(?:" + _MONTH + rb")[a-z]{0,6}"
_ANY_TIME = (
    rb"(?:(?:" + _DATE + rb"|(?:[A-Z][a-z]{2,8}, )?(?:\d{4}(?:-\d\d-\d\d|/\d\d/\d\d|\.\d\d\.\d\d)(?:[_,-]|, | )"
    rb"|\d{8}[_-]|\d\d(?:-\d\d-|\.\d\d\.)\d{4},? |\d\d/\d\d/\d{4}, |\d{1,2}[ -]" + _MONTH_NAME + rb"[ -](?:\d\d){1,2},? "
    rb"|"
    + _MONTH_NAME
    + rb" (?:\d{1,2}, \d{4},? |[ \d]\d ))|\d{4}\xe5\xb9\xb4\d{1,2}\xe6\x9c\x88\d{1,2}\xe6\x97\xa5 ?)"
    + _CLOCK
    + rb"|(?:\d{4}[-/]\d\d[-/]\d\d |"
    + _MONTH_NAME
    + rb"[ -]\d\d |\d\d-\d\d )\d\d:\d\d|\d{4}(?:-\d\d){5}|\d{8}[_-]\d{6})"
    + _ZONE
)
"""Times as loggers are configured: ``%d-%b-%y``, ``%a, %d %b %Y``, ``%Y.%m.%d-``, ``%Y%m%d-``, with Chinese year, month and day;
to the minute; joined by hyphens only."""
_NO_PART = (
    rb"(?!(?i:train(?:ing)?|trn|val(?:id(?:ation|ating)?)?|eval(?:uation|uating)?|test(?:ing)?|dev|epochs?|steps?|iter(?:ation)?s?"
    rb"|batch|loss|acc(?:uracy)?) {1,20}\|)"
)
"""Excludes names that compose does not use for services: ``valid | epoch 3 | loss 0.5`` is an evaluation."""
_NO_COUNTER = (
    rb"(?!(?i:epochs?|steps?|iter\w{0,8}|batch|loss|lr|acc\w{0,6}|train\w{0,3}|val\w{0,7}|test\w{0,3}|eval\w{0,6})"
    rb"(?:: |[:=] ?[\d.-]))"
)
_NO_HOST = (
    rb"(?!(?:acc|auc|batch|best|bleu|chunk|dev|epoch|eval|fold|fscore|f\d|iter|layer|loss|lr|map|ndcg|p\d|phase|ppl|prec|psnr|r\d|rank"
    rb"|recall|rouge|run|sample|sec|seed|split|ssim|stage|step|t\d|task|test|top|train|trial|update|val|valid)[\w.]*+:)"
)
_NO_HOST_NAME = rb"(?=[\w-]{0,64}[\d.-])" + _NO_HOST.removesuffix(rb"[\w.]*+:)") + rb"[\w.-]*+ )"
_NAME = rb"[\w.<>:/-]{1,100} +[|-] {1,2}"
_NAMED = rb"(?:" + _NAME + rb")?"
_NAMED_BEHIND = rb"(?!(?i:train|training|val|valid|validation|test|testing|eval|evaluation) )" + _NAMED
_NO_ERROR = rb"(?![\w.]{1,400}(?:Error|Exception|Interrupt|Exit|Warning|(?<=\.)py: error): )"
_DOTTED = rb"(?:" + _NO_ERROR + rb"[a-z_]\w{0,60}(?:\.\w{1,60}){1,6}: )?"
_SYSLOG = rb" \S{1,255} \S{1,48} \S{1,128} \S{1,32} (?:-|(?:\[[^\[\]\r\n]{1,200}\])+) ?"
_HEADS = (
    rb"\xef\xbb\xbf",  # byte order mark
    rb"\x07",  # the end of a terminal sequence
    rb"#033\[[\d;]{0,12}m",  # a colour as CloudWatch shows it
    rb"\[(?:default|rank|RANK|Rank)(?:[ :-]|: )?(?P<elastic>\d{1,7})(?:/\d{1,7})?\]:? ?",  # torchrun
    rb"rank(?P<composer>\d{1,7})\[\d{1,9}\]\[[^\[\]\r\n]{1,60}\]: ",  # Composer: rank0[812][MainThread]:
    rb"\[(?:\d{1,9},mpirank:)?(?P<horovod>\d{1,7})(?:,[A-Za-z][\w.-]{0,60})?\]<std(?:out|err)>: ?",  # horovodrun, SageMaker
    rb"\[(?:[\w.-]{1,80}@)?\d{1,9},(?P<mpi>\d{1,7})\]<std(?:out|err|diag)>(?::|$) ?",  # mpirun --tag-output
    rb" {0,6}(?P<srun>\d{1,7}): ",  # srun --label
    rb"\d{10}\.\d{3,9} ",  # seconds since 1970
    rb"\d{13} [\w.-]{1,64} (?:debug|info|warning|error|critical) ",  # ClearML: milliseconds since 1970, host, level
    rb"\d{1,7}\.\d{1,3}s\t\d{1,9}\t",  # a Kaggle notebook: seconds since it began, line
    rb"<\d{1,3}>(?:1 " + _DATE + _CLOCK + _ZONE + _SYSLOG + rb")?",  # RFC 5424; the priority of RFC 3164
    rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})? (?:" + _NO_HOST_NAME + rb"[\w.-]{1,64} (?!\d{1,10}:)"
    rb"[\w./@-]{1,64}|[\w.-]{1,64} [\w./@-]{1,64}\[\d{1,10}\]): ",  # RFC 3164, journald; ``Total params: `` is no program
    rb"(?:" + _MONTH + rb") [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})? (?!\d{4} )",  # ts
    rb"\d{1,7}\.\d{6} (?=[ \t]*(?:-- )?[^\d\s.-]|\d{4}-\d\d-|\d\d:\d\d:|\d{1,7}: \S|[\d.eE+-]{1,30}\t)",  # ts -s %.s
    rb"\d{1,7}\.\d{6}s\t",  # ts -s on every line: see io.envelopes
    rb"(?<=Z )\d\d[OE](?:\+| )",  # GitLab CI, after an ISO time
    rb'\{[A-Za-z_]\w{0,60}="[^"{}\r\n]{0,200}"(?:, ?[A-Za-z_]\w{0,60}="[^"{}\r\n]{0,200}"){0,20}\} ',  # Loki
    rb"[A-Z][a-z]{2} (?:[A-Z][a-z]{2} [ \d]\d " + _CLOCK + rb"(?: [A-Z]{2,5})? \d{4}|(?=\d{4}-)) ?",  # ctime; a weekday
    rb"[\[(<](?:" + _LEVEL + rb"[ ,|:-]{1,3})?" + _ANY_TIME + rb"(?:(?:[ |-]|, | - )[\w.:/-]{1,80}){0,5}[\])>]"
    rb"(?:[:,]? |-(?=\[)|(?=[A-Za-z\[-]))",  # [2026-01-02 03:04:05,500|INFO], [INFO 2026-01-02 03:04:05] , <02-Jan-26 03:04:05>
    rb"\[?" + _DATE + _CLOCK + _ZONE + rb"(?:(?: |, ?)[\w.:-]{1,80}\])?\]?:?(?:[ \t]|(?=\[))",
    _ANY_TIME + rb"(?:,? |\t|: |[:|-](?:[A-Za-z_][\w.]{0,60}[:|-])?(?=" + _LEVEL + rb"[:|-])|:(?=[A-Za-z\[-])|(?=\[))",
    rb"(?<=[\dM\])>] )\| ",  # after a time
    rb"(?:[|-] )?[\w-]{1,80}\.py(?: ?\[(?:line ?:? ?)?\d{1,7}\]|:\d{1,7})(?: [|-] |: (?!\w{1,60}Warning)|\] | )",
    rb"\[[\w-]{1,80}\.py\](?:\[line:? ?\d{1,7}\])?(?=\[| )",  # [train.py][line:12]
    rb"\([\w.-]{1,80}\.py:? ?\d{1,7}\): ",
    rb"\[?" + _CLOCK + rb"\]?:? |\d\d:\d\d(?=:? (?:[|-] )?" + _LEVEL + rb"\b):? ",
    rb"std(?:out|err) [FP] ",  # CRI
    rb"[\w.-]{1,64} [\w./@-]{1,64}\[\d{1,10}\]: ",  # journald after an ISO time
    rb"\[?[IWEF]\d{3,4} \d\d:\d\d:\d\d\.\d{1,9} +(?:\d{1,20} )?[\w./-]{1,200}:\d{1,7}\] ",  # absl, glog
    rb"\((?:[^()\r\n]{1,60}(?:\([^()\r\n]{0,40}\))?[ ,]{1,2})?(?:pid|rank)=\d[^()\r\n]{0,80}\) ",  # Ray
    rb"[\w.-]{1,64}:\d{1,5}\t[\w.]{1,100}:\d{1,7}\t" + _LEVEL + rb"\t",  # OLMo-core: host:local rank
    rb"\[NeMo [A-Z] " + _DATE + _CLOCK + rb" [^\[\]\r\n]{1,80}\] ",
    rb"\[(?:resource\.labels\.|pod/)[^\[\]\r\n]{1,200}\] ",  # Cloud Logging, kubectl --prefix
    rb"\[" + _LEVEL + rb" *(?:\|[^\[\]\r\n]{1,120})?\](?:: ?| - | {1,8})?",  # [INFO], [INFO|trainer.py:1144], [INFO|DP=0|TP=1]:
    rb"\[-{0,60}[\w.-]{1,80}\.(?:py|cpp|cc|cu):\d{1,7}(?::\w{1,60})?\](?: : ?| ?)(?:\((?P<of>\d{1,6})/\d{1,6}\) )?",
    rb"\[[\w.]{1,80}:\d{1,7}(?:, rank=(?P<olmo>\d{1,7}))?\] ",  # OLMo
    rb"\[[A-Za-z_][\w.]{0,100}\](?:(?=\[" + _LEVEL + rb"\])| (?=" + _DATE + rb"))",  # [module][INFO] - , [titan] 2026-..
    rb"(?:[\w./-]{1,120}:\d{1,7} )?>> ",  # Transformers, LLaMA-Factory
    # - name - INFO - , | INFO | a:b:12 - , - train.py - main - INFO -
    rb"[|-] +(?:" + _NAME + rb"){0,3}" + _LEVEL + rb" *(?:[|-] +(?:" + _NAMED_BEHIND + rb")?)?",
    _LEVEL + rb":" + _DATE + _CLOCK + rb":",  # ERROR:2026-03-26 21:59:41,526:
    _LEVEL
    + rb"(?::"
    + _NO_COUNTER
    + rb"[\w.-]{1,80}:| +[|-] +"
    + _NAMED_BEHIND
    + rb"|: "
    + _DOTTED
    + rb"|[:|-](?=[A-Za-z\[-])| {1,8})",  # INFO:root: , INFO -
    rb"[\w.]{1,80} " + _LEVEL + rb": ",  # d2.utils.events INFO:
    rb"(?<=\d )[\w.]{1,80} " + _LEVEL + rb" {1,8}",  # 2026-01-02 03:04:05,500 root ERROR
    rb"\{[\w.-]{1,80}\.py:\d{1,7}\} ",  # Airflow
    rb" {20,31}(?=(?:Traceback \(most recent call last\)|[\w.]{0,200}(?:Error|Exception|Interrupt))(?:[:\s]|\Z))"
    rb"(?=[^\r\n]* \r?\n?\Z)",  # rich, which fills its lines with blanks
    rb"(?:[Rr]ank|RANK|rank=)[ :=-]?(?P<word>\d{1,7})(?:/\d{1,7})?[:,|]? ",
    _NO_PART + rb"[A-Za-z][\w.-]{0,62} {1,20}\| ",  # compose
    _NO_HOST + rb"(?:(?=[a-z0-9.-]{0,60}\d)[a-z][a-z0-9-]{1,40}(?:\.[a-z0-9-]{1,40}){0,4}|\d{1,3}(?:\.\d{1,3}){3}): ",  # pdsh
)
ENVELOPE = compile_later(b"|".join(_HEADS))
"""Heads that launchers, collectors and loggers put before a line, each with its final blank."""
DIGITS = (">1 ", "#033[")
"""The texts of heads whose digits decide whether they are heads, as ``grammar.digit_sensitivity`` finds them."""
INDENT = 4
"""Fewest blanks before a nested line of source code."""
MAX_ENVELOPES = 6
_SHORT = 512
"""Longest record, in bytes, whose heads are cached: several functions ask for them."""
_MAX_PEELED = 18
"""Most heads read: some of the ``MAX_ENVELOPES`` are read in two or three parts."""
_RANK = compile_later(
    rb"\((?:head|worker\d{1,5}), rank=\d{1,7}(?=[,)])"  # SkyPilot: a node's, not a process's
    rb"|\[(?:default|rank|RANK|Rank)(?:[ :-]|: )?(\d{1,7})[\]/]"  # [rank0]: [default7]: [rank-7/8] [Rank 0] [rank: 0]
    rb"|(?<=[\[(,|; ])(?:(?:global_|world_)?rank|RANK|Rank)[=:] ?(\d{1,7})(?=[\]),|;])"  # [.., rank=0] (Worker rank=3, pid=1)
    rb"|(?<!\S)RANK:(\d{1,7})(?=[\s,;|])"  # actor logs
)
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_TIMES = (
    rb"(?:(?<!\d)(?P<y1>\d{4})(?:[-/](?P<m1>\d\d)[-/](?P<d1>\d\d)(?:[T _-]|, ?)|\.(?P<m2>\d\d)\.(?P<d2>\d\d)[ _-]"
    rb"|\xe5\xb9\xb4(?P<m3>\d{1,2})\xe6\x9c\x88(?P<d3>\d{1,2})\xe6\x97\xa5 ?)"
    rb"|(?<!\d)(?P<d4>\d{1,2})[ -](?P<m4>" + _MONTH + rb")[a-z]{0,6}[ -](?P<y4>\d{4}|\d\d),? "
    rb"|\b(?P<m5>" + _MONTH + rb")[a-z]{0,6} (?P<d5>\d{1,2}), (?P<y5>\d{4}),? "
    rb"|(?<!\d)(?P<d6>\d\d)\.(?P<m6>\d\d)\.(?P<y6>\d{4}),? "
    rb"|(?<![\d/-])(?P<m7>\d\d)(?:/(?P<d7>\d\d)/|-(?P<d8>\d\d)-)(?P<y7>\d{4}),? )"
    rb"(?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?: (?P<half>[AP])M\b)?"
    rb"(?:(?P<zone>Z|[+-]\d\d:?\d\d(?!\d)| (?:UTC|GMT)\b)|(?= \[\w+\|DP=(?P<american>\d)))?"
    rb"|(?<!\d)(?P<y9>20\d\d)(?P<m9>\d\d)(?P<d9>\d\d)[ T_-](?P<clock9>\d\d:\d\d:\d\d)\b"
    rb"|\b(?P<m0>[A-Z][a-z]{2}) (?P<d0>[ \d]\d) (?P<clock0>\d\d:\d\d:\d\d)(?: (?:(?P<zone0>[A-Z]{3,5}) )?)(?P<y0>(?:19|20)\d\d)\b"
)
_TIME = compile_later(_TIMES)
_TIME_MASKED = compile_later(_TIMES.replace(rb"(?:19|20)\d\d", rb"\d{4}").replace(rb"20\d\d", rb"\d{4}"))
_BARE_CLOCK = compile_later(rb"(?<![\d:])\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?![\d:])")
_UNIX = compile_later(rb"(?<!\d)([12]\d{9})\.(\d{3,9})(?= )")
MASK = bytes.maketrans(b"123456789", b"000000000")
"""Replaces each digit by 0."""
_SYSLOG_MASKED, _COLOUR_MASKED = (text.encode().translate(MASK) for text in DIGITS)
CLOCK_MASKED, UNIX_MASKED = b"00:00:00", b"0000000000.000"
"""Masked text inside nearly every time, and inside seconds since 1970: much faster to find than the time itself."""
_CLOSING = compile_later(rb"[\])>|:]{0,3} ?")
_BUILDKITE = compile_later(rb"\x1b_bk;t=(\d{10})(\d{3})\x07")
REPEATED = b"x across cluster]"
_REPEATED = compile_later(
    rb" \[repeated \d{1,9}x across cluster\](?: \(Ray deduplicates logs by default\.[^\r\n]{0,400}?for more options\.\))?"
)


def unwrap(raw: bytes) -> bytes:
    """Return whole records as ``normalise`` does, with marks of wrappers replaced or removed.

    A Buildkite time mark becomes seconds since 1970 before the line; Ray's count of repetitions after a line is removed.
    """
    return without_count(plain(raw))


def plain(raw: bytes) -> bytes:
    """Return whole records normalised and without the marks of wrappers; Ray's counts of repeated lines remain."""
    if b"\x1b" in raw and b"\x1b_bk;t=" in raw:
        raw = _BUILDKITE.sub(rb"\1.\2 ", raw)
    return spell_nonfinite(without_marks(normalise(raw)))


def without_count(records: bytes) -> bytes:
    """Remove Ray's counts of repetitions after the lines of normalised records."""
    return _REPEATED.sub(b"", records) if REPEATED in records else records


def before(record: bytes, start: int) -> bytes:
    """Return the text before the event at ``start``, including the end of an envelope there, which patterns may start with."""
    found = _CLOSING.match(record, start)
    return record[: found.end() if found is not None else start]


@lru_cache(maxsize=64)
def read_rank(prefix: bytes) -> int:
    """Return the rank in the last rank label of ``prefix``, or ``NO_RANK``.

    A label is a number in brackets or in the place of an envelope. The number of a service or host is no rank: it may run
    several ranks, and may count from 1.
    """
    rank, where = NO_RANK, -1
    for head in heads_of(prefix):
        if head.rank is not None:
            rank, where = int(prefix[slice(*head.rank)]), head.end
    if b"ank" in prefix or b"RANK" in prefix or b"default" in prefix:
        for label in _RANK.finditer(prefix):
            if label.lastindex is not None and label.end() >= where:
                rank, where = int(label[label.lastindex]), label.end()
    return rank


def split_rank(record: bytes) -> tuple[int, bytes]:
    """Return the rank in a head of the line and the text after that head; without a rank ``NO_RANK`` and the line."""
    for head in heads_of(record):
        if head.rank is not None:
            return int(record[slice(*head.rank)]), record[head.end :]
    return NO_RANK, record


class Head(NamedTuple):
    """A head before a line: its end, the blanks at its end, the number of them that belong to the line, the span of its rank."""

    end: int
    blanks: int
    own: int
    rank: tuple[int, int] | None


def heads_of(record: bytes) -> tuple[Head, ...]:
    """Return the heads before the line; cached for short records, which often differ in digits only."""
    form = form_of_heads(record)
    return _peel(record) if form is None else _peel_short(form)


def form_of_heads(record: bytes) -> bytes | None:
    """Return a key that records with equally long prefixes (time stamp, level, rank) share; None for a long record."""
    if len(record) > _SHORT:
        return None
    masked = record.translate(MASK)
    return masked if is_blind(masked) else record


def is_blind(masked: bytes) -> bool:
    """Return whether digits cannot decide about the heads of a ``masked`` record."""
    return _SYSLOG_MASKED not in masked and _COLOUR_MASKED not in masked


def _peel(record: bytes) -> tuple[Head, ...]:
    heads: list[Head] = []
    at, match = 0, ENVELOPE.match
    for _ in range(_MAX_PEELED):
        found = match(record, at)
        if found is None or found.end() == at:
            break
        at = found.end()
        text = found[0].rstrip(b" ")
        blanks = at - found.start() - len(text)
        own = blanks - 1 if blanks > 1 and text and not text[-1:].isalnum() else 0
        heads.append(Head(at, blanks, own, None if found.lastgroup is None else found.span(found.lastgroup)))
    return tuple(heads)


_peel_short = lru_cache(maxsize=8192)(_peel)


def head_ends(record: bytes) -> list[int]:
    """Return the end of each head before the line: one final blank belongs to it after punctuation, all after a word."""
    return [head.end - head.own for head in heads_of(record)]


@lru_cache(maxsize=4)
def starts(record: bytes) -> tuple[int, ...]:
    """Return the offsets at which the line itself may begin: after the first envelope, after the second, and so on.

    The final blanks of an envelope may belong to the line, so each of them gives an offset. Of many blanks after
    punctuation, as before source code, at most one belongs to the envelope.
    """
    places: list[int] = []
    for head in heads_of(record):
        places += range(head.end - head.own if head.own >= INDENT else head.end, head.end - head.blanks - 1, -1)
    return tuple(places)


def behind_heads(record: bytes) -> bytes:
    """Return the line itself, after all envelopes, with its indentation."""
    return record[max(head_ends(record), default=0) :]


CITATION = compile_later(rb"[\w./~-]{0,200}\.(?:log|txt|out|err|jsonl?|csv|md)[:-](?:\d{1,9}[:-])?")
"""What a search prints before a line that it found in a file: its name, and the line's number."""


def in_json_string(before: bytes) -> bool:
    """Return whether the text ``before`` a record begins a JSON object and ends inside a string that is a value: it is quoted."""
    return before.lstrip()[:1] == b"{" and _OPEN_STRING.search(before) is not None


_OPEN_STRING = compile_later(rb'"[ \t]*:[ \t]*"(?:[^"\\]|\\.)*+\Z')


@lru_cache(maxsize=64)
def read_clock(prefix: bytes) -> float:
    """Return the timestamp in ``prefix`` as seconds since 1970, or NaN.

    With an offset the time is UTC; without one it is naive, and only differences of naive times have a meaning. The last
    time with an offset wins, else the last: a collector stamps every line, a logger only its own. This machine's clock,
    locale and time zone are not used; a time without a year (syslog, glog) or a date with interchangeable day and month
    gives NaN, because it would have to be guessed.
    """
    whole, fraction, offset = read_moment(prefix)
    return whole + fraction - offset


def may_have_time(masked: bytes) -> bool:
    """Return whether ``read_clock`` may find a time in a text that equals ``masked`` with each digit replaced by 0."""
    return UNIX_MASKED in masked or (CLOCK_MASKED in masked and _TIME_MASKED.search(masked) is not None)


def read_moment(prefix: bytes) -> tuple[float, float, float]:
    """Return the timestamp of ``read_clock`` in parts: whole seconds, fraction, and the offset to subtract."""
    naive = zoned = (math.nan, 0.0, 0.0)
    masked = prefix.translate(MASK)
    for found in _TIME.finditer(prefix) if CLOCK_MASKED in masked else ():
        clock, fraction, half, zone = found.group("clock", "fraction", "half", "zone")
        if clock is None:
            clock, other, zone = found.group("clock9", "clock0", "zone0")
            clock, zone = clock or other, b"Z" if zone in (b"UTC", b"GMT") else None
        offset, midnight = _offset(zone), _midnight(*_day(found))
        hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:])
        if half is not None:
            hour = hour % 12 + 12 * (half == b"P") if 1 <= hour <= 12 else 24
        if offset is None or math.isnan(midnight) or hour > 23 or minute > 59 or second > 59:
            continue
        read = midnight + (3600 * hour + 60 * minute + second), float(b"0." + fraction) if fraction else 0.0, offset
        if zone:
            zoned = read
        else:
            naive = read
    if math.isnan(zoned[0]) and UNIX_MASKED in masked:
        unix = _UNIX.search(prefix)
        if unix is not None and (unix.start() == 0 or unix.start() in head_ends(prefix)):
            zoned = float(b"%b.%b" % unix.groups()), 0.0, 0.0
    return naive if math.isnan(zoned[0]) else zoned


_DATES = (
    *(("y1", "m1", "d1"), ("y1", "m2", "d2"), ("y1", "m3", "d3"), ("y7", "m7", "d7"), ("y7", "m7", "d8"), ("y4", "m4", "d4")),
    *(("y5", "m5", "d5"), ("y6", "m6", "d6"), ("y9", "m9", "d9"), ("y0", "m0", "d0")),
)
"""Groups of ``_TIME`` that form a date, the most frequent first."""


def _day(found: re.Match[bytes]) -> tuple[bytes, bytes, bytes, bool, bool]:
    """Return year, month and day as printed; whether the day may be first; whether American order is certain."""
    for names in _DATES:
        year, month, day = found.group(*names)
        if day is not None:
            either = names[0] == "y7"
            return year, month, day, either, either and found["american"] is not None
    raise AssertionError("a time has a date")


@lru_cache(maxsize=64)
def _midnight(year: bytes, month: bytes, day: bytes, either: bool, american: bool) -> float:
    """Return the start of a day in seconds since 1970; NaN for an invalid or ambiguous date."""
    number = int(month) if month.isdigit() else _MONTHS.index(month) + 1 if month in _MONTHS else 0
    date = int(day)
    if either and number > 12:
        number, date = date, number
    elif either and date <= 12 and date != number and not american:
        return math.nan
    try:
        return datetime(2000 + int(year) if len(year) < 4 else int(year), number, date, tzinfo=UTC).timestamp()
    except ValueError:
        return math.nan


def time_of_day(prefix: bytes) -> tuple[int, int] | None:
    """Return the span of ``hh:mm:ss`` and fraction in the last time of ``prefix``, dated or not.

    None without a time, and for a 12-hour clock.
    """
    last = next(reversed([*_TIME.finditer(prefix)]), None)
    if last is None:
        bare = next(reversed([*_BARE_CLOCK.finditer(prefix)]), None)
        return None if bare is None else bare.span()
    clock = next(name for name in ("clock", "clock9", "clock0") if last[name])
    return None if last["half"] else (last.start(clock), last.end("fraction" if last["fraction"] else clock))


def _offset(zone: bytes | None) -> float | None:
    """Return the offset of ``zone`` from UTC in seconds, 0 without a zone, None for an impossible one."""
    if not zone or zone[:1] in (b"Z", b" "):
        return 0.0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 14 or minutes > 59:
        return None
    return (-60.0 if zone[:1] == b"-" else 60.0) * (60 * hours + minutes)
