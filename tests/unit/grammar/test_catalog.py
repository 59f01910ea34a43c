"""What ships: listed, found by name, and verified."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from receipt_cli.definitions import resources
from receipt_cli.errors import DataError, InputError, ReceiptError, UsageError
from receipt_cli.grammar import catalog
from receipt_cli.grammar.catalog import definition, get_grammar, list_grammars, read_entry, read_file, shipped, shipped_by

SMALL = b"grammar: small\nversion: %d\ntitle: small\ntrainer: small\nrules:\n  a: {event: end, literal: bye, pattern: bye}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installation with two versions of one grammar: v1 released, v2 a draft."""
    root = tmp_path / "grammars"
    (root / "small").mkdir(parents=True)
    rows = []
    for version, status in ((2, "draft"), (1, "released")):
        text = SMALL % version
        (root / "small" / f"v{version}.yaml").write_bytes(text)
        digest = hashlib.sha256(text).hexdigest()
        rows.append(
            f"  - {{id: small, version: {version}, path: small/v{version}.yaml, status: {status}, since: '0', sha256: {digest}}}"
        )
    (root / "index.yaml").write_text("grammars:\n" + "\n".join(rows) + "\n")
    shipped_root = resources.data_root
    for module in (catalog, resources):
        monkeypatch.setattr(module, "data_root", lambda kind: root if kind == "grammars" else shipped_root(kind))
    list_grammars.cache_clear()
    shipped.cache_clear()
    yield root
    list_grammars.cache_clear()
    shipped.cache_clear()


def test_the_index_is_ordered(folder: Path) -> None:
    assert [entry.ref for entry in list_grammars()] == ["small@v1", "small@v2"]
    assert [grammar.ref for grammar in shipped()] == ["small@v1", "small@v2"]


@pytest.mark.parametrize(("name", "version"), [("small", 2), ("small@v1", 1), ("small@v2", 2)])
def test_a_name(folder: Path, name: str, version: int) -> None:
    assert get_grammar(name).version == version
    assert definition(name) == SMALL % version


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("small@v3", DataError),
        ("large", DataError),
        ("small@1", UsageError),
        ("small@v0", UsageError),
        ("Small", UsageError),
        ("", UsageError),
        ("../small", InputError),
        ("nothing.yaml", InputError),
    ],
)
def test_a_name_that_means_nothing(folder: Path, name: str, kind: type[ReceiptError]) -> None:
    with pytest.raises(kind):
        get_grammar(name)


def test_a_released_file_never_changes(folder: Path) -> None:
    for version in (1, 2):
        with (folder / "small" / f"v{version}.yaml").open("ab") as file:
            file.write(b"# changed\n")
    released, draft = list_grammars()
    with pytest.raises(DataError, match="digest differs"):
        read_entry(released)
    assert read_entry(draft).endswith(b"# changed\n")


def test_a_file_that_is_missing(folder: Path) -> None:
    (folder / "small" / "v2.yaml").unlink()
    with pytest.raises(DataError, match="missing") as caught:
        shipped()
    assert caught.value.where == "grammars/small/v2.yaml"
    (folder / "index.yaml").unlink()
    list_grammars.cache_clear()
    with pytest.raises(DataError, match="missing"):
        list_grammars()


@pytest.mark.parametrize("row", ["{id: small}", "[1]", "x", "{id: a, version: 1, path: a, status: new, since: '0', sha256: a}"])
def test_a_broken_index(folder: Path, row: str) -> None:
    (folder / "index.yaml").write_text(f"grammars:\n  - {row}\n")
    list_grammars.cache_clear()
    with pytest.raises(DataError):
        list_grammars()


@pytest.mark.parametrize(
    ("version", "versions"),
    [
        ("0.9", ()),
        ("1.0.0rc1", (1,)),
        ("1.0.0rc2.dev0", (2,)),
        ("1.0.0rc2", (2,)),
        ("1.0", (2,)),
        ("1.0.0.post1", (2,)),
        ("2.0.0a1", (2,)),
        ("of my own", (2,)),
    ],
)
def test_the_grammars_of_a_release(folder: Path, version: str, versions: tuple[int, ...]) -> None:
    index = (folder / "index.yaml").read_text()
    index = index.replace("status: draft, since: '0'", "status: draft, since: 1.0.0rc2")
    index = index.replace("status: released, since: '0'", "status: deprecated, since: 1.0.0rc1, until: 1.0.0rc2")
    (folder / "index.yaml").write_text(index)
    list_grammars.cache_clear()
    assert tuple(grammar.version for grammar in shipped_by(version)) == versions
    assert [grammar.version for grammar in shipped()] == [2]


def test_a_users_own_file(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(SMALL % 7)
    assert get_grammar(str(path)).ref == "small@v7"
    path.write_bytes((SMALL % 7).replace(b"pattern: bye", b"pattern: '('"))
    with pytest.raises(DataError, match="pattern does not compile"):
        get_grammar(str(path))
    with pytest.raises(InputError):
        read_file(str(tmp_path))


def test_no_literal_is_in_every_record() -> None:
    rules = [(grammar.ref, rule) for grammar in shipped() for rule in (*grammar.rules, *grammar.ignore)]
    texts = [(ref, rule.name, text) for ref, rule in rules for text in rule.literals]
    assert [entry for entry in texts if len(entry[2]) < 4] == []  # the gate looks for four bytes at once
