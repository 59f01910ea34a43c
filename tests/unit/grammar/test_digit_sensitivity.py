"""Which patterns cannot tell digits apart, and where: what the reading of a pattern claims holds for its matches."""

import contextlib
import random
import re
from collections.abc import Iterator

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.digit_sensitivity import Compared, digits_compared, kept_after
from receipt_cli.grammar.model import Rule, compile_pattern
from receipt_cli.records.envelope import MASK
from receipt_cli.scan.candidates import Asked
from receipt_cli.scan.layout import BackrefCheck
from tests.tools.slow import one_in

ECHOED = [
    (r"(\d++)/\1", {"/"}),
    (r"\[ *+(?P<n>\d+)/(?P=n)\]", {"/"}),
    (r"(?P<n>\d{1,3}) OF (?:(?!(?P=n)[ ,])\d++)?+ ", {" of "}),
    (r"(a)(?:b|(\d+) - \2)", {" - "}),
    (r"(\d++) step ++\1(?= )", {" step +"}),
    (r"(\d++)/?/ *?of{1,2}\1", {"/?/ *of{1,2}"}),
    (r"(\d++)/(?:x|\1)", {"/"}),
    (r"(?P<n>\d++)[ \t]*+(?:[/|]|of |out of )[ \t]*+(?!(?P=n)(?!\d))\d", {r"[ \t]*(?:[/|]|of |out of )[ \t]*"}),
    (r"(\d++)\s(?=.\d)(?:\b\1|[a-f]++\1)", {r"\s", r"\s[a-f]+"}),
    (r"(\d++)\(\1", {r"\("}),
    (r"(?P<n>\d)/(?P=n)|(?P<n>a)", {"/"}),
    (r"(?:(?P<n>\d++) step (?P=n)|(?P<i>\d++) step (?P<n>\d++)):", {" step "}),
]
FAR = [
    (r"(\d++)/(\d++) step \1", {" step "}),
    (r"iter (\d++)(?:/\d++)?(?: \|)? step \1(?=[:/])", {" step "}),
    (r"(\d++)(?:/\1)*", {"/"}),
    (r"(\d++)?/\1", {"/"}),
    (r"(?P<n>\d++)\|\w (?P=n)|(?P<n>\d++)a", {" "}),
]


def are_told_apart(record: bytes, other: bytes, compared: Compared) -> bool:
    """True where records that are equal but for their digits differ in what a pattern asks of these, unless behind a text."""
    asked = Asked.of(compared)
    masked = record.translate(MASK)
    if any(BackrefCheck.of(record, *pair) != BackrefCheck.of(other, *pair) for pair in asked.pairs(masked)):
        return True
    possible = asked.possible_in(masked)
    return any(record.lower().startswith(text, at) != other.lower().startswith(text, at) for at, text in possible)


NUMBERS = ["1", "2", "12", "21", "/", " of ", " - ", " step ", "(", "iter ", "|", "a", ":", "[", "]", " ", ","]


@given(st.lists(st.sampled_from(NUMBERS), max_size=12), st.randoms())
def test_other_digits_that_compare_alike_match_at_the_same_places(parts: list[str], rng: random.Random) -> None:
    record = "".join(parts).encode()
    for source, _ in (*ECHOED, *FAR):
        other = re.sub(rb"\d", lambda _: rng.choice((b"1", b"2")), record)
        compared = digits_compared(source)
        assert compared is not None
        if not are_told_apart(record, other, compared):
            assert places(compile_pattern(source), other) == places(compile_pattern(source), record), (source, record, other)


def test_most_of_what_ships_is_blind() -> None:
    rules = [rule for grammar in shipped() for rule in (*grammar.rules, *grammar.ignore)]
    seeing = [rule for rule in rules if any(kept_after(source) is None for source in rule.sources)]
    assert len(seeing) < len(rules) / 20


