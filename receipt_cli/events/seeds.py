"""Read seeds from the lines before the first record that no rule of the trainer reads: people's own scripts print them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from receipt_cli.events.streams import Gathered
from receipt_cli.events.table import EventTable
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import plain, starts

LONGEST = 20_000
"""Longest line, in bytes, that is looked at: a namespace of all options is a long one."""
MOST = 2**64
Facts = Mapping[str, tuple[float | str, int]]
"""Value and line of each fact by its name."""
_ADJECTIVES = rb"(?:(?:using|setting|set|with|a|an|the|fixed|global|random|manual|master|base|rng|numpy|torch|training)\s++){0,4}"
_ALONE = compile_later(
    rb"(?:[-*>]\s|\[rank: \d{1,6}\]\s)?" + _ADJECTIVES + rb"(?:random|manual|rng)?_?seed(?:\s++(?:is\s|value|number))?"
    rb"(?:\s++(?:set\s)?(?:to|as)\b)?\s*+[:=]?\s*+(\d{1,20})\s*+\.?$",
    re.IGNORECASE,
)
_NAMESPACE = compile_later(rb"\bNamespace\(")
_SETTING = compile_later(rb"[(,]\s?(?:random_|manual_)?seed=(\d{1,20})(?=[,)])")


def with_seed(facts: Facts, gathered: Gathered, events: EventTable) -> Facts:
    """Return the facts of the first run of a log with the seed that is printed before its first record.

    The facts are returned unchanged if a rule read a seed, or if two lines differ. A line must be about nothing but the seed
    (``seed: 42``, ``Random seed set to 42``) and begin at the beginning of the line; or it is a namespace or a JSON object of all
    options with a seed of its own. A seed further inside, such as that of a data set, is not the run's.
    """
    if not events or len(gathered.streams) > 1 or facts.keys() & {"seed", "data_seed"}:
        return facts
    head = gathered.heads[0]
    if b"eed" not in head and b"EED" not in head:
        return facts
    until = first_figure(events)
    found: dict[int, int] = {}
    for number, line in enumerate(plain(head[: head.rfind(b"\n") + 1]).split(b"\n"), gathered.lines[0] + 1):
        if until is not None and number >= until:
            break
        if len(line) < LONGEST and b"seed" in line.lower():
            for seed in _seeds(line.rstrip()):
                found.setdefault(seed, number)
    return {**facts, "seed": next(iter(found.items()))} if len(found) == 1 and next(iter(found)) < MOST else facts


def first_figure(events: EventTable) -> int | None:
    """Return the line of the first record that is a step or has a metric."""
    asked = events.of_sources(lambda source: source.is_step or bool(source.metrics))
    return next((row.line for row in asked if row.is_step or row.metrics), None)


def _seeds(line: bytes) -> Iterator[int]:
    """Yield the seeds of the run in a line, read after each of the heads that it may have."""
    for at in (0, *starts(line)):
        text = line[at:]
        if (alone := _ALONE.match(text)) is not None and alone.end() == len(text):
            yield int(alone[1])
        elif text.startswith(b"{"):
            yield from _option(text)
    if _NAMESPACE.search(line) is not None:
        yield from (int(setting[1]) for setting in _SETTING.finditer(line) if not _inner(line[: setting.start() + 1]))


def _inner(before: bytes) -> bool:
    """Return whether a bracket is open inside the namespace: a nested object sets its own values."""
    text = before[before.rfind(b"Namespace(") + len(b"Namespace(") :]
    return any(text.count(opening) > text.count(closing) for opening, closing in ((b"(", b")"), (b"[", b"]"), (b"{", b"}")))


def _option(text: bytes) -> Iterator[int]:
    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        return
    seed = options.get("seed") if isinstance(options, dict) else None
    if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0:
        yield seed
