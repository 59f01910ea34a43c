"""Check the logs in folders: whether the ledger of numeric cells closes, which keys are dropped, and the goodput classes.

    python -m benchmarks.ledger [FOLDER...] [--write]

Reads every log below the folders (by default the fixtures). Labelled numbers are counted a second time, record by record, by
a separate tokenizer (``close``). Each dropped key is printed with its cells and logs, and marked if the metric registry has
an alias for it; then follows the goodput of each run with timestamps. Exit code 1 if a ledger does not close, a dropped key
is a metric, the classes of a run do not add up to its wall time, or goodput is above 95 % despite a bottleneck or a stall
of more than 5 %. ``--write`` keeps the counts in ``benchmarks/results/ledger.md``.
"""

from __future__ import annotations

import math
import string
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.derive import Reading, read_log
from receipt_cli.errors import ReceiptError
from receipt_cli.grammar.catalog import shipped
from receipt_cli.io.source import Source, Stream
from receipt_cli.receipts.production import Request, produce_all
from receipt_cli.records.envelope import plain, without_count
from receipt_cli.scan.extraction import read_record
from receipt_cli.scan.extraction.labelled import keep_labelled
from receipt_cli.scan.extraction.model import DROPPED

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures" / "logs"
RESULTS = ROOT / "benchmarks" / "results" / "ledger.md"
SUFFIXES = (".log", ".txt", ".out", ".jsonl")
HIGH = 0.95
"""Goodput above which no bottleneck or stall may exist."""
HELD = 0.05
"""Share of a step or of the wall time above which a bottleneck or a stall counts."""
SIGNS = frozenset("+-.0123456789")
SOURCES = (".py", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".rs", ".java", ".lua", ".jl")
LETTERS = string.ascii_letters + "/%"
ENDS = frozenset(" \t,;|)]}\"'<\n")


def labelled(text: str) -> list[tuple[str, int]]:
    """Return (label, offset) of each ``LABEL: NUMBER`` and ``LABEL=NUMBER`` in a record, read character by character."""
    found: list[tuple[str, int]] = []
    for at, sign in enumerate(text):
        if sign not in ":=":
            continue
        value = text[at + 1 :].lstrip(" \t")
        place = len(text) - len(value)
        size = next((i for i, c in enumerate(value) if c in ENDS), len(value))
        number = value[:size].rstrip(LETTERS)
        label = text[:at].rstrip(" \t\"'").split(" ")[-1].strip("\"'([{,;|")
        named = label[:1].isalpha() and all(c.isalnum() or c in "._/@%#-" for c in label) and not label.endswith(SOURCES)
        bar = value[:size].endswith("%") and value[size : size + 1] == "|"
        try:
            float(number.replace(",", "") if number[:1] in SIGNS else "x")
        except ValueError:
            continue
        if named and not bar and not value[len(number) : size].startswith("/") and size - len(number) <= 12 and place - at <= 17:
            found.append((label, place))
    return found


@dataclass
class Closing:
    """Result of the second count of a log: numbers ``outside`` the ledger, and the parts that ``differ`` from it.

    ``compared`` is false if other records decide the meaning of a cell (tables, blocks), or if several launches or versions
    of a grammar share the records: then only the places of the numbers are checked.
    """

    numbers: int = 0
    compared: bool = False
    outside: list[str] = field(default_factory=list)
    differ: list[str] = field(default_factory=list)


