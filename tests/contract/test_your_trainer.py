"""``docs/your-trainer.md``: its grammar proves itself, its lists are complete, and its way works on other refused logs.

``test_readme.py`` runs its commands.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.definitions.units import known_units
from receipt_cli.grammar.parse import KINDS, PARTS, load_grammar
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "your-trainer.md").read_text("utf-8")
KINDS_OF_RULES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_grammar_of_the_page_has_each_kind_and_proves_itself() -> None:
    (text,) = KINDS_OF_RULES
    assert lint_grammar(text.encode(), "kinds.yaml") == []
    assert {rule.kind for rule in load_grammar(text.encode(), "kinds.yaml").rules} == set(KINDS)


def test_the_page_lists_every_unit_and_every_part() -> None:
    rows = re.findall(r"^\|[^|]+\|(.+)\|$", section("Units"), re.MULTILINE)
    named = re.findall(r"`([\w]+)`", " ".join(rows) + section("Units").split("as printed")[1])
    assert set(known_units()) <= set(named)
    assert re.findall(r"^\| `\(\?&(\w+)\)`", PAGE, re.MULTILINE) == list(PARTS)


BASE = """\
grammar: own
version: 1
title: A grammar to break
upstream: ''
trainer: own
completion: none
rules:
  step:
    event: step
    literal: 'kosten='
    pattern: 'schritt=(?P<step>(?&integer)) kosten=(?P<loss>(?&number))'
    fields:
      step: {type: integer}
      loss: {type: number}
    samples:
      - line: 'schritt=1 kosten=3.5'
        fields: {step: 1, loss: 3.5}
