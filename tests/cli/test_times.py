"""Times of lines: scripts that print no time, played by a fake clock, and what their receipts say of speed and lost time."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.timeless import KILL, SCRIPTS, Piece
from receipt_cli.io.samples_file import head_line, sample_line
from receipt_cli.io.times_file import HEAD_BYTES, TimesWriter
from receipt_cli.receipts.production import Product, Request, produce, produce_all
from receipt_cli.render.card import render_card
from receipt_cli.render.style import Style
from tests.cli.conftest import Invoke

WALL = 1_750_000_000.0


def play(folder: Path, *launches: Iterable[Piece], block: int = 1, name: str = "job.log") -> dict[str, float]:
    """Write the log of some launches, two seconds apart, and its times; return the seconds of each kind of work.

    A program writes blocks of ``block`` bytes.
    """
    log = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    true: defaultdict[str, float] = defaultdict(float)
    start = 0.0
    for number, pieces in enumerate(launches):
        now, held = start, b""
        beside = str(folder / f"{name}.times")
        writer = TimesWriter(beside, log, append=number > 0, pause_s=0.04, now=start, wall=WALL + start)
        for piece in pieces:
            now += piece.seconds
            true[f"{piece.kind} {number}" if number else piece.kind] += piece.seconds
            held += b"" if piece.text == KILL else piece.text.encode()
            whole = len(held) // block * block
            os.write(log, held[:whole])
            writer.add(held[:whole], now)
            writer.tick(now)
            held = held[whole:]
        os.write(log, held)
        writer.add(held, now)
        writer.close(now)
        start = now + 2.0
    os.close(log)
    return true


def parsed(log: Path, **options: Any) -> Product:
    return produce(Request(path=str(log), **options))


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in ("killed", "requeued", "fast")])
def test_a_script_that_prints_no_time(tmp_path: Path, name: str) -> None:
    true = play(tmp_path, SCRIPTS[name]())
    product = parsed(tmp_path / "job.log")
    summary, goodput = product.document["summary"], product.document["goodput"]
    wall = sum(true.values())
    assert summary["step_times"]["source"] == "timestamps"
    assert summary["step_times"]["p50_s"] == pytest.approx(0.15, rel=0.01)
    assert (goodput["evidence"], goodput["step_evidence"]) == ("arrival", "arrival")
    assert goodput["wall_time_s"] == pytest.approx(wall, abs=0.01)
    assert goodput["step_time_s"] == pytest.approx(true["step"], abs=0.01 * wall)
    for kind, seconds in goodput["badput_s"].items():
        assert seconds is None or seconds == pytest.approx(true.get(kind, 0.0), abs=0.01 * wall), kind
    assert [round(stall["duration_s"]) for stall in goodput["stalls"]["longest"]] == ([5] if name == "stalls" else [])
    assert product.derivation.times is not None
    card = render_card(product.document, Style(), log="job.log")
    assert "speed     150 ms/step" in card
    assert f"{100 * goodput['goodput_ratio']:.1f} % in steps" in card


def test_a_killed_script_says_what_is_to_repeat(tmp_path: Path) -> None:
    play(tmp_path, SCRIPTS["killed"]())
    document = parsed(tmp_path / "job.log", exit_code=-9).document
    assert document["failure"]["reason"] == "killed"
    saved = document["summary"]["checkpoints"]
    assert (saved["last_step"], saved["unsaved_step_count"]) == (20, 20)
    assert saved["unsaved_time_s"] == pytest.approx(0.8 + 20 * 0.15, abs=0.05)
    assert document["goodput"]["wall_time_s"] == pytest.approx(0.5 + 40 * 0.15 + 0.8 + 0.1, abs=0.02)


def test_a_requeued_script_is_one_run(tmp_path: Path) -> None:
    play(tmp_path, SCRIPTS["killed"](), SCRIPTS["requeued"]())
    goodput = parsed(tmp_path / "job.log").document["goodput"]
    lost = goodput["badput_s"]
    assert goodput["wall_time_s"] == pytest.approx(7.4 + 2.0 + 6.5, abs=0.05)
    assert goodput["step_time_s"] == pytest.approx(60 * 0.15, abs=0.1)
    assert lost["wasted_progress"] == pytest.approx(20 * 0.15, abs=0.1)
    assert lost["initialization"] == pytest.approx(2 * 0.5, abs=0.1)
    assert lost["checkpoint"] == pytest.approx(0.8, abs=0.1)
    assert lost["idle"] == pytest.approx(2.1, abs=0.1)


def test_two_runs_of_one_program_have_their_own_ends(tmp_path: Path) -> None:
    """The program starts for the first run and ends for the last: between them each has the times of its own lines."""

    def sweep() -> Iterable[Piece]:
        for run, size in enumerate(("10.65M", "85.00M")):
            yield Piece("initialization", 0.5, f"number of parameters: {size}\n")
            for step in range(12):
                yield Piece("step", 0.1, f"iter {step}: loss {4.2 + run - step / 10:.4f}, time 100.00ms, mfu 1.00%\n")
        yield Piece("idle", 3.0, "bye\n")

    play(tmp_path, sweep())
    first, last = (product.document["goodput"] for product in produce_all(Request(path=str(tmp_path / "job.log"))))
    assert first["wall_time_s"] == pytest.approx(0.5 + 1.2, abs=0.02)
    assert last["wall_time_s"] == pytest.approx(1.2 + 3.0, abs=0.02)


def test_ten_thousand_lines_a_second_have_no_step_times_but_a_rate(tmp_path: Path) -> None:
    play(tmp_path, (piece for at, piece in enumerate(SCRIPTS["fast"]()) if at <= 20_000), block=8192)
    summary = parsed(tmp_path / "job.log").document["summary"]
    assert summary["step_times"] is None
    assert summary["realised"]["steps_per_s"] == pytest.approx(10_000, rel=0.05)


def test_output_that_was_held_back_proves_no_step_time(tmp_path: Path) -> None:
    """A C library holds back blocks of 4 KiB, as Python does: its lines share the time of their block."""
    play(tmp_path, SCRIPTS["checkpoints"](), block=64)
    product = parsed(tmp_path / "job.log")
    document = product.document
    assert document["summary"]["step_times"] is None
    assert document["goodput"] is None
    assert 1 / document["summary"]["realised"]["steps_per_s"] == pytest.approx(60 / 60 * 0.15 + 5.6 / 60, rel=0.05)
    problem = next(p for p in document["derivation"]["problems"]["first"] if p["kind"] == "output_held_back")
    assert "PYTHONUNBUFFERED=1" in problem["detail"]
    assert "/goodput" in problem["fields"]
    card = render_card(document, Style(), log="job.log")
    assert re.search(r"  speed     4\.1\d* steps/s of wall time\n", card)
    assert "  time      16 s\n" in card
    assert "PYTHONUNBUFFERED=1 shows step times" in card


def test_without_the_file_everything_is_as_before(tmp_path: Path) -> None:
    play(tmp_path, SCRIPTS["plain"]())
    ignored = parsed(tmp_path / "job.log", times=False)
    (tmp_path / "job.log.times").unlink()
    assert ignored.document == parsed(tmp_path / "job.log").document
    assert "times" not in ignored.document["derivation"]
    assert ignored.document["goodput"] is None


def test_stamps_of_the_log_come_first(tmp_path: Path) -> None:
    def stamped(pieces: Iterable[Piece]) -> Iterable[Piece]:
        at = 0.0
        for piece in pieces:
            at += piece.seconds
            stamp = f"2026-01-31 10:00:{int(at):02} " if piece.text.startswith("step") else ""
            yield piece._replace(text=stamp + piece.text)

    play(tmp_path, stamped(SCRIPTS["plain"]()))
    document = parsed(tmp_path / "job.log").document
    assert document["summary"]["time"]["zone"] is None
    assert "times" not in document["derivation"]


def test_a_receipt_is_a_function_of_the_log_and_its_times(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play(tmp_path, SCRIPTS["plain"]())
    assert invoke("parse", "job.log", "-o", "r.json").code == 0
    assert invoke("verify", "r.json", "job.log").code == 0
    beside = tmp_path / "job.log.times"
    times, log = beside.read_bytes(), (tmp_path / "job.log").read_bytes()

    for at in (HEAD_BYTES + 30, len(times) - 1):
        beside.write_bytes(times[:at] + bytes([times[at] ^ 1]) + times[at + 1 :])
        done = invoke("verify", "r.json", "job.log", "--json")
        assert (done.code, json.loads(done.stdout)["other"][0]) == (1, "times")
    beside.write_bytes(times)
    (tmp_path / "job.log").write_bytes(log.replace(b"loss 1", b"loss 2", 1))
    done = invoke("verify", "r.json", "job.log", "--json")
    assert (done.code, json.loads(done.stdout)["other"][:2]) == (1, ["log", "times"])
    assert "job.log.times is not used: it is of another log" in done.stderr
    (tmp_path / "job.log").write_bytes(log)
    beside.unlink()
    done = invoke("verify", "r.json", "job.log")
    assert (done.code, "job.log.times is missing" in done.stderr) == (1, True)


def sampled(folder: Path, seconds: float) -> None:
    """Write samples of a GPU that does nothing half of the time."""
    lines = [head_line(round(1000 * WALL))]
    lines += [sample_line(100 * number, None, [[0.9 * (number % 2), 1, 1.0]]) for number in range(round(10 * seconds) + 2)]
    (folder / "job.log.gpu").write_text("".join(lines))


def test_a_receipt_is_a_function_of_the_samples_that_it_names(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wall = sum(play(tmp_path, SCRIPTS["plain"]()).values())
    invoke("parse", "job.log", "-o", "without.json")
    sampled(tmp_path, wall)
    card = invoke("parse", "job.log", "-o", "with.json").stdout.decode()
    assert "GPUs idle ~4.4" in card
    beside = tmp_path / "job.log.gpu"
    text = beside.read_bytes()
    assert [invoke("verify", name, "job.log").code for name in ("without.json", "with.json")] == [0, 0]
    beside.write_bytes(text.replace(b"0.9", b"0.8", 1))
    done = invoke("verify", "with.json", "job.log", "--json")
    assert (done.code, json.loads(done.stdout)["other"]) == (1, ["samples"])
    beside.unlink()
    done = invoke("verify", "with.json", "job.log")
    assert (done.code, "job.log.gpu is missing" in done.stderr) == (1, True)
    assert invoke("verify", "without.json", "job.log").code == 0


def test_a_receipt_without_times_is_verified_without_them(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play(tmp_path, SCRIPTS["plain"]())
    invoke("parse", "job.log", "--no-times", "-o", "r.json")
    assert invoke("verify", "r.json", "job.log").code == 0


def test_a_compressed_log_finds_its_times(tmp_path: Path) -> None:
    play(tmp_path, SCRIPTS["plain"]())
    whole = parsed(tmp_path / "job.log").document
    subprocess.run(["gzip", "job.log"], cwd=tmp_path, check=True)
    assert parsed(tmp_path / "job.log.gz").document["derivation"] == whole["derivation"]


def test_an_archive_uses_times_and_notices_new_ones(tmp_path: Path, invoke: Invoke) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    play(logs, SCRIPTS["plain"]())
    shutil.move(logs / "job.log.times", tmp_path / "kept")

    def ratio() -> float | None:
        assert invoke("store", "build", logs, "--store", store, "--workers", "1").code == 0
        newest = max(store.glob("receipts/*/*.json"), key=lambda path: int(path.name.split(".")[-2]))
        found = json.loads(newest.read_bytes())["goodput"]
        return None if found is None else found["goodput_ratio"]

    assert ratio() is None
    shutil.move(tmp_path / "kept", logs / "job.log.times")
    assert ratio() == pytest.approx(0.93, abs=0.03)
    assert ratio() == pytest.approx(0.93, abs=0.03)
    sampled(logs, 9.6)
    assert ratio() == pytest.approx(0.47, abs=0.03)


def test_tee_passes_bytes_on_and_keeps_their_times(tmp_path: Path, process: Invoke) -> None:
    text = b"step 1 loss 2\n\r 10%|# | 1/10" + bytes(range(256)) + b"no end"
    done = process("tee", "job.log", cwd=tmp_path, input=text)
    assert (done.code, done.stdout, (tmp_path / "job.log").read_bytes()) == (0, text, text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.log", "job.log.times"]
    assert process("tee", "job.log", cwd=tmp_path, input=b"").code == 6
    assert process("tee", "--append", "job.log", cwd=tmp_path, input=b"more\n").code == 0
    assert (tmp_path / "job.log").read_bytes() == text + b"\nmore\n"


def test_run_writes_times_or_stamps_or_neither(tmp_path: Path, process: Invoke) -> None:
    command = ("--", sys.executable, "-c", "print('step 1 loss 2'); print('step 2 loss 1')")
    for name, option in (("times", []), ("stamps", ["--stamp"]), ("neither", ["--no-times"])):
        (tmp_path / name).mkdir()
        assert process("run", "-q", "--log", "job.log", *option, *command, cwd=tmp_path / name).code == 0
    plain = b"step 1 loss 2\nstep 2 loss 1\n"
    assert [(tmp_path / name / "job.log").read_bytes() == plain for name in ("times", "stamps", "neither")] == [True, False, True]
    assert [(tmp_path / name / "job.log.times").exists() for name in ("times", "stamps", "neither")] == [True, False, False]
    first, second = (tmp_path / "stamps" / "job.log").read_bytes().splitlines()
    assert (first[-14:], second[-14:], first[10:11], first[23:25]) == (b" step 1 loss 2", b" step 2 loss 1", b"T", b"Z ")
