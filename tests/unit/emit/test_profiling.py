"""Profiles on SIGUSR1 and SIGUSR2: windows that end, handlers that come back."""

import os
import pstats
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from receipt_cli.documents.validate import validate_document
from receipt_cli.emit import TemporalPerformanceTracker
from receipt_cli.emit.profiling import SignalProfiler

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def handlers_of_before() -> Iterator[None]:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    yield
    left = {number: signal.signal(number, handler) for number, handler in before.items()}
    assert set(left.values()) == {signal.SIG_IGN}


class Profile:
    """A profiler of the caller's own."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self) -> None:
        self.events.append("start")

    def stop(self, path: str) -> None:
        self.events.append("stop")
        Path(path).write_text("{}")


def begin() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def finish() -> None:
    os.kill(os.getpid(), signal.SIGUSR2)


def test_a_window_from_one_signal_to_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = Profile()
    with SignalProfiler(tmp_path / "new", start=own.start, stop=own.stop) as profiler:
        profiler.step(1)
        begin()
        assert own.events == []  # nothing runs inside of a handler
        profiler.step(2)
        profiler.step(3)
        finish()
        profiler.step(4)
        profiler.step(5)
    assert own.events == ["start", "stop"]
    path = tmp_path / "new" / "torch_profile-2.json"
    assert capsys.readouterr().out == f"[torch_profile] step=2 trace={path}\n"
    assert [(a["kind"], a["uri"], a["size_bytes"]) for a in profiler.attachments] == [("torch_profile", str(path), 2)]


def test_without_a_signal_nothing_happens(tmp_path: Path) -> None:
    own = Profile()
    with SignalProfiler(tmp_path, start=own.start, stop=own.stop) as profiler:
        for step in range(10):
            profiler.step(step)
        finish()
        profiler.step(10)
    assert own.events == []


def test_a_window_is_bounded_in_steps_seconds_and_number(tmp_path: Path) -> None:
    told: list[str] = []
    now = 0.0
    own = Profile()
    profiler = SignalProfiler(
        tmp_path, start=own.start, stop=own.stop, max_steps=3, max_seconds=10, max_windows=2, tell=told.append, clock=lambda: now
    )
    with profiler:
        begin()
        for step in range(6):
            profiler.step(step)
        assert told == [f"[torch_profile] step=0 trace={tmp_path}/torch_profile-0.json"]
        begin()
        profiler.step(6)
        now = 11.0
        profiler.step(7)
        assert len(told) == 2
        begin()
        profiler.step(8)
    assert own.events == ["start", "stop"] * 2


def test_an_open_window_ends_with_the_loop(tmp_path: Path) -> None:
    own = Profile()
    with SignalProfiler(tmp_path, start=own.start, stop=own.stop, tell=lambda line: None) as profiler:
        begin()
        profiler.step(1)
    assert own.events == ["start", "stop"]


def test_handlers_that_stood_there_are_called_and_come_back(tmp_path: Path) -> None:
    seen: list[int] = []

    def mine(number: int, _: object) -> None:
        seen.append(number)

    signal.signal(signal.SIGUSR1, mine)
    with SignalProfiler(tmp_path, tell=lambda line: None) as profiler:
        begin()
        finish()
        profiler.step(1)
    assert seen == [signal.SIGUSR1]
    assert signal.getsignal(signal.SIGUSR1) is mine
    assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) is mine


def test_a_handler_that_came_later_keeps_its_place(tmp_path: Path) -> None:
    def later(number: int, _: object) -> None:
        pass

    with SignalProfiler(tmp_path):
        signal.signal(signal.SIGUSR2, later)
    assert signal.signal(signal.SIGUSR2, signal.SIG_IGN) is later


def test_it_is_for_the_main_thread(tmp_path: Path) -> None:
    errors: list[str] = []

    def work() -> None:
        try:
            SignalProfiler(tmp_path).install()
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert "main thread" in errors[0]


def test_trouble_with_the_profiler_ends_no_training(tmp_path: Path) -> None:
    told: list[str] = []

    def no_start() -> None:
        raise RuntimeError("busy")

    with SignalProfiler(tmp_path, start=no_start, stop=lambda path: None, tell=told.append) as profiler:
        begin()
        profiler.step(1)
        profiler.step(2)
    (tmp_path / "file").write_text("")
    own = Profile()
    with SignalProfiler(tmp_path / "file", start=own.start, stop=own.stop, tell=told.append) as profiler:
        begin()
        profiler.step(3)
    assert told[0] == "[torch_profile] step=1 not begun: busy"
    assert told[1].startswith("[torch_profile] step=3 not written: ")
    assert len(told) == 2
    assert profiler.attachments == []


@pytest.mark.parametrize("options", [{"start": print}, {"stop": print}, {"kind": "trace"}, {"kind": "a b_profile"}])
def test_what_cannot_work_is_refused(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        SignalProfiler(tmp_path, **options)  # type: ignore[arg-type]


def test_pythons_own_profiler_in_a_process_that_runs(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from receipt_cli.emit.profiling import SignalProfiler\n"
        "def work(): return sum(range(1000))\n"
        "with SignalProfiler(sys.argv[1], max_steps=2) as profiler:\n"
        "    for step in range(6):\n"
        "        profiler.step(step)\n"
        "        work()\n"
        "        if step == 1: os.kill(os.getpid(), signal.SIGUSR1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    path = tmp_path / "cpu_profile-2.pstats"
    assert done.stdout == f"[cpu_profile] step=2 trace={path}\n"
    calls = {where[2]: figures[0] for where, figures in pstats.Stats(str(path)).stats.items()}  # type: ignore[attr-defined]
    assert calls["work"] == 2


def test_a_profile_is_an_attachment_of_the_evaluation(tmp_path: Path) -> None:
    own, tracker = Profile(), TemporalPerformanceTracker()
    tracker.start_run()
    with SignalProfiler(tmp_path, start=own.start, stop=own.stop, tell=lambda line: None) as profiler:
        begin()
        profiler.step(1)
    for one in profiler.attachments:
        tracker.attach(one["kind"], one["uri"])
    document = tracker.to_json()
    assert document["attachments"] == profiler.attachments
    assert validate_document(document) == []
