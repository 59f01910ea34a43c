"""The view of a job that runs: its lines fit, it says what is known, and nothing is wrong before it is."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len as cells

from receipt_cli.derive import Plan, plan_reading
from receipt_cli.follow.growth import Growth
from receipt_cli.follow.loop import Snapshot, figures
from receipt_cli.render.live import render_live
from receipt_cli.render.progress import Screen
from receipt_cli.render.style import Style

LOGS = Path(__file__).resolve().parents[3] / "fixtures" / "logs"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_reading()


def state(plan: Plan, log: str, size: int | None = None) -> Snapshot:
    text = (LOGS / log).read_bytes()[:size]
    growth = Growth(log, plan, once=True)
    growth.add([text])
    made = figures(growth.snapshot().derivation())
    return Snapshot("run.log", len(text), text.count(b"\n"), 1.7e9, made, None, "until Ctrl-C")


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("log", ["nanochat/speedrun-2025-10.log", "megatron-lm/2024-oom-then-restart.log"])
def test_its_lines_fit(plan: Plan, log: str, width: int, unicode: bool) -> None:
    shown = render_live(state(plan, log), Style(width=width, unicode=unicode))
    assert max(map(cells, shown.splitlines())) <= width
    assert width < 80 or len(shown.splitlines()) < 24
    assert unicode or shown.isascii()


def test_a_job_in_its_midst(plan: Plan) -> None:
    shown = render_live(state(plan, "nanochat/speedrun-2025-10.log", 3000), Style(width=80))
    assert "17 of 60" in shown
    assert "28.3 %" in shown
    assert "20.5 s" in shown  # 43 steps at the median of 477 ms
    assert "477 ms a step (steady)" in shown
    assert "from 11.09, low 7.816" in shown
    assert "goodput" in shown
    assert "✗" not in shown
    assert "truncated" not in shown


def test_the_phase_that_runs_is_shown_and_not_the_longest(plan: Plan) -> None:
    shown = render_live(state(plan, "nanochat/speedrun-2025-10.log"), Style(width=160))
    assert "of chat_sft" in shown


def test_what_ended_a_job_is_red(plan: Plan) -> None:
    shown = render_live(state(plan, "megatron-lm/2021-fp16-slurm-time-limit.log"), Style(width=160, color=True))
    assert "\x1b[1;31mtime_limit, line 117" in shown
    assert "a step (steady)" not in shown  # there is nothing to wait for


def test_before_anything_was_read(plan: Plan) -> None:
    nothing = Snapshot("run.log", 0, 0, None, None, None, "until Ctrl-C")
    assert "nothing has been read yet" in render_live(nothing, Style())
    assert "reading what is there" in render_live(replace(nothing, size_bytes=10), Style())


def test_a_log_without_steps(plan: Plan) -> None:
    shown = render_live(state(plan, "nanochat/speedrun-2025-10.log", 300), Style(width=80))
    assert "? has_steps" in shown
    assert "steps    –" in shown


def test_names_steer_no_terminal(plan: Plan) -> None:
    named = replace(state(plan, "nanochat/speedrun-2025-10.log", 3000), name="\x1b[2Ja", warnings=("\x1b]0;x\x07 was replaced",))
    shown = render_live(named, Style(width=80))
    assert "\x1b" not in shown
    assert "\\x1b[2Ja" in shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    return Terminal()


def test_a_text_is_drawn_in_its_place_and_taken_away(terminal: Terminal) -> None:
    with Screen(terminal) as screen:
        screen.draw("one\ntwo\n")
        screen.draw("[red]three[/red]\n")
    drawn = terminal.getvalue()
    assert drawn.index("one") < drawn.index("two") < drawn.index("[red]three[/red]")
    assert drawn.endswith("\x1b[1A\x1b[2K")  # erased


def test_a_text_that_did_not_change_is_not_drawn_again(terminal: Terminal) -> None:
    with Screen(terminal) as screen:
        screen.draw("one\n")
        screen.draw("one\n")
        drawn = terminal.getvalue()
        assert drawn.count("one") == 1
        screen.clear()
        screen.draw("one\n")
        assert terminal.getvalue().count("one") > 1


def test_what_is_left_stands_above_what_others_write(terminal: Terminal) -> None:
    with Screen(terminal) as screen:
        screen.draw("one\n")
        screen.leave("bye")
    drawn = terminal.getvalue()
    assert drawn.endswith("bye\n")
    assert "\x1b[2K" not in drawn[drawn.rindex("one") :]


def test_no_more_lines_than_the_terminal_has(terminal: Terminal) -> None:
    screen = Screen(terminal)
    screen.draw("".join(f"line {number}\n" for number in range(100)))
    assert terminal.getvalue().count("line ") == 24
    screen.clear()