def changed(record: bytes, kept: frozenset[str], rng: random.Random) -> bytes:
    """Return ``record`` with other digits, but for the runs behind the texts in ``kept``."""
    wanted = tuple(text.encode("latin-1") for text in kept)
    parts = []
    for run in re.finditer(rb"(\d+)|\D+", record):
        free = run[1] is not None and not record[: run.start()].lower().endswith(wanted)
        parts.append(bytes(rng.choices(b"0123456789", k=len(run[0]))) if free else run[0])
    return b"".join(parts)


def places(pattern: regex.Pattern[bytes], record: bytes) -> list[tuple[tuple[int, int], ...]]:
    return [tuple(found.span(group) for group in range(pattern.groups + 1)) for found in pattern.finditer(record, timeout=60)]


def assert_same_places(source: str, records: Iterator[bytes] | list[bytes], rng: random.Random, times: int) -> None:
    compared = digits_compared(source)
    if compared is None:
        return
    pattern = compile_pattern(source)
    for record in records:
        found = places(pattern, record)
        for _ in range(times):
            other = changed(record, compared.kept, rng)
            if not are_told_apart(record, other, compared):
                assert places(pattern, other) == found, (source, record, other)


def sources(rule: Rule) -> Iterator[str]:
    yield from rule.sources
    if rule.pairs is not None and rule.pairs.stop is not None:
        yield rule.pairs.stop
    if rule.cells is not None:
        yield rule.cells.pattern.decode("ascii")


@pytest.mark.parametrize("number", one_in(4, range(4)))
def test_shipped_grammars_match_their_samples_whatever_the_digits(number: int) -> None:
    rng = random.Random(7)
    for grammar in shipped(with_samples=True)[number::4]:
        rules = (*grammar.rules, *grammar.ignore)
        samples = [line.encode() for rule in rules for sample in rule.samples for line in sample.line.split("\n")]
        for rule in rules:
            own = [line.encode() for sample in rule.samples for line in sample.line.split("\n")]
            for source in sources(rule):
                assert_same_places(source, own, rng, 12)
                assert_same_places(source, samples[:40], rng, 1)


def test_shipped_markers_match_whatever_the_digits() -> None:
    rng = random.Random(8)
    for marker in load_catalogue().markers:
        lines = [line for sample in marker.samples for line in sample.split(b"\n")]
        assert_same_places(marker.source, lines, rng, 4)


PLAIN = [
    "a",
    "b",
    "@",
    "1",
    "20",
    "@1",
    "b2",
    "1@a",
    "2b@",
    r"\.",
    ".",
    " ",
    "-",
    r"\x40",
    r"\x31",
    r"\b",
    r"\B",
    "^",
    "$",
    r"\K",
]
SETS = [r"\d", r"\d++", r"\w", r"\W", r"\S", r"\D", "[0-9]", "[1-9]", "[^0]", r"[a\d]", "[^@]", "[+-.]", "[0-9a-f]++"]
ECHOES = [r"(\d++)", r"(?P<n>\d++)", r"@\1", r"@(?P=n)", r"a ++\1"]
ATOMS = st.sampled_from([*PLAIN, *SETS, *ECHOES])


def compounds(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.sampled_from(["(", "(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?|"])
    counts = st.sampled_from(["?", "*", "+", "++", "*+", "?+", "{2}", "{1,3}", "{1,}"])
    return st.one_of(
        st.lists(parts, min_size=2, max_size=4).map("".join),
        st.tuples(parts, parts).map("|".join),
        st.tuples(groups, parts).map(lambda pair: f"{pair[0]}{pair[1]})"),
        st.tuples(parts, counts).map("".join),
        st.tuples(parts, counts).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    )


PATTERNS = st.recursive(ATOMS, compounds, max_leaves=8)
RECORDS = st.lists(st.sampled_from(["a", "b", "A", "B", "@", "0", "1", "2", "20", "9", ".", " ", "-"]), max_size=10).map("".join)


@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.lists(RECORDS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_blind_pattern_finds_the_same_places(source: str, records: list[str], rng: random.Random) -> None:
    with contextlib.suppress(regex.error, TimeoutError):  # some made patterns are none, some take for ever
        assert_same_places(source, [record.encode() for record in records], rng, 6)
