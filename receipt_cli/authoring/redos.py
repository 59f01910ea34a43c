"""Attack a pattern with records that nearly match it, and measure how its time grows with their length.

The pattern is parsed by Python's own parser. After a text that leads to a repetition, text that the repetition matches is
repeated ("pumped"), and the required text after it is spoilt, at its start or its end. A pattern is searched from every
position of a record, so whole beginnings are repeated too.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

import regex

from receipt_cli.grammar.model import Rule
from receipt_cli.records.split import RECORD_CAP
from receipt_cli.scan.extraction import extract
from receipt_cli.scan.extraction.model import PatternTimeout

Read: TypeAlias = Callable[[bytes], object]
"""Reads one line. Raises ``TimeoutError`` or ``PatternTimeout`` at its time limit."""

_PACE: Final = regex.compile(rb"b:[^\n]{0,200}?(?:xyz|zyx)")
_PACE_LINE: Final = b"ab: c" * 13_107
PACE_SECONDS: Final = 0.06
"""Seconds of the search for ``_PACE`` in ``_PACE_LINE`` on the machine for which the bounds were set."""
ORDINARY_HELP: Final = "literals that fewer lines contain"
ORDINARY: Final = (
    b"Namespace(%b, on_Error='continue', retry_on=['TimeoutError', 'OSError'])" % b", ".join([b"an_option='its value'"] * 80),
    b"WARNING: 2026-03-01 10:00:00,123 trainer.py:88] RuntimeError in worker 3 was caught, out of memory: 0 times, exit code 0; "
    + b"loss=2.5 lr=1e-4 " * 40,
    b"2026-03-01 10:00:00,123 - trainer - INFO - %b" % (b"step: 1200/50000 | epoch: 3 | loss: 2.5173 | lr: 3.000e-04 | " * 12),
    b"{'loss': 2.5173, 'learning_rate': 0.0003, 'epoch': 3.02%b}" % b"".join(b", 'layers.%d.norm': 1.0" % n for n in range(60)),
    b" 45%|####      | 4500/10000 [1:12:03<1:28:01,  1.04it/s, loss=2.5173, lr=3e-4, grad_norm=0.812, epoch=3]",
    b"[rank3]: validation: accuracy 0.8123, iteration 1200, epoch 3, train loss 2.5, val loss 2.6, samples/sec 812.5" * 8,
    b'config: {%b, "signal": 15, "NCCL": "timeout 600", "Error": null}' % b", ".join([b'"layer": {"dim": 64, "name": "b"}'] * 60),
)
"""Long lines of healthy runs with words of many literals; such lines are frequent in logs, and none proves a failure."""


def seconds_of(read: Read, line: bytes) -> float:
    """Return the CPU seconds to read a line; infinity if it hits its time limit, even because of other processes."""
    started = time.process_time()
    try:
        read(line)
    except (TimeoutError, PatternTimeout):
        return math.inf
    return time.process_time() - started


def pace() -> float:
    """Return this machine's slowdown against the machine for which the bounds were set, at least 1."""
    return max(1.0, min(seconds_of(_PACE.search, _PACE_LINE) for _ in range(3)) / PACE_SECONDS)


def expected_parts(shorter: tuple[int, float], longer: tuple[int, float], size: int) -> tuple[float, float]:
    """Return the expected (linear, quadratic) seconds for a line of ``size`` bytes, from (bytes, seconds) of two shorter lines.

    A time that grows faster than quadratically is extrapolated with its exponent, all of it in the second part.
    """
    (few, less), (many, more) = shorter, longer
    if math.isinf(more):
        return 0.0, math.inf
    square = max(0.0, (more / many - less / few) / (many - few))
    plain = more / many - square * many
    if plain < 0:
        return 0.0, more * float(size / many) ** math.log(max(more, 1e-9) / max(less, 1e-9), many / few)
    return plain * size, square * size * size


def ordinary_excess(literals: Sequence[bytes], read: Read, bound: float) -> float | None:
    """Return as ``excess`` for the ``ORDINARY`` lines with a literal; None if there are none."""
    lines = [line for line in ORDINARY if any(literal in line for literal in literals)]
    return excess(lambda: sum(seconds_of(read, line) for line in lines), bound) if lines else None


def excess(measure: Callable[[], float], bound: float) -> float | None:
    """Return the best of three measured seconds if it exceeds ``bound`` at this machine's pace, else None."""
    best = math.inf
    for _ in range(3):  # another process seldom disturbs three measurements
        best = min(best, measure())
        if best <= bound:
            return None
    return best if best > bound * pace() else None


