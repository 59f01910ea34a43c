"""Measure what ``receipt run`` finds out about ten scripts that print no time, against their own clocks.

For each script: the step time of the receipt ÷ that of the script; the largest error of a class of goodput in shares of the
wall time; whether its stalls were found; and whether the log has the bytes that the script prints without ``receipt run``.
``--overhead`` measures the wall time of ten thousand lines a second with and without ``receipt run``, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.inputs import ROOT
from benchmarks.machine import describe_machine
from benchmarks.timeless import BUFFERED
from receipt_cli.io.times_file import HEAD_BYTES

RESULT = ROOT / "benchmarks/results/arrival.md"
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT)}
SECONDS = 4.0
"""Seconds for which the script of the overhead prints."""
BURST = r"""
import os, sys, time
began, printed = time.monotonic(), 0
while printed < int(sys.argv[1]):
    due = min(int(sys.argv[1]), int((time.monotonic() - began) * 10000))
    while printed < due:
        os.write(1, b"step %d loss 2.1234 and some more words that fill the line\n" % printed)
        printed += 1
    time.sleep(0.001)
print(time.monotonic() - began, file=sys.stderr)
"""


def receipt(*words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the program."""
    return subprocess.run([sys.executable, "-m", "receipt_cli", *words], cwd=cwd, env=ENVIRON, capture_output=True, check=False)


def script(name: str, folder: Path) -> list[str]:
    """Return the command of a script."""
    if name != "buffered":
        return [sys.executable, "-m", "benchmarks.timeless", name]
    (folder / "buffered.c").write_text(BUFFERED)
    subprocess.run(["cc", "-o", "buffered", "buffered.c"], cwd=folder, check=True)
    return ["./buffered"]


def measure(names: list[str], folder: Path) -> dict[str, Any]:
    """Run scripts one after the other into one log; return what the receipt says, and what is true."""
    alone = b""
    for number, name in enumerate(names):
        alone += subprocess.run(
            [*script(name, folder), "alone.json"], cwd=folder, env=ENVIRON, capture_output=True, check=False
        ).stdout
        more = ["--append"] if number else []
        receipt("run", "--quiet", "--log", "job.log", *more, "--", *script(name, folder), "truth.json", cwd=folder)
    receipt("parse", "job.log", "-o", "parsed.json", cwd=folder)
    document = json.loads((folder / "parsed.json").read_bytes())
    truths = [json.loads(line) for line in (folder / "truth.json").read_text().splitlines()]
    log = (folder / "job.log").read_bytes()
    sidecar = (folder / "job.log.times").stat().st_size
    most = max(0.03 * len(log), 3 * document["derivation"]["log"]["record_count"])
    return {
        "document": document,
        "truths": truths,
        "same": log == alone,
        "size": (sidecar - HEAD_BYTES - 100 * len(names)) / most,
    }


def judge(found: dict[str, Any]) -> dict[str, Any]:
    """Compare a receipt with the truths of its launches."""
    summary, goodput = found["document"]["summary"], found["document"]["goodput"]
    steps = [seconds for truth in found["truths"] for seconds in truth["steps"]]
    own = statistics.median(steps) if len(steps) < 10_000 else statistics.fmean(steps)
    claimed = None
    if summary["step_times"] is not None:
        claimed = summary["step_times"]["p50_s"]
    elif summary["realised"] is not None and summary["realised"]["steps_per_s"]:
        claimed = 1 / summary["realised"]["steps_per_s"]
    true: dict[str, float] = {}
    for truth in found["truths"]:
        for kind, seconds in truth["kinds"].items():
            true[kind] = true.get(kind, 0.0) + seconds
    if len(found["truths"]) > 1:  # the second launch repeats what the first did after its checkpoint
        true["wasted_progress"] = sum(found["truths"][0]["steps"][20:])
        true["step"] -= true["wasted_progress"]
    return {
        "step": None if claimed is None else claimed / own,
        "classes": None if goodput is None else _worst(goodput, true),
        "stalls": None if goodput is None or goodput["stalls"] is None else goodput["stalls"]["longest"],
        "problems": sorted(found["document"]["derivation"]["problems"]["kinds"]),
        **{name: found[name] for name in ("same", "size")},
    }


