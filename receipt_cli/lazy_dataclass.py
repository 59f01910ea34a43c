"""``dataclass`` and ``NamedTuple`` of the standard library for a program that lives a tenth of a second: nothing is compiled.

The standard library imports ``inspect`` and compiles up to six methods of each class where it is defined: 30 ms for the 74
classes that the parsing of a small log needs. Here the methods are closures over the names of the parts, and a class of
which many objects are made gets the ``__init__`` of the standard library, which is three times as fast. Functions such as
``dataclasses.fields`` take these classes, too.

A ``NamedTuple`` of the standard library compiles its ``__new__`` and the type of each part: 13 ms for the 87 of a small log.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False  # typing's constant
if TYPE_CHECKING:
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple

    def expect_many() -> None:
        """Say that this process lives long: the methods of more classes are worth compiling."""

    def expects_many() -> bool:
        """Return whether it was said."""
else:
    from _collections import _tuplegetter  # with this ``collections.namedtuple`` reads a part

    _NONE = object()
    """No default."""
    _MANY = 5000
    """Objects of a class that are worth importing the standard library's, and compiling a method."""
    _FEW = 200
    """The same in a process that reads many logs."""
    _enough = _MANY

    class _Field:
        """What ``field`` declares of a part of a class."""

        __slots__ = ("default", "default_factory")

        def __init__(self, default, default_factory):
            self.default = default
            self.default_factory = default_factory

    class _Fields:
        """``__dataclass_fields__``, made by the standard library where somebody asks."""

        def __get__(self, value, owner):
            fields = owner.__dataclass_fields__ = _standard(owner, False).__dataclass_fields__
            return fields

    def _standard(cls, frozen):
        """Return the dataclass that the standard library makes of the same parts."""
        import dataclasses

        parts = []
        for name, kind, default, factory in cls.__parts__:
            given = {"default": default} if default is not _NONE else {"default_factory": factory} if factory else {}
            parts.append((name, kind, dataclasses.field(**given)))
        finish = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
        return dataclasses.make_dataclass(cls.__name__, parts, namespace=finish, frozen=frozen, eq=False, repr=False)

    def expect_many():
        """Say that this process lives long: the methods of more classes are worth compiling."""
        global _enough
        _enough = _FEW

    def expects_many():
        """Return whether it was said."""
        return _enough == _FEW

    def field(*, default=_NONE, default_factory=None):
        """Return the declaration of a part with this default, or with one that ``default_factory`` makes of nothing."""
        return _Field(default, default_factory)

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """Make ``cls`` a dataclass. The options are those of the standard library."""
        if cls is None:
            return lambda decorated: dataclass(decorated, frozen=frozen, slots=slots, eq=eq)
        own = _own_parts(cls)
        names = [name for name, *_ in own]
        parts = [part for base in cls.__mro__[1:] for part in vars(base).get("__parts__", ()) if part[0] not in names]
        parts += own
        if slots:
            kept = {name: value for name, value in vars(cls).items() if name not in {*names, "__dict__", "__weakref__"}}
            cls = type(cls)(cls.__name__, cls.__bases__, {**kept, "__slots__": tuple(names), "__qualname__": cls.__qualname__})
        else:
            for name, _, default, factory in own:
                if factory is not None:
                    delattr(cls, name)
                elif default is not _NONE:
                    setattr(cls, name, default)
        cls.__parts__ = tuple(parts)
        cls.__match_args__ = tuple(name for name, *_ in parts)
        cls.__dataclass_fields__ = _Fields()
        _add_methods(cls, frozen, slots, eq)
        return cls

    def _own_parts(cls):
        """Return name, type, default and factory of each part that ``cls`` itself declares."""
        parts = []
        for name, kind in vars(cls).get("__annotations__", {}).items():
            default = vars(cls).get(name, _NONE)
            declared = default if isinstance(default, _Field) else _Field(default, None)
            parts.append((name, kind, declared.default, declared.default_factory))
        return parts

    def _add_methods(cls, frozen, slots, eq):
        """Add those methods that ``cls`` does not define itself."""
        own, names = vars(cls), cls.__match_args__
        if "__init__" not in own:
            cls.__init__ = _init_of(cls, frozen, slots)
        if "__repr__" not in own:
            cls.__repr__ = _repr
        if eq and "__eq__" not in own:
            cls.__eq__, hashed = _comparison(_values_of(names))
            if own.get("__hash__") is None:
                cls.__hash__ = hashed if frozen else None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _refuse_change, _refuse_change
            if slots and "__getstate__" not in own:
                cls.__getstate__, cls.__setstate__ = _getstate, _setstate

    def _init_of(cls, frozen, slots):
        parts, names = cls.__parts__, cls.__match_args__
        count, finish = len(parts), getattr(cls, "__post_init__", None)
        assigns = tuple(getattr(cls, name).__set__ for name in names) if slots else ()
        made = 0

        def __init__(self, *given, **named):
            nonlocal made
            made += 1
            if made >= _enough:
                cls.__init__ = _standard(cls, frozen).__init__
            if named or len(given) != count:
                given = _bound(cls, parts, given, named)
            if slots:
                for assign, value in zip(assigns, given):  # noqa: B905 (as many: the check would take as long as an assignment)
                    assign(self, value)
            else:
                vars(self).update(zip(names, given, strict=True))
            if finish is not None:
                finish(self)

        return __init__

    def _bound(cls, parts, given, named):
        """Return the value of each part; ``named`` is used up. Raises ``TypeError``."""
        if len(given) > len(parts):
            raise TypeError(f"{cls.__name__}() takes {len(parts)} values, not {len(given)}")
        values = [*given]
        for name, _, default, factory in parts[len(given) :]:
            if name in named:
                values.append(named.pop(name))
            elif default is not _NONE:
                values.append(default)
            elif factory is not None:
                values.append(factory())
            else:
                raise TypeError(f"{cls.__name__}() needs {name!r}")
        if named:
            raise TypeError(f"{cls.__name__}() has no {next(iter(named))!r} left")
        return values

    def _values_of(names):
        """Return the function that returns the values of an object's parts as a tuple."""
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: tuple([getattr(value, name) for name in names])

    def _comparison(values):
        """Return ``__eq__`` and ``__hash__`` of a class; ``values`` returns the values of an object's parts."""

        def __eq__(self, other):
            return values(self) == values(other) if type(other) is type(self) else NotImplemented

        def __hash__(self):
            return hash(values(self))

        return __eq__, __hash__

    def _repr(self):
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({shown})"

    def _refuse_change(self, name, *value):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot change {name!r} of {type(self).__name__}")

    def _getstate(self):
        return [getattr(self, name) for name in self.__match_args__]

    def _setstate(self, state):
        for name, value in zip(self.__match_args__, state, strict=True):
            object.__setattr__(self, name, value)

    def replace(value, /, **changes):
        """Return a copy of a dataclass with other values of some parts."""
        return type(value)(**{name: getattr(value, name) for name in value.__match_args__ if name not in changes}, **changes)

    def asdict(value):
        """Return a dataclass as a dictionary, with all that is in it; values that are no containers are the same objects."""
        return {name: _plain(getattr(value, name)) for name in value.__match_args__}

    def _plain(value):
        if hasattr(type(value), "__parts__"):
            return asdict(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(_plain, value))
        if isinstance(value, list | tuple):
            return type(value)(map(_plain, value))
        if isinstance(value, dict):
            return type(value)((_plain(key), _plain(item)) for key, item in value.items())
        return value

    class _TupleMaker(type):
        """Makes a class below ``NamedTuple`` a tuple whose parts have names."""

        def __new__(mcs, name, bases, namespace):
            if not bases:
                return type.__new__(mcs, name, bases, namespace)
            names = tuple(namespace.get("__annotations__", ()))
            defaults = {part: namespace[part] for part in names if part in namespace}
            if len(bases) > 1 or names[len(names) - len(defaults) :] != tuple(defaults):
                raise TypeError(f"{name} has another base, or a part without a default behind one with a default")
            namespace.update((part, _tuplegetter(index, None)) for index, part in enumerate(names))
            namespace.setdefault("__repr__", _tuple_repr)
            namespace.update(_TUPLE_METHODS, _fields=names, _field_defaults=defaults, __match_args__=names, __slots__=())
            made = type(name, (tuple,), namespace)
            made.__new__ = staticmethod(_new_of(made))
            return made

    class NamedTuple(metaclass=_TupleMaker):
        """The base of tuples whose parts have names; the options are those of the standard library."""

    def _new_of(made):
        names, calls, new = made._fields, 0, tuple.__new__
        count, parts = len(names), [(part, None, made._field_defaults.get(part, _NONE), None) for part in names]

        def __new__(cls, /, *given, **named):
            nonlocal calls
            calls += 1
            if calls >= _enough:
                from collections import namedtuple

                standard = namedtuple(made.__name__, names, defaults=made._field_defaults.values())
                made.__new__ = staticmethod(standard.__new__)
            if named or len(given) != count:
                given = _bound(made, parts, given, named)
            return new(cls, given)

        return __new__

    def _make(cls, values):
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} parts, not {len(made)}")
        return made

    def _replace_parts(self, /, **changes):
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"{type(self).__name__} has no {next(iter(changes))!r}")
        return made

    _TUPLE_METHODS = {
        "_make": classmethod(_make),
        "_replace": _replace_parts,
        "_asdict": lambda self: dict(zip(self._fields, self, strict=True)),
        "__getnewargs__": lambda self: tuple(self),
    }

    def _tuple_repr(self):
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"
