"""Measure wall and CPU seconds of first and later queries to a store, and of ``receipt store ls``.

python -m benchmarks.questions FOLDER [--receipts 10000]

The logs of the folder are derived; their receipts are then stored repeatedly under other digests, each with a place and its
kept row, like ``receipt store build``. Each command is a separate process; the least of three runs counts, except for first
queries, which run once: with the rows that the batch kept, and without any cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from receipt_cli.store.files import Store
from receipt_cli.store.index import keep_rows
from receipt_cli.store.places import Place, write_place

QUESTION = "SELECT grammar_id, count(*), median(loss_last) FROM runs GROUP BY ALL ORDER BY ALL"


def seconds(*arguments: str, times: int = 1) -> str:
    """Return the least wall time and the least CPU time of ``receipt`` with these arguments, as text."""
    taken: list[tuple[float, float]] = []
    for _ in range(times):
        before, used = time.monotonic(), _processor_time()
        subprocess.run([sys.executable, "-m", "receipt_cli", *arguments], stdout=subprocess.DEVNULL, check=True)
        taken.append((time.monotonic() - before, _processor_time() - used))
    wall, processor = map(min, zip(*taken, strict=True))
    return f"{wall:6.2f} s {processor:6.2f} s of the processor"


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def copies(store: Store, count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` receipts of logs with one run, in turns, each under a new digest."""
    documents = [json.loads(receipt.path.read_bytes()) for receipt in store.receipts()]
    single = [each for each in documents if (each["derivation"].get("launches") or {"count": 1})["count"] == 1]
    for number, document in enumerate(islice(cycle(single), count)):
        document["derivation"]["log"]["sha256"] = hashlib.sha256(str(number).encode()).hexdigest()
        yield document


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--receipts", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="receipt-questions-") as work:
        derived, root = Path(work, "derived"), Path(work, "store")
        command = [sys.executable, "-m", "receipt_cli", "rederive", str(given.folder), "--store", str(derived)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # some logs have no receipt
        store, keeping = Store(root), 0.0
        for number, document in enumerate(copies(Store(derived), given.receipts)):
            log = document["derivation"]["log"]["sha256"]
            store.add(document)
            write_place(root, store.scratch, log, Place(f"archive/{number}.log", str(number), name_source="stem"))
            before = time.monotonic()
            keep_rows(store, log, [document])
            keeping += time.monotonic() - before
        ask = ("store", "query", str(root), QUESTION)
        print(f"{given.receipts} receipts; keeping a row takes {keeping / given.receipts * 1000:.2f} ms", flush=True)
        print(f"first question, rows kept   {seconds(*ask)}", flush=True)
        print(f"later questions             {seconds(*ask, times=3)}")
        print(f"store ls                    {seconds('store', 'ls', str(root), times=3)}", flush=True)
        shutil.rmtree(root / ".cache")
        print(f"first question, no cache    {seconds(*ask)}")


if __name__ == "__main__":
    main()
