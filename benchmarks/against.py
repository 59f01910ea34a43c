"""Compare the receipts of an earlier revision with those of the working tree: count the differences by JSON pointer.

python -m benchmarks.against REV FOLDER... [--ignore POINTER] [--ignore-details] [--examples 3] [--workers 2] [--json]

Every log below the folders and below ``fixtures/`` is derived into two stores, by the package of git revision REV and by the
working tree. Receipts and quarantined logs are compared as bytes. Pointers have ``*`` for each index, also in
``--ignore``. The package of REV is built once, in ``build/against/<commit>``, and its stores stay there.

Exit codes: 0 if nothing differs, 1 if something differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.kill import DONE, files_of
from receipt_cli.documents.diff import ABSENT, differences

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "against"
IGNORED = ("/derivation/tool_version",)
DETAILS = (
    "/derivation/problems/first/*/detail",
    "/summary/identities/*/detail",
    "/summary/flags/*/detail",
    "/phases/*/summary/identities/*/detail",
    "/phases/*/summary/flags/*/detail",
)
"""Pointers of sentences for readers, which no program compares."""
TEXT = "(the text alone: equal values)"
_INDEX = re.compile(r"/\d+(?=/|\Z)")


@dataclass
class Comparison:
    """Differences between two stores: files that only one of them has, and places in files of both."""

    same: int = 0
    changed: list[str] = field(default_factory=list)
    only_old: list[str] = field(default_factory=list)
    only_new: list[str] = field(default_factory=list)
    pointers: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether any file differs or is in only one store."""
        return bool(self.changed or self.only_old or self.only_new)


def compare(old: Mapping[str, bytes], new: Mapping[str, bytes], ignored: Collection[str], examples: int = 3) -> Comparison:
    """Compare two stores, given as file name → bytes; ``ignored`` are pointers with ``*`` for each index."""
    found = Comparison(only_old=sorted({*old} - {*new}), only_new=sorted({*new} - {*old}))
    for name in sorted({*old} & {*new}):
        changes = [] if old[name] == new[name] else list(_changes(old[name], new[name], ignored))
        if not changes:
            found.same += 1
            continue
        found.changed.append(name)
        for pointer, example in changes:
            found.pointers[pointer] += 1
            kept = found.examples.setdefault(pointer, [])
            if len(kept) < examples:
                kept.append(f"{name}: {example}")
    return found


def _changes(old: bytes, new: bytes, ignored: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (pointer, example) of each difference of two JSON texts that is not ignored."""
    listed = differences(json.loads(old), json.loads(new))
    if not listed:
        yield TEXT, f"{len(old)} bytes -> {len(new)} bytes"
    for each in listed:
        pointer = _INDEX.sub("/*", each.pointer) or "/"
        if not any(pointer == start or pointer.startswith(f"{start}/") for start in ignored):
            yield pointer, f"{each.pointer}: {_shown(each.old)} -> {_shown(each.new)}"


def _shown(value: object) -> str:
    text = "(absent)" if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}…"


def build(revision: str) -> Path:
    """Return the folder with the built tree of a git revision, which the first call makes."""
    commit = _git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    folder = KEPT / commit
    tree = folder / "tree"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        tree.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=_git("archive", commit), check=True)
        for part in ([], ["kernel"]):
            subprocess.run([sys.executable, "hatch_build.py", *part], cwd=tree, env=_environment(tree), check=True)
        (folder / "built").touch()
    return folder


def _git(*command: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *command], stdout=subprocess.PIPE, check=True).stdout


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}


def derive(tree: Path, folders: Sequence[str], store: Path, workers: int) -> dict[str, bytes]:
    """Derive the logs below ``folders`` with the package in ``tree`` and return the bytes of all receipts and quarantines."""
    command = [sys.executable, "-m", "receipt_cli", "rederive", *folders, "--store", str(store), "--workers", str(workers)]
    run = subprocess.run(command, env=_environment(tree), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if run.returncode not in DONE:
        sys.exit(f"the batch of {tree} ended with {run.returncode}:\n{run.stderr.decode(errors='replace')[-2000:]}")
    return {name: data for name, data in files_of(store).items() if name.split("/")[0] in ("receipts", "quarantine")}


def _state_of(folders: Sequence[str]) -> str:
    """Return a key that changes if any file below the folders changes."""
    files = sorted(path for folder in folders for path in [Path(folder), *Path(folder).rglob("*")] if path.is_file())
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(json.dumps([list(folders), stats]).encode()).hexdigest()[:16]


def name_logs(folders: Sequence[str]) -> dict[str, str]:
    """Return SHA-256 → path of the files below the folders; receipts are named by this digest."""
    files = (path for folder in folders for path in [Path(folder), *Path(folder).rglob("*")] if path.is_file())
    return {hashlib.sha256(path.read_bytes()).hexdigest(): str(path) for path in files}


def _named(text: str, logs: Mapping[str, str]) -> str:
    """Return ``text``, the name of a receipt, with the log's path instead of its digest."""
    return re.sub(r"receipts/../([0-9a-f]{64})", lambda match: logs.get(match[1], match[0]), text)


def print_comparison(found: Comparison, logs: Mapping[str, str], limit: int) -> None:
    """Print every differing pointer, the most frequent first, and the files that only one store has."""
    for pointer, count in found.pointers.most_common():
        print(f"{count:7}  {pointer}")
        for example in found.examples[pointer]:
            print(f"         {_named(example, logs)}")
    for label, names in (("only before", found.only_old), ("only now", found.only_new)):
        for name in names[:limit]:
            print(f"{label}: {_named(name, logs)}")
    print(
        f"{found.same} documents are the same, {len(found.changed)} differ at {len(found.pointers)} pointers, "
        f"{len(found.only_old)} only before, {len(found.only_new)} only now"
    )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("folders", metavar="FOLDER", nargs="*")
    parser.add_argument("--ignore", action="append", default=[], metavar="POINTER", help="a pointer with * for each index")
    parser.add_argument("--ignore-details", action="store_true", help="ignore the sentences of problems, identities and flags")
    parser.add_argument("--examples", type=int, default=3, help="of each pointer")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    folders = [str(Path(folder).resolve()) for folder in (*given.folders, ROOT / "fixtures")]
    before = build(given.revision)
    kept = before / f"store-{_state_of(folders)}"
    old = derive(before / "tree", folders, kept, given.workers)
    with tempfile.TemporaryDirectory(prefix="receipt-against-") as work:
        new = derive(ROOT, folders, Path(work, "store"), given.workers)
    ignored = (*IGNORED, *given.ignore, *(DETAILS if given.ignore_details else ()))
    found = compare(old, new, ignored, given.examples)
    if given.json:
        facts: dict[str, Any] = {**vars(found), "pointers": dict(found.pointers.most_common())}
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print_comparison(found, name_logs(folders) if found.differs else {}, limit=50)
    return 1 if found.differs or not old else 0


if __name__ == "__main__":
    sys.exit(main())
