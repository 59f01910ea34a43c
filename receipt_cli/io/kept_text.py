"""Cache of a small log's decoded and shown text, so that reading it again needs no file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipt_cli.problems import Problem


class KeptText:
    """Text blocks, each with the number of ``problems`` known before it; and the last shown excerpt."""

    def __init__(self, blocks: Sequence[tuple[bytes, int]], problems: Sequence[Problem]) -> None:
        self._blocks = blocks
        self._problems = [*problems]
        self._shown: tuple[object, Sequence[Problem], Sequence[bytes]] | None = None

    def ready(self, problems: list[Problem]) -> Iterator[bytes]:
        """Yield the text; append each problem to ``problems`` at the block at which it was found."""
        for block, known in self._blocks:
            problems += self._problems[len(problems) : known]
            yield block
        problems += self._problems[len(problems) :]

    def note(self, part: object, problems: Sequence[Problem], blocks: Sequence[bytes]) -> None:
        """Keep the ``blocks`` shown of ``part``, which identifies the lines and the copies left out."""
        self._shown = part, [*problems], blocks

    def shown(self, part: object, problems: list[Problem]) -> Sequence[bytes] | None:
        """Return the blocks kept for ``part`` and set ``problems``; None if another part was kept."""
        if self._shown is None or self._shown[0] != part:
            return None
        problems[:] = self._shown[1]
        return self._shown[2]
