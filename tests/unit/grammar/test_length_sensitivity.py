"""For which runs of digits a pattern tells their lengths apart: what its reading claims holds for its matches."""

import contextlib
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import regex

from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.digit_sensitivity import Unknown, digits_compared, set_of, tokens_of
from receipt_cli.grammar.length_sensitivity import ANYTHING, Between, lengths_compared
from receipt_cli.grammar.model import compile_pattern
from receipt_cli.records.literals import LITERALS
from receipt_cli.scan.candidates import LONGEST, WORD
from receipt_cli.scan.extraction.labelled import LABELS
from tests.tools.examples import costly
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[3]
RUN = re.compile(r"\d+")


def test_objects_and_labels_tell_hardly_any_lengths() -> None:
    """What the reader of mappings and the search for labels ask of digits is looked at with the patterns of rules."""
    sources = [*(each.pattern for each in LITERALS), *(each.pattern.decode("ascii") for each in LABELS)]
    found = {each for source in sources for each in lengths_compared(source, LONGEST, WORD) or ()}
    assert found == {Between(1 << 44, ANYTHING, (",",))}  # thousands


def test_most_of_what_ships_is_understood() -> None:
    asked = {source for grammar in shipped() for rule in (*grammar.rules, *grammar.ignore) for source in rule.asked}
    unknown = [source for source in asked if lengths_compared(source, LONGEST, WORD) is None]
    assert len(unknown) < len(asked) / 20


def test_sets_of_bytes_are_those_of_the_engine() -> None:
    asked = {source for grammar in shipped() for rule in (*grammar.rules, *grammar.ignore) for source in rule.asked}
    tokens = {token for source in asked for token, _ in tokens_of(source) or ()}
    sets = {token for token in tokens if token[0] == "[" or token == "." or token in (r"\d", r"\w", r"\s", r"\S", r"\D", r"\W")}
    for token in sets:
        pattern = regex.compile(token.encode("latin-1"), regex.IGNORECASE)
        assert set_of(token) == sum(1 << byte for byte in range(256) if pattern.fullmatch(bytes([byte]))), token
    with pytest.raises(Unknown):
        set_of(r"[\p]")


ATOMS = [
    *[r"\d"] * 3, r"\w", r"\S", r"[^,]", r"[\d.]", r"[\d,]", ".", "a", " ", ",", r"\.", "%", "b", r"\s", r"[a-z]", r"\D",
    r"[^\s,]", r"[%\d]", r"(?:\d(?! ))", r"(?:(?!,)\S)", r"(?:\d(?!x))",
]  # fmt: skip
TIMES = [
    "", "", "", "+", "*", "?", "++", "*+", "?+", "+?", "*?", "??", "{2}", "{1,3}", "{0,2}+", "{2,}", "{1,3}?", "{1,20}",
    "{0,30}+", "{1,40}?", "{3}+",
]  # fmt: skip
PLACES = ["^", "$", r"\b", r"\A", r"\Z", r"\K", r"\G"]
GROUPS = ["(?:", "(?:", "(", "(?>", "(?=", "(?!", "(?<=", "(?<!"]


def made_pattern(rng: random.Random, depth: int = 3) -> str:
    parts = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if depth == 0 or kind < 0.62:
            parts.append(rng.choice(ATOMS) + rng.choice(TIMES))
        elif kind < 0.7:
            parts.append(rng.choice(PLACES))
        elif kind < 0.75:
            parts.append(rng.choice([r"(\d)[\d.]*", r"(?P<x>\d++)"]))
        else:
            group = rng.choice(GROUPS)
            inner = "|".join(made_pattern(rng, depth - 1) for _ in range(rng.choice([1, 1, 1, 2])))
            parts.append(f"{group}{inner}){rng.choice(TIMES) if group in ('(?:', '(', '(?>') else ''}")
    return "".join(parts)


def made_text(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randint(1, 9)):
        parts.append(rng.choice(["a", "b", " ", ",", ".", "%", "a ", ", ", "%a"]))
        parts.append("".join(rng.choices("0123456789", k=rng.choice([0, 1, 1, 1, 2, 2, 3, 4, 7]))))
    return "".join(parts)[rng.randint(0, 1) :]


