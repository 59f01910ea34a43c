"""The grammars that ship: list them, get one by ``id@vN``, verify digests, load a user's own file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from receipt_cli.definitions.compiled import find_compiled, load_shipped, unpack
from receipt_cli.definitions.reading import similar
from receipt_cli.definitions.resources import data_root, is_installed, read_shipped
from receipt_cli.errors import DataError, InputError, UsageError
from receipt_cli.grammar.field_file import lazy_fields
from receipt_cli.grammar.model import Grammar, Rule, RuleHead
from receipt_cli.grammar.parse import check_patterns, load_grammar
from receipt_cli.patterns import compile_later

MAX_BYTES = 1 << 20
"""A definition larger than this is an error, as in ``definitions.strict_yaml``."""
STATUSES = ("draft", "released", "deprecated")
INDUCED = "generic"
"""The id of the file without rules: the vocabulary for logs of unknown trainers."""
INDUCED_PATH = "generic/v1.yaml"
_ID = compile_later(r"[a-z0-9][a-z0-9-]*\Z")
_FILE = compile_later(r"v([1-9]\d{0,5})\.yaml\Z")
_RELEASE = compile_later(r"(\d{1,9}(?:\.\d{1,9}){0,9})(?:(a|b|rc)(\d{1,9}))?")
_FINAL = "~"
"""Stage of a release that is no candidate: behind ``a``, ``b`` and ``rc``."""
_Release: TypeAlias = "tuple[tuple[int, ...], str, int]"
_REF = compile_later(r"(?P<id>[a-z0-9][a-z0-9-]*)(?:@v(?P<version>[1-9]\d{0,5}))?\Z")


class Entry(NamedTuple):
    """One line of ``grammars/index.yaml``; ``until`` is the release in which a newer version replaced a deprecated one."""

    id: str
    version: int
    path: str
    status: str
    since: str
    sha256: str
    until: str = ""

    @property
    def ref(self) -> str:
        """``id@vN``."""
        return f"{self.id}@v{self.version}"


@cache
def list_grammars() -> tuple[Entry, ...]:
    """Return the index, ordered by id and version. Raises ``DataError``."""
    entries = load_shipped("grammars/index.yaml", lambda rows: [Entry(*row) for row in rows], parse_index)
    return tuple(sorted([*entries, *_unlisted({e.path for e in entries})], key=lambda e: (e.id, e.version)))


def parse_index(text: bytes, where: str) -> list[Entry]:
    """Return the entries of the index in ``text``; ``where`` names it in errors. Raises ``DataError``."""
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=True)
    entries = []
    for row in data.get("grammars", ()):
        try:
            entry = Entry(**row)
        except TypeError as error:
            raise DataError("bad index entry", where=where, why=str(error)) from error
        if entry.status not in STATUSES:
            raise DataError(f"{entry.ref}: unknown status {entry.status!r}", where=where)
        entries.append(entry)
    return entries


def _unlisted(listed: set[str]) -> list[Entry]:
    """Return a draft entry for each grammar file of a checkout that the index does not list: a new trainer is one new file."""
    root = data_root("grammars")
    if is_installed("grammars") or not isinstance(root, Path):
        return []  # its files came with the index
    try:
        folders = [entry.name for entry in os.scandir(root) if entry.name != "markers" and entry.is_dir()]
        files = [(name, file) for name in folders if _ID.match(name) is not None for file in os.listdir(root / name)]
    except OSError as error:
        raise DataError("cannot be listed", where="grammars/", why=error.strerror or str(error)) from error
    found = []
    for name, file in files:
        path, version = f"{name}/{file}", _FILE.match(file)
        if version is not None and path not in listed:
            digest = hashlib.sha256(read_shipped(f"grammars/{path}")).hexdigest()
            found.append(Entry(name, int(version[1]), path, "draft", "", digest))
    return found


class Fixtures(NamedTuple):
    """How many logs of a grammar are kept with it: of runs that were made for them, and written in the format."""

    run: int = 0
    written: int = 0


@cache
def list_fixtures() -> dict[str, Fixtures]:
    """Return what is kept for each grammar, by ``id@vN``. Raises ``DataError``."""
    return load_shipped(
        "grammars/fixtures.yaml", lambda rows: {name: Fixtures(*row) for name, row in rows.items()}, parse_fixtures
    )


def parse_fixtures(text: bytes, where: str) -> dict[str, Fixtures]:
    """Return what is kept for each grammar in ``text``; ``where`` names it in errors. Raises ``DataError``."""
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=True)
    try:
        return {row["grammar"]: Fixtures(row["run"], row["written"]) for row in data.get("fixtures", ())}
    except (KeyError, TypeError) as error:
        raise DataError("bad entry", where=where, why=str(error)) from error


def read_entry(entry: Entry) -> bytes:
    """Return the bytes of a shipped grammar. Raises ``DataError`` when it is missing, or a released one was changed."""
    text = read_shipped(f"grammars/{entry.path}")
    if entry.status != "draft" and hashlib.sha256(text).hexdigest() != entry.sha256:
        raise DataError(f"{entry.ref} is not the released file: its digest differs", where=f"grammars/{entry.path}")
    return text


@cache
def shipped(with_samples: bool = False) -> tuple[Grammar, ...]:
    """Return every shipped grammar that is not deprecated, ordered by id and version."""
    wanted = [entry for entry in list_grammars() if entry.status != "deprecated" and entry.id != INDUCED]
    return tuple(_load(entry, with_samples) for entry in wanted)


def _load(entry: Entry, with_samples: bool = False) -> Grammar:
    """Return a shipped grammar: its compiled form, which has no samples, else what its text defines. Raises ``DataError``."""
    where = f"grammars/{entry.path}"
    packed = None if with_samples else find_compiled(where, "grammars")
    if packed is not None:
        parts, heads = packed
        grammar = unpack(Grammar, parts)
        if entry.status == "draft" or grammar.sha256 == entry.sha256:
            made = [RuleHead(name, event, tuple(map(str.encode, texts)), read) for name, event, texts, read in heads]
            grammar.restore_later(tuple(made), lambda: _rules(entry))
            return grammar

    return load_grammar(read_entry(entry), where, with_samples=with_samples, shipped=True)


def _rules(entry: Entry) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the rules of a shipped grammar, and those to ignore records by."""
    where = f"grammars/{entry.path}"
    packed = find_compiled(where, "grammars", 1)
    if packed is None:  # changed since its heads were read
        grammar = load_grammar(read_entry(entry), where, shipped=True)
        return grammar.rules, grammar.ignore
    rules, ignore = (tuple([unpack(Rule, rule) for rule in part]) for part in packed)
    make = lazy_fields(where)
    for rule in rules:
        vars(rule)["fields"] = make(rule.name, rule.fields)  # compiled they are plain definitions
    return rules, ignore