"""
SAMPLES = BASE[BASE.index("    samples:") :]
PATTERN = "schritt=(?P<step>(?&integer)) kosten=(?P<loss>(?&number))"
ROW = "block: {open: 'schritt=(?P<step>(?&integer))', row: '(?P<key>kosten)=(?P<number>(?&number))', keys: {kosten: loss}}"
TABLE = "table: {header: '^schritt kosten=', row: '^(?&integer) (?&number) kosten=', keys: {schritt: step, 'kosten=': loss}}"
TWICE = BASE.split("rules:\n")[1].replace("  step:\n", "  again:\n", 1)

BREAKS: list[tuple[str, str, str]] = [
    ("title:", "titel: x\ntitle:", "unknown key …"),
    ("literal:", "literall:", "…: missing"),
    ("loss: {type: number}", "loss: {metric: losss}", "unknown metric …"),
    ("loss: {type: number}", "loss: {printed_in: miles}", "unknown unit …"),
    ("loss: {type: number}", "loss: {fact: seeed}", "unknown fact …"),
    ("loss", "kosten", "is neither a metric, a fact nor structural"),
    (f"pattern: '{PATTERN}'", f"pattern: '{PATTERN}'\n    table: {{header: a, row: b}}", "a rule must have exactly one of …"),
    ("grammar: own", "grammar: other", "the path is …, but the file has …"),
    ("'kosten='", "'ten'", "literal … is too short"),
    ("(?&number)", "(?&nummer)", "pattern does not compile: …"),
    ("schritt=(", "sch\u00fcritt=(", "pattern is not ASCII"),
    (f"pattern: '{PATTERN}'", ROW, "a row must have exactly the groups key and value"),
    (f"'{PATTERN}'", f"'.*{PATTERN}.*'", "open at both ends"),
    ("loss: {type: number}\n", "loss: {type: number}\n      mse: {metric: other}\n", "field … is declared but never captured"),
    ("      step: {type: integer}\n", "", "field … is captured but not declared"),
    ("loss: {type: number}\n", "loss: {type: string, fact: model_name}\n", "a step rule needs a metric"),
    (f"pattern: '{PATTERN}'", TABLE, "a … cannot have at_least"),
    (SAMPLES, "    samples: []\n", "has no sample"),
    ("line: 'schritt=1 kosten=", "line: 'schritt=1 Kosten=", "sample has none of the rule's literals"),
    ("line: 'schritt=1 k", "line: 'schritt=1  k", "sample is not matched"),
    ("line: 'schritt=1 kosten=3.5'", "line: 'schritt=1 kosten=3.5 x'", "sample is not matched entirely"),
    ("line: 'schritt=1 kosten=3.5'", "line: 'schritt=1 kosten=3.5schritt=1 kosten=3.5'", "sample matches … times"),
    ("rules:\n", f"rules:\n{TWICE}", "sample is also matched by …"),
    ("loss>(?&number)", "loss>(?&number)x", "… cannot read …"),
    ("loss: 3.5}", "loss: 3.6}", "field … is stated as …, read as …"),
    ("schritt=(", "(?:k+)+(?:o+)+schritt=(", "… s for a hostile line …"),
    ("rules:\n", "no_match: ['schritt=1 kosten=3.5']\nrules:\n", "a line that must match nothing matches …"),
    ("rules:\n", "evidence: {proves: [{seen: absent}]}\nrules:\n", "evidence names the unknown …"),
    ("title:", "title: x\ntitle:", "duplicate key …"),
    ("title: A", "title: !!str A", "tags are not allowed: …"),
]
CELLS = re.findall(r"^\| (`.+?`) \| ", section("Messages of the lint"), re.MULTILINE)
ROWS = [re.findall(r"`((?:[^`])+)`", cell) for cell in CELLS]


def fits(message: str, reason: str) -> bool:
    return re.search(".*".join(map(re.escape, message.split("…"))), reason) is not None


def reasons(before: str, after: str) -> list[str]:
    text = BASE.replace(before, after) if before == "loss" else BASE.replace(before, after, 1)
    assert text != BASE
    if after == TABLE:
        text = text.replace("loss: {type: number}", "loss: {type: number, at_least: 0}")
    if "(?&number)x" in after:
        text = text.replace("3.5'", "3.5x'")
    where = "own/v1.yaml"
    return [finding.reason for finding in lint_grammar(text.encode(), where)]


@pytest.mark.parametrize(("before", "after", "message"), BREAKS, ids=[message for _, _, message in BREAKS])
def test_a_message_of_the_lint_is_explained(before: str, after: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "hostile" in message:
        monkeypatch.setattr("receipt_cli.scan.extraction.model.TIME_BOX_S", 0.05)  # which a search without end takes whole
    found = reasons(before, after)
    assert any(fits(message, reason) for reason in found), found
    assert any(message in row for row in ROWS)
    unexplained = [reason for reason in found if not any(fits(text, reason) for row in ROWS for text in row)]
    assert not unexplained


NOT_TRIED = {"over … s for its own sample", "evidence cannot compare …", "aliases are not allowed"}


def test_every_message_of_the_page_is_one_of_the_lint() -> None:
    assert {text for row in ROWS for text in row} == {message for _, _, message in BREAKS} | NOT_TRIED


REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "other words": ("tur {n}/20 * abweichung {x:.2f} * takt {t}", "tur=step,abweichung=loss,takt=time:ms", {"step_time_s": 0.12}),
    "numbers alone": ("{n}; {x:.2f}; {t}", "#1=step,#2=loss,#3=skip", {}),
    "a loss alone": ("now at loss: {x:.2f}", "loss=loss", {}),
    "json of its own": ('{{"tur": {n}, "abw": {x:.2f}, "sek": {t}}}', "tur=step,abw=loss,sek=time:s", {"step_time_s": 120.0}),
    "an evaluation by its words": ("eval pass {n}: loss {x:.2f}", "record=train,pass=step,loss=loss", {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_way_of_the_page_gives_a_grammar_for_a_refused_log(
    name: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    template, answers, more = REFUSED[name]
    lines = [template.format(n=n, x=4 - n / 10, t=100 + n) for n in range(1, 21)]
    (tmp_path / "run.log").write_text("\n".join(["begin", *lines, "end"]) + "\n", "utf-8")
    assert invoke("parse", "run.log").code == 4
    done = invoke("grammar", "learn", "run.log", "-o", "own.yaml", "--answer", answers)
    assert done.code == 0, done.stderr
    assert invoke("grammar", "lint", "own.yaml").code == 0
    parsed = invoke("parse", "run.log", "--grammar", "own.yaml", "--json")
    summary = parsed.document["summary"]
    last = {key: value["last"] for key, value in summary["metrics"].items()}
    assert summary["steps"]["record_count"] == 20
    assert {"loss": 2.0, **more}.items() <= last.items()
    (tmp_path / "run.receipt.json").write_bytes(parsed.stdout)
    assert invoke("verify", "run.receipt.json", "run.log", "--grammar", "own.yaml").code == 0
