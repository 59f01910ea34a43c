"""Print how many logs of a folder violate each relation."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.metamorphic.relations import RELATIONS, Document, violation
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import Request, produce_all

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
LARGE = 2 << 20


def receipts(data: bytes, path: Path) -> list[Document]:
    """Return the receipts of all launches of a log."""
    path.write_bytes(data)
    return [product.document for product in produce_all(Request(path=str(path), workers=1))]


def main(arguments: list[str]) -> int:
    """Run the relations over all ``*.log`` files of a folder up to two mebibytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metamorphic", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FIXTURES)
    parser.add_argument("--only", help="relations whose name contains this text")
    parser.add_argument("--every", type=int, default=1, help="each so manieth log")
    parser.add_argument("--details", action="store_true", help="print each violation")
    options = parser.parse_args(arguments)
    logs = [path for path in sorted(options.folder.rglob("*.log"))[:: options.every] if path.stat().st_size <= LARGE]
    relations = [relation for relation in RELATIONS if options.only is None or options.only in relation.name]
    violated: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in logs:
            data = path.read_bytes()
            lines = (data if data.endswith(b"\n") else data + b"\n").splitlines(keepends=True)
            before = receipts(b"".join(lines), Path(folder) / "a.log")
            for relation in relations:
                if len(lines) < relation.at_least:
                    continue
                try:
                    found = violation(relation, before, receipts(b"".join(relation.rearrange(lines)), Path(folder) / "b.log"))
                except ReceiptError as error:
                    found = f"{type(error).__name__}: {error}"
                violated[relation.name] += bool(found)
                if found and options.details:
                    print(f"{relation.name}: {path.relative_to(options.folder)}: {found}", file=sys.stderr)
    print(f"{len(logs)} logs")
    for relation in relations:
        print(f"{relation.name:34} {violated[relation.name]:5}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
