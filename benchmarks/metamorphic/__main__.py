"""Print how many logs of a folder violate each relation."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

from benchmarks.metamorphic.pairs import differences
from benchmarks.metamorphic.relations import RELATIONS, Document, violation
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import Request, produce_all

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
LARGE = 2 << 20
PAIRED = 30
"""Trainers whose smallest logs are put one behind the other, each pair in both orders."""


def receipts(data: bytes, path: Path) -> list[Document]:
    """Return the receipts of all launches of a log."""
    path.write_bytes(data)
    return [product.document for product in produce_all(Request(path=str(path), workers=1))]


def ended(data: bytes) -> bytes:
    """Return a log whose last line has an end."""
    return data if data.endswith(b"\n") else data + b"\n"


def of_trainers(paths: Sequence[Path], count: int) -> list[Path]:
    """Return the smallest log of each folder, of ``count`` folders evenly among all."""
    smallest: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda path: (path.stat().st_size, path)):
        smallest.setdefault(path.parent, path)
    every = [smallest[folder] for folder in sorted(smallest)]
    return every if len(every) <= count else [every[n * len(every) // count] for n in range(count)]


def count_pairs(paths: Sequence[Path], folder: Path, *, details: bool = False) -> tuple[int, int]:
    """Return how many pairs of logs, one behind the other, have other receipts than the logs alone, and how many there are."""
    alone = {path: receipts(ended(path.read_bytes()), folder / "a.log") for path in paths}
    violated = 0
    pairs = list(permutations(paths, 2))
    for one, other in pairs:
        both = receipts(ended(one.read_bytes()) + ended(other.read_bytes()), folder / "b.log")
        found = next(differences([*alone[one], *alone[other]], both), "")
        violated += bool(found)
        if found and details:
            print(f"one behind the other: {one} + {other}: {found}", file=sys.stderr)
    return violated, len(pairs)


def main(arguments: list[str]) -> int:
    """Run the relations over all ``*.log`` files of a folder up to two mebibytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metamorphic", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FIXTURES)
    parser.add_argument("--only", help="relations whose name contains this text")
    parser.add_argument("--every", type=int, default=1, help="each so manieth log")
    parser.add_argument("--paired", type=int, default=PAIRED, help="trainers whose logs are put one behind the other")
    parser.add_argument("--details", action="store_true", help="print each violation")
    options = parser.parse_args(arguments)
    logs = [path for path in sorted(options.folder.rglob("*.log"))[:: options.every] if path.stat().st_size <= LARGE]
    relations = [relation for relation in RELATIONS if options.only is None or options.only in relation.name]
    violated: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in logs:
            data = path.read_bytes()
            lines = ended(data).splitlines(keepends=True)
            before = receipts(b"".join(lines), Path(folder) / "a.log")
            for relation in relations:
                if len(lines) < relation.at_least:
                    continue
                try:
                    fault = violation(relation, before, receipts(b"".join(relation.rearrange(lines)), Path(folder) / "b.log"))
                except ReceiptError as error:
                    fault = f"{type(error).__name__}: {error}"
                violated[relation.name] += bool(fault)
                if fault and options.details:
                    print(f"{relation.name}: {path.relative_to(options.folder)}: {fault}", file=sys.stderr)
        if options.only is None or options.only in "one behind the other":
            found, pairs = count_pairs(of_trainers(logs, options.paired), Path(folder), details=options.details)
            print(f"{pairs} pairs\n{'one behind the other':34} {found:5}")
    print(f"{len(logs)} logs")
    for relation in relations:
        print(f"{relation.name:34} {violated[relation.name]:5}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
