"""The text of a little log, kept as it was made ready and as it was shown: whoever reads it again needs no file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipt_cli.problems import Problem


class KeptText:
    """The blocks of a text, each with how many of ``problems`` were known before it; and what was last shown of it."""

    def __init__(self, blocks: Sequence[tuple[bytes, int]], problems: Sequence[Problem]) -> None:
        self._blocks = blocks
        self._problems = [*problems]
        self._shown: tuple[object, Sequence[Problem], Sequence[bytes]] | None = None

    def ready(self, problems: list[Problem]) -> Iterator[bytes]:
        """Yield the text, and add to ``problems`` what was found meanwhile."""
        for block, known in self._blocks:
            problems += self._problems[len(problems) : known]
            yield block
        problems += self._problems[len(problems) :]

    def note(self, part: object, problems: Sequence[Problem], blocks: Sequence[bytes]) -> None:
        """Keep what was shown of a ``part``: of which lines, without which copies."""
        self._shown = part, [*problems], blocks

    def shown(self, part: object, problems: list[Problem]) -> Sequence[bytes] | None:
        """Return what was shown of this ``part``, and set ``problems``; None where something else was."""
        if self._shown is None or self._shown[0] != part:
            return None
        problems[:] = self._shown[1]
        return self._shown[2]
