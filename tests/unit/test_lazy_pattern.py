"""Patterns that are compiled at their first use, or by the build: they answer as those that were compiled at once."""

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import regex

import hatch_build
from receipt_cli import lazy_pattern
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.digit_sensitivity import digits_compared
from receipt_cli.lazy_pattern import compile_later, compile_regex, find_stored, regex_later
from receipt_cli.records.envelope import ENVELOPE

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "autoresearch" / "five-minutes.log"
FOLDER = Path(lazy_pattern.FOLDER)  # type: ignore[attr-defined]
STORES: dict[str, str] = lazy_pattern.STORES  # type: ignore[attr-defined]


def entries(engine: str) -> list[tuple[str | bytes, int]]:
    """Return the patterns that the build stored for an engine."""
    lines = FOLDER.joinpath(STORES[engine]).read_text().splitlines()[1:]
    parts = [json.loads(line)[:3] for line in lines]
    return [(text if kind == "str" else text.encode("latin-1"), flags) for kind, text, flags in parts]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The stores that are open: none."""
    empty: dict[str, Any] = {}
    monkeypatch.setattr(lazy_pattern, "_opened", empty)
    return empty


def test_a_pattern_answers_as_one_that_was_compiled_at_once() -> None:
    text, known = "lr=1 loss=2.5", re.compile(r"(?P<name>[a-z]+)=", re.IGNORECASE)
    for ask in (
        lambda pattern: pattern.search(text).span(),
        lambda pattern: pattern.match(text)["name"],
        lambda pattern: [found.group() for found in pattern.finditer(text)],
        lambda pattern: (pattern.sub("", text), pattern.split(text), pattern.findall(text), pattern.fullmatch(text)),
        lambda pattern: (pattern.pattern, pattern.flags, dict(pattern.groupindex)),
    ):
        assert ask(compile_later(r"(?P<name>[a-z]+)=", re.IGNORECASE)) == ask(known)


def test_what_is_wrong_with_a_pattern_is_raised_at_its_first_use() -> None:
    for wrong, error in ((compile_later("("), re.error), (regex_later("("), regex.error)):
        with pytest.raises(error):
            wrong.search("")


def test_what_is_stored_is_what_re_makes_of_it() -> None:
    assert len(entries("re")) > 200
    for source, flags in entries("re"):
        *stored, names = find_stored("re", source, flags) or pytest.fail(f"another Python's: {source!r}; make compile")
        assert json.loads(json.dumps(hatch_build.given_to_engine("re", source, flags))) == [*stored, names]


def test_what_is_stored_is_what_regex_makes_of_it() -> None:
    assert len(entries("regex")) > 1000
    for source, flags in entries("regex")[::7]:
        assert find_stored("regex", source, flags) is not None, "make compile"
        stored, known = compile_regex(source), regex.compile(source)
        assert (stored.pattern, stored.flags, stored.groups) == (known.pattern, known.flags, known.groups)
        assert (stored.groupindex, type(stored)) == (known.groupindex, type(known))
        again = pickle.loads(pickle.dumps(stored))
        assert (again.pattern, again.flags) == (known.pattern, known.flags)


def test_patterns_of_rules_and_heads_are_stored(opened: dict[str, Any]) -> None:
    for rule in (rule for grammar in shipped() for rule in grammar.rules):
        assert all(find_stored("digits", source) is not None for source in rule.sources), rule.name
        if rule.pattern:
            assert find_stored("regex", rule.pattern.encode()) is not None
    assert find_stored("digits", ENVELOPE.pattern.decode("latin-1")) is not None


def test_text_and_bytes_of_one_spelling_are_two_patterns() -> None:
    source = next(source for source, _ in entries("regex") if isinstance(source, bytes))
    assert find_stored("regex", source.decode("latin-1")) is None
    assert find_stored("regex", source, regex.IGNORECASE) is None


@pytest.mark.parametrize("engine", ["re", "regex", "digits"])
@pytest.mark.parametrize(
    "spoil",
    [lambda d: b"", lambda d: d[:40], lambda d: d[:-9], lambda d: b"{}\n", lambda d: b'[["x"]' + d[d.index(b"]") :], None],
)
def test_a_spoilt_store_or_another_release_s_is_passed_over(
    engine: str, spoil: Any, opened: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, flags = entries(engine)[0]
    if spoil is not None:
        tmp_path.joinpath(STORES[engine]).write_bytes(spoil(FOLDER.joinpath(STORES[engine]).read_bytes()))
    monkeypatch.setattr(lazy_pattern, "FOLDER", str(tmp_path))
    assert find_stored(engine, source, flags) is None
    made = {"re": compile_later, "regex": lambda source, flags: compile_regex(source)}.get(engine)
    if made is not None:
        assert made(source, flags).pattern == source
    else:
        stored = digits_compared(source)  # type: ignore[arg-type]
        digits_compared.cache_clear()
        assert digits_compared(source) == stored  # type: ignore[arg-type]


def test_regex_loads_when_a_name_of_it_is_used() -> None:
    program = (
        "import sys; from receipt_cli.lazy_pattern import import_regex_later as later; later(); later(); import regex\n"
        "print(*sorted(name for name in sys.modules if name.startswith('regex')))\n"
        "try: regex.nothing\n"
        "except AttributeError as error: print(error)\n"
        "from regex import compile\n"
        "print(compile(r'(?<word>a++)b').sub(r'\\g<word>', 'aab'), regex.fullmatch('(?i:A)', 'a') is not None)\n"
        "import pickle; print(pickle.loads(pickle.dumps(regex.compile('x'))).pattern)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["regex", "module 'regex' has no attribute 'nothing'", "aa True", "x"]
