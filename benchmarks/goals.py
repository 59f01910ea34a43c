"""Measure the goals of speed and memory in one interleaved run: whole commands in turn, one of each in every round.

    python -m benchmarks.goals [--size 256MiB] [--rounds 3] [--folder CORPUS] [--memory 1GiB] [--results FILE]

Every generated log must be read correctly before any timing. Without ``--folder`` no real logs are measured, and the archive
is made from the fixtures. Ratios are taken within one round; the table shows their median, least and greatest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.generators import GENERATORS
from benchmarks.inputs import CACHE, ROOT, parse_size, print_size
from benchmarks.machine import describe_machine
from benchmarks.measure import Case, Sample, run, tell
from benchmarks.peers import PEERS, environ, last_differences, peer_case, receipt_case

STARTS = 10
"""Cold starts of each command in one round."""
STARTED = {
    "receipt parse of a 29 kB log": (("parse", "--json", str(ROOT / "fixtures/logs/autoresearch/five-minutes.log")), 2.5),
    "receipt --help": (("--help",), 1.7),
}
"""Name → (command, largest CPU time ÷ a bare Typer application's)."""
ARCHIVES = {"fixtures": (7 << 20, 1600), "real logs of 8 kB": (24_000, 1600), "real logs of 60 kB": (300_000, 1000)}
"""Archive → (bytes of its largest log, number of logs)."""
FIXTURES = "fixtures"
REAL_SIZE = "12MB"
WORKERS = {"one worker": 2.0, "two workers": 1.4}
"""Workers → largest wall time ÷ another program's."""


class Goal(NamedTuple):
    """One row of the table: values of all rounds, and the bound for their median."""

    name: str
    values: Sequence[float]
    bound: float
    at_most: bool = True
    unit: str = "×"
    note: str = ""

    def line(self) -> str:
        """Return the row in Markdown."""
        value = statistics.median(self.values)
        met = value <= self.bound if self.at_most else value >= self.bound
        spread = f"{min(self.values):.3g}–{max(self.values):.3g}" if len(self.values) > 1 else ""
        bound = f"{'≤' if self.at_most else '≥'} {self.bound:g}{self.unit}"
        return f"| {self.name} | {value:.3g}{self.unit} | {spread} | {bound} | {'met' if met else 'missed'} | {self.note} |"


def checked(sources: Sequence[str], size: int) -> list[str]:
    """Parse each generated log once; return the wrong values in its receipt."""
    wrong = []
    for source in sources:
        sample = run(receipt_case("check", source, size, "--workers", "1"), CACHE / "checked.out")
        found = [f"exit {sample.code}"] if sample.code else last_differences(source, size)
        wrong += [f"{source}: {line}" for line in found]
        tell(f"{source:<12} {sample.wall:.2f} s, {len(found)} figures wrong")
    return wrong


def cases(sources: Sequence[str], size: int, large: int | None) -> dict[str, Case]:
    """Return name → command of one round on generated logs, including a ``large`` log of dense steps."""
    made = {source: receipt_case(source, source, size, "--workers", "1") for source in sources}
    peers = {peer.name: peer for peer in PEERS["dense"]}
    made["wc"] = peer_case(peers["wc -l"], "sparse", size)
    for one in dense_sizes(size, large):
        of = f"dense, {print_size(one)}"
        made |= {f"{of}, {count}": receipt_case(of, "dense", one, "--workers", str(i)) for i, count in enumerate(WORKERS, 1)}
        made[f"{of}, rg"] = peer_case(peers["rg -c"], "dense", one)
    return made


def dense_sizes(size: int, large: int | None) -> list[int]:
    """Return the sizes at which dense logs are compared with other programs."""
    return [size] if large in (None, size) else [size, large]


def starts() -> dict[str, list[float]]:
    """Return the CPU time of each command of ``STARTED`` ÷ a bare Typer application's, of one round."""
    base = Case("bare Typer", (sys.executable, str(ROOT / "benchmarks" / "bare_typer.py"), "hello"), 1, environ())
    ratios: dict[str, list[float]] = {name: [] for name in STARTED}
    for _ in range(STARTS):
        bare = run(base).cpu
        for name, (words, _) in STARTED.items():
            command = (sys.executable, "-m", "receipt_cli", *words)
            ratios[name].append(run(Case(name, command, 1, environ())).cpu / bare)
    return ratios


def real_rates(folder: Path) -> list[float]:
    """Return the scan speed in MB/s of each kind of real log."""
    command = [sys.executable, "-m", "benchmarks.real_logs", str(folder), "--size", REAL_SIZE, "--rounds", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    rates: list[float] = json.loads(done.stdout)
    return rates


def measure(options: argparse.Namespace) -> list[Goal]:
    """Run all rounds and return the rows of the table."""
    sources = list(GENERATORS)
    samples: dict[str, list[Sample]] = {}
    started: dict[str, list[float]] = {name: [] for name in STARTED}
    speeds: dict[str, list[float]] = {}
    least: list[float] = []
    median: list[float] = []
    memory = {source: run(receipt_case(source, source, options.memory)).memory for source in sources} if options.memory else {}
    round_of = cases(sources, options.size, options.memory)
    for turn in range(options.rounds + 1):  # the first fills the system's cache, and is not counted
        for name, case in round_of.items():
            sample = run(case)
            samples.setdefault(name, []).extend([sample] if turn else [])
            tell(f"round {turn}: {name:<26} {sample.wall:8.3f} s")
        if not turn:
            continue
        for name, ratios in starts().items():
            started[name] += ratios
        for name, speed in archives(options.folder).items():
            speeds.setdefault(name, []).append(speed)
            tell(f"round {turn}: archive of {name}: {speed:.1f} logs/s")
        if options.folder is not None:
            rates = real_rates(options.folder)
            least.append(min(rates))
            median.append(statistics.median(rates))
            tell(f"round {turn}: {len(rates)} real logs: least {least[-1]:.0f}, median {median[-1]:.0f} MB/s")
    found = [
        Goal(f"{of} ÷ `rg -c`", quotients(samples, of, f"{of.rpartition(', ')[0]}, rg"), bound)
        for one in dense_sizes(options.size, options.memory)
        for of, bound in ((f"dense, {print_size(one)}, {count}", bound) for count, bound in WORKERS.items())
    ]
    found += lines(samples, {name: case.size for name, case in round_of.items()}, sources)
    found += [Goal(f"`{name}` ÷ a bare Typer application", ratios, STARTED[name][1]) for name, ratios in started.items()]
    found += [Goal(f"archive of {name}, two cores", speed, 120, False, " logs/s") for name, speed in speeds.items()]
    if options.folder is not None:
        found.append(Goal(f"real logs repeated to {REAL_SIZE}, scan: median", median, 200, False, " MB/s"))
        found.append(Goal(f"real logs repeated to {REAL_SIZE}, scan: least", least, 60, False, " MB/s"))
    for name, peak in memory.items():
        found.append(Goal(f"peak memory, {print_size(options.memory)} of {name}", [peak / 1e6], 250, unit=" MB"))
    return found


def archives(folder: Path | None) -> dict[str, float]:
    """Return the logs per second of one batch of each archive."""
    from benchmarks import archive

    found = {}
    for name, (largest, count) in ARCHIVES.items():
        source = ROOT / "fixtures" / "logs" if name == FIXTURES else folder
        if source is not None:
            with tempfile.TemporaryDirectory() as made:
                archive.make_archive(source, Path(made, "archive"), count, largest)
                done = archive.run(Path(made, "archive"), Path(made, "store"), ["--workers", "2"])
            found[name] = done.derived / done.seconds
    return found


def quotients(samples: dict[str, list[Sample]], over: str, under: str) -> list[float]:
    """Return the wall time of ``over`` ÷ the wall time of ``under`` in each round."""
    return [a.wall / b.wall for a, b in zip(samples[over], samples[under], strict=True)]


def lines(samples: dict[str, list[Sample]], sizes: dict[str, int], sources: Sequence[str]) -> list[Goal]:
    """Return the goals of the generated logs of one size."""
    each = {source: [sample.cpu / sizes[source] for sample in samples[source]] for source in sources}
    best = [min(values) for values in zip(*each.values(), strict=True)]
    return [
        Goal("sparse ÷ `wc -l`", quotients(samples, "sparse", "wc"), 12),
        *(
            Goal(f"{source} ÷ the best generated log", [a / b for a, b in zip(each[source], best, strict=True)], 2,
                 note=f"processor time a byte; {statistics.median(s.cpu for s in samples[source]):.2f} s")
            for source in sources if source != "sparse"
        ),
    ]  # fmt: skip


def main() -> int:
    """Measure, print the table and keep it; exit 1 if a generated log is read wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=parse_size, default="256MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="real logs, a folder a kind")
    parser.add_argument("--memory", type=parse_size, help="measure peak memory, and dense logs, at this size, too")
    parser.add_argument("--results", type=Path, help="the file that the table is written to")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    wrong = checked(list(GENERATORS), options.size)
    found = measure(options)
    text = "\n".join((
        f"# Goals: {print_size(options.size)}, {options.rounds} rounds of one interleaved run",
        "",
        "| figure | median | least–greatest | goal | | |",
        "|---|--:|--:|--:|---|---|",
        *(goal.line() for goal in found),
        "",
        "Every figure of the generated logs is as the generators know it." if not wrong else f"**Wrong figures:** {wrong}",
        "",
        *(f"- {name}: {value}" for name, value in describe_machine().items()),
        "",
    ))  # fmt: skip
    print(text)
    if options.results is not None:
        options.results.write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
