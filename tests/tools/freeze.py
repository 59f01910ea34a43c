"""Bring ``grammars/index.yaml`` and ``schemas/index.yaml`` up to date: new grammars as drafts, draft digests renewed.

``grammars/fixtures.yaml`` counts the logs that are kept for each grammar.

``--release FILE...`` (paths from the root) turns drafts into released files, ``--release all`` every draft (``make
release-grammars``). A released file, and so are the valid examples of a released document, never changes by a byte: its
digest is listed in ``tests/tools/frozen.txt``, too, which only grows. Where its bytes or its status have changed, nothing
is written and the exit code is 1: add a version instead.
"""

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
FROZEN = Path(__file__).resolve().with_name("frozen.txt")
ORIGIN = re.compile(r"^## Origin\s+(Real|Really|Written)\b", re.MULTILINE)
HEADS = {
    "grammars": "# One entry a grammar file. A released file never changes by a byte: a fix is a new version.\n",
    "schemas": "# What this folder ships. A released file never changes by a byte; a draft's digest is checked all the same.\n",
}
QUOTED = {"grammars": ("since", "until", "sha256"), "schemas": ("version", "since", "sha256")}
"""Keys whose values YAML would take for numbers."""


def entries(kind: str) -> list[dict[str, object]]:
    """Return the entries of an index, those of new grammar files added as drafts."""
    index = ROOT / kind / "index.yaml"
    known = yaml.safe_load(index.read_text("utf-8"))[kind] if index.exists() else []
    if kind == "schemas":
        return list(known)
    old = {entry["path"]: entry for entry in known}
    files = [p for p in (ROOT / kind).glob("*/v*.yaml") if p.parent.name != "markers"]
    return [
        {"id": p.parent.name, "version": int(p.stem[1:]), "path": path, "status": "draft", "since": "0.1.0", "sha256": ""}
        | old.get(path, {})
        for p in sorted(files, key=lambda p: (p.parent.name, int(p.stem[1:])))
        for path in [p.relative_to(ROOT / kind).as_posix()]
    ]


def fixtures() -> str:
    """Return what ``grammars/fixtures.yaml`` has to say: the logs kept for each grammar, by what their notes say of them.

    The first word below ``## Origin`` tells: Real or Really, or Written. The golden receipt names the grammar.
    """
    counts: dict[str, dict[str, int]] = {}
    for golden in sorted((ROOT / "fixtures" / "logs").glob("*/*.receipt.json")):
        read = json.loads(golden.read_bytes())["derivation"]["grammars"]
        note = golden.with_name(golden.name.removesuffix(".receipt.json") + ".md")
        origin = ORIGIN.search(note.read_text("utf-8")) if note.exists() else None
        if read and origin:
            known = counts.setdefault(f"{read[0]['id']}@v{read[0]['version']}", {"run": 0, "written": 0})
            known["written" if origin[1] == "Written" else "run"] += 1
    rows = [f"  - {{grammar: {ref}, run: {n['run']}, written: {n['written']}}}\n" for ref, n in sorted(counts.items())]
    head = "# The logs kept for each grammar: really run for it, or written in its format. Made by tests/tools/freeze.py.\n"
    return f"{head}fixtures:\n{''.join(rows)}"


def sha256(path: str) -> str:
    """Return the digest of a file, named from the root; empty where it is gone."""
    file = ROOT / path
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def frozen() -> dict[str, str]:
    """Return the digest of each file that was ever released, by its path from the root."""
    lines = FROZEN.read_text("utf-8").splitlines() if FROZEN.exists() else []
    return {path: digest for digest, path in (line.split(maxsplit=1) for line in lines)}


def examples(kind: str, version: str) -> list[str]:
    """Return the paths of the valid examples of a kind of document."""
    found = (ROOT / "fixtures" / "receipts" / f"{kind}-{version}" / "valid").glob("*.json")
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def markers() -> list[str]:
    """Return the paths of the catalogues of failure markers, which no index lists."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "grammars" / "markers").glob("v*.yaml"))


def freeze(kind: str, release: set[str]) -> tuple[str, dict[str, str], list[str]]:
    """Return the text of one index, the digests of what is released with it, and what is wrong."""
    wrong, known, released = [], frozen(), {}
    text = HEADS[kind] + f"{kind}:\n"
    for entry in entries(kind):
        path = f"{kind}/{entry['path']}"
        digest = sha256(path)
        if entry["status"] == "draft" and path in known:
            wrong.append(f"{path}: was released and cannot be a draft again")
        elif entry["status"] != "draft" and entry["sha256"] != digest:
            wrong.append(f"{path}: is {entry['status']} and has changed; add a version instead")
        entry["sha256"] = digest
        if path in release or (entry["status"] == "draft" and release == {"all"}):
            entry["status"] = "released"
        if entry["status"] != "draft":
            also = examples(str(entry["kind"]), str(entry["version"])) if kind == "schemas" else []
            released |= {file: sha256(file) for file in (path, *also)}
        lines = [f"{key}: {value!r}" if key in QUOTED[kind] else f"{key}: {value}" for key, value in entry.items()]
        text += "  - " + "\n    ".join(lines) + "\n"
    return text, released, wrong


def main() -> int:
    """Rewrite both indices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", nargs="+", default=[], metavar="FILE", help="turn these drafts, or all, into released files")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    made = {kind: freeze(kind, set(options.release)) for kind in HEADS}
    wrong = [line for _, _, lines in made.values() for line in lines]
    wrong += [f"{path}: was released and has changed or is gone" for path, old in frozen().items() if sha256(path) != old]
    if not wrong:
        digests = frozen()
        if options.release == ["all"]:
            digests |= {path: sha256(path) for path in markers()}
        for kind, (text, released, _) in made.items():
            (ROOT / kind / "index.yaml").write_text(text, "utf-8")
            digests |= released
        FROZEN.write_text("".join(f"{digest}  {path}\n" for path, digest in digests.items()), "utf-8")
        (ROOT / "grammars" / "fixtures.yaml").write_text(fixtures(), "utf-8")
    print("\n".join(wrong) or "up to date", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
