"""Check that reading records by layout and kernel gives the same columns as reading every record by patterns.

python -m benchmarks.identity FOLDER [--copies 1000] [--receipts]

Every file of the folder is read both ways, three times in a row so that its layouts are learned. So are copies with other
digits, other numbers of digits, other bytes, and lines in another order. With ``--receipts`` instead, the receipts of all
logs are derived into two stores, with and without the kernel, and compared as bytes.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.errors import InputError
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.model import Grammar
from receipt_cli.io.source import Source
from receipt_cli.problems import MAX_FIRST
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.presence import VARIABLE, has_kernel
from receipt_cli.scan.segment import KEPT_HITS, SegmentBody

LARGEST = 16 << 20
PIECE = 512 << 10
"""Bytes of a file in a mutated copy."""


def read_both(grammars: Sequence[Grammar], blocks: Sequence[bytes]) -> tuple[Any, Any]:
    """Return the columns of a log read by layout and by patterns only, as comparable values (NaN equals NaN)."""
    results = []
    for by_layout in (True, False):
        engine = Engine(grammars, load_catalogue(), by_layout=by_layout)
        body, lines = engine.finish(engine.scan(blocks))
        results.append({"lines": lines, **plain_body(body)})
    return results[0], results[1]


def find_difference(left: Any, right: Any, path: str = "") -> str | None:
    """Return the path of the first difference of two plain values, or None."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            if key not in left or key not in right:
                return f"{path}.{key}: only one has it"
            found = find_difference(left[key], right[key], f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        found = (find_difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
        return next((difference for difference in found if difference is not None), None)
    return None if left == right else f"{path}: {str(left)[:120]} / {str(right)[:120]}"


def plain_body(body: SegmentBody) -> dict[str, Any]:
    """Return the results of whole records as comparable values: NaN equals NaN, and 0 differs from -0."""
    counts = {
        name: getattr(body, name) for name in ("records", "lines", "blank", "undecodable", "step_like", "nul_count", "nul_line")
    }
    return {
        **counts,
        "rules": {key: plain_columns(columns) for key, columns in sorted(body.rules.items())},
        "near": {name: [near.count, *near.first] for name, near in sorted(body.near.items())},
        "ignored": {name: list(ordinals) for name, ordinals in sorted(body.ignored.items())},
        "undecodable_matched": list(body.undecodable_matched),
        "markers": {
            name: [
                *([list(column) for column in (hits.at, hits.line, hits.rank, hits.form)]),
                *(hits.texts[:KEPT_HITS], hits.texts[-KEPT_HITS:], sorted(hits.hosts.items())),
            ]
            for name, hits in sorted(body.markers.items())
        },
        "problems": [body.problems.kinds, *body.problems.first],
        "metric_like": [body.metric_like.count, *body.metric_like.first],
    }


def plain_columns(columns: Any) -> dict[str, Any]:
    """Return the columns of a rule as comparable values."""
    numbers = {
        f"{kind} {name}": [list(column.rows), [_number(value) for value in column.values]]
        for kind in ("numbers", "unregistered")
        for name, column in getattr(columns, kind).items()
    }
    unnamed = {name: getattr(columns, name) for name in ("headers", "cells", "pairs")}
    texts = {f"texts {name}": [list(c.rows), c.values] for name, c in (*columns.texts.items(), *unnamed.items())}
    clock = [_number(value) for value in columns.clock]
    places = {"at": list(columns.at), "line": list(columns.line), "rank": list(columns.rank), "clock": clock}
    return {**places, **numbers, **texts}


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "nan"
    return value if value or math.copysign(1, value) > 0 else "-0"


_RUN = re.compile(rb"\d+")


def stretch(record: bytes, rng: random.Random, share: float = 0.3) -> bytes:
    """Return ``record`` with other numbers of digits in a ``share`` of its runs of digits."""

    def stretched(run: re.Match[bytes]) -> bytes:
        size = rng.choice((1, 1, 2, 2, 3, 4, 6, 9, 15, 17, 30))
        return bytes(rng.choices(b"0123456789", k=size)) if rng.random() < share else run[0]

    return _RUN.sub(stretched, record)


def mutate(log: bytes, rng: random.Random) -> bytes:
    """Return a piece of ``log`` with some changed digits, numbers of digits, bytes and lines."""
    start = rng.randrange(max(1, len(log) - PIECE))
    lines = log[start : start + PIECE].split(b"\n")
    for _ in range(rng.randrange(1, 60)):
        at = rng.randrange(len(lines))
        line = bytearray(lines[at])
        kind = rng.random()
        if kind < 0.1 or not line:
            lines[at] = lines[rng.randrange(len(lines))]
            continue
        if kind < 0.4:
            lines[at] = stretch(bytes(line), rng)
            continue
        for _ in range(rng.randrange(1, 6)):
            where = rng.randrange(len(line))
            if kind < 0.7:
                digits = [i for i, byte in enumerate(line) if 0x30 <= byte <= 0x39]
                where = rng.choice(digits) if digits else where
                line[where] = rng.choice(b"0123456789")
            elif kind < 0.8:
                del line[where]
                if not line:
                    break
            else:
                line[where] = rng.choice(b"0123456789 .,:-+eE|/=[]{}()'\"\r\x1b\x00\xff\xc3\xa9nN")
        lines[at] = bytes(line)
    return b"\n".join(lines)


def compare_receipts(folder: Path) -> int:
    """Derive the receipts of all runs in a folder's logs with and without the kernel; return 1 if a byte differs."""
    with tempfile.TemporaryDirectory() as stores:
        found: list[dict[str, bytes]] = []
        for kernel in ("1", "0"):
            store = Path(stores, kernel)
            command = [sys.executable, "-m", "receipt_cli", "rederive", str(folder), "--store", str(store), "--json"]
            environment = {**os.environ, VARIABLE: kernel}
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            written = (path for path in store.rglob("*.json") if ".cache" not in path.parts)
            found.append({str(path.relative_to(store)): path.read_bytes() for path in written})
    different = [name for name in sorted({*found[0], *found[1]}) if found[0].get(name) != found[1].get(name)]
    print(*different[:MAX_FIRST], sep="\n", end="\n" if different else "")
    print(f"{len(found[0])} documents with the kernel, {len(found[1])} without: {len(different)} differ")
    return 1 if different or not found[0] else 0


def main() -> int:
    """Compare; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=1000)
    parser.add_argument("--receipts", action="store_true", help="compare whole receipts instead")
    options = parser.parse_args()
    if options.receipts:
        assert has_kernel(), "no kernel"
        return compare_receipts(options.folder)
    grammars, rng = shipped(), random.Random(20_261)
    logs: list[tuple[str, bytes]] = []
    different = records = 0
    for path in sorted(path for path in options.folder.rglob("*") if path.is_file()):
        try:
            log = b"".join(Source(str(path)).blocks())[:LARGEST]
        except InputError:
            continue
        logs.append((str(path.relative_to(options.folder)), log))
        fast, pure = read_both(grammars, [log] * (3 if len(log) < LARGEST // 4 else 1))
        records += pure["records"]
        difference = find_difference(fast, pure)
        if difference is not None:
            different += 1
            print(f"{logs[-1][0]}: {difference}")
    for number in range(options.copies if logs else 0):
        name, log = logs[number % len(logs)]
        fast, pure = read_both(grammars, [mutate(log, rng)] * 2)
        records += pure["records"]
        difference = find_difference(fast, pure)
        if difference is not None:
            different += 1
            print(f"copy {number} of {name}: {difference}")
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {options.copies} copies", end="", file=sys.stderr)
    print(f"{len(logs)} files and {options.copies} mutated copies, {records} records: {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
