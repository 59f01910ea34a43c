"""Check that the store of a folder does not depend on the order of logs, the number of workers, or the engine.

python -m benchmarks.same_store FOLDER [--engine local --engine ray] [--workers 1 --workers 2] [--order given …]

Every log of the folder, and two broken logs, are given in sorted, reverse and random order. Everything in the stores except
their caches is compared byte by byte. At the end the first store is derived again in place, and must not change.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kill import DONE, files_of
from receipt_cli.io.discovery import find_logs

ORDERS = ("given", "reversed", "shuffled")


def derive(logs: Sequence[str], store: Path, workers: int, engine: str, *more: str) -> float:
    """Derive the logs in a separate process and return its seconds."""
    options = ["--store", str(store), "--workers", str(workers), "--engine", engine, *more]
    before = time.monotonic()
    command = [sys.executable, "-m", "receipt_cli", "rederive", *logs, *options]
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    if code not in DONE:
        sys.exit(f"a batch ended with {code}")
    return time.monotonic() - before


def digest_of(store: Path) -> tuple[str, int, int]:
    """Return the digest of all names and bytes of a store, and its numbers of receipts and quarantine records."""
    total = hashlib.sha256()
    files = files_of(store)
    for name, data in sorted(files.items()):
        total.update(f"{name} {hashlib.sha256(data).hexdigest()}\n".encode())
    receipts = sum(name.startswith("receipts/") for name in files)
    return total.hexdigest(), receipts, len(files) - receipts


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", action="append", choices=("local", "ray"))
    parser.add_argument("--workers", action="append", type=int)
    parser.add_argument("--order", action="append", choices=ORDERS)
    given = parser.parse_args()
    found = set()
    with tempfile.TemporaryDirectory(prefix="receipt-same-") as work:
        broken = {Path(work, "empty.log"): b"", Path(work, "cut.log.gz"): gzip.compress(b"a line")[:8]}
        for path, data in broken.items():
            path.write_bytes(data)
        logs = [*find_logs([str(given.folder)])[0], *map(str, broken)]
        orders = {"given": logs, "reversed": logs[::-1], "shuffled": random.Random(os.urandom(8)).sample(logs, len(logs))}
        stores = []
        for engine in given.engine or ["local", "ray"]:
            for workers in given.workers or [1, 2]:
                for order in given.order or ORDERS:
                    store = Path(work) / f"{engine}-{workers}-{order}"
                    seconds = derive(orders[order], store, workers, engine)
                    digest, receipts, quarantined = digest_of(store)
                    found.add(digest)
                    stores.append(store)
                    print(
                        f"{engine:5}  {workers} workers  {order:8}  {seconds:7.1f} s  {receipts} receipts, "
                        f"{quarantined} in quarantine  {digest[:16]}",
                        flush=True,
                    )
        seconds = derive(logs, stores[0], 2, "local", "--again")
        found.add(digest_of(stores[0])[0])
        print(f"derived again in place: {seconds:.1f} s  {digest_of(stores[0])[0][:16]}")
    print("one and the same store" if len(found) == 1 else f"{len(found)} different stores")
    sys.exit(0 if len(found) == 1 else 1)


if __name__ == "__main__":
    main()