def _worst(goodput: dict[str, Any], true: dict[str, float]) -> tuple[float, str]:
    """Return the largest error of a known class in shares of the wall, and its name; a difference of the wall is idle time."""
    claimed = {"step": goodput["step_time_s"], **{k: v for k, v in goodput["badput_s"].items() if v is not None}}
    true = {**true, "idle": goodput["wall_time_s"] - sum(v for k, v in true.items() if k != "idle")}
    errors = {name: abs(seconds - true.get(name, 0.0)) / goodput["wall_time_s"] for name, seconds in claimed.items()}
    worst = max(errors, key=errors.__getitem__)
    return errors[worst], worst


JOBS = [["plain"], ["bar"], ["backspaces"], ["ranks"], ["buffered"], ["stalls"], ["checkpoints"], ["killed"]]
JOBS += [["killed", "requeued"], ["fast"]]


def overhead(rounds: int, folder: Path) -> list[float]:
    """Return, for each round, the wall time of the lines under ``receipt run`` ÷ that without."""
    (folder / "burst.py").write_text(BURST)
    command = [sys.executable, "burst.py", str(int(SECONDS * 10_000))]
    ratios: list[float] = []
    for _ in range(rounds):
        times: list[float] = []
        for wrapped in (False, True):
            words = ["-m", "receipt_cli", "run", "--overwrite", "--quiet", "--log", "o.log", "--"] if wrapped else []
            whole = [sys.executable, *words, *command] if wrapped else command
            with (folder / "out").open("wb") as out:
                done = subprocess.run(whole, cwd=folder, env=ENVIRON, stdout=out, stderr=subprocess.PIPE, check=True)
            times.append(float(done.stderr.split()[-1] if not wrapped else _seconds(done.stderr, folder)))
        ratios.append(times[1] / times[0])
    return ratios


def _seconds(errors: bytes, folder: Path) -> float:
    return float((folder / "o.log").read_bytes().split()[-1])


def main() -> None:
    """Print the table, and write it to the results with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these scripts")
    parser.add_argument("--overhead", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    given = parser.parse_args()
    lines = [
        "| script | step time ÷ its own | largest error of a class ÷ wall | stalls [s] | log as without `receipt run` |"
        " times ÷ the most allowed | problems |",
        "|---|--:|---|---|---|--:|---|",
    ]
    print(*lines, sep="\n")
    for names in JOBS:
        if given.names and names[-1] not in given.names:
            continue
        with tempfile.TemporaryDirectory() as name:
            found = judge(measure(names, Path(name)))
        step = "none" if found["step"] is None else f"{found['step']:.3f}"
        classes = "no goodput" if found["classes"] is None else f"{found['classes'][0]:.3%} ({found['classes'][1]})"
        stalls = ", ".join(f"{one['duration_s']:.2f}" for one in found["stalls"] or ()) or "none"
        problems = ", ".join(found["problems"]) or "none"
        same = "yes" if found["same"] else "NO"
        lines.append(f"| {', '.join(names)} | {step} | {classes} | {stalls} | {same} | {found['size']:.2f} | {problems} |")
        print(lines[-1], flush=True)
    if given.overhead:
        with tempfile.TemporaryDirectory() as name:
            ratios = overhead(given.overhead, Path(name))
        each = ", ".join(f"{ratio:.4f}" for ratio in ratios)
        lines += ["", f"Wall time of 10,000 lines a second, with `receipt run` ÷ without, in turns: {each}"]
        lines[-1] += f"; median {statistics.median(ratios):.4f}."
        print(lines[-1])
    if given.write:
        machine = describe_machine()
        head = (
            f"# Ten scripts that print no time\n\n`python -m benchmarks.arrival --overhead 5 --write`, commit {machine['commit']}"
        )
        RESULT.write_text(f"{head}, {machine['processor']}, {machine['cores']} cores.\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
