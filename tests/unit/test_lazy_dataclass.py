"""Dataclasses that start quickly: they behave as those of the standard library do."""

import copy
import dataclasses
import pickle
from functools import cached_property
from typing import Any

import pytest

from receipt_cli import lazy_dataclass


def classes(made: Any) -> tuple[Any, Any, Any, Any]:
    """Return the same four classes, made by ``made.dataclass``."""

    @made.dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: float = 0.5

    @made.dataclass(slots=True)
    class Bag:
        name: str
        items: list[int] = made.field(default_factory=list)
        at: Any = made.field(default=())

    @made.dataclass(frozen=True)
    class Named:
        name: str

        @cached_property
        def long(self) -> str:
            return self.name * 2

    @made.dataclass(eq=False)
    class Late:
        value: int
        seen: list[int] = made.field(default_factory=list)

        def __post_init__(self) -> None:
            self.seen.append(self.value)

    return Point, Bag, Named, Late


STANDARD, OURS = classes(dataclasses), classes(lazy_dataclass)


@pytest.mark.parametrize(("theirs", "ours"), list(zip(STANDARD, OURS, strict=True)))
@pytest.mark.parametrize(
    ("given", "named"),
    [((1,), {}), ((1, 2), {}), ((), {"x": 1}), ((1,), {"x": 1}), ((), {}), ((1, 2, 3, 4), {}), ((), {"name": "a"})],
)
def test_objects_are_those_of_the_standard_library(theirs: Any, ours: Any, given: tuple[int, ...], named: dict[str, Any]) -> None:
    def made_by(kind: Any) -> Any:
        try:
            made = kind(*given, **named)
        except (TypeError, AttributeError):
            return TypeError
        names = [part.name for part in dataclasses.fields(made)]
        shown = {name: getattr(made, name) for name in names}
        hashes = kind.__hash__ is None or kind.__hash__ is object.__hash__ or hash(made) == hash(tuple(shown.values()))
        return shown, repr(made).rpartition(".")[2], made == kind(*given, **named), made != 1, hashes, hasattr(made, "__dict__")

    assert made_by(ours) == made_by(theirs)


def test_a_frozen_object_does_not_change() -> None:
    point = OURS[0](1)
    for change in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert OURS[2]("ab").long == "abab"


def test_factories_make_a_new_value_for_each_object() -> None:
    one, other = OURS[1]("a"), OURS[1]("b")
    one.items.append(3)
    assert other.items == []


def test_functions_of_the_standard_library_take_them_too() -> None:
    point, bag = OURS[0](1), OURS[1]("b", [2], {"p": OURS[0](3)})
    assert dataclasses.is_dataclass(point)
    assert dataclasses.replace(point, y=2.0) == lazy_dataclass.replace(point, y=2.0) == OURS[0](1, 2.0)
    assert dataclasses.asdict(bag) == lazy_dataclass.asdict(bag) == {"name": "b", "items": [2], "at": {"p": {"x": 3, "y": 0.5}}}
    assert copy.deepcopy(bag) == bag


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Sent:
    """At the top of a module, so that it can be pickled."""

    number: int
    text: str = "x"


def test_frozen_objects_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Sent(1, "y"))) == Sent(1, "y")


def test_the_last_of_many_objects_is_as_the_first() -> None:
    made = [Sent(number) for number in range(12_000)]
    assert made[-1] == Sent(11_999, text="x")
    assert len(set(made)) == 12_000
    with pytest.raises(dataclasses.FrozenInstanceError):
        made[-1].number = 1  # type: ignore[misc]
