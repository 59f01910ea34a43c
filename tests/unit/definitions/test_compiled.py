"""What the build compiled is what the texts give; whatever is missing, cut or out of date is read from its text."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import regex

import hatch_build
from receipt_cli.definitions import resources
from receipt_cli.definitions.accelerators import load_peaks, parse_peaks
from receipt_cli.definitions.failure_markers import MARKERS_PATH, load_catalogue, parse_catalogue
from receipt_cli.definitions.metrics import load_registry, parse_registry
from receipt_cli.detect.generic import WHERE, load_generic
from receipt_cli.documents.schemas import list_schemas, parse_index
from receipt_cli.grammar import catalog
from receipt_cli.grammar.catalog import list_fixtures, list_grammars, parse_fixtures, read_entry, shipped
from receipt_cli.grammar.model import COMPANION
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.learn.vocabulary import load_vocabulary

ROOT = Path(__file__).resolve().parents[3]
LOG = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
DEFINITIONS: dict[str, tuple[Any, Callable[[bytes, str], Any]]] = {
    "schemas/metrics/v2.yaml": (load_registry, parse_registry),
    "schemas/peaks/v2.yaml": (load_peaks, parse_peaks),
    "schemas/index.yaml": (list_schemas, parse_index),
    "grammars/fixtures.yaml": (list_fixtures, parse_fixtures),
    f"grammars/{MARKERS_PATH}": (load_catalogue, parse_catalogue),
    WHERE: (load_generic, lambda text, where: load_vocabulary(text, where, load_registry())),
}


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    resources._entries.cache_clear()
    resources.code_digest.cache_clear()
    yield
    resources._entries.cache_clear()
    resources.code_digest.cache_clear()


@pytest.fixture
def texts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_entries", lambda group: ({}, b""))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's compiled files and code, in a checkout with copies of the definitions."""
    shutil.copytree(ROOT / "receipt_cli", tmp_path / "receipt_cli", ignore=shutil.ignore_patterns("__pycache__"))
    for kind in ("grammars", "schemas"):
        shutil.copytree(ROOT / kind, tmp_path / kind)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "receipt_cli")
    resources.data_root.cache_clear()
    yield tmp_path
    resources.data_root.cache_clear()


def plain(value: Any) -> Any:
    """Return everything that a definition is made of, with its types."""
    if is_dataclass(value):
        return type(value).__name__, {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple):
        return type(value).__name__, [plain(item) for item in value]
    if isinstance(value, regex.Pattern):
        return "Pattern", value.pattern, value.flags  # two of one text are equal only as long as they are one
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return type(value).__name__, value


@pytest.mark.parametrize("where", DEFINITIONS)
def test_it_gives_what_the_text_gives(where: str) -> None:
    load, parse = DEFINITIONS[where]
    assert resources.find_compiled(where) is not None, "make compile"
    assert plain(load.__wrapped__()) == plain(parse(ROOT.joinpath(where).read_bytes(), where))


def test_grammars_are_what_their_texts_give(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"grammars/{entry.path}": read_entry(entry) for entry in list_grammars()}
    found = shipped.__wrapped__()
    assert len(found) > 40
    assert all(resources.find_compiled(grammar.where, "grammars") is not None for grammar in found)
    for grammar in found:
        assert plain(grammar) == plain(load_grammar(texts[grammar.where], grammar.where))


def test_rules_are_restored_when_somebody_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    real = catalog.find_compiled
    monkeypatch.setattr(catalog, "find_compiled", lambda *given: asked.append(given[::2]) or real(*given))
    found = shipped.__wrapped__()
    assert [each for each in asked if len(each) > 1] == []
    asked.clear()
    for grammar in found[:9]:
        again = pickle.loads(pickle.dumps(grammar))
        assert [head[:3] for head in grammar.heads] == [
            (rule.name, COMPANION if rule.companion else rule.event, rule.literals) for rule in (*grammar.rules, *grammar.ignore)
        ]
        assert [head.reading for head in grammar.heads if head.reading] == [
            grammar.rule(number).reading for number in range(len(grammar.heads))
        ]
        assert plain(again.rules) == plain(grammar.rules)
        assert grammar.rules is grammar.rules
        with pytest.raises(AttributeError):
            grammar.nothing  # type: ignore[attr-defined]  # noqa: B018
    assert len(asked) == 9


def test_rules_of_a_file_that_changed_meanwhile_are_read_from_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = shipped.__wrapped__()[0]
    monkeypatch.setattr(catalog, "find_compiled", lambda *given: None)
    text = ROOT.joinpath(grammar.where).read_bytes()
    assert plain(grammar.rules) == plain(load_grammar(text, grammar.where).rules)


