"""Lint the marker catalogue: shape, patterns, samples, and search time for hostile lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import regex

from receipt_cli.authoring.redos import ORDINARY_HELP, excess, expected_parts, ordinary_excess, seconds_of
from receipt_cli.definitions.failure_markers import HEADLESS, SEARCH_SECONDS, Catalogue, Marker, read_catalogue
from receipt_cli.definitions.strict_yaml import locate
from receipt_cli.errors import DataError
from receipt_cli.problems import Finding

WORST_BYTES: Final = 64 * 1024
WORST_SECONDS: Final = 0.1
"""Longest record in bytes, and the most seconds of a marker for a hostile record of this length."""
ORDINARY_SECONDS: Final = 0.015
"""Most seconds of a marker for ``redos.ORDINARY``: five times the slowest shipped marker."""
_TOKEN: Final = re.compile(
    r"\(\?:\)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:[:>|]|<?[=!]|P?<\w+>|[a-z-]+:))?|\)(?:(?:[*+?]|\{[\d,]+\})\+)?"
)
_FILLERS: Final = tuple(b" |a|a.|[|[a]|( pid=1|9|9 |: |a9: |\x1b[0m|E0101 1 a:1] ".split(b"|"))

Check: TypeAlias = Callable[[Marker, Catalogue], Iterator[tuple[str, str | None]]]
"""Takes a marker and the catalogue; yields (reason, help) for each problem of the marker."""


def lint_catalogue(text: bytes, where: str) -> list[Finding]:
    """Return the findings on the catalogue in ``text``; [] if it has no errors. ``where`` names it.

    Checks shape and vocabulary, patterns (ASCII, compile, linear on hostile 64 KiB lines), and samples: each contains a
    literal, fires its marker and no other reason of equal or better ``rank``; counter samples fire only their ``fires``.
    """
    try:
        catalogue, findings = read_catalogue(text, where)
    except DataError as error:
        return [Finding("error", error.where or where, error.message, help=error.why or None)]
    findings += _findings(catalogue, text, where, [_pattern_problems])
    return findings or _findings(catalogue, text, where, [_head_problems, _sample_problems, _speed_problems])


def _findings(catalogue: Catalogue, text: bytes, where: str, checks: Sequence[Check]) -> list[Finding]:
    """Return the findings of ``checks`` on each marker, with its line."""
    found = [(m.id, *problem) for m in catalogue.markers for check in checks for problem in check(m, catalogue)]
    places = {name: f"{where}:{locate(text, ('markers', name))}" for name in dict.fromkeys(name for name, *_ in found)}
    return [Finding("error", places[name], f"{name}: {reason}", help=help_) for name, reason, help_ in found]


def _pattern_problems(marker: Marker, _catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) if the pattern does not compile or lacks the group of its role."""
    try:
        named = marker.pattern.groupindex
    except regex.error as error:
        yield f"pattern does not compile: {error}", None
        return
    if marker.role == "exit_code" and "exit_code" not in named:
        yield "a marker of role exit_code needs a group exit_code", None


def _head_problems(marker: Marker, _catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) if a head is in a group that may match differently without it."""
    opened: list[list[str]] = []  # of each open group: its opening token, then its heads
    for token in _TOKEN.finditer(marker.core or ""):
        text = token.group()
        if text == HEADLESS:
            for group in opened:
                group.append(text)
        elif text.startswith("("):
            opened.append([text])
        elif text.startswith(")") and opened:
            kind, *heads = opened.pop()
            if heads and (kind != "(?:" or len(text) > 1):
                yield "(?&head) is in a group other than (?:…)", "atomic groups and lookarounds may hide matches"


def _sample_problems(marker: Marker, catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) for every sample that its marker does not read as declared."""
    for sample in marker.samples:
        shown = repr(sample.decode()[:100])
        hits = {hit.marker.id: hit for hit in catalogue.search(sample)}
        if not any(literal in sample for literal in marker.literals):
            yield f"no literal in sample {shown}", "every line that matches must contain one of the literals"
        elif marker.id not in hits:
            yield f"sample does not match: {shown}", "the pattern is searched in the raw line"
        elif marker.role == "exit_code" and hits[marker.id].exit_code is None:
            yield f"no exit_code in sample {shown}", "name the number's group exit_code"
        for other in (hit.marker for hit in hits.values()):
            rival = other.priority <= marker.priority if marker.reason else marker.role != "exit_code"
            if rival and other.reason not in (None, marker.reason):
                why = "only one reason may have this rank or a better one on a line; an observation has no reason"
                yield f"sample also fires {other.id} ({other.reason}): {shown}", why
    for counter in marker.counter_samples:
        fired = [hit.marker.id for hit in catalogue.search(counter.line)]
        if marker.id in fired or sorted(fired) != sorted(counter.fires):
            shown = repr(counter.line.decode()[:100])
            yield f"counter sample fires {', '.join(fired) or 'nothing'}: {shown}", "list other markers under fires"


def _speed_problems(marker: Marker, _catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) for lines on which the marker takes longer than its bound."""
    pattern = marker.pattern if marker.core is None else regex.compile(marker.core.encode("ascii"))
    slow = ordinary_excess(marker.literals, lambda line: pattern.search(line, timeout=SEARCH_SECONDS), ORDINARY_SECONDS)
    if slow is not None:
        yield f"takes {slow * 1000:.3g} ms on ordinary lines", ORDINARY_HELP
    sizes = (WORST_BYTES // 64, WORST_BYTES // 8, WORST_BYTES)
    for tiny, short, whole in zip(*(_hostile_lines(marker, size) for size in sizes), strict=True):
        # Shorter lines first: they already show a time that grows faster than the length.
        search = partial(_seconds, marker.pattern, whole)
        if _expected(marker.pattern, tiny, short) > WORST_SECONDS and (worst := excess(search, WORST_SECONDS)):
            longer = "" if worst < math.inf else "longer than "
            yield (
                f"takes {longer}{min(worst, SEARCH_SECONDS) * 1000:.0f} ms on {whole[:60]!r}…",
                "possessive quantifiers, bounded gaps",
            )


def _expected(pattern: regex.Pattern[bytes], tiny: bytes, short: bytes) -> float:
    """Return the expected seconds of a search in a line of ``WORST_BYTES``, from shorter lines of its kind."""
    more = _seconds(pattern, short)
    if more <= WORST_SECONDS / 64:  # fast enough even with quadratic growth
        return 0.0
    less = min(_seconds(pattern, tiny) for _ in range(3))
    return sum(expected_parts((len(tiny), less), (len(short), more), WORST_BYTES))


def _seconds(pattern: regex.Pattern[bytes], line: bytes) -> float:
    return seconds_of(lambda record: pattern.search(record, timeout=SEARCH_SECONDS), line)


def _hostile_lines(marker: Marker, size: int) -> Iterator[bytes]:
    """Yield lines of about ``size`` bytes that contain a literal: repeated texts, and fillers before a literal."""
    for seed in (*marker.literals, *(sample[:-1] or sample for sample in marker.samples)):
        yield (seed * (size // len(seed) + 1))[:size]
    for filler in _FILLERS:
        yield filler * (size // len(filler)) + marker.literals[0]
