"""Compare this program with others on the same logs: one table of ratios, each taken within one round of one run.

    python -m benchmarks.compare [--size 1GiB] [--rounds 5] [--input NAME]... [--no-growth] [--results FOLDER]

Before the measurement, the receipt and the hand-written loop must show the generator's values. A slow peer reads a
shorter log and is compared in time per byte. No absolute time is judged.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import differences, load_facts
from benchmarks.inputs import CACHE, ROOT, parse_size, print_size
from benchmarks.machine import describe_machine
from benchmarks.measure import Case, Sample, rounds, run, tell
from benchmarks.peers import PEERS, Peer, input_path, last_differences, missing, peer_case, receipt_case, versions
from benchmarks.targets import ONE, OPTIONS, SOURCES, TARGETS, TWO, Row, row, table

MLLOG_SHARE = 4
"""The mllog input is 1 / ``MLLOG_SHARE`` of the other logs in bytes: 0.9 million events at 1 GiB."""


def size_of(source: str, size: int) -> int:
    """Return the bytes of the input ``source`` if the others have ``size``."""
    return size // MLLOG_SHARE if source == "mllog" else size


class Measured:
    """All cases of one input, with their samples, input sizes and notes."""

    def __init__(self, source: str, size: int) -> None:
        self.source = source
        self.size = size_of(source, size)
        self.notes: dict[str, str] = {}
        self.wrong: set[str] = set()
        self.peers: dict[str, Peer] = {}
        ours = (ONE, TWO) if source == "dense" else (ONE,)
        self.cases = [receipt_case(name, source, self.size, *OPTIONS[name]) for name in ours]
        for peer in PEERS[source]:
            absent = missing(peer)
            if absent is not None:
                self.notes[peer.name] = absent
                continue
            self.peers[peer.name] = peer
            self.cases.append(peer_case(peer, source, self.size))
            if peer.limit is not None and peer.limit < self.size:
                self.notes[peer.name] = f"{peer.name} on {print_size(peer.limit)}, per byte"
        self.samples: dict[str, list[Sample]] = {}

    @property
    def sizes(self) -> dict[str, int]:
        """Case → plain bytes that it reads."""
        return {case.name: case.size for case in self.cases}

    def check(self) -> list[str]:
        """Run each case that prints values once; return the wrong values, and drop failed cases."""
        wrong = []
        for case in list(self.cases):
            output = CACHE / "checked.out"
            sample = run(case, output)
            if sample.code != 0:
                self.notes[case.name] = f"{case.name} failed (exit {sample.code})"
                self.cases.remove(case)
                if case.name in OPTIONS:
                    last = Path(f"{output}.err").read_text(errors="replace").strip().rpartition("\n")[2]
                    wrong.append(f"{self.source}: {case.name}: exit {sample.code}: {last}")
                continue
            found = self._differences(case, output)
            if found:
                wrong += [f"{self.source}: {case.name}: {line}" for line in found]
                self.wrong.add(case.name)
        return wrong

    def _differences(self, case: Case, output: Path) -> list[str]:
        peer = self.peers.get(case.name)
        if peer is None:
            return last_differences(self.source, self.size)
        facts = load_facts(input_path(self.source.partition(".")[0], min(self.size, peer.limit or self.size)))
        if peer.figures:
            return differences(facts, json.loads(output.read_text()), exact=False)
        self._count(case.name, output, facts["steps"]["record_count"])
        return []

    def _count(self, name: str, output: Path, want: int) -> None:
        """Add a note if a peer that prints its number of records did not read all."""
        if output.stat().st_size > 1_000_000:
            return  # decompressed text
        for line in output.read_text(errors="replace").splitlines():
            words = line.replace("{", " ").split()
            if len(words) > 1 and words[0] == "records" and words[-1].isdigit() | words[1].isdigit():
                got = int(words[1] if words[1].isdigit() else words[-1])
                if got != want:
                    self.notes[name] = "; ".join(filter(None, (self.notes.get(name), f"{name} read {got:,} of {want:,}")))

    def measure(self, count: int) -> None:
        """Run ``count`` rounds after a warm-up."""
        self.samples = rounds(self.cases, count, self.source)

    def rows(self) -> list[Row]:
        """Return the table rows about this input."""
        own = [target for target in TARGETS if target.source == self.source]
        return [row(target, self.samples, self.sizes, self.notes, self.wrong) for target in own]

    def document(self) -> dict[str, Any]:
        """Return all measurements as JSON values."""
        return {
            name: {
                "bytes": self.sizes[name],
                "wall_s": [round(sample.wall, 4) for sample in samples],
                "cpu_s": [round(sample.cpu, 4) for sample in samples],
                "peak_memory_bytes": [sample.memory for sample in samples],
            }
            for name, samples in self.samples.items()
        }


def cases_table(measured: Sequence[Measured]) -> str:
    """Return a Markdown table of all cases with their medians."""
    lines = ["| input | command | bytes read | wall | MB/s | processor | peak memory |", "|---|---|--:|--:|--:|--:|--:|"]
    for one in measured:
        for name, samples in one.samples.items():
            wall = statistics.median(sample.wall for sample in samples)
            cpu = statistics.median(sample.cpu for sample in samples)
            memory = max(sample.memory for sample in samples) / 1e6
            size = one.sizes[name] / 1e6
            figures = f"{size:,.0f} MB | {wall:.3f} s | {size / wall:,.0f} | {cpu:.3f} s | {memory:,.0f} MB"
            lines.append(f"| {SOURCES[one.source]} | {name} | {figures} |")
    return "\n".join(lines)


def save(folder: Path, name: str, text: str, document: dict[str, Any]) -> None:
    """Write the tables and the samples to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    tell(f"kept as {folder / name}.md and .json")