def test_without_it_the_texts_are_read(texts_only: None) -> None:
    assert load_registry.__wrapped__().by_name["loss"].id == 1
    assert list_schemas.__wrapped__() == list_schemas()
    assert list_grammars.__wrapped__() == list_grammars()


def test_a_changed_definition_is_read_anew_and_the_others_are_not(package: Path) -> None:
    path = package / "grammars" / "nanogpt" / "v1.yaml"
    entry = next(e for e in list_grammars() if e.path == "nanogpt/v1.yaml")
    path.write_bytes(path.read_bytes() + b"# another comment\n")
    assert resources.find_compiled("grammars/nanogpt/v1.yaml", "grammars") is None
    assert resources.find_compiled("grammars/keras/v1.yaml", "grammars") is not None
    if entry.status == "released":
        with pytest.raises(Exception, match="its digest differs"):
            shipped.__wrapped__()


def test_changed_code_makes_all_of_it_old(package: Path) -> None:
    assert resources.find_compiled("schemas/metrics/v2.yaml") is not None
    resources._entries.cache_clear()
    resources.code_digest.cache_clear()
    path = package / "receipt_cli" / "definitions" / "metrics.py"
    path.write_bytes(path.read_bytes() + b"# another comment\n")
    assert resources.find_compiled("schemas/metrics/v2.yaml") is None
    assert load_registry.__wrapped__().version == 2


@pytest.mark.parametrize("spoil", [lambda d: b"", lambda d: d[:-9], lambda d: b"{}", lambda d: b"[]", lambda d: b"\xff", None])
def test_a_spoilt_file_is_passed_over(package: Path, spoil: Callable[[bytes], bytes] | None) -> None:
    path = package / "receipt_cli" / "_compiled" / "definitions.jsonl"
    if spoil is None:
        path.unlink()
    else:
        path.write_bytes(spoil(path.read_bytes()))
    assert load_registry.__wrapped__().by_name["loss"].id == 1


def test_in_an_installed_package_the_size_is_enough(package: Path) -> None:
    for kind in ("grammars", "schemas"):
        shutil.move(package / kind, package / "receipt_cli" / kind)
    resources.data_root.cache_clear()
    registry = package / "receipt_cli" / "schemas" / "metrics" / "v2.yaml"
    shutil.rmtree(package / "receipt_cli" / "definitions")  # where only bytecode is installed
    assert resources.find_compiled("schemas/metrics/v2.yaml") is not None
    registry.write_bytes(registry.read_bytes() + b"\n")
    assert resources.find_compiled("schemas/metrics/v2.yaml") is None


def test_it_is_compiled_alike_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "receipt_cli" / resources.FOLDER
    made = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    code = json.loads(made["definitions.jsonl"].splitlines()[0])["code"]
    rooms = {path.partition("/")[0] for path in code if "/" in path}
    assert rooms == {"definitions", "documents", "grammar", "learn"}, "the rule in the Makefile lists these"
    for where, value in hatch_build.definitions():
        assert resources.find_compiled(where) == json.loads(json.dumps(resources.pack(value))), where
    for where, parts in hatch_build.grammars():
        for number, value in enumerate(parts):
            assert resources.find_compiled(where, "grammars", number) == json.loads(json.dumps(resources.pack(value))), where


def test_compiling_again_takes_no_file_away_even_for_a_moment(package: Path) -> None:
    """A program that runs while a wheel is built imports these; so do tests beside the test that builds one."""
    folder = package / "receipt_cli" / "_compiled"
    for name in ("hatch_build.py", "native"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, package / name)
    before = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.glob("*.*")}
    (folder / "gone_1_0.py").touch()
    folder.joinpath("grammars.jsonl").write_bytes(b"")
    subprocess.run([sys.executable, package / "hatch_build.py"], check=True, cwd=package, timeout=120)
    after = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.glob("*.*")}
    assert {name: text for name, (_, text) in after.items()} == {name: text for name, (_, text) in before.items()}
    assert [name for name, (inode, _) in after.items() if inode != before[name][0]] == ["grammars.jsonl"]


@pytest.mark.parametrize("log", [LOG, "unknown"])
def test_a_start_reads_no_yaml_and_writes_nothing_to_the_home(log: Path | str, tmp_path: Path) -> None:
    if isinstance(log, str):
        log = tmp_path / "unknown.log"
        log.write_text("".join(f"round {n}: loss={3 - n / 9:.3f} lr=0.001\n" for n in range(20)))
    (tmp_path / "home").mkdir()
    blocked = "from receipt_cli.definitions import strict_yaml\nstrict_yaml.read_yaml = None\n"
    program = f"{blocked}from receipt_cli.cli.main import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", program, "parse", str(log), "--json"],
        env={**os.environ, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert "loss" in json.loads(done.stdout)["summary"]["metrics"]
    assert list((tmp_path / "home").iterdir()) == []