def shipped_by(version: str) -> tuple[Grammar, ...]:
    """Return the grammars that release ``version`` of this program chose among: without what came later, with what has been
    replaced since.

    What no index lists has no release, and is in; where ``version`` is none that can be read, ``shipped`` is returned.
    """
    release = _release(version)
    if release is None:
        return shipped()
    now = {grammar.ref: grammar for grammar in shipped()}
    then = (entry for entry in list_grammars() if entry.id != INDUCED and _is_in(entry, release))
    return tuple(now[entry.ref] if entry.ref in now else _load(entry) for entry in then)


def _is_in(entry: Entry, release: _Release) -> bool:
    since, until = _release(entry.since), _release(entry.until)
    if entry.status == "deprecated" and until is None:
        return False
    return (since is None or since <= release) and (until is None or release < until)


def _release(version: str) -> _Release | None:
    """Return the order of a release by PEP 440: its numbers without zeros at the end, then rc2 before what it leads to.

    A version in development (``1.0.0rc2.dev0``) counts as the release that it leads to. None for another text.
    """
    found = _RELEASE.match(version)
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), found[2] or _FINAL, int(found[3] or 0)


def find_recorded(name: str, version: int, sha256: str, own: Sequence[Grammar] = ()) -> Grammar:
    """Return the grammar of this digest, else the one of this version, else the newest with the id ``name``.

    ``own`` are grammars that do not ship. Raises ``DataError`` where no grammar has this id.
    """
    known = [grammar for grammar in (*own, *shipped()) if grammar.id == name]
    known += [get_grammar(e.ref) for e in list_grammars() if e.id == name and e.status == "deprecated"]
    if not known:
        raise DataError(f"no grammar {name}@v{version} is known here", try_="--grammar FILE, or RECEIPT_PATH=FOLDER")
    return max(known, key=lambda grammar: (grammar.sha256 == sha256, grammar.version == version, grammar.version))


def get_grammar(name: str, others: Sequence[str] = ()) -> Grammar:
    """Return the grammar that ``name`` means. Raises as ``definition``, and ``DataError`` for a broken one.

    ``others`` are names of grammars that do not ship: one of them may be meant by an unknown name.
    """
    text, where = _resolve(name, others)
    return check_patterns(load_grammar(text, where))


def ref_parts(name: str) -> tuple[str, int | None] | None:
    """Return the id and the version that ``id`` or ``id@vN`` names; None for another text."""
    found = None if _is_file(name) else _REF.match(name)
    return None if found is None else (found["id"], int(found["version"]) if found["version"] else None)


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) or "/" in name


def definition(name: str, others: Sequence[str] = ()) -> bytes:
    """Return the bytes of the grammar that ``name`` means: ``id``, ``id@vN``, or the path of a YAML file; ``others`` as for
    ``get_grammar``.

    Raises ``UsageError`` for a malformed name, ``DataError`` for an unknown grammar and ``InputError`` for a file
    that cannot be read.
    """
    return _resolve(name, others)[0]


def _resolve(name: str, others: Sequence[str] = ()) -> tuple[bytes, str]:
    if _is_file(name):
        return read_file(name), name
    found = _REF.match(name)
    if found is None:
        raise UsageError(f"{name!r} is neither id, id@vN nor a YAML file", try_="receipt grammar list")
    wanted = int(found["version"]) if found["version"] else None
    entries = [e for e in list_grammars() if e.id == found["id"] and wanted in (None, e.version)]
    if not entries:
        raise DataError(f"no grammar {name}", why=_similar(name, others), try_="receipt grammar list")
    return read_entry(entries[-1]), f"grammars/{entries[-1].path}"


def _similar(name: str, others: Sequence[str]) -> str:
    """Return the grammars whose names are like ``name``, or the versions that there are of it, in words."""
    known = [*(entry.ref for entry in list_grammars()), *others]
    versions = [ref for ref in known if ref.partition("@")[0] == name.partition("@")[0]]
    if versions:
        return f"there is {', '.join(versions)}"
    ids = list(dict.fromkeys(ref.partition("@")[0] for ref in known))
    return similar(name.partition("@")[0], ids)


def read_file(path: str) -> bytes:
    """Return the bytes of a user's definition file. Raises ``InputError``."""
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)  # one more than is allowed: a larger file is refused by its size
    except OSError as error:
        raise InputError("cannot read the grammar file", where=path, why=str(error)) from error
