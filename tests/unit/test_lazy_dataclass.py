"""Dataclasses and named tuples that start quickly: they behave as those of the standard library do."""

import copy
import dataclasses
import pickle
import typing
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


def tuples(made: Any) -> tuple[Any, Any]:
    """Return the same two classes, made of ``made.NamedTuple``."""

    class Place(made.NamedTuple):  # type: ignore[misc]
        """Where it is."""

        row: int
        name: str = "here"
        at: tuple[int, ...] = ()

        @property
        def long(self) -> str:
            return self.name * self.row

    class Shown(made.NamedTuple):  # type: ignore[misc]
        value: int

        def __repr__(self) -> str:
            return f"<{self.value}>"

    return Place, Shown


@pytest.mark.parametrize(("theirs", "ours"), list(zip(tuples(typing), tuples(lazy_dataclass), strict=True)))
@pytest.mark.parametrize(
    ("given", "named"),
    [((1,), {}), ((1, "a"), {}), ((1, "a", (2,)), {}), ((), {"row": 1}), ((1,), {"row": 1}), ((), {}), ((1, 2, 3, 4), {})],
)
def test_named_tuples_are_those_of_the_standard_library(theirs: Any, ours: Any, given: tuple[Any, ...], named: Any) -> None:
    def made_by(kind: Any) -> Any:
        try:
            made = kind(*given, **named)
        except TypeError:
            return TypeError
        assert kind._make(made) == made == kind(**made._asdict())
        first = kind._fields[0]
        changed = made._replace(**{first: 9})
        shown = [repr(value) for value in (made, changed)]
        return (
            tuple(made),
            shown,
            made._asdict(),
            kind._field_defaults,
            kind.__match_args__,
            getattr(changed, first),
            kind.__doc__,
        )

    def documented(kind: Any) -> Any:
        answer = made_by(kind)
        return answer[:-1] if answer is not TypeError and kind.__name__ == "Shown" else answer

    assert documented(ours) == documented(theirs)


@pytest.mark.parametrize("kind", tuples(lazy_dataclass))
def test_a_named_tuple_refuses_what_it_has_not(kind: Any) -> None:
    for wrong in (lambda: kind(1)._replace(nothing=1), lambda: kind._make(range(9)), lambda: setattr(kind(1), "nothing", 1)):
        with pytest.raises((ValueError, TypeError, AttributeError)):
            wrong()
    assert kind(2) < kind(3)
    assert isinstance(kind(2), tuple)


def test_a_part_without_a_default_comes_first() -> None:
    with pytest.raises(TypeError, match="default"):
        type(lazy_dataclass.NamedTuple)(
            "Wrong", (lazy_dataclass.NamedTuple,), {"__annotations__": {"one": int, "two": int}, "one": 1}
        )


class Carried(lazy_dataclass.NamedTuple):
    """At the top of a module, so that it can be pickled."""

    number: int
    text: str = "x"


def test_the_last_of_many_tuples_is_as_the_first() -> None:
    made = [Carried(number) for number in range(12_000)]
    assert made[-1] == Carried(11_999, text="x") == pickle.loads(pickle.dumps(made[-1])) == copy.deepcopy(made[-1])
    with pytest.raises(TypeError):
        Carried(1, "a", 2)  # type: ignore[call-arg]


def test_a_process_that_lives_long_compiles_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_dataclass, "_enough", lazy_dataclass._enough)
    point, *_ = classes(lazy_dataclass)
    early = [point(n, y=0.25) for n in range(300)]
    slow = point.__init__
    lazy_dataclass.expect_many()
    late = [point(n, y=0.25) for n in range(300)]
    assert point.__init__ is not slow
    assert early == late and repr(early[-1]) == repr(late[-1])