def report(size: int, count: int, rows: Sequence[Row], measured: Sequence[Measured], wrong: Sequence[str]) -> str:
    """Return the whole result as Markdown."""
    machine, programs = describe_machine(), versions()
    parts = [
        f"# Benchmark: {print_size(size)}, {count} rounds, {datetime.now(UTC):%Y-%m-%d}",
        "Medians of ratios in time a byte, each taken within one round of one interleaved run of whole processes.",
        table(rows),
        cases_table(measured),
        "Figures: "
        + ("all as the generators know them." if not wrong else f"**{len(wrong)} wrong**:\n\n" + _bullets(wrong[:40])),
        "Machine:\n\n" + _bullets([f"{name}: {value}" for name, value in (machine | programs).items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def main() -> int:
    """Measure, print the table, keep the results; exit 1 if a receipt or a loop shows a wrong value."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=parse_size, default="1GiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--input", action="append", choices=list(PEERS), help="only this input; may be repeated")
    parser.add_argument("--no-growth", action="store_true", help="leave out memory and cost growth, which need 10 GB of disk")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    measured, rows, wrong = [], [], []
    for source in options.input or PEERS:
        one = Measured(source, options.size)
        found = one.check()
        for line in found:
            tell(f"WRONG {line}")
        one.measure(options.rounds)
        measured.append(one)
        rows += one.rows()
        wrong += found
    growth: dict[str, Any] = {}
    if not options.no_growth:
        from benchmarks.scaling import growth_rows

        more, growth = growth_rows(options.size, options.rounds)
        rows += more
    text = report(options.size, options.rounds, rows, measured, wrong)
    print(text)
    document = {
        "size": options.size,
        "rounds": options.rounds,
        "machine": describe_machine(),
        "programs": versions(),
        "rows": [
            {
                "input": r.source,
                "measure": r.measure,
                "value": r.value,
                "target": r.bound,
                "stretch": r.stretch,
                "verdict": r.verdict,
            }
            for r in rows
        ],
        "samples": {one.source: one.document() for one in measured},
        "growth": growth,
        "wrong": wrong,
    }
    name = f"{datetime.now(UTC):%Y-%m-%d}-{document['machine']['commit']}-{print_size(options.size).replace(' ', '')}"
    save(options.results, name, text, document)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