def close(path: Path) -> Closing:
    """Return the second count of a log, line by line. Raises ``ReceiptError``."""
    reading = read_log([Stream((Source(str(path)),))])
    text = b"".join(Source(str(path)).blocks())
    closing = Closing()
    counted = {"other": Counter[str](), "dropped": Counter[str]()}
    rules = {g.ref: [r for r in g.rules if r.table is None and r.block is None] for g in reading.grammars}
    copied = frozenset(reading.gathered.body.copied)
    for number, line in enumerate(plain(text).split(b"\n"), 1):
        if number in copied:
            continue
        for record in map(without_count, line.split(b"\r")):
            for tried in rules.values():
                candidates = [rule for rule in tried if any(literal in record for literal in rule.literals)]
                read = [(rule, events) for rule in candidates if (events := read_record(rule, record))]
                keep_labelled(record, read)
                _count(record, read, counted, closing)
    tables = any(rule.table or rule.block for g in reading.grammars for rule in g.rules)
    closing.compared = _is_alone(reading) and not tables
    if closing.compared:
        ledger = reading.told.ledger
        for part, mine in counted.items():
            its = +getattr(ledger, part)
            closing.differ += [f"{part} {key}: {its[key]}, counted {mine[key]}" for key in its | mine if its[key] != mine[key]]
    return closing


def _count(record: bytes, read: list[Any], counted: dict[str, Counter[str]], closing: Closing) -> None:
    spans: list[tuple[int, int]] = []
    for event in (event for _, events in read for event in events):
        for key in event.unregistered:
            counted["dropped" if key.startswith(DROPPED) else "other"][key.split(DROPPED)[-1]] += 1
        spans += [*event.spans.values(), *event.unregistered_spans.values(), *event.declared, *event.unread]
    keeping = [event.start for rule, events in read if rule.event in ("step", "eval") for event in events]
    text = record.decode("latin-1")
    if not keeping or not text.isascii():
        return
    for label, place in labelled(text):
        closing.numbers += 1
        if place >= min(keeping) and not any(start <= place < end for start, end in spans):
            closing.outside.append(label)


def _is_alone(reading: Reading) -> bool:
    versions = Counter(grammar.id for grammar in shipped())
    return len(reading.launches) == 1 and all(versions[grammar.id] == 1 for grammar in reading.grammars)  # versions share rules


def held_up(document: dict[str, Any]) -> str | None:
    """Return the bottleneck or stall of a run whose goodput is above ``HIGH``, or None."""
    goodput = document["goodput"]
    if goodput is None or goodput["goodput_ratio"] <= HIGH:
        return None
    for stall in (goodput["stalls"] or {"longest": ()})["longest"]:
        if stall["duration_s"] > HELD * goodput["wall_time_s"]:
            return f"a stall of {stall['duration_s']:.0f} s"
    found = (document["summary"] or {}).get("bottleneck") or {}
    if found.get("verdict") in ("inference", "data"):
        names = ("data_time_ratio", "generation_time_ratio", "dispatch_wait_ratio")
        if max((found["medians"].get(name, 0.0) for name in names), default=0.0) > HELD:
            return f"bottleneck {found['verdict']}"
    return None


def gap_of(document: dict[str, Any]) -> float | None:
    """Return the difference of the goodput classes' sum from the wall time, as a share of it; None without goodput."""
    goodput = document["goodput"]
    if goodput is None:
        return None
    parts = [seconds for seconds in goodput["badput_s"].values() if seconds is not None]
    return abs(math.fsum([goodput["step_time_s"], *parts, -goodput["wall_time_s"]])) / max(goodput["wall_time_s"], 1.0)


