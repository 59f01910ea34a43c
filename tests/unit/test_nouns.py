"""Our dataclasses do what the standard ones do, but for refusing to be changed."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from receipt_cli import nouns


class Plain:
    """What each kind of dataclass is made of."""

    first: int
    second: str = "b"
    third: tuple[int, ...] = ()
    many: list[int] = dataclasses.field(default_factory=list)


class Single:
    """One part."""

    only: int


class Told:
    """Has methods of its own."""

    first: int
    second: int = 2

    def __repr__(self) -> str:
        return f"told {self.first}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.first == self.first


def kinds(source: type, **options: bool) -> tuple[Any, Any]:
    """Return our dataclass and the standard one of the same source."""
    body = {k: v for k, v in vars(source).items() if k not in ("__dict__", "__weakref__")}
    decorators: tuple[Any, Any] = (nouns.dataclass, dataclasses.dataclass)
    ours, standard = (decorate(**options)(type(source.__name__, (), dict(body))) for decorate in decorators)
    return ours, standard


@pytest.mark.parametrize("source", [Plain, Single, Told])
@pytest.mark.parametrize(
    "options",
    [{}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True}, {"frozen": True, "eq": False}, {"eq": False}],
)
def test_as_the_standard_one(source: type, options: dict[str, bool]) -> None:
    made = []
    for kind in kinds(source, **options):
        one, same, other = kind(1), kind(1), kind(2)
        shown = repr(one) if "0x" not in repr(one) else ""
        try:
            hashed = hash(one) == hash(same)
        except TypeError:  # a list inside, or mutable
            hashed = None
        parts = [(part.name, part.default is dataclasses.MISSING) for part in dataclasses.fields(kind)]
        changed = dataclasses.replace(one, **{parts[0][0]: 7})
        made.append(
            (
                *(shown, hashed, parts, dataclasses.asdict(changed), kind.__match_args__, kind.__doc__),
                *(one == same, one == other, one != other, one == 1, copy.deepcopy(one) == one, hasattr(one, "__dict__")),
            )
        )
    assert made[0] == made[1]


@nouns.dataclass(frozen=True, slots=True)
class Point:
    """Found by name, as unpickling wants it."""

    x: int
    y: int = 2


@nouns.dataclass(frozen=True, slots=True)
class Further(Point):
    """One more part."""

    z: int = 3


def test_it_travels_and_is_a_key() -> None:
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1, 2)
    assert {Point(1): "a"}[Point(1, 2)] == "a"
    assert Further(1) == Further(1, 2, 3) != Point(1, 2)
    assert repr(Further(1)) == "Further(x=1, y=2, z=3)"
