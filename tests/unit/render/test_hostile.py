"""Whatever a document says, the terminal sees text, newlines and our own colours, in lines that fit."""

import re
import unicodedata
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.render.console import render_table
from receipt_cli.render.explain import render_explain
from receipt_cli.render.receipt import render_receipt
from receipt_cli.render.schema import render_findings
from receipt_cli.render.style import Style
from tests.tools.examples import costly

OUR_COLOURS = re.compile(r"\x1b\[(?:1|2|31|1;3[1-6]|32|33|36)m|\x1b\[0m|\x1b\]8;id=\d+;file://[!-~]*\x1b\\|\x1b\]8;;\x1b\\")
UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
NASTY = (
    "\x1b[2J\x1b[31mgone",
    "\x1b]0;title\x07",
    "\x9b31m",
    "a\nb\r\nc",
    "\u202efdp.exe",
    "\u2066\u2069\u200b\ufeff",
    "\ud800",
    "日本語" * 30,
    "e" + "\u0301" * 50,
    "x" * 5000,
    "word " * 500,
    "\t\x00\x7f\u2028",
    "▁▂▃✓✗…",
    "",
)
TEXTS = st.one_of(st.sampled_from(NASTY), st.text(max_size=40))
NUMBERS = st.one_of(
    st.integers(-5, 10**6), st.integers(), st.floats(), st.sampled_from([0, 10**400, -(10**400), 1e308, -1e308, 5e-324])
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS, st.lists(st.none()), st.just({}))
NAMES = st.one_of(st.sampled_from(["loss", "tokens_per_s", "step_time_s", "x_bytes", "y_ratio", "_s", "flops_per_s"]), TEXTS)


