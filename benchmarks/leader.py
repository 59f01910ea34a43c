"""Measure memory and file operations of a batch's leading process for a million logs, with simulated workers.

python -m benchmarks.leader [--logs 1000000]

The listing is generated, and an engine gives the workers' answers at once: a digest of each log, then a receipt. So only the
leading process is measured: in a first batch, and in a second batch in the same process, which reads the cache.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from receipt_cli.batch.coordinator import Batch, rederive
from receipt_cli.batch.discovery import Listing
from receipt_cli.batch.model import Engine, Identity, Log, Report, Task

_OPERATIONS = ("open", "os.mkdir", "os.rename", "os.remove", "os.listdir", "os.scandir", "os.link", "os.rmdir")


class Simulated:
    """An engine whose workers answer at once, without reading a file."""

    workers = 2

    def run(
        self, work: Callable[..., Any], items: Sequence[Any], sizes: Sequence[int], kinds: Sequence[int] = ()
    ) -> Iterator[tuple[int, Any]]:
        """Yield the answer for each item: the identity of a log, or the receipt of a task."""
        for number, (item, size) in enumerate(zip(items, sizes, strict=True)):
            if isinstance(item, Task):
                receipt = f"receipts/{item.sha256[:2]}/{item.sha256}.1.json"
                yield number, Report(item.logs[0], "written", Identity(item.sha256, size), receipt, True, True)
            else:
                yield number, Identity(hashlib.sha256(item.name.encode()).hexdigest(), size)

    def close(self) -> None:
        """Do nothing."""


def listing(count: int) -> Listing:
    """Return ``count`` logs in folders of a thousand, with states as long as real ones."""
    names = (f"cluster-{n // 100_000:02d}/job-{n // 1000:06d}/rank{n % 1000:03d}.log" for n in range(count))
    state = "40000 1795406728579000000 1795406728579000000"
    logs = (Log(name, f"/archive/{name}", False, 40_000 + n % 977, f"{state} {n}", True) for n, name in enumerate(names))
    return Listing("/archive", [Listing.row(log, "/archive") for log in logs])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=1_000_000)
    given = parser.parse_args()
    operations: Counter[str] = Counter()
    sys.addaudithook(lambda event, _: operations.update([event] if event in _OPERATIONS else []))
    logs = listing(given.logs)
    with tempfile.TemporaryDirectory(prefix="receipt-leader-") as work:
        own = _peak()
        for title in ("first", "second"):
            operations.clear()
            start = time.process_time()
            batch = Batch(Path(work, "store"), cast(Engine, Simulated()), root="/archive")
            done = Counter(report.change for report in rederive(logs, batch).reports)
            seconds, spent, peak = time.process_time() - start, operations.total(), _peak()
            print(f"{title} batch: {given.logs:,} logs in {seconds:.1f} s of CPU, {1e6 * seconds / given.logs:.0f} µs a log")
            print(f"  {dict(done)}")
            print(f"  peak {peak / 2**20:,.0f} MiB, {own / 2**20:,.0f} MiB of it with the listing alone")
            print(f"  {(peak - own) / given.logs:,.0f} bytes a log beyond the listing")
            print(f"  {spent:,} file operations, {spent / given.logs:.4f} a log: {dict(operations.most_common())}", flush=True)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
