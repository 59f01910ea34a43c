"""Reading by layout and by the kernel gives what the patterns give, record for record; mutated logs tries the fuzz target."""

import hashlib
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.identity import find_difference, read_both
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import get_grammar, shipped
from receipt_cli.grammar.model import Grammar
from receipt_cli.grammar.parse import build_grammar
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.layout import Layout, LayoutCache
from receipt_cli.scan.segment import SegmentBody
from tests.tools.examples import costly
from tests.tools.made import made_grammar
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[2]
LOGS = sorted((ROOT / "fixtures" / "logs").glob("*/*.log"))
SETTINGS = settings(max_examples=costly(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def assert_same(grammars: list[Grammar], blocks: list[bytes]) -> None:
    fast, pure = read_both(grammars, blocks)
    assert find_difference(fast, pure) is None


@pytest.mark.parametrize("path", one_in(8, LOGS), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_shipped_logs(path: Path) -> None:
    assert_same(shipped(), [path.read_bytes()] * 2)


@pytest.mark.parametrize("number", one_in(5, range(5)))
def test_every_sample_of_steps_has_layouts(number: int) -> None:
    grammars = shipped(with_samples=True)
    rules = [rule for grammar in grammars for rule in grammar.rules if rule.event in ("step", "eval")]
    lines = {line.encode() for rule in rules for sample in rule.samples for line in sample.line.split("\n")}
    engine = Engine(grammars, load_catalogue())
    for line in sorted(lines)[number::5]:
        tried: list[Layout | None] = []
        engine.layouts = cache = LayoutCache()
        cache.add = lambda masked, layout, candidates, tried=tried: tried.append(layout)  # type: ignore[method-assign, misc]
        engine.read(SegmentBody(), line + b"\n")
        assert None not in tried, line


@pytest.mark.parametrize("words", [1, 7, 200, 600])
def test_records_with_a_word_that_varies(words: int) -> None:
    """Their layouts are learned while that may pay."""
    letters = str.maketrans("0123456789", "ghijklmnop")
    varying = [hashlib.sha256(b"%d" % n).hexdigest().translate(letters)[:12] for n in range(words)]
    lines = [f"{varying[n % words]} iter {n}: loss {3 - n / 999:.4f}, time 100.00ms, mfu 40.00%\n" for n in range(600)]
    assert_same([get_grammar("nanogpt@v1")], ["".join(lines).encode()])


WORDS = ["loss", "acc@1", "E2E latency", "lr", "fp8 scale", "step time", "grad norm", "top5", "Übung", "x"]
NUMBERS = [
    r"-?\d[\d.]*+(?:[eE][-+]?\d++)?",
    r"\d++",
    r"[1-9]\d*+",
    r"[-+.\deEnaif]++",
    r"\S++",
    r"\d{1,3}(?:,\d{3})*+(?:\.\d++)?",
]
UNITS: list[dict[str, Any]] = [
    {"type": "number"},
    {"type": "integer"},
    {"type": "number", "printed_in": "ms"},
    {"type": "number", "printed_in": "percent"},
    {"type": "number", "printed_in": "GiB"},
    {"type": "number", "printed_in": "si"},
    {"type": "number", "null_if": ["-1", "0.0"]},
    {"type": "number", "value": r"^([\d.]++)"},
    {"type": "string"},
    {"type": "integer", "at_least": 5},
]
VALUES = ["0", "7", "10", "-1", "0.0", "2.5", "1e-05", "3.14E+02", "nan", "inf", "1,234", "0,123", "12345678901234567"]
VALUES += ["9.99%", "40ms", "-"]
HEADS = ["", "[rank3]: ", "2026-01-02 03:04:05,678 - INFO - ", "2: ", "Feb 30 ", "[2026-13-01 25:61:61] ", "<13>1 "]


@st.composite
def definitions(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """Return the definition of a grammar of one to three rules, and the words of its lines."""
    rules: dict[str, Any] = {}
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
    ascii_words = [word for word in words if word.isascii()] or ["loss"]
    for number in range(draw(st.integers(1, 3))):
        fields = {"step": {"type": "integer", **draw(st.sampled_from([{}, {"at_least": 3}]))}}
        for index in range(len(ascii_words)):
            fields[f"v{index}"] = {**draw(st.sampled_from(UNITS)), "metric": "other"}
            if fields[f"v{index}"]["type"] == "string":
                fields[f"v{index}"] = {"type": "number", "metric": "other"}
        rule: dict[str, Any] = {"event": "step", "literal": "step ", "fields": fields}
        start = draw(st.sampled_from([r"\bstep (?P<step>\d++)", r"^step (?P<step>\d++)", r"step (?P<step>[1-9]\d*+)(?: of 8)?"]))
        if draw(st.booleans()):
            pattern = start
            for index, word in enumerate(ascii_words):
                pattern += rf"(?:[ |]+{word}[:=] ?(?P<v{index}>{draw(st.sampled_from(NUMBERS))}))?"
            rule["pattern"] = pattern
        else:
            keys = {word: f"v{index}" for index, word in enumerate(ascii_words)}
            unknown = draw(st.sampled_from(["other", "ignore"]))
            rule["pairs"] = {"start": start, "cell": "|", "key": ":", "keys": keys, "unknown": unknown}
        rules[f"r{number}"] = rule
    data = made_grammar(rules, ignore={"rest": {"literal": "step 0", "pattern": "step 0"}})
    return data, words


@st.composite
def lines(draw: st.DrawFn, words: list[str]) -> str:
    cells = "".join(
        f" | {word}{draw(st.sampled_from([':', '=', ' :']))} {draw(st.sampled_from(VALUES))}"
        for word in draw(st.lists(st.sampled_from([*words, "other", "top1"]), max_size=5))
    )
    return f"{draw(st.sampled_from(HEADS))}step {draw(st.integers(0, 40))}{draw(st.sampled_from(['', ' of 8', ' of 9']))}{cells}"


@SETTINGS
@given(data=st.data())
def test_generated_grammars_on_generated_lines(data: st.DataObject) -> None:
    definition, words = data.draw(definitions())
    grammar = build_grammar(definition, "made.yaml", "0" * 64)
    forms = data.draw(st.lists(lines(words), min_size=1, max_size=6))
    rng = random.Random(data.draw(st.integers(0, 1000)))
    log = [
        "".join(rng.choice("0123456789") if char.isdigit() and rng.random() < 0.5 else char for char in rng.choice(forms))
        for _ in range(120)
    ]
    ends = data.draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\n\x1b[0m"]))
    assert_same([grammar], [ends.join(log).encode()])
