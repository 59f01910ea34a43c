"""Find and read shipped files: their YAML in ``grammars/`` and ``schemas/``, or its compiled form.

The compiled form is lines of JSON in ``receipt_cli/_compiled``, because YAML is slow to read. ``hatch_build.py`` writes it for
each wheel or editable installation. An entry is valid only if its source file and, in a checkout, the code that compiled it
are unchanged; else the caller reads the source file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from zlib import crc32

from receipt_cli.errors import DataError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


Kind = Literal["grammars", "schemas"]
_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def data_root(kind: Kind) -> Traversable:
    """Return the directory of ``kind``: the installed copy, else the checkout's.

    Raises ``DataError`` if neither exists (a broken installation).
    """
    if is_installed(kind):
        return _PACKAGE / kind
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / kind).is_dir():
        return checkout / kind
    packed = package_root().joinpath(kind)
    if packed.is_dir():
        return packed
    raise DataError(f"{kind}/ is missing from this installation", try_="install receipt-cli again")


def is_installed(kind: Kind) -> bool:
    """Return whether ``kind`` is part of the package on disk, as a wheel installs it."""
    return (_PACKAGE / kind).is_dir()


def package_root() -> Traversable:
    """Return the folder of the package ``receipt_cli``, which may be inside a zip archive."""
    if _PACKAGE.is_dir():
        return _PACKAGE
    from importlib import resources  # takes six milliseconds; an ordinary installation does not need it

    return resources.files("receipt_cli")


def read_shipped(where: str) -> bytes:
    """Return the bytes of a shipped file such as ``schemas/index.yaml``. Raises ``DataError``."""
    kind, *parts = where.split("/")
    try:
        return data_root("grammars" if kind == "grammars" else "schemas").joinpath(*parts).read_bytes()
    except FileNotFoundError as error:
        raise DataError("a file of this installation is missing", where=where, try_="install receipt-cli again") from error
    except OSError as error:
        raise DataError("a file of this installation cannot be read", where=where, why=error.strerror or str(error)) from error


def is_unchanged(where: str, size: int, checksum: int) -> bool:
    """Return whether the shipped file ``where`` still has this ``size`` in bytes and this CRC-32.

    In an installed package only the size is compared: its files come from one wheel.
    """
    kind, _, rest = where.partition("/")
    root = data_root("grammars" if kind == "grammars" else "schemas")
    if not isinstance(root, Path):
        return True  # inside an archive
    path = f"{root}{os.sep}{rest}"  # called a hundred times at each start: pathlib would take a millisecond
    try:
        if path.startswith(f"{_PACKAGE}{os.sep}"):
            return os.stat(path).st_size == size
        with open(path, "rb") as file:
            return crc32(file.read()) == checksum
    except OSError:
        return False


FOLDER = "_compiled"
Group = Literal["definitions", "grammars"]
"""A file in ``FOLDER``; every start reads ``definitions``."""
T = TypeVar("T")


def load_shipped(where: str, restore: Callable[[Any], T], parse: Callable[[bytes, str], T]) -> T:
    """Return the definition in the shipped file ``where``, restored from its compiled form, else parsed from its text.

    Raises ``DataError`` if the file is missing, and the errors of ``parse``.
    """
    packed = find_compiled(where)
    return restore(packed) if packed is not None else parse(read_shipped(where), where)


def find_compiled(where: str, group: Group = "definitions", part: int = 0) -> Any:
    """Return a ``part`` of the compiled form of the shipped file ``where`` (such as ``schemas/index.yaml``), or None."""
    entries, content = _entries(group)
    size, checksum, *ends = entries.get(where, (0, 0))
    if not ends or not is_unchanged(where, size, checksum):
        return None
    start = len(content) - ends[part]
    return json.loads(content[start : content.find(b"\n", start)])


@cache
def code_digest(paths: tuple[str, ...]) -> int:
    """Return the CRC-32 of modules, given by their paths in the package; cached. Raises ``OSError``."""
    checksum = 0
    for path in paths:
        checksum = crc32(package_root().joinpath(path).read_bytes(), checksum)
    return checksum


@cache
def _entries(group: Group) -> tuple[Mapping[str, Sequence[Any]], bytes | mmap]:
    """Return shipped file → (size, CRC-32, offsets of its parts from the content's end), and the content."""
    try:
        path = package_root().joinpath(FOLDER, f"{group}.jsonl")
        if isinstance(path, Path):
            with path.open("rb") as file:
                content: bytes | mmap = mmap(file.fileno(), 0, access=ACCESS_READ)  # little of it is read
        else:
            content = path.read_bytes()
        head = content[: content.find(b"\n") + 1]
        table = json.loads(head)
        if len(head) + table["length"] != len(content):
            return {}, b""
        if is_installed("grammars") or code_digest(tuple(table["code"])) == table["crc32"]:
            entries: dict[str, Sequence[Any]] = table["entries"]
            return entries, content
    except (OSError, ValueError, KeyError, TypeError):  # not built, cut off, or compiled by a deleted module
        pass
    return {}, b""


def pack(value: Any) -> Any:
    """Return ``value`` as JSON values; a dataclass or a named tuple becomes the list of its fields in declared order."""
    if isinstance(value, tuple):
        return [pack(item) for item in value]
    if hasattr(value, "__match_args__"):
        return [pack(getattr(value, name)) for name in value.__match_args__]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return {key: pack(item) for key, item in value.items()}
    return value.decode("utf-8") if isinstance(value, bytes) else value


def unpack(noun: type[T], values: list[Any]) -> T:
    """Return the dataclass or named tuple of type ``noun`` that ``pack`` turned into ``values``."""
    names, makers = _plan(cast(Hashable, noun))
    parts = list(values)
    for index, make in makers:
        if parts[index] is not None:
            parts[index] = make(parts[index])
    if issubclass(noun, tuple):
        return noun(*parts)
    made = object.__new__(noun)  # four times as fast as a frozen ``__init__``
    vars(made).update(zip(names, parts, strict=True))
    return made


@cache
def _plan(noun: Any) -> tuple[tuple[str, ...], tuple[tuple[int, Callable[[Any], Any]], ...]]:
    """Return the field names of ``noun``, and (index, constructor) of each field whose type is not JSON's."""
    declared = {name: str(getattr(kind, "__forward_arg__", kind)) for name, kind in noun.__annotations__.items()}
    nouns = vars(sys.modules[noun.__module__])
    makers = [(index, _maker(kind, nouns)) for index, kind in enumerate(declared.values())]
    return tuple(declared), tuple((index, make) for index, make in makers if make is not None)


def _maker(declared: str, nouns: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    declared = declared.removesuffix(" | None")
    if declared.startswith("frozenset["):
        return frozenset
    if declared.startswith("tuple["):
        make = _maker(declared[len("tuple[") : -1].removesuffix(", ..."), nouns)
        return tuple if make is None else lambda values: tuple([make(value) for value in values])
    if declared == "bytes":
        return str.encode
    noun: Any = nouns.get(declared)
    return (lambda values: unpack(noun, values)) if hasattr(noun, "__match_args__") else None
