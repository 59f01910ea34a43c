"""Patterns that are compiled when they are first needed: most texts hold nothing that any of a hundred could match."""

from __future__ import annotations

import re
from functools import cached_property


class Lazy:
    """The source of a pattern, and the pattern once it is asked for."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern."""
        return re.compile(self.source)
