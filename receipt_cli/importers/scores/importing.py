"""Import results as a valid evaluation document that states its origin."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from receipt_cli import __version__
from receipt_cli.errors import InputError, ReceiptError
from receipt_cli.header.document import merge
from receipt_cli.importers.model import shown
from receipt_cli.importers.scores.model import Results
from receipt_cli.importers.scores.printed import TABLES, TITLE, read_printed
from receipt_cli.importers.scores.results import FORMATS as JSON_FORMATS
from receipt_cli.importers.scores.results import MTEB
from receipt_cli.importers.text import Document, JsonText, NotJson, at
from receipt_cli.importers.values import rfc3339, words
from receipt_cli.receipts.production import Declared, Request, produce, require_valid
from receipt_cli.redaction.text import mask_texts

SCHEMA_VERSION = "evaluation/2.0"
FORMATS: dict[str, str] = {**{form.name: form.title for form in JSON_FORMATS}, TABLES: TITLE}
"""Name → title of every format of results."""
_META = "model_meta.json"
"""File that MTEB writes beside its results."""


def read_results(document: Document, beside: Callable[[str], Document | None], wanted: str | None = None) -> Results | None:
    """Return the results in a JSON document; None if it has none, or they are not in the format ``wanted``."""
    if document.text.lstrip()[:1] != "{":
        return None
    json_text = JsonText(document.text)
    try:
        value = json_text.value()
    except NotJson:
        return None  # whoever reads it next says where
    form = next((f for f in JSON_FORMATS if wanted in (None, f.name) and isinstance(value, dict) and f.recognise(value)), None)
    if form is None or not isinstance(value, dict):
        return None
    results = form.read(value)
    results.problems.add_repeated(json_text.repeated)
    if form.name == MTEB and results.model is None:
        _add_model(results, beside(_META))
    return results


def _add_model(results: Results, file: Document | None) -> None:
    """Add name and revision of the model from MTEB's ``model_meta.json``."""
    if file is None:
        return
    try:
        value = JsonText(file.text).value()
    except NotJson:
        return
    results.model, results.revision = words(at(value, "name")), words(at(value, "revision"))
    results.beside.append(file)


def read_tables(document: Document, path: str) -> Results | None:
    """Return the scores in the tables of a log at ``path``, each with the last step before it; None without tables."""
    results = read_printed(document.text.split("\n"))
    if results is None:
        return None
    steps = _steps_of(path) if path != "-" else []
    if steps:
        scores = results.scores
        results.scores = [replace(score, after_step=_before(steps, score.line_number or 0)) for score in scores]
    return results


def _steps_of(path: str) -> list[tuple[int, int]]:
    """Return (line, step) of each step record of the log, sorted; [] if it cannot be read, or some of its steps do not stand."""
    try:
        product = produce(Request(path=path, environ=dict(os.environ)))
    except ReceiptError:
        return []
    document = product.document
    again = [phase for phase in document["phases"] if phase["summary"]["steps"]["superseded_count"] != 0]
    if document["derivation"].get("launches") is not None or again:
        return []  # what stands is not all that was printed
    tables = [summary.series.table for summary in product.derivation.summaries]
    places = [place for table in tables for place in zip(table.line.tolist(), table.step.tolist(), strict=True)]
    return sorted((line, step) for line, step in places if step >= 0)


def _before(steps: list[tuple[int, int]], line: int) -> int | None:
    """Return the step of the last record above ``line``."""
    place = bisect_left(steps, (line,))
    return steps[place - 1][1] if place else None


def evaluation(results: Results, document: Document, declared: Declared) -> dict[str, Any]:
    """Return the valid evaluation of ``results``, which were read from ``document``. Raises ``InputError`` without a score."""
    if not results.scores:
        first = results.problems.first
        raise InputError("holds no score that can be read", where=document.name, why=first[0].detail if first else "")
    run = {"started_at": rfc3339(results.started_at), **declared.run}
    model = {"name": shown(results.model), "revision": shown(results.revision), "step": results.step}
    problems = results.problems
    made = {
        "schema_version": SCHEMA_VERSION,
        "run": {key: run.get(key) for key in ("name", "lane", "preset", "started_at", "finished_at", "exit_code")},
        "header": mask_texts(merge(results.header)),
        "complete": results.complete,
        "config": mask_texts(results.config) or None,
        "series": None,
        "summary": None,
        "memory": None,
        "model": model if any(value is not None for value in model.values()) else None,
        "scores": [asdict(score) for score in results.scores],
        "origin": {
            **results.origin(),
            "files": [
                {"name": shown(os.path.basename(file.name)) or "?", "sha256": file.sha256, "size_bytes": file.size_bytes}
                for file in (document, *results.beside)
            ],
            "problems": {
                "count": sum(problems.kinds.values()),
                "first": [{"kind": p.kind, "line_number": p.line_number, "detail": p.detail} for p in problems.first],
            },
        },
        "attachments": [dict(attachment) for attachment in declared.attachments],
        "producer": {"name": "receipt_cli", "version": __version__},
    }
    require_valid(made, "evaluation", document.name)
    return made