def either(*expected: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What belongs there, most of the time."""
    return st.one_of(*expected, *expected, LEAVES)


def record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return either(st.fixed_dictionaries({}, optional=fields))


def listed(entry: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return either(st.lists(entry, max_size=4))


number, text = either(NUMBERS), either(TEXTS)
statistics = record(**dict.fromkeys(("first", "last", "min", "max", "mean", "median", "nonfinite_count"), number), window=text)
metrics = either(st.dictionaries(NAMES, statistics, max_size=5))
summary = record(
    phase=text,
    steps=record(**dict.fromkeys(("first", "last", "planned", "record_count", "restart_count", "superseded_count"), number)),
    steady_state=record(record_count=number, excluded_warmup=number, excluded_implausible=number),
    training_time_s=number,
    metrics=metrics,
    other_metrics=metrics,
    derived=metrics,
    consistency=listed(record(metric=NAMES, reported=number, derived=number, ratio=number, consistent=st.booleans())),
)
header = record(
    git=record(commit=text, branch=text, dirty=st.booleans()),
    software=record(torch=text, cuda=text, python=text, trainer=record(name=text, version=text)),
    hardware=record(accelerators=listed(record(name=text, count=number, memory_bytes=number))),
    parallelism=record(world_size=number, data=number, tensor=number),
    model=record(architecture=text, parameter_count=number),
    sources=either(st.dictionaries(st.sampled_from(["/git", "/software", "/model/parameter_count", "x"]), text)),
)
details = record(
    count=number, first=listed(record(line_number=number, grammar=text, rule=text, detail=text, kind=text, excerpt=text))
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "run": record(name=text, lane=text, preset=text, started_at=text, finished_at=text, exit_code=number),
        "header": header,
        "summary": summary,
        "phases": listed(record(name=text, summary=summary)),
        "checks": either(st.dictionaries(either(st.sampled_from(["no_oom", "has_steps"])).map(str), LEAVES, max_size=5)),
        "failure": record(
            reason=text,
            category=text,
            line_number=number,
            message=text,
            log_tail=listed(text),
            markers=listed(record(id=text, count=number, first_line=number, last_line=number)),
        ),
        "goodput": record(goodput_ratio=number, wall_time_s=number, badput_s=either(st.dictionaries(TEXTS, number, max_size=3))),
        "derivation": record(
            grammars=listed(record(id=text, version=number, chosen_by=text)),
            log=record(sha256=text, size_bytes=number, line_count=number),
            lines=record(matched=number, ignored=number, unmatched=number, undecodable=number),
            near_misses=details,
            problems=details,
        ),
    },
)
series = st.none() | st.dictionaries(NAMES, st.lists(st.floats(), max_size=60), max_size=5)
styles = st.builds(Style, color=st.booleans(), width=st.integers(0, 220), height=st.integers(0, 60), unicode=st.booleans())


def width_of(line: str) -> int:
    """Cells of a line, counted here again so that the code under test does not judge itself."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in line)
    return len(line) + wide - sum(unicodedata.category(char) in ("Mn", "Me") for char in line)


def check(output: str, style: Style) -> None:
    assert output == "" or output.endswith("\n")
    plain = OUR_COLOURS.sub("", output) if style.color else output
    output.encode("utf-8" if style.unicode else "ascii")
    for line in plain.split("\n"):
        assert not {unicodedata.category(char) for char in line} & UNSAFE, ascii(line)
        assert width_of(line) <= style.width, line
        assert not unicodedata.combining(line[:1] or " ")


@settings(max_examples=costly(200), deadline=None)
@given(documents, series, styles)
def test_any_document(document: Mapping[str, Any], values: Mapping[str, list[float]] | None, style: Style) -> None:
    check(render_receipt(document, style=style), style)
    check(render_receipt(document, series=values, style=style, full=True), style)


@pytest.mark.parametrize("leaf", [*NASTY, None, True, 0, 10**400, float("nan"), float("-inf"), [], {}, [[]], [{}]])
def test_one_value_everywhere(leaf: Any) -> None:
    keys = ("run", "header", "summary", "phases", "checks", "failure", "goodput", "derivation")
    for style in (Style(width=60, color=True), Style(width=80, unicode=False)):
        odd = {key: {leaf: leaf} if isinstance(leaf, str) else {} for key in keys}
        for document in (dict.fromkeys(keys, leaf), {key: [leaf] for key in keys}, odd):
            check(render_receipt(document, style=style, full=True, log="/x/a.log"), style)


findings = st.lists(
    st.builds(
        SimpleNamespace,
        severity=st.sampled_from(["error", "warning"]) | TEXTS,
        where=TEXTS,
        reason=TEXTS,
        snippet=st.none() | TEXTS,
        caret=st.none() | st.integers(-2, 6000),
        help=st.none() | TEXTS,
    ),
    max_size=4,
)


@settings(max_examples=costly(100), deadline=None)
@given(findings, styles)
def test_any_finding(found: list[Any], style: Style) -> None:
    check(render_findings(found, style), style)


def shape(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields)


counts = st.integers(0, 10**20)
explanations = shape(
    candidates=st.lists(
        shape(
            id=TEXTS,
            version=st.none() | counts,
            score=counts,
            step_records=counts,
            records=counts,
            chosen=st.booleans(),
            why=TEXTS,
        )
    ),
    explanations=st.lists(
        shape(records=counts, line=TEXTS, chosen=st.booleans(), score=st.floats(-9, 9), evidence=st.just({"a": 0.5}), why=TEXTS)
    ),
    rules=st.lists(shape(grammar=TEXTS, rule=TEXTS, event=TEXTS, matched=counts, near_misses=counts)),
    unmatched=st.lists(shape(line_number=counts, text=TEXTS)),
)


@settings(max_examples=costly(100), deadline=None)
@given(explanations, styles)
def test_any_explanation(explanation: Mapping[str, Any], style: Style) -> None:
    check(render_explain(explanation, style), style)


@settings(max_examples=costly(100), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(NASTY), TEXTS), max_size=4), st.lists(st.sampled_from(NASTY), max_size=8), styles)
def test_any_table(rows: list[dict[str, str]], columns: list[str], style: Style) -> None:
    check(render_table(rows, columns, style), style)
