"""A definition proves itself; what it gets wrong is told with line, caret and help."""

import pytest

from receipt_cli.authoring import lint, redos
from receipt_cli.authoring.lint import check_index, digit_dependence, lint_grammar, lint_together, sample_failures
from receipt_cli.authoring.redos import ORDINARY
from receipt_cli.grammar.model import Rule
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.problems import Finding

HEAD = "grammar: small\nversion: 1\ntitle: small\ntrainer: small\nrules:\n"
GOOD = (
    HEAD
    + r"""  train:
    event: step
    literal: 'loss '
    pattern: 'iter (?P<step>\d++): loss (?P<loss>\d[\d.]*+|nan)'
    fields: {step: {type: integer}, loss: {type: number}}
    samples:
      - {line: 'iter 1: loss 2.5', fields: {step: 1, loss: 2.5}}
      - {line: 'iter 1: loss nan', fields: {step: 1, loss: .nan}}
"""
)


def only(text: str, where: str = "small/v1.yaml") -> Finding:
    found = lint_grammar(text.encode(), where)
    assert len(found) == 1, [f.reason for f in found]
    return found[0]


def test_a_sound_definition_has_no_finding() -> None:
    assert lint_grammar(GOOD.encode(), "grammars/small/v1.yaml") == []


CARETS = [
    ("not matched", "iter 1: loss 2.5", "iter 1: loss is", 13),
    ("not matched, beyond ASCII", "iter 1: loss 2.5", "é: loss 1", 0),
    ("more behind", "iter 1: loss 2.5", "iter 1: loss 2.5 x", 16),
    ("more before", "iter 1: loss 2.5", "x iter 1: loss 2.5", 0),
    ("more before, beyond ASCII", "iter 1: loss 2.5", "é iter 1: loss 2.5 ü", 18),
    ("twice", "iter 1: loss 2.5", "iter 1: loss 2.5 iter 1: loss 2.5", None),
]


@pytest.mark.parametrize(("old", "new", "caret"), [row[1:] for row in CARETS], ids=[row[0] for row in CARETS])
def test_a_caret_stands_where_the_match_ended(old: str, new: str, caret: int | None) -> None:
    found = lint_grammar(GOOD.replace(old, new).encode(), "small/v1.yaml")
    assert found[0].where == "small/v1.yaml:12"
    assert (found[0].snippet, found[0].caret) == (new, caret)


def test_a_broken_pattern_has_a_caret() -> None:
    found = only(GOOD.replace("nan)'", "nan'"))
    assert found.where == "small/v1.yaml:9"
    assert found.snippet and found.caret is not None and 0 <= found.caret <= len(found.snippet)


HELPED = [
    ("short literal", GOOD.replace("'loss '", "'ss '"), "at least 4 bytes"),
    ("foreign path", GOOD.replace("grammar: small", "grammar: large"), "id and version must match the path"),
    ("no sample", GOOD[: GOOD.index("    samples:")], "add a line"),
    ("slow", GOOD.replace(r"(?P<loss>\d[\d.]*+|nan)", r"(?P<loss>(?:\d|\d\d|\.)+|nan)(?!\S)"), "possessive"),
]


