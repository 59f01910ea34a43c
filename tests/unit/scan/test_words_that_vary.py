"""Records with a word that is another in each: their layouts are learned while that may pay, and they are read all the same."""

import hashlib

import pytest

from benchmarks.identity import find_difference, read_both
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import get_grammar
from receipt_cli.scan import engine as engine_module
from receipt_cli.scan.engine import Engine

GRAMMAR = get_grammar("nanogpt@v1")
COUNT = 600


def word(number: int) -> str:
    """Return a word of letters, another for each number."""
    return hashlib.sha256(b"%d" % number).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))[:12]


def log(words: int) -> bytes:
    """Return a log of nanoGPT on whose lines one of so many words stands."""
    lines = (f"{word(n % words)} iter {n}: loss {3 - n / 999:.4f}, time 100.00ms, mfu 40.00%\n" for n in range(COUNT))
    return "".join(lines).encode()


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The records of which a layout was sought."""
    found: list[bytes] = []
    learn = engine_module.learn_layout

    def remember(record: bytes, *rest: object, **options: object) -> object:
        found.append(record)
        return learn(record, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_module, "learn_layout", remember)
    return found


def engine() -> Engine:
    return Engine([GRAMMAR], load_catalogue())


@pytest.mark.parametrize("words", [1, 7, 200, COUNT])
def test_the_records_are_read_as_the_patterns_read_them(words: int) -> None:
    text = log(words)
    assert find_difference(*read_both([GRAMMAR], [text])) is None
