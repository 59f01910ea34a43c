"""Texts of table and block rows: each as its form, with zeros for digits, and its numbers.

A table or block prints few forms and many numbers, and columns of numbers are small and fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.numeric.column import Cells
from receipt_cli.patterns import compile_later

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Integers

Place = tuple[int, int]
STRETCH = 1 << 16
"""Texts between two stored counts of the numbers before them."""
ZEROS = str.maketrans("123456789", "000000000")
_NUMBER = compile_later(r"0{1,9}\.0{1,9}|0{1,18}", re.ASCII)
"""Digits that are kept as one integer, with or without a decimal point."""


@lru_cache(4096)
def places_of(form: str) -> tuple[Place, ...]:
    """Return the spans of the numbers of a form."""
    return tuple(found.span() for found in _NUMBER.finditer(form))


class RowTexts:
    """Texts, with the row of each.

    ``forms`` are all distinct forms; ``which`` is the form number of each text; ``digits`` are the numbers of all texts in
    order, without decimal points.
    """

    __slots__ = ("_before", "_known", "digits", "forms", "rows", "which")

    def __init__(self) -> None:
        self.rows: Cells[int] = Cells("q")
        self.which: Cells[int] = Cells("q")
        self.digits: Cells[int] = Cells("q")
        self.forms: list[str] = []
        self._known: dict[str, int] = {}
        self._before = [0]
        """The numbers before each stretch of texts, computed on demand."""

    def __len__(self) -> int:
        return len(self.which)

    @property
    def values(self) -> list[str]:
        """All texts."""
        return list(self.texts())

    def texts(self) -> Iterator[str]:
        """Yield the texts."""
        digits = iter(self.digits)
        for which in self.which:
            form = self.forms[which]
            places = places_of(form)
            yield with_digits(form, places, tuple(islice(digits, len(places)))) if places else form

    def at(self, places: Integers) -> list[str]:
        """Return the texts at the indices ``places`` (int64 [n])."""
        if not len(places):
            return []
        low, high = int(places.min()), int(places.max()) + 1
        start = low - low % STRETCH
        ends = self._digits_before(start) + np.cumsum(self._sizes()[self.which.whole()[start:high]])
        which, digits = self.which.whole()[places].tolist(), self.digits.whole()
        found = []
        for form, end in zip([self.forms[number] for number in which], ends[places - start].tolist(), strict=True):
            spans = places_of(form)
            found.append(with_digits(form, spans, digits[end - len(spans) : end].tolist()))
        return found

    def _digits_before(self, text: int) -> int:
        """Return how many numbers precede a text; its index is a multiple of ``STRETCH``."""
        sizes = self._sizes()
        while len(self._before) <= text // STRETCH:
            end = len(self._before) * STRETCH
            self._before.append(self._before[-1] + int(sizes[self.which.whole()[end - STRETCH : end]].sum()))
        return self._before[text // STRETCH]

    def pieces(self, ends: Iterable[int]) -> Iterator[tuple[int, Iterator[tuple[str, Integers, Integers]]]]:
        """Yield for the texts up to each of ``ends`` the first index and, by form, their indices from there and numbers.

        The indices are int64 [n], the numbers int64 [n, numbers of the form].
        """
        sizes, begin, done = self._sizes(), 0, 0
        for end in ends:
            which = self.which.whole()[begin:end]
            counts = sizes[which]
            stops = np.cumsum(counts)
            digits = self.digits.whole()[done : done + int(stops[-1])]
            done += len(digits)
            yield begin, self._by_form(which, stops - counts, digits)
            begin = end

    def _by_form(self, which: Integers, starts: Integers, digits: Integers) -> Iterator[tuple[str, Integers, Integers]]:
        small = which.astype(np.uint16) if len(self.forms) < 1 << 16 else which  # numpy sorts it faster
        order = np.argsort(small, kind="stable")
        ends = [*(np.flatnonzero(np.diff(which[order])) + 1).tolist(), len(order)]
        for start, end in zip([0, *ends], ends, strict=False):
            at = order[start:end]
            form = self.forms[which[at[0]]]
            yield form, at, digits[starts[at][:, np.newaxis] + np.arange(len(places_of(form)))]

    def _sizes(self) -> Integers:
        """Return how many numbers each form has."""
        return np.array([len(places_of(form)) for form in self.forms], np.int64)

    def append(self, row: int, text: str) -> None:
        """Add ``text`` for ``row``; rows ascend."""
        form = text.translate(ZEROS)
        self.rows.append(row)
        self.which.append(self._number(form))
        for start, end in places_of(form):
            self.digits.append(int(text[start:end].replace(".", "", 1)))

    def extend(self, other: RowTexts, shift: int) -> None:
        """Add the entries of ``other``, whose rows begin after ``shift`` rows of ours."""
        self.rows.extend(other.rows, shift)
        self.which.extend(self._ours(other.which, other.forms))
        self.digits.extend(other.digits)

    def extend_bytes(self, rows: bytes | memoryview, which: bytes, forms: list[str]) -> None:
        """Add texts without their digits: the bytes of their rows, and the index into ``forms`` of each."""
        self.rows.extend_bytes(rows)
        self.which.extend(self._ours(Cells.read("q", which), forms))

    def _ours(self, which: Cells[int], forms: list[str]) -> Cells[int]:
        """Return the numbers of forms in this table; ``which`` are their numbers in ``forms``, the list of another table.
        That list may have forms of no text, of logs read before: they get no number here."""
        numbers = which.whole()
        first = np.full(len(forms), len(numbers))
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]
        used = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(numbers))]
        ours = np.zeros(len(forms), np.int64)
        ours[used] = [self._number(forms[number]) for number in used.tolist()]
        return which if (ours[used] == used).all() else Cells.of(ours[numbers])

    def _number(self, form: str) -> int:
        number = self._known.setdefault(form, len(self.forms))
        if number == len(self.forms):
            self.forms.append(form)
        return number


def with_digits(form: str, places: Sequence[Place], digits: Iterable[int]) -> str:
    """Return the text of a form with ``digits`` at its ``places``."""
    parts, done = [], 0
    for (start, end), number in zip(places, digits, strict=True):
        point = form.find(".", start, end)
        figures = str(number).zfill(end - start - (point >= 0))
        parts += [form[done:start], figures if point < 0 else f"{figures[: point - start]}.{figures[point - start :]}"]
        done = end
    return "".join((*parts, form[done:]))
