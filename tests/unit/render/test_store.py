"""The runs of a store in a terminal: counts, causes, and the lines of ``store ls`` and ``store ask failures``."""

from typing import Any

import pytest

from receipt_cli.render.store import cause, render_failures, render_runs
from receipt_cli.render.style import Style
from receipt_cli.store.listing import failure_groups

PLAIN = Style(color=False, unicode=True, width=100)


def row(**known: Any) -> dict[str, Any]:
    plain = dict.fromkeys((
        "run_at", "name", "lane", "last_step", "steps_planned", "loss_last", "wall_time_s", "failure", "exception_type",
        "message", "place", "exit_code", "finite_losses", "failure_signature", "unsaved_step_count",
    ))  # fmt: skip
    return {**plain, "run_id": "ab" * 32, "outcome": "finished", "excluded": False, **known}


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, ""),
        ({"outcome": "unknown", "failure": "unknown"}, ""),
        ({"outcome": "cut off", "failure": "truncated"}, "log ends early, no known error"),
        ({"outcome": "stopped", "failure": "time_limit"}, "time limit"),
        ({"outcome": "failed", "failure": "cuda_oom", "exception_type": "torch.OutOfMemoryError"}, "GPU out of memory"),
        ({"outcome": "failed", "failure": "traceback", "exception_type": "a.b.KeyError"}, "KeyError"),
        ({"outcome": "failed", "failure": "traceback"}, "traceback without its error"),
        ({"outcome": "failed", "failure": "unknown", "message": "it broke"}, "it broke"),
        ({"outcome": "failed", "finite_losses": False}, "loss is NaN"),
        ({"outcome": "failed", "exit_code": 7}, "exit code 7"),
        ({"outcome": "failed"}, "exit code is not zero"),
    ],
)
def test_the_cause_of_an_outcome(known: dict[str, Any], words: str) -> None:
    assert cause(row(**known)) == words


def test_runs_are_lines() -> None:
    rows = [
        row(run_at="2026-07-15T06:03:11Z", outcome="cut off", last_step=2092, steps_planned=15535, loss_last=3.0831,
            wall_time_s=2948, name="first"),
        row(run_id="cd" * 32 + ".run1", outcome="failed", failure="traceback", exception_type="KeyError", last_step=3, name="b"),
        row(name="third"),
    ]  # fmt: skip
    shown = render_runs(rows, PLAIN, 2).splitlines()
    assert shown[0] == "3 runs: 1 finished, 1 failed, 1 cut off"
    assert shown[1].split() == ["run", "when", "outcome", "steps", "loss", "time", "name", "cause"]
    assert shown[3].split() == ["abababab", "2026-07-15", "06:03", "cut", "off", "2092/15535", "3.083", "49", "min", "first", "-"]
    assert shown[4].split() == ["cdcdcdcd.run1", "-", "failed", "3", "-", "-", "b", "KeyError"]
    assert shown[5] == "1 more: --limit 0; no time: last"
    for width in (40, 60, 80):
        assert max(map(len, render_runs(rows, Style(width=width)).splitlines())) <= width


def test_failures_are_grouped_by_signature_and_their_place_is_told_if_it_is_one() -> None:
    bad = {"outcome": "failed", "failure": "traceback", "exception_type": "AssertionError", "failure_signature": "a"}
    rows = [
        row(**bad, place="a/b.py:3", run_at="2026-02-01T00:00:00Z", name="late", unsaved_step_count=4, message="no " * 40),
        row(**bad, place="a/b.py:3", run_at="2026-01-01T00:00:00Z", name="early"),
        row(**{**bad, "failure_signature": "b"}, place="x.py:1"),
        row(**{**bad, "failure_signature": "b"}, place="y.py:1"),
        row(**bad, excluded=True),
        row(),
    ]
    groups = failure_groups(rows)
    assert [(g["run_count"], g["place"], g["unsaved_step_count"]) for g in groups] == [(2, "a/b.py:3", 4), (2, None, None)]
    assert (groups[0]["first_at"][:10], groups[0]["last_at"][:10], groups[0]["example"]) == ("2026-01-01", "2026-02-01", "late")
    shown = render_failures(rows, groups, PLAIN).splitlines()
    assert shown[0] == "4 of 5 runs: 4 failed; 1 excluded"
    assert shown[3].split() == ["2", "failed", "AssertionError", "a/b.py:3", "2026-02-01", "4", "steps", "late"]
    whole = render_failures(rows, groups, PLAIN, full=True)
    assert whole.split().count("no") == 40
