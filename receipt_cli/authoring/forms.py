"""Write a learned rule in a readable form: keys and values, or one line with named parts, instead of one long pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from receipt_cli.grammar.digit_sensitivity import find_name, opens, tokens_of
from receipt_cli.grammar.model import COUNTERS, compile_pattern
from receipt_cli.grammar.parse import abbreviate
from receipt_cli.learn.emit import escaped
from receipt_cli.learn.tokens import split

Body = dict[str, Any]
"""A rule in the grammar format, without samples."""
HEAD_FIELDS = frozenset({"step", "planned_steps", *COUNTERS})
_LEAD = re.compile(r"\^\[ \\t\](?:\*\+|\{0,\d+\}\+)")
"""Start of a learned pattern: at the beginning of a line."""
_KEY = re.compile(r"(?P<cell>[^\w%]*)(?P<key>[^\W\d_][^=:|;,]{0,60}?)(?P<sep>[ \t]*[=:][ \t]*|[ \t]+)\Z")
WIDE = 100
"""Longest pattern, in characters, that is written on one line."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A sample: the texts between its numbers, and ``(start, end, field)`` of each field in each number."""

    literals: tuple[str, ...]
    tokens: tuple[str, ...]
    fields: tuple[tuple[tuple[int, int, str], ...], ...]

    @property
    def named(self) -> dict[int, tuple[str, ...]]:
        """The index of each number with fields, and these."""
        return {at: tuple(name for *_, name in inside) for at, inside in enumerate(self.fields) if inside}

    @property
    def cells(self) -> dict[int, tuple[str, ...]]:
        """Those of ``named`` without a counter."""
        return {at: names for at, names in self.named.items() if HEAD_FIELDS.isdisjoint(names)}

    @property
    def last(self) -> int:
        """The index of the last number with a field, or -1."""
        return max(self.named, default=-1)

    @property
    def shape(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(text before, field names) of each number up to the last field, with runs of blanks as one blank."""
        texts = (" ".join(_joined(left, token).split()) for left, token in zip(self.literals, self.tokens, strict=False))
        return tuple((text, self.named.get(at, ())) for at, text in enumerate(texts) if at <= self.last)


def mark(sample: bytes, found: Any) -> Marked:
    """Split ``sample`` at its numbers, and note which number holds each field of the match ``found``."""
    parts = [part.decode("latin-1") for part in split(sample)]
    spans = sorted((*found.span(name), name) for name, text in found.groupdict().items() if text is not None)
    ends = list(accumulate(map(len, parts)))
    numbers = [(end - len(part), end) for part, end in zip(parts, ends, strict=True)][1::2]
    inside = ([(a - start, b - start, name) for a, b, name in spans if start <= a < b <= end] for start, end in numbers)
    return Marked(tuple(parts[::2]), tuple(parts[1::2]), tuple(map(tuple, inside)))


def simple_forms(body: Body, samples: Sequence[bytes]) -> Iterator[Body]:
    """Yield shorter forms of the rule ``body``, the most readable first; the last is the rule itself with named parts.

    A form may read other records than the rule, so the caller must compare. ``samples`` are records that the rule reads.
    """
    compiled = compile_pattern(body["pattern"])
    marked = [mark(sample, found) for sample in samples if (found := compiled.search(sample)) is not None]
    if marked and all(sample.named for sample in marked):
        values = {name: _group(body["pattern"], name) for name in body["fields"]}
        lead = "".join(_LEAD.findall(body["pattern"][:40]))
        if not lead and not any(sample.literals[0].strip() for sample in marked):
            lead = r"(?<!\d)"  # match a number only from its first digit
        forms = [form for form in (_as_pairs(body, marked, values, lead), _as_line(body, marked, values, lead)) if form]
        if body["literal"] == " ":  # only a rule of whole lines may have so short a literal
            forms = [{**form, "pattern": rf"{form['pattern']}[^\n]*+$"} for form in forms if "pattern" in form]
        yield from forms
    yield {**body, "pattern": _wrapped(abbreviate(body["pattern"]))}


def _group(pattern: str, name: str) -> str:
    """Return the regex inside the group ``name`` of ``pattern``, "" without the group; ``\\d++`` becomes ``(?&integer)``."""
    depth, inner = 0, ""
    for token, _ in tokens_of(pattern) or ():
        if depth:
            depth += opens(token) - (token == ")")
            if not depth:
                break
            inner += token
        else:
            depth = int(find_name(token) == name)
    inner = abbreviate(inner)
    return "(?&integer)" if inner == r"\d++" else inner


def _joined(left: str, token: str) -> str:
    return left + token[: len(token) - len(token.lstrip())]


def text_pattern(text: str) -> str:
    """Return the pattern of a text between numbers, in which a run of blanks matches any run of blanks."""
    return r"\s++".join(escaped(word.encode("latin-1")).replace(r"\-", "-") for word in re.split(r"[ \t]+", text))


def _token(token: str, inside: Sequence[tuple[int, int, str]], values: Mapping[str, str]) -> str:
    """Return the pattern of a number: with its fields, or for any number of its kind."""
    blank = len(token) - len(token.lstrip())
    if not inside:
        return _any(token.strip())
    made, at = "", blank
    for start, end, name in inside:
        made += text_pattern(token[at:start]) + f"(?P<{name}>{values[name]})"
        at = end
    return made + text_pattern(token[at:])


def _any(text: str) -> str:
    """Return the pattern of a number without a field."""
    if re.fullmatch(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?", text):
        return "(?&grouped)" if "," in text else "(?&number)"
    if text.startswith("[") and "," in text:
        return r"\[[^\]\n]{0,80}"
    if text[:1] in "|[" or not text.isascii():
        return "(?&bar)"
    if not any(char.isdigit() for char in text):
        return "(?&text)"
    return r"\d++".join(map(re.escape, re.split(r"\d+", text)))


def _pieces(sample: Marked, values: Mapping[str, str], first: int, last: int) -> list[str]:
    """Return the patterns of the texts and numbers of ``sample`` from ``first`` to ``last``."""
    numbers = zip(sample.literals, sample.tokens, sample.fields, strict=False)
    texts = [(_joined(left, token), _token(token, inside, values)) for left, token, inside in numbers]
    made = [text_pattern(text if at else text.lstrip()) + number for at, (text, number) in enumerate(texts)]
    return made[first : last + 1]


def _as_line(body: Body, samples: Sequence[Marked], values: Mapping[str, str], lead: str) -> Body | None:
    """Return the rule with one pattern from the line's first word to its last field; what some samples lack is optional in it."""
    ordered = sorted({sample.shape: sample for sample in samples}.values(), key=lambda sample: sample.last)
    if any(longer.shape[: len(shorter.shape)] != shorter.shape for shorter, longer in pairwise(ordered)):
        return None
    if {name for sample in samples for names in sample.named.values() for name in names} != set(body["fields"]):
        return None
    pattern, closing, at = lead, "", 0
    for number, sample in enumerate(ordered):
        pieces = _pieces(sample, values, at, sample.last)
        pieces[-1] += "" if sample.tokens[sample.last].rstrip()[-1:].isalpha() else "(?&end)"
        pattern += ("(?:" if number else "") + "".join(pieces)
        closing += ")?+" if number else ""
        at = sample.last + 1
    return {**body, "pattern": _wrapped(pattern + closing)}


def _wrapped(pattern: str) -> str:
    """Return ``pattern``, wrapped between fields if it is long."""
    if len(pattern) <= WIDE:
        return pattern
    lines: list[str] = []
    line = ""
    for piece in re.split(r"(?<=\))(?=\\s\+\+|[^\\(\[)?*+{|]{2})", pattern):
        if line and len(line) + len(piece) > WIDE:
            lines, line = [*lines, line], ""
        line += piece
    return "\n".join([*lines, line])


def _as_pairs(body: Body, samples: Sequence[Marked], values: Mapping[str, str], lead: str) -> Body | None:
    """Return the rule as a start and cells of key and value; None if the log separates them in several ways."""
    sample = max(samples, key=lambda each: each.last)
    cells = sample.cells
    if len(cells) < 2 or max(sample.named.keys() - cells.keys(), default=-1) > min(cells):
        return None
    keys: dict[str, str] = {}
    separators: set[tuple[str, str]] = set()
    for each in samples:
        for at, names in each.cells.items():
            found = _KEY.fullmatch(_joined(each.literals[at], each.tokens[at]))
            if found is None or len(names) > 1 or keys.setdefault(found["key"], names[0]) != names[0]:
                return None
            if at != min(each.cells):
                separators.add(_separators(found["cell"], found["sep"]))
    if len(separators) != 1 or set(keys.values()) | HEAD_FIELDS & set(body["fields"]) != set(body["fields"]):
        return None
    cell, key = separators.pop()
    if not cell or (not cell.strip() and key == " "):
        return None
    first = _KEY.fullmatch(_joined(sample.literals[min(cells)], sample.tokens[min(cells)]))
    assert first is not None
    start = lead + "".join(_pieces(sample, values, 0, min(cells) - 1)) + text_pattern(first["cell"])
    if not start.strip("^*+ \\t[]") or start == lead:
        start = lead + rf"(?={text_pattern(first['key'])})"
    needed = [key for key, name in keys.items() if all((name,) in each.cells.values() for each in samples)]
    made: Body = {k: v for k, v in body.items() if k not in ("pattern", "fields")}
    made["pairs"] = {"start": start, "cell": cell, "key": key, "keys": keys, "unknown": "ignore"}
    if needed:
        made["pairs"]["requires"] = needed[:1]
    return {**made, "fields": body["fields"]}


def _separators(cell: str, key: str) -> tuple[str, str]:
    """Return the separators of cells, and of key and value, from the texts before and after a key."""
    between = key.strip() or " "
    if not cell.strip():
        return ("  " if len(cell) > 1 else " ", between)
    return (cell.lstrip() if between == " " else cell.strip(), between)
