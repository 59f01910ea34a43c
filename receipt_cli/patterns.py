"""Patterns of modules, compiled at their first use: a small log needs a third of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import regex


class _Later:
    """Stands for a pattern that is compiled when it is first asked for one of its methods."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = cache(make)

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(self._make(), name)
        return found


def compile_later(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return the pattern of ``source``; what is wrong with it is raised at its first use."""
    return cast("re.Pattern[AnyStr]", _Later(partial(re.compile, source, flags)))


def regex_later(source: AnyStr) -> regex.Pattern[AnyStr]:
    """Return the pattern of ``source`` as ``regex`` reads it; what is wrong with it is raised at its first use."""
    import regex  # not for ``emit``, which works where nothing is installed

    return cast("regex.Pattern[AnyStr]", _Later(partial(regex.compile, source)))
