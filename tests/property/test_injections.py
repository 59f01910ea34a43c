"""One foreign event in a healthy log changes no figure in silence: a small part of ``python -m benchmarks.inject``."""

from collections import Counter
from pathlib import Path

import pytest

from tests.tools.injections import GOOD, HEALTHY, KINDS, VERDICTS, Log, Stated, healthy_logs, judge, verdict_of

NAMES = (*HEALTHY[:8], "script/epochs", "script/updates", "script/dicts", "script/words")
KEPT = (
    "message",
    "words_before_first",
    "other_model",
    "earlier_best",
    "quoted",
    "settings_line",
    "other_record",
    "correction",
    "second_writer",
    "twice_middle",
    "twice_last",
    "decimal_commas",
    "nonfinite",
    "absent",
    "torn",
    "evaluation_bar",
    "lines_twice",
    "long_line",
    "coloured",
)
"""Kinds of the table that no log of these may fail."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Log]:
    return healthy_logs(NAMES, tmp_path_factory.mktemp("injections"))


@pytest.mark.parametrize("kind", KEPT)
def test_a_foreign_event_changes_no_figure_in_silence(kind: str, logs: dict[str, Log], tmp_path: Path) -> None:
    verdicts = {name: judge(log, kind, tmp_path / "run.log") for name, log in logs.items()}
    assert {name: verdict for name, verdict in verdicts.items() if verdict is not None and verdict.word not in GOOD} == {}


def test_verdicts_are_as_they_are_described() -> None:
    def stated(loss: float | None, *problems: str, restarts: int = 0) -> Stated:
        figures = {"/summary/metrics/loss/max": loss, "/summary/steps/restart_count": restarts}
        return Stated(figures, Counter((kind, "") for kind in problems), frozenset())

    message, told = KINDS["message"], KINDS["twice_middle"]
    cases = {
        "unchanged": (message, stated(4.0)),
        "null": (message, stated(None, "step_printed_twice")),
        "named": (message, stated(3.0, "step_printed_twice")),
        "missing": (message, stated(None)),
        "unnamed": (told, stated(4.0)),
        "restart": (message, stated(4.0, restarts=1)),
        "NAMED!": (message, stated(83.1906, "step_printed_twice")),
        "WRONG": (message, stated(3.0)),
        "WRONG!": (message, stated(83.1906)),
    }
    assert {word: verdict_of(kind, stated(4.0), after).word for word, (kind, after) in cases.items()} == {w: w for w in cases}
    assert set(VERDICTS) - set(cases) == {"refused"}