LEAST_REPEATS = 10
"""Least number of rounds of a repetition that is attacked; fewer cannot take long."""
MOST_ATTACKS = 400
SCREEN_BYTES = 2048
"""Length in bytes of the records for the first comparison of attacks."""
FINALISTS = 3
STEEP = 1.5
"""Exponent from which records grow in smaller steps, because an aborted call does not predict the next one."""
_PLAIN = 8
"""Factor by which a pattern of linear time may take longer: its bound is ``lint.TIME_BOX_S``."""
_SHORT_S = 0.01
_TRIES = 3
"""A run below ``_SHORT_S`` seconds is measured ``_TRIES`` times; the least time counts, because other processes only add."""
_BREAK = "\x01"
"""A character that hardly any pattern matches."""
_COMMON = "a0 1xA:.,-=|/_'\"[]{}()<>%\t"
"""Preferred characters for an example of a set, best first."""
_MOST_EXAMPLE = 2000
_NOT_RE = re.compile(r"(?<!\\)((?:\\\\)*)\\K")
_NAMED = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")


@dataclass(frozen=True, slots=True)
class Attack:
    """A record of any length: ``head``, repeated ``pump``, then ``tail``."""

    head: str
    pump: str
    tail: str

    def text(self, size: int) -> str:
        """Return the record with at most, and about, ``size`` characters."""
        room = size - len(self.head) - len(self.tail)
        return (self.head + self.pump * max(1, room // len(self.pump)) + self.tail)[:size]

    def record(self, size: int) -> bytes:
        """Return the record with at most, and about, ``size`` bytes."""
        return self.text(size).encode("latin-1", "replace")

    def describe(self) -> str:
        """Return a readable description of the record."""
        parts = [f"{_short(self.head)} +" if self.head else "", f"{_short(self.pump)} × n"]
        return " ".join([part for part in parts if part] + ([f"+ {_short(self.tail)}"] if self.tail else []))


@dataclass(frozen=True, slots=True)
class Growth:
    """The worst attack: CPU ``seconds`` for a record of ``size`` bytes, which grow as length to the power ``exponent``."""

    attack: Attack
    seconds: float
    size: int
    exponent: float

    def at(self, size: int) -> float:
        """Return the measured or extrapolated CPU seconds for a record of ``size`` bytes."""
        return float(self.seconds * max(1.0, size / self.size) ** max(1.0, self.exponent))


def _short(text: str) -> str:
    shown = ascii(text)
    return shown if len(shown) <= 48 else f"{shown[:32]}…{shown[-12:]}"


def pattern_attacks(source: str, *, flags: int = 0, head: str = "", needed: str = "") -> list[Attack]:
    """Return attacks on one pattern; [] if Python's parser does not know its syntax.

    All attacks begin with ``head`` and contain ``needed``, without which the pattern is not tried.
    """
    tree = _parse(source, flags)
    if tree is None:
        return []
    found: dict[Attack, None] = {}
    for before, body, rest in _repetitions(tree, ""):
        after = _example(rest)
        for pump in _pumps(body, rest):
            tails = [_BREAK + after, after[:-1] + _BREAK]
            for tail in [text if needed in text else f"{text} {needed}" for text in tails]:
                found[Attack(head + before, pump, tail)] = None
                if before:
                    found[Attack(head, before + pump * 3, tail)] = None
    return list(found)[:MOST_ATTACKS]


def sample_attacks(samples: Iterable[str], literals: Iterable[str]) -> list[Attack]:
    """Return attacks made from matching lines, cut and stretched with fillers, and from the required literals."""
    found: dict[Attack, None] = {}
    for sample in samples:
        found[Attack("", sample + " ", "")] = None
        found[Attack("", sample[:-1] or " ", "")] = None
        cuts = [at for at in range(1, len(sample)) if sample[at].isalnum() != sample[at - 1].isalnum()]
        for cut in [*cuts[:: 1 + len(cuts) // 10], len(sample) - 1]:
            for filler in (" ", "0", "a", "1,", "| ", "{", "'", "("):
                found[Attack(sample[:cut], filler, "!" + sample[cut:])] = None
    for literal in literals:
        found[Attack("", literal, "")] = None
        found[Attack(literal, " ", "!")] = None
        found[Attack("", "0", literal)] = None
        found[Attack("", "a ", literal)] = None
    return list(found)[:MOST_ATTACKS]


def worst_growth(
    run: Callable[[Attack, int], object], attacks: Sequence[Attack], size: int, enough_s: float, *, full: bool = False
) -> Growth | None:
    """Return the time growth of ``run(attack, size)`` for the worst attack; None without attacks.

    Records grow to ``size`` bytes, or until one takes ``enough_s`` CPU seconds. Without ``full`` they also stop growing if
    ``expected_parts`` predicts less than ``enough_s``; linear time may be ``_PLAIN`` times as long.
    """
    screen = min(SCREEN_BYTES, size)
    timed: list[tuple[float, Attack]] = []
    for attack in attacks:
        timed.append((_time(run, attack, screen), attack))
        if timed[-1][0] >= enough_s:
            break  # slow enough
    worst: Growth | None = None
    for _, attack in sorted(timed, key=lambda pair: -pair[0])[:FINALISTS]:
        growth = _growth(run, attack, screen, size, enough_s, full)
        if worst is None or growth.at(size) > worst.at(size):
            worst = growth
        if worst.seconds >= enough_s:
            break
    return worst


def _growth(run: Callable[[Attack, int], object], attack: Attack, screen: int, size: int, enough_s: float, full: bool) -> Growth:
    """Return the time growth of one attack, measured at least up to ``screen`` bytes or ``enough_s`` seconds."""
    now = screen // 4
    seconds, exponent, plain, square = _least_time(run, attack, now), 1.0, math.inf, math.inf
    while now < size and seconds < enough_s and (full or now < screen or max(square, plain / _PLAIN) > enough_s / 2):
        grown = min((4 if exponent < STEEP else 2) * now, size)
        taken = _least_time(run, attack, grown)
        exponent = math.log(max(taken, 1e-9) / max(seconds, 1e-9), grown / now)
        plain, square = expected_parts((now, seconds), (grown, taken), size)
        seconds, now = taken, grown
    return Growth(attack, seconds, now, exponent)


def _least_time(run: Callable[[Attack, int], object], attack: Attack, size: int) -> float:
    """Return the CPU seconds of a run; if it is short, of the fastest of ``_TRIES``."""
    least = math.inf
    for _ in range(_TRIES):
        least = min(least, _time(run, attack, size))
        if least >= _SHORT_S:
            break
    return least


def _time(run: Callable[[Attack, int], object], attack: Attack, size: int) -> float:
    """Return the CPU seconds of one run."""
    begun = time.process_time()
    run(attack, size)
    return time.process_time() - begun


def _parse(source: str, flags: int) -> Any:
    """Return the parse tree of a pattern, or None if Python's parser does not know its syntax."""
    source = _NOT_RE.sub(r"\1", source)  # \K only sets the start of the match
    seen: set[str] = set()
    for found in reversed(list(_NAMED.finditer(source))):  # ``regex`` allows a name in several alternatives
        if found[1] in seen:
            source = source[: found.start()] + "(" + source[found.end() :]
        seen.add(found[1])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module("re._parser").parse(source, flags)
    except (re.error, RecursionError, OverflowError):
        return None


def _repetitions(nodes: Sequence[Any], before: str) -> Iterator[tuple[str, Sequence[Any], Sequence[Any]]]:
    """Yield (text that leads to it, body, nodes that must follow) of each repetition."""
    for index, (kind, value) in enumerate(nodes):
        rest = list(nodes)[index + 1 :]
        name = str(kind)
        if name in _REPEATS:
            _least, most, body = value
            if most >= LEAST_REPEATS:
                yield before, body, rest
            for inner, what, after in _repetitions(body, before):
                yield inner, what, [*after, *rest]
        else:
            for part in _inside(name, value):
                for inner, what, after in _repetitions(part, before):
                    yield inner, what, [*after, *rest]
        before = (before + _example([(kind, value)], before))[:_MOST_EXAMPLE]


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def _inside(name: str, value: Any) -> list[Any]:
    """Return the bodies of a group, an alternative or an assertion."""
    if name == "SUBPATTERN":
        return [value[3]]
    if name == "BRANCH":
        return list(value[1])
    if name == "ATOMIC_GROUP":
        return [value]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if name == "GROUPREF_EXISTS":
        return [part for part in value[1:] if part is not None]
    return []


def _example(nodes: Iterable[Any], before: str = "", optional: bool = False) -> str:
    """Return a short text that ``nodes`` match; with ``optional``, optional parts occur once."""
    text = ""
    for kind, value in nodes:
        name = str(kind)
        if name in _REPEATS:
            text += _example(value[2], before + text, optional) * (max(value[0], 1) if optional else min(value[0], 64))
        elif name == "BRANCH":
            text += _example(value[1][0], before + text, optional)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            text += _example(_inside(name, value)[0], before + text, optional)
        elif name == "GROUPREF":
            text += (before + text)[-1:]
        else:
            members = _members(name, value)
            text += _pick(members, "") if members else ""
        if len(text) > _MOST_EXAMPLE:
            break
    return text


def _pumps(body: Sequence[Any], rest: Sequence[Any]) -> list[str]:
    """Return texts that a repetition matches; for a set also characters that later parts match too."""
    nodes = list(body)
    if len(nodes) == 1:
        members = _members(str(nodes[0][0]), nodes[0][1])
        if members:
            shared = [members & other for other in _sets(rest)]
            picks = [_pick(found, "") for found in shared if found]
            return list(dict.fromkeys([_pick(members, ""), _pick(members, "a0 "), *picks]))[:4]
    found = [_example(nodes), _example(nodes, optional=True)]
    for kind, value in nodes:
        parts = _inside(str(kind), value)
        if str(kind) == "SUBPATTERN" and len(parts[0]) == 1:
            parts = _inside(str(parts[0][0][0]), parts[0][0][1]) or parts
        found += [_example(part, optional=optional) for part in parts[:6] for optional in (False, True)]
    return [text for text in dict.fromkeys(found) if text][:8]


def _sets(nodes: Iterable[Any]) -> Iterator[frozenset[int]]:
    """Yield the sets of characters that repetitions in ``nodes`` match."""
    for kind, value in nodes:
        name = str(kind)
        if name in _REPEATS:
            for inner, what in value[2]:
                members = _members(str(inner), what)
                if members:
                    yield members
            yield from _sets(value[2])
        for part in _inside(name, value):
            yield from _sets(part)


_DIGITS, _BLANKS = frozenset(range(48, 58)), frozenset(b" \t\n\r\f\v")
_WORDS = _DIGITS | frozenset(range(65, 91)) | frozenset(range(97, 123)) | {95}
_ALL = frozenset(range(256)) - {10, 13}
_CATEGORIES = {"DIGIT": _DIGITS, "SPACE": _BLANKS, "WORD": _WORDS}


def _members(name: str, value: Any) -> frozenset[int]:
    """Return the codes below 256, without line ends, that a character node matches; empty for other nodes."""
    if name == "LITERAL":
        return frozenset({value})
    if name == "NOT_LITERAL":
        return _ALL - {value}
    if name == "ANY":
        return _ALL
    if name != "IN":
        return frozenset()
    found: frozenset[int] = frozenset()
    negated = False
    for kind, part in value:
        if str(kind) == "NEGATE":
            negated = True
        elif str(kind) == "RANGE":
            found |= frozenset(range(part[0], min(part[1], 255) + 1))
        elif str(kind) == "CATEGORY":
            category = str(part).removeprefix("CATEGORY_")
            known = _CATEGORIES.get(category.removeprefix("NOT_"), frozenset())
            found |= (_ALL - known) if category.startswith("NOT_") else known
        else:
            found |= _members(str(kind), part)
    return _ALL - found if negated else found


def _pick(members: frozenset[int], unlike: str) -> str:
    """Return a character of ``members``: a letter or digit if there is one, and one outside ``unlike`` if there is one."""
    for letter in _COMMON:
        if ord(letter) in members and letter not in unlike:
            return letter
    left = sorted(members - set(map(ord, unlike)) or members)
    return chr(left[0])


HOSTILE_BYTES = RECORD_CAP
"""Length of a hostile record in bytes: the longest record that is read."""
HOSTILE_BOUND_S = 0.25
"""Most CPU seconds of one rule for a hostile record if its time grows faster than the length; else its time box."""
_SAMPLES = 2


def rule_attacks(rule: Rule) -> list[Attack]:
    """Return the test inputs that may make the patterns of ``rule`` slow."""
    return list(dict.fromkeys(_attacks(rule)))


def _attacks(rule: Rule) -> Iterator[Attack]:
    literals = [literal.decode("latin-1") for literal in rule.literals]
    for source in rule.sources:
        yield from pattern_attacks(source, needed=literals[0])
    lines = [sample.line.encode().split(b"\n")[-1].decode("latin-1") for sample in rule.samples]
    if rule.pairs is not None:
        key, cell = rule.pairs.key, rule.pairs.cell
        known = next(iter(rule.pairs.keys), "a")
        for head in lines[:1]:
            for pump in (key, cell, f"a{key}1{cell}", f"{known}{key}1{cell}", f"a{cell}", f"a{key}", "a ", "a"):
                yield Attack(head + cell, pump, "")
            if rule.pairs.stop is not None:
                yield from pattern_attacks(rule.pairs.stop, head=head)
    if rule.mapping is not None:
        for head in (literals[0], *(line[: line.find("{")] for line in lines[:1])):
            for pump in ("{", "{'a':", "{'a':[", "'a': 1, ", "\\", "a(", '"', "{'a': 1}", f"{head}{{'a': "):
                yield Attack(head + "{", pump, literals[0])
    yield from sample_attacks(lines[:_SAMPLES], literals[:_SAMPLES])


def rule_growth(rule: Rule, size: int = HOSTILE_BYTES, enough_s: float = HOSTILE_BOUND_S) -> Growth | None:
    """Return the time growth of ``rule`` for its worst known record of up to ``size`` bytes; see ``worst_growth``."""

    def run(attack: Attack, length: int) -> None:
        with contextlib.suppress(PatternTimeout):
            extract(rule, attack.record(length))

    return worst_growth(run, rule_attacks(rule), size, enough_s)
