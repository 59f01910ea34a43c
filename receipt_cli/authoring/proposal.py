"""Propose a draft grammar for the log of an unknown trainer, with the figures that it reads."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipt_cli.authoring.explain import unmatched_lines
from receipt_cli.authoring.lint import lint_grammar, read_sample
from receipt_cli.derive import Derivation, derive
from receipt_cli.detect.generic import learn_streams, load_generic
from receipt_cli.errors import GrammarChoiceError, UsageError
from receipt_cli.grammar.model import Grammar
from receipt_cli.grammar.parse import build_grammar
from receipt_cli.io.compression import SUFFIXES
from receipt_cli.io.source import Progress, Source, Stream
from receipt_cli.learn.draft import write_draft
from receipt_cli.learn.learned import Learned
from receipt_cli.learn.proofs import Induced
from receipt_cli.learn.vocabulary import Vocabulary
from receipt_cli.problems import Lack
from receipt_cli.records.split import normalise
from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import safe_text

_SUFFIX = re.compile(rf"(?:{'|'.join(map(re.escape, SUFFIXES))}|\.(?:ya?ml|log|txt|out|jsonl?))+\Z")
MAX_SAMPLES = 3
MAX_SILENT, MAX_SILENT_TEXT = 4, 300
MAX_KEPT = 16 << 20
"""Bytes of the log that are searched for metric-looking lines that the draft leaves unmatched."""


@dataclass(frozen=True)
class Proposal:
    """A draft: its text, its grammar, the derivation of the log by it, and the metric-looking lines that it leaves unmatched."""

    text: bytes
    grammar: Grammar
    derivation: Derivation
    unmatched: int
    unmatched_lines: Sequence[Mapping[str, Any]]


def propose(path: str, name: str, progress: Progress | None = None, vocabulary: Vocabulary | None = None) -> Proposal:
    """Return a draft grammar ``name`` for the log ``path``.

    Raises ``InputError`` for a log that cannot be read, ``UsageError`` for a name that no grammar can have and
    ``GrammarChoiceError`` where the log shows no training.
    """
    with closing(Source(path, progress)) as source:
        for _ in source.blocks():
            pass
        stream = Stream((source,))
        lacking: list[Lack] = []
        learned, same = learn_streams([stream], vocabulary or load_generic(), lacking)
        where = "stdin" if path == "-" else path
        if learned is None or not same:
            raise _nothing(_unsure(lacking) if same else "it changed while it was read", where)
        raw = bytearray()
        with closing(_again(source)) as again:
            for block in again.blocks():
                raw += block[: MAX_KEPT - len(raw)]
                if len(raw) >= MAX_KEPT:
                    break
        text, grammar = draft(learned, name, normalise(bytes(raw)))
        with closing(_again(source)) as again:
            derivation = derive(again, using=grammar, workers=1)
        if derivation.checks.get("has_steps") is not True:
            raise _nothing("the draft reads no step of it", where)
        if learned.needs_steps and any(s.record_count and s.first is None for s in derivation.summaries):
            raise _nothing("its attempts cannot be told apart: no step is printed", where)
    count, lines = unmatched_lines(raw, [grammar])
    return Proposal(text, grammar, derivation, count, lines)



def _unsure(lacking: Sequence[Lack]) -> str:
    shown = "".join(f"\n       {lack.seen:,} like {safe_text(lack.line, 120)!r}: {lack.why}" for lack in lacking)
    nearest = f"; nearest are{shown}" if shown else ""
    return f"no records of one shape count up beside a loss or another metric of training{nearest}"


def _nothing(why: str, where: str = "") -> GrammarChoiceError:
    return GrammarChoiceError("no training can be learned from this log", where=where, why=why)


def _again(source: Source) -> Source:
    again = source.reopen()
    if again is None:
        raise _nothing("it cannot be read a second time", source.name)
    return again


def proposal_id(declared: str | None, output: Path | None, log: str) -> str:
    """Return the id of a draft: ``declared``, else derived from the name of the output file or of the log.

    Raises ``UsageError`` for a declared id that no grammar can have.
    """
    if declared is not None:
        if _ID.fullmatch(declared) is None:
            raise UsageError(f"--id {declared!r} is not a grammar id", why="lower-case letters, digits and hyphens")
        return declared
    name = output.name if output is not None else "" if log == "-" else Path(log).name
    if output is not None and re.fullmatch(r"v\d+\.ya?ml", output.name):
        name = output.resolve().parent.name  # ``grammars/<id>/v1.yaml``
    stem = re.sub(r"[^a-z0-9]+", "-", _SUFFIX.sub("", name.lower())).strip("-")
    return stem[:48].strip("-") or "learned"


_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def reading_of(proposal: Proposal) -> dict[str, Any]:
    """Return the figures that the draft reads from the log, as plain data for a table."""
    derivation = proposal.derivation
    summary = derivation.summaries[derivation.primary] if derivation.primary is not None else None
    metrics = {**summary.metrics, **summary.other_metrics} if summary is not None else {}
    printed = {name: len(values) for name, values in summary.series.items()} if summary is not None else {}  # in any window
    return {
        "grammar": proposal.grammar.id,
        "matched": derivation.lines.matched,
        "records": derivation.log.record_count,
        "steps": None if summary is None else summary.record_count,
        "first_step": None if summary is None else summary.first,
        "last_step": None if summary is None else summary.last,
        "fields": [
            {"name": name, "records": printed.get(name, s.record_count), "first": s.first, "last": s.last}
            for name, s in metrics.items()
        ],
        "unmatched_count": proposal.unmatched,
        "unmatched": list(proposal.unmatched_lines),
    }


def draft(learned: Learned, name: str, log: bytes = b"") -> tuple[bytes, Grammar]:
    """Return the text of the draft and its grammar. Raises ``GrammarChoiceError`` where its own samples fail.

    ``log`` is the normalised text of the log: a part of a line is shown only if it is not part of a secret.
    """
    definition = learned.definition(name, 1, f"{name}, learned from a log")
    grammar = build_grammar(definition, f"{name}.yaml", "0" * 64)
    samples = {rule.name: _samples(rule, grammar, log) for rule in learned.rules}
    if not all(samples.values()):
        raise _nothing("no record of it can be shown as a sample")
    shown = [line for line in (_shown(raw, log) for raw in learned.silent) if line is not None and len(line) <= MAX_SILENT_TEXT]
    silent = [line for line in shown if not any(read_sample(rule, line) for rule in grammar.rules)]
    comment = [
        "A draft, learned from one log: check every name and unit before it is trusted.",
        f"It reads {', '.join(sorted({f for r in learned.rules for f in r.fields}))}.",
        f"Seen: {learned.candidates} records that look like metrics, {learned.records} of the shapes below.",
    ]
    text = write_draft(definition, samples, list(dict.fromkeys(silent))[:MAX_SILENT], comment).encode("utf-8")
    findings = lint_grammar(text, f"{name}.yaml")
    if findings:
        raise _nothing(f"the draft does not prove itself: {findings[0].reason}")
    return text, build_grammar(definition, f"{name}.yaml", hashlib.sha256(text).hexdigest())


def _samples(induced: Induced, grammar: Grammar, log: bytes) -> list[dict[str, Any]]:
    """Return records of the log as samples, secrets masked, with the fields that the rule reads."""
    rule = next(r for r in grammar.rules if r.name == induced.name)
    others = [r for r in grammar.rules if r is not rule]
    samples: list[dict[str, Any]] = []
    for raw in induced.samples:
        line = _shown(raw, log)
        fields = read_sample(rule, line) if line is not None else None
        if fields and not any(read_sample(other, line or "") for other in others):
            samples.append({"line": line, "fields": fields})
    return samples[:MAX_SAMPLES]


def _shown(raw: bytes, log: bytes) -> str | None:
    """Return a record for a file; None where it is not printable text, or contains part of a secret."""
    try:
        text = mask_secrets(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    at = log.find(raw)
    if at >= 0:
        start, end = log.rfind(b"\n", 0, at) + 1, log.find(b"\n", at + len(raw))
        line = mask_secrets(log[start : end if end >= 0 else len(log)].decode("utf-8", "replace"))
        if text not in line:
            return None
    return text if all(c.isprintable() or c in "\t\n" for c in text) else None
