"""Lines that print several records of one form, ``ep 1: loss 2.4; ep 2: loss 2.2``: a line for each, and a rule for all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from receipt_cli.learn.emit import Induced, literal
from receipt_cli.learn.tokens import core_start
from receipt_cli.records.envelope import MASK, is_blind

LOOKED_AT = 64 << 10
"""Bytes within which such lines must show."""
FEWEST = 4
"""Records on such lines that prove it."""
RISING = 0.8
"""Share of the records whose first number must be above that of the one before."""
MOST_NUMBERS = 8
"""Numbers of one record."""
_NUMBER = re.compile(rb"(\d[\d.]*(?:[eE][-+]?\d+)?)")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_BETWEEN = re.compile(rb"[^\w()\[\]]{1,5}")
_BEGIN, _END = "^[ \\t]{", re.compile(r"(?:\[ \\t\]\*\+)+\$")


class Several:
    """Parts the lines of a log that print several records. ``separator``: the bytes between two; empty where none does."""

    separator = b""

    def parted(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the text of ``blocks``, however it is cut, with a line for each record."""
        first, blocks = b"", iter(blocks)
        for block in blocks:
            first += block
            if len(first) >= LOOKED_AT:
                break
        self.separator = _separator(first[:LOOKED_AT])
        if not self.separator:
            yield first
            yield from blocks
            return
        rest = b""
        for block in chain([first], blocks):
            *lines, rest = (rest + block).split(b"\n")
            yield b"".join(record + b"\n" for line in lines for record in self._records(line))
        yield b"\n".join(self._records(rest))

    def _records(self, line: bytes) -> list[bytes]:
        separator, records = _parted(line) if self.separator in line else (b"", [line])
        return records if separator == self.separator else [line]

    def reading(self, rules: list[Induced]) -> list[Induced]:
        """Return the rules as they read every record of a line: each begins where the one before it on the line ends."""
        between = literal(self.separator) if self.separator.strip() else r"[ \t]++"
        for rule in rules if self.separator else ():
            pattern = _END.sub(lambda _: rf"(?:[ \t]*+$|{between})", rule.pattern.replace(_BEGIN, rf"(?:^|\G){_BEGIN[1:]}"))
            rule.pattern = rule.body["pattern"] = pattern
        return rules


def _separator(text: bytes) -> bytes:
    """Return what parts the records on the lines of a text where the first number goes on from each to the next; else nothing."""
    found: dict[bytes, list[bytes]] = {}
    alone: set[bytes] = set()  # forms of lines with one record, which no digit parts
    for line, form in zip(text.split(b"\n"), text.translate(MASK).split(b"\n"), strict=True):
        separator, records = (b"", ()) if form in alone else _parted(line)
        found.setdefault(separator, []).extend(records if separator else ())
        if not separator and is_blind(form):
            alone.add(form)
    for separator, records in found.items():
        firsts = [float(_NUMBER.findall(record[core_start(record) :])[0].rstrip(b".")) for record in records if separator]
        if len(firsts) >= FEWEST and sum(b > a for a, b in pairwise(firsts)) >= RISING * (len(firsts) - 1):
            return separator
    return b""


def _parted(line: bytes) -> tuple[bytes, list[bytes]]:
    """Split a line that prints several records; return the text between them, and each record with the prefix of the line.

    Of a line with one record: ``(b"", [line])``.
    """
    if len(_NUMBER.findall(line)) < FEWEST:  # two records of two numbers
        return b"", [line]
    at = core_start(line)
    head, parts = line[:at], _NUMBER.split(line[at:].rstrip())
    texts, count = parts[::2], len(parts) // 2
    for size in range(2, min(MOST_NUMBERS, count // 2) + 1):
        between = texts[size]
        alike = count % size == 0 and all(text == texts[n % size or size] for n, text in enumerate(texts[1:-1], start=1))
        if not alike or not between.startswith(texts[-1]) or not between.endswith(texts[0]):
            continue
        separator = between[len(texts[-1]) : len(between) - len(texts[0])]
        if _BETWEEN.fullmatch(separator) is None or not any(map(_LETTER.search, texts[:size])):
            continue
        units = (parts[2 * n + 1 : 2 * (n + size)] for n in range(0, count, size))
        return separator, [head + texts[0] + b"".join(unit) + texts[-1] for unit in units]
    return b"", [line]
