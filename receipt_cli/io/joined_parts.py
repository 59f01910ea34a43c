"""Join the parts of a rotated or split log into one source to read again, or an excerpt of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from receipt_cli.io.copied_lines import blanked
from receipt_cli.io.source import Source, lines_of


def joined(parts: Sequence[Source]) -> Source:
    """Return the only part, or a source of all parts for ``reopen`` and ``excerpt``."""
    return parts[0] if len(parts) == 1 else _JoinedParts(parts)


class _JoinedParts(Source):
    """A source of several files; its digest is computed from the digests of the parts, as in a receipt.

    Only one part is open at a time.
    """

    def __init__(self, parts: Sequence[Source]) -> None:
        super().__init__(parts[0].path, later=True)
        self._parts = parts
        self._digests: list[str] = []
        self._empty: list[int] = []

    @property
    def sha256(self) -> str:
        return digest_of(self._digests)

    @property
    def empty_lines(self) -> Sequence[int]:
        return sorted({*self._empty, *self.copies.lines})

    def blocks(self) -> Iterator[bytes]:
        text = self._text() if self._known is None else blanked(self._text(), self._known)
        yield from text if self._lines == (0, None) else lines_of(text, *self._lines)

    def _text(self) -> Iterator[bytes]:
        before = 0
        for part in self._parts:
            again = part.reopen()
            assert again is not None  # a file
            again.native = self.native
            lines = 0
            with closing(again):
                for block in again.blocks():
                    lines += block.count(b"\n")
                    yield block
            self._digests.append(again.sha256)
            self.size_bytes += again.size_bytes
            self.changed |= again.changed
            self.problems += [problem.moved(before) for problem in again.problems]
            self._empty += [before + number for number in again.empty_lines]
            before += lines

    def reopen(self) -> Source | None:
        if any(part.stored_size is None for part in self._parts):
            return None
        again = _JoinedParts(self._parts)
        again._lines = self._lines
        if self._known is not None:
            again.report_copies(self._known)
        return again


def digest_of(digests: Sequence[str]) -> str:
    """Return the digest of a log of several files: SHA-256 of their hex digests, one a line."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Stream:
    """The log of one process: its parts, oldest first.

    ``names`` are the files' names in the receipt, ``rank`` the number in them, ``certain`` if a word marks it as a rank,
    ``attempt`` the launcher's number of the attempt.
    """

    parts: tuple[Source, ...]
    names: tuple[str, ...] = ()
    rank: int | None = None
    certain: bool = False
    attempt: int | None = None
