"""Look at a record: in which form its numbers are collected, if at all, and what it heralds.

Neither depends on the values of digits, but behind the few heads that print one: what is known of a record by its bytes with
each digit as 0 holds for the logs that the process reads next.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from receipt_cli.learn.masked_form import Form, form_of, has_plain_heads
from receipt_cli.learn.tokens import core_start

MAX_SEEN = 16384
"""Bytes of a record that are searched for words."""
MAX_HERALD = 160
"""Bytes of a line, with its envelope, that are searched for words of an evaluation or of training."""
MAX_KNOWN, MAX_BYTES = 1 << 15, 512
"""Records that are known, and the bytes of one at most; when there are more, all are forgotten."""
_DASHES = re.compile(rb"[-=*#][-=*#][-=*#]")
_RULED = re.compile(rb"(?<![\w=*#-])[-=*#]{3,}[ \t]*\d+[ \t]*[-=*#]{3,}[ \t]*$")
_DIGIT, _WORD = re.compile(rb"\d"), re.compile(rb"[a-z]+")
Looked = tuple[Form | None, int]
"""The form of a record, None without a digit or a known word; and 1, -1 or 0 as ``heralds`` says."""


class Looks:
    """Looks at records for words, in lower case; those of other scripts are looked for inside others.

    ``heralds`` returns 1 for a line that announces an evaluation, -1 for one that speaks of training, else 0. ``known`` is
    what was seen of records, by their bytes with each digit as 0.
    """

    def __init__(self, words: frozenset[bytes], heralds: Callable[[bytes], int] | None) -> None:
        self._words = words
        self._heralds = heralds
        foreign = sorted((re.escape(word) for word in words if not word.isascii()), key=len, reverse=True)
        self._foreign = re.compile(b"|".join(foreign)) if foreign else None
        self.known: dict[bytes, Looked] = {}

    def look(self, masked: bytes, record: bytes) -> Looked:
        """Return what a record shows that is not known; ``masked`` is the record with each digit as 0."""
        at = core_start(record)  # the name of a logger or of a service is no word of the line
        seen = masked[at : at + MAX_SEEN]
        told = not self._words.isdisjoint(_WORD.findall(seen.lower())) or bool(_DASHES.search(seen) and _RULED.search(seen))
        told = told or (self._foreign is not None and not seen.isascii() and self._foreign.search(seen) is not None)
        form = form_of(record) if told and _DIGIT.search(masked) else None
        head = record[:MAX_HERALD]
        looked = form, self._heralds(head) if self._heralds is not None else 0
        plain = form.lasting if form is not None else has_plain_heads(record, at)
        if len(record) <= MAX_BYTES and plain and (head == record or has_plain_heads(head, core_start(head))):
            if len(self.known) >= MAX_KNOWN:
                self.known.clear()
            self.known[masked] = looked
        return looked


@lru_cache(maxsize=2)
def looks(words: frozenset[bytes], heralds: Callable[[bytes], int] | None) -> Looks:
    """Return the ``Looks`` that this process has for these words."""
    return Looks(words, heralds)
