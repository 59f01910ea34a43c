from typing import Any

import pytest

from receipt_cli.problems import Finding
from receipt_cli.render.explain import render_explain
from receipt_cli.render.findings import render_findings
from receipt_cli.render.style import Style

SAMPLE = Finding(
    "error",
    "grammars/nanogpt/v1.yaml:34",
    "the sample is matched only up to here",
    "iter 10: loss 3.2841, mfu 29.53%",
    22,
    "add the field mfu to the pattern of train_step",
)
FINDINGS = [
    SAMPLE,
    Finding("warning", "/summary/metrics/loss/mean", "the mean of a metric lies outside its minimum and maximum"),
    Finding("error", "", "no rule has a sample"),
]
CANDIDATES = [
    {"id": "nanochat", "version": 2, "score": 21400, "step_records": 21400, "records": 21602, "chosen": True,
     "why": "explains 21400 step records that no other grammar explains"},
    {"id": "nanogpt", "version": None, "score": 0.5, "step_records": 0, "records": 12, "chosen": False, "why": "explains fewer"},
]  # fmt: skip
EXPLANATION = {
    "candidates": CANDIDATES,
    "explanations": [],
    "rules": [
        {"grammar": "nanochat@v2", "rule": "train_step", "event": "step", "matched": 21400, "near_misses": 3},
        {"grammar": "nanochat@v2", "rule": "val", "event": "eval", "matched": 86, "near_misses": 0},
    ],
    "unmatched": [{"line_number": 1733, "text": "\tstep 00733 | loss: 3.1"}, {"line_number": 9, "text": "lr 0.1"}],
}


def shown(findings: list[Any], width: int) -> str:
    return render_findings(findings, Style(width=width))


def test_findings() -> None:
    assert shown(FINDINGS, 80) == (
        "error: grammars/nanogpt/v1.yaml:34: the sample is matched only up to here\n"
        "  | iter 10: loss 3.2841, mfu 29.53%\n"
        "  |                       ^\n"
        "  help: add the field mfu to the pattern of train_step\n"
        "warning: /summary/metrics/loss/mean\n"
        "  the mean of a metric lies outside its minimum and maximum\n"
        "error: no rule has a sample\n"
        "\n"
        "2 errors, 1 warning\n"
    )


def test_no_findings() -> None:
    assert shown([], 80) == ""


def test_a_finding_needs_three_fields() -> None:
    assert shown([Finding("note", "a:1", "so it is")], 80) == "note: a:1: so it is\n\n1 note\n"


@pytest.mark.parametrize(
    ("snippet", "caret", "want"),
    [
        ("abc", None, ["abc"]),
        ("abc", 0, ["abc", "^"]),
        ("abc", 3, ["abc", "   ^"]),
        ("abc", 4, ["abc"]),
        ("abc", -1, ["abc"]),
        ("日本 x", 3, ["日本 x", "     ^"]),
        ("\t!", 1, [r"\t!", "  ^"]),  # the caret stands under what is shown
        ("x" * 60 + "HERE", 60, ["…" + "x" * 30 + "HERE", " " * 31 + "^"]),
        ("HERE" + "y" * 60, 0, ["HERE" + "y" * 30 + "…", "^"]),
        ("x" * 60 + "HERE" + "y" * 60, 60, ["…" + "x" * 16 + "HERE" + "y" * 13 + "…", " " * 17 + "^"]),
    ],
)
def test_snippet_and_caret(snippet: str, caret: int | None, want: list[str]) -> None:
    lines = shown([Finding("error", "f:1", "why", snippet, caret)], 40).split("\n")
    assert [line.removeprefix("  | ") for line in lines[1:] if line.startswith("  | ")] == want


def test_explain() -> None:
    assert render_explain(EXPLANATION, Style(width=80)) == (
        "   grammar      score  step records  records\n"
        "────────────────────────────────────────────\n"
        "✓  nanochat@v2  21400         21400    21602\n"
        "   nanogpt      0.500             0       12\n"
        "nanochat@v2: explains 21400 step records that no other grammar explains\n"
        "nanogpt: explains fewer\n"
        "\n"
        "rules of the chosen grammar\n"
        "  rule        event  matched  almost read\n"
        "  ───────────────────────────────────────\n"
        "  train_step  step     21400            3\n"
        "  val         eval        86            0\n"
        "\n"
        "lines that look like metrics and match no rule\n"
        "  line  text\n"
        "  ────────────────────────────\n"
        "  1733  step 00733 | loss: 3.1\n"
        "     9  lr 0.1\n"
    )


def test_explain_what_nothing_explains() -> None:
    lines = [{"line_number": 1, "text": "loss 1"}]
    text = render_explain({"candidates": [], "explanations": [], "rules": [], "unmatched": lines}, Style(width=80))
    assert text.startswith("no grammar explains a record of this log\n\nlines that look like metrics")


def test_explain_two_chosen_grammars() -> None:
    rules = [{"grammar": name, "rule": "step", "event": "step", "matched": 3, "near_misses": 0} for name in ("a@v1", "b@v2")]
    assert render_explain({**EXPLANATION, "rules": rules, "unmatched": []}, Style(width=80)).endswith(
        "rules of the chosen grammars\n"
        "  grammar  rule  event  matched  almost read\n"
        "  ──────────────────────────────────────────\n"
        "  a@v1     step  step         3            0\n"
        "  b@v2     step  step         3            0\n"
    )