@pytest.mark.parametrize(("text", "want"), [row[1:] for row in HELPED], ids=[row[0] for row in HELPED])
def test_a_finding_helps(text: str, want: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.scan.extraction.model.TIME_BOX_S", 0.05)  # which a search without end takes whole
    assert want in (only(text).help or "")


def test_a_least_value_is_not_for_a_table() -> None:
    text = """
grammar: rows
version: 1
title: Rows
upstream: u
trainer: rows
rules:
  rows:
    event: step
    literal: ['step loss', 'row: ']
    table: {header: 'step loss', row: 'row: ', skip_cells: 1, keys: {step: step, loss: loss}}
    fields: {step: {type: integer, at_least: 1}, loss: {}}
    samples: [{line: "step loss\\nrow: 1 2.5", fields: {step: 1, loss: 2.5}}]
"""
    assert only(text, "rows/v1.yaml").reason == "rows: step: a table cannot have at_least"


def test_where_a_rule_tells_digits_apart() -> None:
    def told(pattern: str) -> str:
        return digit_dependence(Rule("a", "step", (b"loss",), pattern=pattern))

    assert told(r"loss: (?P<loss>\d[\d.]*+)") == ""
    assert told(r"loss@1: (?P<loss>\d[\d.]*+) V2") == "after ' v' 'loss@'"
    assert told(r"step (?P<step>[1-9]\d*+) loss") == "after 'step '"
    assert told(r"step +(?P<step>[1-9]\d*+) loss") == "anywhere"


def test_all_findings_are_collected() -> None:
    more = GOOD.replace("loss: 2.5}", "loss: 2.4}").replace("step: 1, loss: .nan", "step: 2") + "no_match: ['iter 7: loss 1']\n"
    reasons = [f.reason for f in lint_grammar(more.encode(), "small/v1.yaml")]
    assert [r.split(": ", 1)[-1][:24] for r in reasons] == [
        "field loss is stated as ", "field loss is stated as ", "field step is stated as ", "a line that must match n",
    ]  # fmt: skip


def test_a_slow_pattern_on_its_own_sample_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.scan.extraction.model.TIME_BOX_S", 0.05)
    monkeypatch.setattr(lint, "TIME_BOX_S", 0.05)
    slow = "  slow: {literal: 'aaaa', pattern: '(?:a+)+\\z', samples: ['" + "a" * 4000 + "!']}\n"
    text = (
        GOOD.replace("\\d[\\d.]*+|nan)", "(?:a+)+)\\z").replace("loss 2.5'", "loss " + "a" * 4000 + "!'")
        + "ignore:\n"
        + slow.replace("\\z", "$")
    )
    reasons = [f.reason for f in lint_grammar(text.replace("\\z", "$").encode(), "small/v1.yaml")]
    assert any("its own sample" in r and r.startswith("train") for r in reasons)
    assert any("hostile line" in r and r.startswith("slow") for r in reasons)


def test_a_rule_that_is_slow_on_ordinary_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(b"train loss " in line for line in ORDINARY)
    common = GOOD.replace("'loss '", "'train loss '").replace(": loss ", ": train loss ")
    assert lint_grammar(common.encode(), "small/v1.yaml") == []
    monkeypatch.setattr(redos, "seconds_of", lambda read, line: len(line) / 1e5)
    monkeypatch.setattr(redos, "pace", lambda: 1.0)
    found = only(common)
    assert found.reason.startswith("train: takes ") and found.reason.endswith(" ms on ordinary lines")
    assert found.help == "literals that fewer lines contain"
    rare = common.replace("'train loss '", "': train loss '")
    assert lint_grammar(rare.encode(), "small/v1.yaml") == []  # no ordinary line contains it


def test_sample_failures_are_counted() -> None:
    text = GOOD.replace("loss: 2.5}", "loss: 2.4}").encode()
    assert sample_failures(load_grammar(text, "f", with_samples=True), text) == {"train": 1}
    shapeless = GOOD.replace("'loss '", "'ss '").encode()
    assert sample_failures(load_grammar(shapeless, "f", with_samples=True), shapeless) == {"train": 2}


def test_a_sample_of_another_grammar() -> None:
    grammars = [load_grammar(GOOD.replace(": small", f": {name}").encode(), name, with_samples=True) for name in ("a", "b")]
    found = lint_together(grammars)
    assert len(found) == 4 and "sample of train is also read by a@v1 train" in {f.reason for f in found}
    assert lint_together(grammars[:1] * 2) == []


def test_the_index() -> None:
    assert check_index({"a": "1"}, {"a": "1"}) == []
    reasons = [f.reason for f in check_index({"a": "1", "b": "2"}, {"a": "2", "c": "3"})]
    assert reasons == ["c is not listed", "b does not exist", "a: the digest differs"]
