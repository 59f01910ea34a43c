"""Put one foreign event into healthy logs and judge their receipts: a wrong number is worse than a missing one.

    python -m benchmarks.inject [--kinds A,B] [--logs TEXT] [--trainers 30] [--json FILE] [--against FILE] [--details]

Each kind in ``tests/tools/injections.py`` is put into the smallest healthy log of each of ``--trainers`` trainers and of ten
small scripts; ``--logs`` takes all fixtures whose name contains TEXT instead. The table counts verdicts by kind. With
``--against`` and an earlier ``--json`` file, verdicts that became worse are listed, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.tools.injections import KINDS, VERDICTS, Log, judge, log_of, scripts

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "logs"
LARGEST = 200_000


def healthy(part: str | None, trainers: int, path: Path) -> Iterator[Log]:
    """Yield the logs whose name contains ``part``, else one of each of ``trainers`` trainers, evenly chosen, and the scripts."""
    found: dict[str, list[Log]] = {}
    for file in sorted(FIXTURES.glob("*/*.log"), key=lambda file: (file.stat().st_size, file)):
        name = f"{file.parent.name}/{file.stem}"
        wanted = part in name if part is not None else file.parent.name not in found
        if wanted and file.stat().st_size <= LARGEST and (log := log_of(name, file.read_bytes(), path)) is not None:
            found.setdefault(file.parent.name, []).append(log)
    every = [log for name in sorted(found) for log in found[name]]
    some = len(every) if part is not None else min(trainers, len(every))
    yield from (every[n * len(every) // some] for n in range(some))
    for name, data in scripts():
        if part is None or part in name:
            log = log_of(name, data, path)
            assert log is not None, f"{name} is not read as a healthy log"
            yield log


def row(log: Log, name: str, path: Path) -> dict[str, Any] | None:
    """Return the verdict on a log with an event of kind ``name`` in it."""
    verdict = judge(log, name, path)
    return verdict and {"log": log.name, "kind": name, **verdict._asdict()}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of verdict counts by kind; the worst verdicts are the last columns."""
    counts = Counter((row["kind"], row["word"]) for row in rows)
    kinds = [name for name in KINDS if any(row["kind"] == name for row in rows)]
    head = f"{'kind':26}" + "".join(f"{word:>10}" for word in VERDICTS)
    body = [f"{kind:26}" + "".join(f"{counts[kind, word] or '.':>10}" for word in VERDICTS) for kind in kinds]
    sums = Counter(row["word"] for row in rows)
    last = f"{'all':26}" + "".join(f"{sums[word] or '.':>10}" for word in VERDICTS)
    wrong = sum(sums[word] for word in ("restart", "WRONG", "WRONG!"))
    share = f"{len(rows)} injections; restart, WRONG and WRONG!: {wrong} ({100 * wrong / max(len(rows), 1):.1f} %)"
    return "\n".join([head, *body, last, "", share])


def worse(rows: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each verdict that is worse than in an earlier result."""
    before = {(row["log"], row["kind"]): row["word"] for row in earlier}
    ranks = {word: number for number, word in enumerate(VERDICTS)}
    both = [(row, before.get((row["log"], row["kind"]))) for row in rows]
    fallen = [(row, was) for row, was in both if was and ranks[row["word"]] > ranks[was]]
    return [f"{row['log']} {row['kind']}: {was} became {row['word']}" for row, was in fallen]


def main(arguments: list[str]) -> int:
    """Put the events into the logs and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inject", description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", help="kinds, parted by commas; all by default")
    parser.add_argument("--logs", help="logs whose name contains this text")
    parser.add_argument("--trainers", type=int, default=30, help="trainers of which a log is taken")
    parser.add_argument("--json", type=Path, help="write each verdict into this file, a line each")
    parser.add_argument("--against", type=Path, help="an earlier file of verdicts")
    parser.add_argument("--details", action="store_true", help="print each injection after which a figure is wrong or unnamed")
    parser.add_argument("--list", action="store_true", help="print what each kind is")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{name:26}{kind.says}" for name, kind in KINDS.items()))
        return 0
    kinds = options.kinds.split(",") if options.kinds else list(KINDS)
    if unknown := [name for name in kinds if name not in KINDS]:
        parser.error(f"no such kind: {', '.join(unknown)}; --list prints them")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.log"
        for log in healthy(options.logs, options.trainers, path):
            made = [found for name in kinds if (found := row(log, name, path)) is not None]
            rows += made
            for one in made if options.details else ():
                if VERDICTS.index(one["word"]) >= VERDICTS.index("missing"):
                    shown = "; ".join(f"{place} {was} → {became}" for place, (was, became) in [*one["changed"].items()][:4])
                    print(f"{one['word']:8} {one['kind']}: {log.name}: {shown} {', '.join(one['problems'])}", file=sys.stderr)
    print(table(rows))
    if options.json is not None:
        options.json.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    if options.against is None:
        return 0
    found = worse(rows, [json.loads(line) for line in options.against.read_text("utf-8").splitlines()])
    print("\n".join([f"{len(found)} verdicts became worse", *found]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
