from typing import Any

import pytest

from receipt_cli.problems import Finding
from receipt_cli.render.schema import render_findings
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
