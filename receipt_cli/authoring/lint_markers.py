"""Lint the marker catalogue: shape, patterns, samples, and the time for hostile lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import regex

from receipt_cli.authoring.timing import ORDINARY_HELP, expected_parts, ordinary_excess, pace, seconds_of
from receipt_cli.definitions.failure_markers import HEADLESS, SEARCH_SECONDS, Catalogue, Marker, read_catalogue
from receipt_cli.definitions.strict_yaml import locate
from receipt_cli.errors import DataError
from receipt_cli.problems import Finding

WORST_BYTES: Final = 64 * 1024
WORST_SECONDS: Final = 0.1
"""The longest record, and the time in seconds that a marker may take for a hostile one of that length."""
ORDINARY_SECONDS: Final = 0.015
"""The time in seconds that a marker may take for ``ORDINARY``, five times that of the slowest one."""
_TOKEN: Final = re.compile(
    r"\(\?:\)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:[:>|]|<?[=!]|P?<\w+>|[a-z-]+:))?|\)(?:(?:[*+?]|\{[\d,]+\})\+)?"
)
_FILLERS: Final = tuple(b" |a|a.|[|[a]|( pid=1|9|9 |: |a9: |\x1b[0m|E0101 1 a:1] ".split(b"|"))

Check: TypeAlias = Callable[[Marker, Catalogue], Iterator[tuple[str, str | None]]]
"""Yields (reason, help) for each problem of a marker."""


def lint_catalogue(text: bytes, where: str) -> list[Finding]:
    """Return the findings of the catalogue ``text``, an empty list for a sound one; ``where`` names it.

    Checked: shape and vocabulary, patterns (ASCII, compile, linear on hostile 64 KiB lines), and the samples:
    each contains a literal, fires its marker and no other reason of equal or stronger rank; counter samples fire
    nothing.
    """
    try:
        catalogue, findings = read_catalogue(text, where)
    except DataError as error:
        return [Finding("error", error.where or where, error.message, help=error.why or None)]
    findings += _findings(catalogue, text, where, [_pattern_problems])
    return findings or _findings(catalogue, text, where, [_head_problems, _sample_problems, _speed_problems])


def _findings(catalogue: Catalogue, text: bytes, where: str, checks: Sequence[Check]) -> list[Finding]:
    """Return what ``checks`` find in each marker, with its line."""
    found = [(m.id, *problem) for m in catalogue.markers for check in checks for problem in check(m, catalogue)]
    places = {name: f"{where}:{locate(text, ('markers', name))}" for name in dict.fromkeys(name for name, *_ in found)}
    return [Finding("error", places[name], f"{name}: {reason}", help=help_) for name, reason, help_ in found]


def _pattern_problems(marker: Marker, _catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) where the pattern does not compile, or lacks the group of its role."""
    try:
        named = marker.pattern.groupindex
    except regex.error as error:
        yield f"pattern does not compile: {error}", None
        return
    if marker.role == "exit_code" and "exit_code" not in named:
        yield "a marker of role exit_code needs a group exit_code", None


def _head_problems(marker: Marker, _catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) where a head is in a group that may match more without it."""
    opened: list[list[str]] = []  # of each open group, how it opens, and what stands in it
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
                yield "(?&head) stands in a group other than (?:…)", "what is atomic, or looks around, may hide matches"


def _sample_problems(marker: Marker, catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) for every sample that does not have its declared effect."""
    for sample in marker.samples:
        shown = repr(sample.decode()[:100])
        hits = {hit.marker.id: hit for hit in catalogue.search(sample)}
        if not any(literal in sample for literal in marker.literals):
            yield f"no literal in sample {shown}", "every line that matches must hold one of the literals"
        elif marker.id not in hits:
            yield f"sample does not match: {shown}", "the pattern is searched in the raw line"
        elif marker.role == "exit_code" and hits[marker.id].exit_code is None:
            yield f"no exit_code in sample {shown}", "name the number's group exit_code"
        for other in (hit.marker for hit in hits.values()):
            rival = other.rank <= marker.rank if marker.reason else marker.role != "exit_code"
            if rival and other.reason not in (None, marker.reason):
                why = "one reason may hold this rank or a better one on a line; an observation has none"
                yield f"sample also fires {other.id} ({other.reason}): {shown}", why
    for counter in marker.counter_samples:
        fired = [hit.marker.id for hit in catalogue.search(counter.line)]
        if marker.id in fired or sorted(fired) != sorted(counter.fires):
            shown = repr(counter.line.decode()[:100])
            yield f"counter sample fires {', '.join(fired) or 'nothing'}: {shown}", "state others under fires"


def _speed_problems(marker: Marker, _catalogue: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Yield (reason, help) for hostile lines that take the marker longer than its bound."""
    pattern = marker.pattern if marker.core is None else regex.compile(marker.core.encode("ascii"))
    slow = ordinary_excess(marker.literals, lambda line: pattern.search(line, timeout=SEARCH_SECONDS), ORDINARY_SECONDS)
    if slow is not None:
        yield f"takes {slow * 1000:.3g} ms on ordinary lines", ORDINARY_HELP
    sizes = (WORST_BYTES // 64, WORST_BYTES // 8, WORST_BYTES)
    for tiny, short, whole in zip(*(_hostile_lines(marker, size) for size in sizes), strict=True):
        # A shorter line first: what a pattern takes longer for than the length explains shows there already.
        if _expected(marker.pattern, tiny, short) > WORST_SECONDS and (worst := _worst_seconds(marker, whole)):
            longer = "" if worst < math.inf else "longer than "
            yield (
                f"takes {longer}{min(worst, SEARCH_SECONDS) * 1000:.0f} ms on {whole[:60]!r}…",
                "possessive quantifiers, bounded gaps",
            )


def _expected(pattern: regex.Pattern[bytes], tiny: bytes, short: bytes) -> float:
    """Return the seconds to expect of a search in a line of ``WORST_BYTES``, from shorter ones of its kind."""
    more = _seconds(pattern, short)
    if more <= WORST_SECONDS / 64:  # even the square of the length does not make it long
        return 0.0
    less = min(_seconds(pattern, tiny) for _ in range(3))
    return sum(expected_parts((len(tiny), less), (len(short), more), WORST_BYTES))


def _worst_seconds(marker: Marker, line: bytes) -> float | None:
    """Return the time of the best of three searches where it is beyond the bound, counted at this machine's pace."""
    best = math.inf
    for _ in range(3):  # another process on the same core doubles a time; it seldom does so three times
        best = min(best, _seconds(marker.pattern, line))
        if best <= WORST_SECONDS:
            return None
    return best if best > WORST_SECONDS * pace() else None


def _seconds(pattern: regex.Pattern[bytes], line: bytes) -> float:
    return seconds_of(lambda record: pattern.search(record, timeout=SEARCH_SECONDS), line)


def _hostile_lines(marker: Marker, size: int) -> Iterator[bytes]:
    """Yield lines of about ``size`` bytes that pass the gate: texts repeated, and fillers around a literal."""
    for seed in (*marker.literals, *(sample[:-1] or sample for sample in marker.samples)):
        yield (seed * (size // len(seed) + 1))[:size]
    for filler in _FILLERS:
        yield filler * (size // len(filler)) + marker.literals[0]
