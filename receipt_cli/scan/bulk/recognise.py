"""Find the layout of each record: all records of a width at once, however many layouts are known.

A record's words of eight bytes, with the low half of every byte that may be a digit set to ones, are multiplied and
added up to a key, which no digit changes. The key only selects the layout to compare with; a record has a layout when
every byte is the layout's, or a digit where that has one that moves.
"""

from __future__ import annotations

import numpy as np

from receipt_cli.numeric.array_types import Bytes, Integers, Mask, Words
from receipt_cli.scan.layout import MAX_LENGTH, Layout

WORD = 8
CHUNK = 2048
"""Records compared at a time: their words stay in the second-level cache."""
_MAY_BE_DIGIT = 0x1010101010101010
_HIGH = 0x8080808080808080
_FACTOR = 0x9E3779B97F4A7C15
"""The golden ratio in 64 bits, odd: its odd powers separate the words of a record."""
_SLOT_BITS = 12
"""Bits of a key that find its layout at once, but for collisions."""


def words_for(length: int) -> int:
    """Return how many words a record of ``length`` bytes takes."""
    return -(-length // WORD)


def moving_digits(layout: Layout) -> Mask:
    """Return which bytes of a layout are digits that may vary."""
    sample = np.frombuffer(layout.sample, np.uint8)
    moving = (sample >= 0x30) & (sample <= 0x39)
    for start, end, _ in layout.fixed:
        moving[start:end] = False
    return moving


def cut_words(matrix: Bytes, lengths: Integers) -> Words:
    """Return the words (n, w) of records whose bytes are the first ``lengths`` of each row of ``matrix``.

    The last word of a row must be the one that its record ends in. The bytes behind the record are set to 0 there.
    """
    words: Words = matrix.view("<u8")
    ends = np.array([(1 << WORD * (kept or WORD)) - 1 for kept in range(WORD)], np.uint64)
    words[:, -1] &= ends[lengths % WORD]
    return words


class Shelf:
    """The layouts whose records take the same number of words, each with the number that it is known by."""

    def __init__(self, words: int) -> None:
        self.words = words
        self._factors = np.array([_FACTOR ** (2 * at + 1) % 2**64 for at in range(words)], np.uint64)
        self._members: list[tuple[int, int, Words, Words, int]] = []
        self._frozen = False

    def add(self, number: int, layout: Layout) -> None:
        """Let records of ``layout`` be recognised as ``number``."""
        moving = moving_digits(layout)
        sample = np.zeros(self.words * WORD, np.uint8)
        sample[: len(moving)] = np.frombuffer(layout.sample, np.uint8)
        key = int(self._keys_of(sample[np.newaxis].view("<u8"))[0])
        # What differs from the sample with its digits masked is 0 at the same byte and 0 to 9 at a digit: either way
        # it stays below 0x80 when this is added, and anything else below 0x80 does not.
        room = np.full(len(sample), 0x7F, np.uint8)
        room[: len(moving)][moving] = 0x76
        sample[: len(moving)][moving] = 0x30
        self._members.append((number, key, sample.view("<u8"), room.view("<u8"), len(moving)))
        self._frozen = False

    def _freeze(self) -> None:
        """Make the tables of all layouts, sorted by their keys."""
        if self._frozen:
            return
        self._members.sort(key=lambda member: member[1])
        numbers, keys, masked, room, lengths = zip(*self._members, strict=True)
        self._numbers, self._lengths = np.array(numbers, np.int64), np.array(lengths, np.int64)
        self._keys = np.array(keys, np.uint64)
        self._masked, self._room = np.array(masked, np.uint64), np.array(room, np.uint64)
        self._slots = np.zeros(1 << _SLOT_BITS, np.int64)
        self._slots[self._slot_of(self._keys)] = np.arange(len(keys))
        self._frozen = True

    def recognise(self, words: Words, lengths: Integers) -> Integers:
        """Return the number (n,) of the layout of each record, or -1; for ``words`` see ``cut_words``."""
        self._freeze()
        keys = self._keys_of(words)
        guess = self._slots[self._slot_of(keys)]
        fits = self._fit(words, lengths, guess)
        found = np.where(fits, self._numbers[guess], -1)
        left = np.flatnonzero(~fits)
        at = np.searchsorted(self._keys, keys[left])
        while len(left):
            same = self._keys[np.minimum(at, len(self._keys) - 1)] == keys[left]
            same &= at < len(self._keys)
            left, at = left[same], at[same]
            fits = self._fit(words[left], lengths[left], at)
            found[left[fits]] = self._numbers[at[fits]]
            left, at = left[~fits], at[~fits] + 1
        return found

    @staticmethod
    def _slot_of(keys: Words) -> Integers:
        return (keys >> np.uint64(64 - _SLOT_BITS)).view(np.int64)

    def _keys_of(self, words: Words) -> Words:
        keys = np.empty(len(words), np.uint64)
        low, spare = (np.empty((min(CHUNK, len(words)), self.words), np.uint64) for _ in range(2))
        for begin in range(0, len(words), CHUNK):
            some = words[begin : begin + CHUNK]
            ones, half = low[: len(some)], spare[: len(some)]
            np.bitwise_and(some, np.uint64(_MAY_BE_DIGIT), out=ones)
            np.right_shift(ones, np.uint64(4), out=half)
            np.subtract(ones, half, out=ones)
            np.bitwise_or(ones, some, out=ones)
            np.matmul(ones, self._factors, out=keys[begin : begin + CHUNK])
        return keys

    def _fit(self, words: Words, lengths: Integers, members: Integers) -> Mask:
        """Return which records have the layout of their entry of ``members``."""
        fits: Mask = self._lengths[members] == lengths
        other, room = (np.empty((min(CHUNK, len(words)), self.words), np.uint64) for _ in range(2))
        for begin in range(0, len(words), CHUNK):
            some, which = words[begin : begin + CHUNK], members[begin : begin + CHUNK]
            differs, high = other[: len(some)], room[: len(some)]
            np.take(self._masked, which, axis=0, out=differs, mode="clip")
            np.bitwise_xor(differs, some, out=differs)
            np.take(self._room, which, axis=0, out=high, mode="clip")
            np.add(high, differs, out=high)
            np.bitwise_or(high, differs, out=high)  # from 0x80 on what is added would be carried
            if np.bitwise_or.reduce(high, axis=None) & np.uint64(_HIGH):
                fits[begin : begin + CHUNK] &= (np.bitwise_or.reduce(high, axis=1) & np.uint64(_HIGH)) == 0
        return fits


class Shelves:
    """All layouts that are recognised, by the words that they take."""

    def __init__(self) -> None:
        self.by_words: dict[int, Shelf] = {}
        self.lengths = np.zeros(MAX_LENGTH + 2, np.bool_)
        """The lengths that some layout has."""

    def add(self, number: int, layout: Layout) -> None:
        """Let records of ``layout`` be recognised as ``number``."""
        length = len(layout.sample)
        words = words_for(length)
        if words not in self.by_words:
            self.by_words[words] = Shelf(words)
        self.by_words[words].add(number, layout)
        self.lengths[length] = True
