"""Bring ``grammars/index.yaml`` and ``schemas/index.yaml`` up to date: new grammars as drafts, draft digests renewed.

``grammars/fixtures.yaml`` counts the logs that are kept for each grammar.

``--release`` turns every draft into a released file. A released file whose bytes have changed is refused (exit 1) and
left as it is: add a version instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
ORIGIN = re.compile(r"^## Origin\s+(Real|Really|Written)\b", re.MULTILINE)
HEADS = {
    "grammars": "# One entry a grammar file. A released file never changes by a byte: a fix is a new version.\n",
    "schemas": "# What this folder ships. A released file never changes by a byte; a draft's digest is checked all the same.\n",
}


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


def freeze(kind: str, release: bool) -> list[str]:
    """Rewrite one index; return what is wrong with it."""
    wrong = []
    text = HEADS[kind] + f"{kind}:\n"
    for entry in entries(kind):
        digest = hashlib.sha256((ROOT / kind / str(entry["path"])).read_bytes()).hexdigest()
        if entry["status"] != "draft" and entry["sha256"] != digest:
            wrong.append(f"{kind}/{entry['path']}: is {entry['status']} and has changed; add a version instead")
        entry["sha256"] = digest
        if release and entry["status"] == "draft":
            entry["status"] = "released"
        lines = [
            f"{key}: {value!r}" if key in ("since", "sha256") or (kind, key) == ("schemas", "version") else f"{key}: {value}"
            for key, value in entry.items()
        ]
        text += "  - " + "\n    ".join(lines) + "\n"
    if not wrong:
        (ROOT / kind / "index.yaml").write_text(text, "utf-8")
    return wrong


def main() -> int:
    """Rewrite both indices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", action="store_true", help="turn drafts into released files")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    wrong = freeze("grammars", options.release) + freeze("schemas", options.release)
    (ROOT / "grammars" / "fixtures.yaml").write_text(fixtures(), "utf-8")
    print("\n".join(wrong) or "up to date", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