@dataclass
class Accounts:
    """Counts over the logs of a folder, and all faults in ``wrong``."""

    name: str
    logs: int = 0
    refused: int = 0
    compared: int = 0
    numbers: int = 0
    cells: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    dropped_in: Counter[str] = field(default_factory=Counter)
    goodput: list[tuple[str, float]] = field(default_factory=list)
    widest_gap: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Add a log. Raises ``ReceiptError``."""
        documents = [product.document for product in produce_all(Request(path=str(path), workers=1))]
        closing = close(path)
        self.logs += 1
        self.compared += closing.compared
        self.numbers += closing.numbers
        self.wrong += [f"{path.name}: the ledger lacks {label}" for label in sorted(set(closing.outside))]
        self.wrong += [f"{path.name}: {difference}" for difference in closing.differ]
        cells = documents[-1]["derivation"]["cells"]
        self.cells.update({part: cells[part]["count"] for part in cells})
        self.dropped.update(cells["dropped"]["by_key"])
        self.dropped_in.update(cells["dropped"]["by_key"].keys())
        known = load_registry().by_alias
        self.wrong += [f"{path.name}: {key} is dropped" for key in cells["dropped"]["by_key"] if key.lower() in known]
        for document in documents:
            gap, held = gap_of(document), held_up(document)
            if gap is not None:
                self.goodput.append((path.name, document["goodput"]["goodput_ratio"]))
                self.widest_gap = max(self.widest_gap, gap)
            if gap is not None and gap > 1e-9:
                self.wrong.append(f"{path.name}: the classes miss the wall time by {gap:.2g} of it")
            if held is not None:
                self.wrong.append(f"{path.name}: goodput {document['goodput']['goodput_ratio']:.3f} beside {held}")


def read_folder(folder: Path) -> Accounts:
    """Return the accounts of every log below a folder; other files are counted as refused."""
    accounts = Accounts("fixtures" if folder.resolve() == FIXTURES else folder.name)
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file() and p.name != "truth.jsonl"):
        try:
            accounts.add(path)
        except ReceiptError as error:
            accounts.refused += 1
            print(f"{path.relative_to(folder)}: {error}", file=sys.stderr)
    return accounts


def page(every: list[Accounts]) -> str:
    """Return the counts as Markdown, with names of folders and keys, but no text of a log."""
    lines = ["# The ledger of numeric cells", "", "`python -m benchmarks.ledger FOLDER... --write` writes this page.", ""]
    lines += ["| logs of | logs | refused | cells read | other | dropped | counted again | compared key by key |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|--:|"]
    for a in every:
        parts = " | ".join(f"{a.cells[part]:,}" for part in ("read", "other", "dropped"))
        lines.append(f"| {a.name} | {a.logs} | {a.refused} | {parts} | {a.numbers:,} | {a.compared} |")
    lines += ["", "*Counted again*: labelled numbers of lines with a step or an evaluation, by a tokenizer of its own; each is"]
    lines += ["in the ledger. *Compared key by key*: logs where the number of cells of each key is the same in a second count;"]
    lines += ["in the others, tables and blocks name cells by their neighbours, or several launches or versions share lines."]
    lines += ["", "| runs with goodput of | runs | the classes are within | above 95 % |", "|---|--:|--:|--:|"]
    for a in every:
        lines.append(f"| {a.name} | {len(a.goodput)} | {a.widest_gap:.0e} | {sum(r > HIGH for _, r in a.goodput)} |")
    lines += ["", "## Dropped keys", "", "| key | cells | logs |", "|---|--:|--:|"]
    dropped, logs = sum((a.dropped for a in every), Counter[str]()), sum((a.dropped_in for a in every), Counter[str]())
    lines += [f"| `{key.replace('|', chr(92) + '|')}` | {count} | {logs[key]} |" for key, count in dropped.most_common()]
    wrong = [text for a in every for text in a.wrong]
    lines += ["", "## Wrong", "", *(f"- {text}" for text in wrong), *([] if wrong else ["Nothing."])]
    return "\n".join(lines) + "\n"


def main(folders: list[Path], *, write: bool) -> int:
    """Print the accounts of the folders; return the exit code."""
    every = [read_folder(folder) for folder in folders]
    for name, ratio in sorted((run for a in every for run in a.goodput), key=lambda run: -run[1]):
        print(f"{ratio:7.3f}  {name}", file=sys.stderr)
    text = page(every)
    print(text, end="")
    if write:
        RESULTS.write_text(text, "utf-8")
    return 1 if any(a.wrong for a in every) else 0


if __name__ == "__main__":
    named = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("--")]
    sys.exit(main(named or [FIXTURES], write="--write" in sys.argv))
