"""Patterns that are compiled at their first use: of a hundred, a small log needs a third."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing's constant
if TYPE_CHECKING:
    compile_later = re.compile
else:
    _METHODS = ("search", "match", "fullmatch", "sub", "finditer", "findall", "split")

    class _Later:
        """Becomes a pattern with the first question: its methods are then those of the pattern."""

        def __init__(self, source, flags):
            self._given = (source, flags)

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            pattern = re.compile(*self._given)
            vars(self).update({method: getattr(pattern, method) for method in _METHODS})
            return getattr(pattern, name)

    def compile_later(source, flags=0):
        """Return the pattern of ``source``; what is wrong with it is raised at its first use."""
        return _Later(source, flags)
