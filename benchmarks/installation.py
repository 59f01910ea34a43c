"""Copies of this program with another number of grammars installed, to see what a grammar costs that a log does not need."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import yaml

from benchmarks.inputs import ROOT

ALWAYS = "generic"
NEEDED = "megatron-lm"
"""The grammar of the logs that are read: it is the first that is installed."""
RULES = 10
"""Rules of one made-up grammar."""


def install(folder: Path, grammars: int, rules: int = RULES) -> None:
    """Make ``folder`` hold the package with that many grammars: the shipped ones, then made-up ones of ``rules`` rules.

    With ``rules`` other than ``RULES``, ten shipped grammars are installed and the rest are made up.
    """
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "receipt_cli"
    shutil.copytree(ROOT / "receipt_cli", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "schemas", package / "schemas")
    target = package / "grammars"
    shutil.copytree(ROOT / "grammars", target)
    index = yaml.safe_load((target / "index.yaml").read_text())["grammars"]
    index.sort(key=lambda entry: (entry["id"] not in (ALWAYS, NEEDED), entry["id"], entry["version"]))
    shipped = 1 + (min(grammars, 10) if rules != RULES else grammars)  # one that holds no rules is always there
    for entry in index[shipped:]:
        (target / entry["path"]).unlink()
    kept = index[:shipped]
    for number in range(grammars + 1 - len(kept)):
        text = _made_up(number, rules)
        path = f"made-up-{number}/v1.yaml"
        (target / path).parent.mkdir()
        (target / path).write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        kept.append(
            {"id": f"made-up-{number}", "version": 1, "path": path, "status": "draft", "since": "0.1.0", "sha256": digest}
        )
    (target / "index.yaml").write_text(yaml.safe_dump({"grammars": kept}, sort_keys=False))


def _made_up(number: int, rules: int) -> str:
    """Return the text of a grammar that no log is written in; each of its rules has a literal of its own."""
    head = {
        "grammar": f"made-up-{number}",
        "version": 1,
        "title": f"Made-up trainer {number}",
        "upstream": "https://example.org/made-up",
    }
    made = {f"event_{rule}": _rule(number, rule) for rule in range(rules)}
    return yaml.safe_dump(
        {**head, "trainer": f"made-up-{number}", "layer": "trainer", "completion": "none", "rules": made}, width=400
    )


def _rule(number: int, rule: int) -> dict[str, object]:
    word = hashlib.sha256(f"{number} {rule}".encode()).hexdigest()[:6]
    literal = f"{word} update "
    return {
        "event": "step",
        "literal": literal,
        "pattern": rf"{literal}(?P<step>\d++): loss (?P<loss>\d++\.\d++), lr (?P<learning_rate>\d[\d.]*+(?:e-\d++)?+)",
        "fields": {"step": {"type": "integer"}, "loss": {"type": "number"}, "learning_rate": {"type": "number"}},
        "samples": [
            {"line": f"{literal}12: loss 3.25, lr 0.0005", "fields": {"step": 12, "loss": 3.25, "learning_rate": 0.0005}},
        ],
    }
