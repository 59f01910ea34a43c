"""Install copies of this program with other numbers of grammars, to measure the cost of an unneeded grammar."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import yaml

from benchmarks.inputs import ROOT

ALWAYS = "generic"
NEEDED = "megatron-lm"
"""The grammar of the read logs; it is installed first."""
RULES = 10
"""Default number of rules of a made-up grammar."""


def install(folder: Path, grammars: int, rules: int = RULES) -> None:
    """Install the package into ``folder`` with ``grammars`` grammars: shipped ones, then made-up ones of ``rules`` rules.

    If ``rules`` is not ``RULES``, ten shipped grammars are installed, and the rest are made up.
    """
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "receipt_cli"
    shutil.copytree(ROOT / "receipt_cli", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "schemas", package / "schemas")
    target = package / "grammars"
    shutil.copytree(ROOT / "grammars", target)
    index = yaml.safe_load((target / "index.yaml").read_text())["grammars"]
    index.sort(key=lambda entry: (entry["id"] != ALWAYS, entry["id"] != NEEDED, entry["id"], entry["version"]))
    always = sum(entry["id"] == ALWAYS for entry in index)  # the vocabulary, which has no rules, is always installed
    shipped = always + (min(grammars, 10) if rules != RULES else grammars)
    for entry in index[shipped:]:
        (target / entry["path"]).unlink()
    kept = index[:shipped]
    for number in range(grammars + always - len(kept)):
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
    """Return the text of a grammar that reads no log; each of its rules has a unique literal."""
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
