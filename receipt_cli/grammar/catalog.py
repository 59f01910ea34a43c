"""The shipped grammars: list them, get one by ``id@vN``, verify digests; or load a user's file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from receipt_cli.definitions.reading import similar
from receipt_cli.definitions.resources import data_root, find_compiled, is_installed, load_shipped, read_shipped, unpack
from receipt_cli.errors import DataError, InputError, UsageError, system_errors
from receipt_cli.grammar.model import Grammar, Rule, RuleHead
from receipt_cli.grammar.parse import check_patterns, lazy_fields, load_grammar
from receipt_cli.patterns import compile_later

MAX_BYTES = 1 << 20
"""Largest grammar file in bytes, as in ``definitions.strict_yaml``."""
STATUSES = ("draft", "released", "deprecated")
INDUCED = "generic"
"""The id of the grammar without rules: the vocabulary for logs of unknown trainers."""
INDUCED_PATH = "generic/v2.yaml"
_ID = compile_later(r"[a-z0-9][a-z0-9-]*\Z")
_FILE = compile_later(r"v([1-9]\d{0,5})\.yaml\Z")
_RELEASE = compile_later(r"(\d{1,9}(?:\.\d{1,9}){0,9})(?:(a|b|rc)(\d{1,9}))?")
_FINAL = "~"
"""Stage of a final release; it sorts after ``a``, ``b`` and ``rc``."""
_Release: TypeAlias = "tuple[tuple[int, ...], str, int]"
_REF = compile_later(r"(?P<id>[a-z0-9][a-z0-9-]*)(?:@v(?P<version>[1-9]\d{0,5}))?\Z")


class Entry(NamedTuple):
    """One line of ``grammars/index.yaml``; ``until`` is the release that replaced a deprecated version."""

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
    """Return the index entries in ``text``; ``where`` names it in errors. Raises ``DataError``."""
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
    """Return a draft entry for each unlisted grammar file of a checkout, so that a new trainer needs only one new file."""
    root = data_root("grammars")
    if is_installed("grammars") or not isinstance(root, Path):
        return []  # the index of an installation is complete
    with system_errors(DataError, "cannot be listed", "grammars/"):
        folders = [entry.name for entry in os.scandir(root) if entry.name != "markers" and entry.is_dir()]
        files = [(name, file) for name in folders if _ID.match(name) is not None for file in os.listdir(root / name)]
    found = []
    for name, file in files:
        path, version = f"{name}/{file}", _FILE.match(file)
        if version is not None and path not in listed:
            digest = hashlib.sha256(read_shipped(f"grammars/{path}")).hexdigest()
            found.append(Entry(name, int(version[1]), path, "draft", "", digest))
    return found


class Fixtures(NamedTuple):
    """Number of fixture logs of a grammar: printed by runs made for them, and written by hand in the format."""

    run: int = 0
    written: int = 0


@cache
def list_fixtures() -> dict[str, Fixtures]:
    """Return ``id@vN`` → number of its fixture logs. Raises ``DataError``."""
    return load_shipped(
        "grammars/fixtures.yaml", lambda rows: {name: Fixtures(*row) for name, row in rows.items()}, parse_fixtures
    )


def parse_fixtures(text: bytes, where: str) -> dict[str, Fixtures]:
    """Return ``id@vN`` → number of its fixture logs from ``text``; ``where`` names it in errors. Raises ``DataError``."""
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=True)
    try:
        return {row["grammar"]: Fixtures(row["run"], row["written"]) for row in data.get("fixtures", ())}
    except (KeyError, TypeError) as error:
        raise DataError("bad entry", where=where, why=str(error)) from error


def read_entry(entry: Entry) -> bytes:
    """Return the bytes of a shipped grammar. Raises ``DataError`` if it is missing, or not a draft and changed."""
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
    """Return a shipped grammar from its compiled form, which has no samples, else from its text. Raises ``DataError``."""
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
    """Return the rules and the ignore rules of a shipped grammar."""
    where = f"grammars/{entry.path}"
    packed = find_compiled(where, "grammars", 1)
    if packed is None:  # the file changed after its heads were read
        grammar = load_grammar(read_entry(entry), where, shipped=True)
        return grammar.rules, grammar.ignore
    rules, ignore = (tuple([unpack(Rule, rule) for rule in part]) for part in packed)
    make = lazy_fields(where)
    for rule in rules:
        vars(rule)["fields"] = make(rule.name, rule.fields)  # compiled fields are plain definitions
    return rules, ignore


def shipped_by(version: str) -> tuple[Grammar, ...]:
    """Return the grammars among which release ``version`` of this program chose: not the later ones, but the replaced ones.

    Grammars that the index does not list are always included. An unreadable ``version`` gives ``shipped()``.
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
    """Return the PEP 440 sort key of a release: its numbers without trailing zeros, then stage and stage number.

    A development version (``1.0.0rc2.dev0``) has the key of the release that it leads to. None for another text.
    """
    found = _RELEASE.match(version)
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), found[2] or _FINAL, int(found[3] or 0)


def find_recorded(name: str, version: int, sha256: str, own: Sequence[Grammar] = ()) -> Grammar:
    """Return the grammar with this digest, else with this version, else the newest with the id ``name``.

    ``own`` are a site's grammars. Raises ``DataError`` if no grammar has this id.
    """
    known = [grammar for grammar in (*own, *shipped()) if grammar.id == name]
    known += [get_grammar(e.ref) for e in list_grammars() if e.id == name and e.status == "deprecated"]
    if not known:
        raise DataError(f"no grammar {name}@v{version} is known here", try_="--grammar FILE, or RECEIPT_PATH=FOLDER")
    return max(known, key=lambda grammar: (grammar.sha256 == sha256, grammar.version == version, grammar.version))


def get_grammar(name: str, others: Sequence[str] = ()) -> Grammar:
    """Return the grammar ``name``. Raises as ``definition`` does, and ``DataError`` for a broken grammar.

    ``others`` are names of a site's grammars, which the error suggests for an unknown name.
    """
    text, where = _resolve(name, others)
    return check_patterns(load_grammar(text, where))


def ref_parts(name: str) -> tuple[str, int | None] | None:
    """Return the id and the version (or None) of ``id`` or ``id@vN``; None for another text."""
    found = None if _is_file(name) else _REF.match(name)
    return None if found is None else (found["id"], int(found["version"]) if found["version"] else None)


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) or "/" in name


def definition(name: str, others: Sequence[str] = ()) -> bytes:
    """Return the bytes of the grammar ``name``: ``id``, ``id@vN``, or the path of a YAML file.

    ``others`` as for ``get_grammar``. Raises ``UsageError`` for a malformed name, ``DataError`` for an unknown grammar and
    ``InputError`` for a file that cannot be read.
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
    """Return a hint for an unknown ``name``: the versions of its id, else grammars with a similar id."""
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
            return file.read(MAX_BYTES + 1)  # one byte more than allowed: the parser refuses a larger file
    except OSError as error:
        raise InputError("cannot read the grammar file", where=path, why=str(error)) from error
