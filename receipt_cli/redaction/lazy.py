"""Patterns that are compiled at their first use: most texts need hardly any of them."""

from __future__ import annotations

import re
from functools import cached_property


class Lazy:
    """The source of a pattern, and the compiled pattern on demand."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern."""
        return re.compile(self.source)
