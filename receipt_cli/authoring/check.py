"""Lint grammar files and the shipped definitions; test a grammar on a log."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from receipt_cli.authoring.explain import Kept, first_readings
from receipt_cli.authoring.lint import check_index, digit_dependence, lint_grammar, lint_together, sample_failures
from receipt_cli.authoring.lint_markers import lint_catalogue
from receipt_cli.authoring.site_search import find_site
from receipt_cli.definitions.failure_markers import MARKERS_PATH
from receipt_cli.definitions.resources import read_shipped
from receipt_cli.derive import Options, derive
from receipt_cli.grammar.catalog import list_grammars, read_entry, read_file, shipped
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.problems import Finding


def lint_files(files: Sequence[Path]) -> tuple[list[Finding], int]:
    """Return the findings on a user's grammar files, and the number of files. Raises ``InputError``."""
    return [f for path in files for f in lint_grammar(read_file(str(path)), str(path))], len(files)


def lint_shipped() -> tuple[list[Finding], int]:
    """Return the findings on all shipped definitions (grammars alone and together, index, markers), and the number of files."""
    entries = list_grammars()
    texts = {entry.path: read_entry(entry) for entry in entries}
    found = [f for path, text in texts.items() for f in lint_grammar(text, f"grammars/{path}")]
    found += lint_together(shipped(with_samples=True)) if not found else []
    files = {path: hashlib.sha256(text).hexdigest() for path, text in texts.items()}
    found += check_index({entry.path: entry.sha256 for entry in entries}, files)
    found += lint_catalogue(read_shipped(f"grammars/{MARKERS_PATH}"), f"grammars/{MARKERS_PATH}")
    return found, len(entries) + 1


def test_grammar(name: str, log: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Return a row for each rule (samples, failures, digits, and with a log its read records), and whether all pass.

    A rule that depends on digits is slower on a large log; see ``digit_dependence``.
    """
    site = find_site(log)
    text = site.definition(name)
    grammar = load_grammar(text, name, with_samples=True)
    failures = sample_failures(grammar, text)
    rows: list[dict[str, Any]] = [
        {
            "rule": r.name,
            "event": r.event,
            "samples": len(r.samples),
            "failed": failures.get(r.name, 0),
            "tells digits apart": digit_dependence(r),
        }
        for r in grammar.rules
    ]
    good = not any(failures.values())
    if log is not None:
        with closing(Kept(log)) as source:
            derivation = derive(source, Options(grammar=name), workers=1, site=site)
        first = first_readings(source.kept, grammar)
        for row in rows:
            row["records"] = derivation.rule_records.get((grammar.ref, row["rule"]), 0)
            row["first"] = first.get(row["rule"])
            row["near misses"] = sum(1 for miss in derivation.near_misses[1] if miss.rule == row["rule"])
        good = good and derivation.checks.get("has_steps") is True
    return rows, good
