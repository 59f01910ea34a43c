"""Module-level patterns that are compiled on first use, because a small log needs only a third of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import regex


class _Later:
    """A pattern that is compiled on the first use of an attribute."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = cache(make)

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(self._make(), name)
        return found


def compile_later(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return the ``re`` pattern of ``source``, compiled on first use, which raises its errors."""
    return cast("re.Pattern[AnyStr]", _Later(partial(re.compile, source, flags)))


def regex_later(source: AnyStr) -> regex.Pattern[AnyStr]:
    """Return the ``regex`` pattern of ``source``, compiled on first use, which raises its errors."""
    import regex  # not at the top: ``emit`` works without any package installed

    return cast("regex.Pattern[AnyStr]", _Later(partial(regex.compile, source)))
