"""``dataclass`` for our nouns: the standard one to a type checker, a quarter of its cost to define at run time.

Python writes and compiles six functions for a frozen dataclass, half a millisecond each; eighty of them were a quarter
of a cold start. Here only ``__init__`` is compiled, and what a frozen one compares, hashes and prints is read from the
names of its parts. ``fields``, ``replace``, ``asdict`` and slots work as always. That nobody sets a part of a frozen
noun is the type checker's work alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """Return the class as a dataclass: mutable ones by the standard decorator, frozen ones as told above."""

        def make(noun):
            if not frozen:
                return dataclasses.dataclass(noun, slots=slots, eq=eq)
            own = vars(noun)
            made = dataclasses.dataclass(noun, slots=slots, eq=False, repr=False)
            made._parts = property(_reader([part.name for part in dataclasses.fields(made)]))
            given = {"__repr__": _shown, **({"__eq__": _equal, "__hash__": _hash} if eq else {})}
            for name, method in given.items():
                if name not in own or (name == "__hash__" and own[name] is None):  # None: Python's, beside an __eq__
                    setattr(made, name, method)
            return made

        return make if cls is None else make(cls)


def _reader(names: list[str]) -> Any:
    """Return what gives the parts of a noun as a tuple, in the order of their declaration."""
    from operator import attrgetter

    if len(names) > 1:
        return attrgetter(*names)
    return lambda noun: tuple(getattr(noun, name) for name in names)


def _equal(self: Any, other: Any) -> Any:
    return self._parts == other._parts if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._parts)


def _shown(self: Any) -> str:
    from dataclasses import fields

    return f"{type(self).__qualname__}({', '.join(f'{part.name}={getattr(self, part.name)!r}' for part in fields(self))})"
