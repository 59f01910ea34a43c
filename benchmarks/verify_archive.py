"""Check verification over a folder of logs: it must accept each receipt, and report the right field for each change.

    python -m benchmarks.verify_archive FOLDER [--numbers 3] [--seed 1]

The receipt of each log is verified against the log, against a compressed copy, and then against changed logs and with
changes in the receipt. The output counts, for each change, the logs with a right answer. The answer to a changed number in
a step line is right if it reports the log and a value; to a changed field of the receipt, if it reports that field. The
exit code is 1 if any answer was wrong.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from receipt_cli.derive import read_log
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.diff import Difference
from receipt_cli.documents.invariants.rule import pointer
from receipt_cli.errors import InputError, ReceiptError
from receipt_cli.io.source import Source, Stream
from receipt_cli.receipts.assembly import DERIVED
from receipt_cli.receipts.production import Request, produce
from receipt_cli.verification.verifier import read_receipt, verify

Place = tuple[str | int, ...]
LOG = "/derivation/log/sha256"
OTHER_DIGEST = "0" * 64
TRIES = 40
"""Most digits of step records that are changed, one at a time, until one belongs to a value in the receipt."""
RECORD_LINES = 12
"""Most lines of a step record."""
NUMBER = re.compile(rb"\d+(?:\.\d+)?")
NO_LOGS = {"MANIFEST.tsv", "README.md", "truth.jsonl"}


def numbers(value: object, at: Place = ()) -> Iterator[Place]:
    """Yield the path of each number in a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from numbers(item, (*at, index))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at


def with_value(document: dict[str, Any], at: Place, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a copy of ``document`` with ``change`` applied to the value at ``at``."""
    made = copy.deepcopy(document)
    holder: Any = made
    for part in at[:-1]:
        holder = holder[part]
    holder[at[-1]] = change(holder[at[-1]])
    return made


def other_number(value: float) -> float:
    """Return a slightly different number."""
    return value + 1 if isinstance(value, int) else value * 1.0009765625 or 0.5


def named(document: dict[str, Any], log: Path) -> list[str]:
    """Return the fields that verification reports, or the invalid field of the receipt."""
    try:
        return [difference.pointer for difference in answer(document, log)]
    except InputError as error:
        return [error.why.partition(":")[0]]


def answer(document: dict[str, Any], log: Path) -> tuple[Difference, ...]:
    """Return the differences between the receipt and the derivation of ``log``."""
    read, invalid = read_receipt(canonical_bytes(document), "receipt")
    return verify(read, [str(log)], invalid=invalid).differences


def step_lines(log: Path) -> list[int]:
    """Return the line numbers, from 0, of the step records of the log's last run."""
    reading = read_log([Stream((Source(str(log)),))])
    return [event.line - 1 for event in reading.launches[-1].events if event.is_step]


def changed_digits(data: bytes, lines: list[int], told: Sequence[set[float]], chance: random.Random) -> Iterator[bytes]:
    """Yield ``data`` with one digit changed, another one each time.

    The digits belong to numbers in step records that are in the first set of ``told`` that has any such number.
    """
    starts = [0, *(found.end() for found in re.finditer(rb"\n", data)), len(data)]
    spans = [(starts[line], starts[min(line + RECORD_LINES, len(starts) - 1)]) for line in lines if line + 1 < len(starts)]
    found = {hit.end() - 1: float(hit[0]) for start, end in spans for hit in NUMBER.finditer(data, start, end)}
    alike = (sorted(at for at, value in found.items() if value in values) for values in told)
    digits = next(filter(None, alike), sorted(found))
    last = digits[-TRIES // 2 :]  # the last redraw of a bar is the record
    rest = digits[: -len(last)]
    for at in [*chance.sample(last, len(last)), *chance.sample(rest, min(TRIES // 2, len(rest)))]:
        yield data[:at] + (b"8" if data[at : at + 1] < b"5" else b"3") + data[at + 1 :]


def check_log(log: Path, scratch: Path, wanted: int, chance: random.Random) -> Iterator[tuple[str, bool]]:
    """Yield (change to a log or its receipt, whether the answer was right)."""
    document = produce(Request(path=str(log))).document
    data = b"".join(Source(str(log)).blocks())
    yield "nothing changed", not answer(document, log)
    packed = scratch / "log.gz"
    packed.write_bytes(gzip.compress(data, 1))
    yield "log compressed", not answer(document, packed)
    yield from _changed_log(document, data, log, scratch / "log", chance)
    places = list(numbers({key: document[key] for key in DERIVED}))
    for place in chance.sample(places, min(wanted, len(places))):
        yield "one number of the receipt changed", pointer(*place) in named(with_value(document, place, other_number), log)
    at: Place = ("derivation", "rules")
    yield "other rules", pointer(*at) in named(with_value(document, at, lambda rules: rules[:-1] + "9"), log)
    for index, _ in enumerate(document["derivation"]["grammars"][:1]):
        at = ("derivation", "grammars", index)
        changed = with_value(document, (*at, "version"), other_number)
        yield "another grammar version", pointer(*at, "version") in named(changed, log)
        changed = with_value(document, (*at, "sha256"), lambda _: OTHER_DIGEST)
        yield "another grammar digest", named(changed, log) == [pointer(*at, "sha256")]


def _changed_log(
    document: dict[str, Any], data: bytes, log: Path, copied: Path, chance: random.Random
) -> Iterator[tuple[str, bool]]:
    copied.write_bytes(data + b"one more line\n")
    yield "a line appended", LOG in named(document, copied)
    copied.write_bytes(data[: len(data) * 9 // 10])
    yield "tail cut", LOG in named(document, copied)
    fields: list[str] = []
    summaries = [phase["summary"] for phase in document["phases"]]
    stated = {metric[name] for s in summaries for metric in s["metrics"].values() for name in ("first", "last", "min", "max")}
    values = stated - {None}
    scaled = {value * scale for value in values for scale in (100, 1000)}
    told = [{value for value in values if value % 1}, values, scaled, {s["steps"]["last"] for s in summaries}]
    for changed in changed_digits(data, step_lines(log), told, chance):
        copied.write_bytes(changed)
        fields = named(document, copied)
        if LOG not in fields or any(field.startswith(("/summary/", "/phases/")) for field in fields):
            break
    if not fields:
        return
    yield "one byte of a step line: the log named", LOG in fields
    yield "one byte of a step line: a value named", any(f.startswith(("/summary", "/phases")) for f in fields)


def main() -> int:
    """Check a folder and print the numbers of right answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--numbers", type=int, default=3, help="numbers of each receipt that are changed, one at a time")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        for log in sorted(p for p in options.folder.rglob("*") if p.is_file() and p.name not in NO_LOGS):
            try:
                for what, good in check_log(log, Path(scratch), options.numbers, chance):
                    total[what] += 1
                    right[what] += good
                    if not good:
                        print(f"{log}: {what}: the answer is wrong", flush=True)
            except ReceiptError as error:
                print(f"{log}: {error.message}", file=sys.stderr)
    for what, count in total.items():
        print(f"{right[what]:6} of {count:6}  {what}")
    return int(right != total or not total)


if __name__ == "__main__":
    sys.exit(main())