def stretched(text: str, compared: tuple[Between, ...], rng: random.Random) -> tuple[str, dict[int, int]]:
    """Return ``text`` with other lengths of runs that do not matter, and where its places are then, but for those inside."""
    made, at = "", 0
    places = {}
    for run in RUN.finditer(text):
        start, end = run.span()
        before, after = ord(text[start - 1]) if start else 256, ord(text[end]) if end < len(text) else 256
        seen = any(b >> before & 1 and a >> after & 1 and all(one in text.lower() for one in needed) for b, a, needed in compared)
        places |= {at + i: len(made) + i for i in range(start - at + 1)}
        made += text[at:start]
        if seen:
            places |= {start + i: len(made) + i for i in range(end - start)}
        made += run[0] if seen else "".join(rng.choices("0123456789", k=rng.choice([1, 1, 2, 3, 5, 9])))
        at = end
    places |= {at + i: len(made) + i for i in range(len(text) - at + 1)}
    return made + text[at:], places | {-1: -1}


def spans(pattern: regex.Pattern[bytes], text: str) -> Iterator[int]:
    for found in pattern.finditer(text.encode("latin-1"), timeout=60):
        for group in range(pattern.groups + 1):
            yield from found.span(group)


def assert_same_places(source: str, rng: random.Random, times: int) -> None:
    digits = digits_compared(source)
    if digits is None or any(digits):
        return
    pattern = compile_pattern(source)
    for _ in range(times):
        text = made_text(rng)
        runs = len(RUN.findall(text))
        compared = lengths_compared(source, len(text) + 9 * runs, max(map(len, text.split(" "))) + 9 * runs)
        if compared is None:
            return
        other, places = stretched(text, compared, rng)
        with contextlib.suppress(TimeoutError):
            moved, found = [places.get(at) for at in spans(pattern, text)], [*spans(pattern, other)]
            assert moved == found, (source, text, other)


@pytest.mark.parametrize("seed", one_in(3, range(20)))
def test_other_lengths_match_at_the_same_places(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(costly(300)):
        source = made_pattern(rng)
        with contextlib.suppress(regex.error):
            assert_same_places(source, rng, 10)


@pytest.mark.parametrize(
    "source",
    [
        r"\S\d++\S{2,}",
        r"(\S)*$",
        r"(\d)*+[\d.]*+",
        r"x(?!\d{4})y",
        r", \w+?\s{1,3}?(?<![a-z]{1,20}).?(?> ?[\d.]??)*+",
        r"((?<=a{1,40}?)b?+(?P<x>\d++))?+(?P<y>\d++)[%\d]{2}\S*",
        r"\S+(\w{1,40}?\d{2,}){0,30}+a++",
        r"[%\d]+([%\d]?(?<=b{3}+)){0,2}+[\d.]\d{1,3}",
        r"\d??[\d.]{2},*+(?:(?!,)\S){1,30}+",
        r"(?!\w{1,30}+a{3}+)%*+",
        r"((?:\d(?! )){1,40}?\.*?)+?\.*+(\d)[\d.]*\s+\d{0,2}+",
        r"(?>(?<=a)\d++,|\d++)[^%]%",
    ],
)
def test_patterns_that_an_earlier_reading_did_not_understand(source: str) -> None:
    assert_same_places(source, random.Random(1), 1000)


@pytest.mark.parametrize("number", one_in(3, range(10)))
def test_patterns_that_ship_match_lines_of_logs_at_the_same_places(number: int) -> None:
    rng, count = random.Random(number), 0
    for grammar in shipped()[number::10]:
        logs = b"".join(path.read_bytes() for path in sorted((ROOT / "fixtures" / "logs" / grammar.id).glob("*.log")))
        lines = [line for line in logs.decode("latin-1").splitlines() if len(line) < LONGEST / 2]
        for source in {source for rule in (*grammar.rules, *grammar.ignore) for source in rule.asked}:
            compared, pattern = lengths_compared(source, LONGEST, LONGEST), compile_pattern(source)
            for text in rng.choices(lines, k=costly(120)) if compared is not None and lines else ():
                other, places = stretched(text, compared, rng)
                moved, found = ([*spans(pattern, each)] for each in (text, other))
                assert [places.get(at) for at in moved] == found, (source, text, other)
                count += bool(found)
    assert count > 50
