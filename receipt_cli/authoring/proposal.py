"""Propose a draft grammar for the log of an unknown trainer, with the values that it reads and its open questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

from receipt_cli.authoring.explain import Kept, unmatched_lines
from receipt_cli.authoring.forms import Body, simple_forms
from receipt_cli.authoring.lint import lint_grammar, matched_text, read_sample
from receipt_cli.authoring.roles import NO_EPOCH, Answer, Guess, Question, answered, assign, guesses
from receipt_cli.definitions.strict_yaml import write_yaml
from receipt_cli.derive import Derivation, derive
from receipt_cli.detect.generic import learn_streams, load_generic, reopened
from receipt_cli.errors import InputError, UsageError
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.grammar.parse import build_grammar, load_grammar
from receipt_cli.io.compression import SUFFIXES
from receipt_cli.io.source import Progress, Source, Stream
from receipt_cli.learn.emit import Induced
from receipt_cli.learn.learned import Learned
from receipt_cli.learn.overview import survey
from receipt_cli.learn.progress import find_heading
from receipt_cli.learn.vocabulary import Vocabulary
from receipt_cli.problems import Lack
from receipt_cli.records.split import normalise
from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import safe_text


def write_draft(
    definition: Mapping[str, Any],
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
    no_match: Sequence[str],
    comment: Sequence[str],
    remarks: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the YAML of ``definition``, the ``samples`` of each rule (``line`` and ``fields``) and ``no_match`` lines.

    The file begins with ``comment``; the ``remarks`` on a rule come right before it.
    """
    text = _comments(["yaml-language-server: $schema=../../schemas/grammar/v1.0.schema.json", *comment])
    text += write_yaml({key: value for key, value in definition.items() if key != "rules"}, flow=False) + "rules:\n"
    for name, body in definition["rules"].items():
        text += indent(_comments((remarks or {}).get(name, ())) + write_yaml({name: {**body, "samples": [*samples[name]]}}), "  ")
    return text + (write_yaml({"no_match": [*no_match]}, flow=False) if no_match else "")


def _comments(texts: Sequence[str]) -> str:
    """Return a one-line comment for each of ``texts``; line breaks in a text become slashes."""
    return "".join(f"# {' / '.join(text.splitlines())}".rstrip() + "\n" for text in texts)


_SUFFIX = re.compile(rf"(?:{'|'.join(map(re.escape, SUFFIXES))}|\.ya?ml|\.log|\.txt|\.out|\.jsonl?)+\Z")
MAX_SAMPLES = 3
MAX_SILENT, MAX_SILENT_TEXT = 4, 300
MAX_KEPT = 16 << 20
"""Number of first bytes of the log that are searched for metric-looking lines that the draft does not match."""
SHOWN = 120
"""Most characters of a line in a comment."""
EXAMPLE = "step 10, loss: 2.5"
"""The sample of a draft that reads no line of its log."""


@dataclass(frozen=True)
class Proposal:
    """A draft: its text, its grammar, the derivation of the log with it, and the metric-looking lines that it does not match.

    ``questions`` are the draft's open questions.
    """

    text: bytes
    grammar: Grammar
    derivation: Derivation
    questions: tuple[Question, ...]
    unmatched: int = 0
    unmatched_lines: Sequence[Mapping[str, Any]] = ()

    @property
    def steps(self) -> bool:
        """Whether the draft reads steps of the log."""
        return self.derivation.checks.get("has_steps") is True


def propose(
    path: str,
    name: str,
    progress: Progress | None = None,
    vocabulary: Vocabulary | None = None,
    answers: Sequence[Answer] = (),
    line: int | None = None,
) -> Proposal:
    """Return a draft grammar ``name`` for the log ``path``; without training records, a draft for a person to complete.

    ``answers`` give the roles of numbers; ``line`` is the line number of a record whose kind is drafted. Raises
    ``InputError`` for a log that cannot be read, and ``UsageError`` for answers that do not fit the log, or for a line
    without a number.
    """
    words = vocabulary or load_generic()
    with closing(Kept(path, progress, MAX_KEPT)) as source:
        for _ in source.blocks():
            pass
        if not source.size_bytes:
            raise InputError("the log is empty", where="stdin" if path == "-" else path)
        lacking: list[Lack] = []
        learned = learn_streams([Stream((source,))], words, lacking)
        raw = bytes(source.kept)
        author = _Author(source, name, normalise(raw), words)
        draft = author.of_learned(learned) if learned is not None and not answers and line is None else None
        draft = draft or author.of_survey(learned, answers, line) or author.of_nothing(lacking)
    count, lines = unmatched_lines(raw, [draft.grammar])
    return replace(draft, unmatched=count, unmatched_lines=lines)


class _Author:
    """Writes drafts for one log, and tries each on it."""

    def __init__(self, source: Source, name: str, log: bytes, words: Vocabulary) -> None:
        self.source, self.name, self.log, self.words = source, name, log, words

    def of_learned(self, learned: Learned) -> Proposal | None:
        """Return a draft of the learned rules in their most readable forms that read the same; None without steps."""
        read = self._read_with(self._grammar({rule.name: rule.body for rule in learned.rules}))
        if read.checks.get("has_steps") is not True:
            return None
        if learned.needs_steps and any(s.record_count and s.first is None for s in read.summaries):
            return None
        forms = {rule.name: list(simple_forms(rule.body, rule.samples)) for rule in learned.rules}
        questions = [q for rule in learned.rules if rule.group is not None for q in assign(rule.group.main, {}).questions]
        shown = [line for line in map(self._shown, learned.silent) if line is not None and len(line) <= MAX_SILENT_TEXT]
        silent = list(dict.fromkeys(shown))

        attempt = partial(self._try, learned.rules, questions=questions, silent=silent, least=read)
        draft = attempt({name: found[0] for name, found in forms.items()})
        bodies = {name: found[-1] for name, found in forms.items()}
        for name, found in forms.items() if draft is None else ():  # each as readable as the others allow
            tried = ((form, attempt({**bodies, name: form})) for form in found)
            bodies[name], draft = next(((form, made) for form, made in tried if made is not None), (found[-1], None))
        return draft

    def of_survey(self, learned: Learned | None, answers: Sequence[Answer], line: int | None) -> Proposal | None:
        """Return a draft for the records most like training, or chosen by the line or the answers."""
        with closing(reopened(self.source)) as again:
            readings = survey(again.blocks(), self.words, b"" if line is None else self._record_at(line))
        if line is not None and not readings:
            raise UsageError(f"line {line} has no number that a rule could read", where=self.source.name)
        first: Proposal | None = None
        known = [r.group.readings for r in learned.rules if r.group is not None] if learned is not None and line is None else []
        doubt = Question("these may not be training records: check each field on the samples", ())
        for guess in answered(readings, known, answers) if answers else guesses(readings):
            guess = guess if answers else guess._replace(questions=(doubt, *guess.questions))
            heading = find_heading(readings) if NO_EPOCH in guess.questions else None
            draft = self._of_guess(guess, heading) or self._of_guess(guess)
            if draft is not None and draft.steps:
                return draft
            first = first or draft
        return first

    def _record_at(self, line: int) -> bytes:
        lines = self.log.split(b"\n", line)
        if not 0 < line <= len(lines):
            raise UsageError(f"the log has no line {line} in its first {MAX_KEPT >> 20} MiB", where=self.source.name)
        return lines[line - 1].rsplit(b"\r", 1)[-1]

    def of_nothing(self, lacking: Sequence[Lack]) -> Proposal:
        """Return a draft of an invented record, with a question for the parts that a person must replace."""
        nearest = [f"{lack.seen:,} like {safe_text(lack.line, SHOWN)!r}: {lack.why}" for lack in lacking]
        text = "no line of this log is a proven training record: replace literal, pattern and sample of the rule"
        questions = [Question("; nearest are ".join([text, *nearest[:1]]), ())]
        fields = {"step": {"type": "integer"}, "loss": {"type": "number"}}
        pattern = "step (?P<step>(?&integer)), loss: (?P<loss>(?&number))(?&end)"
        body: Body = {"event": "step", "literal": "loss: ", "pattern": pattern, "fields": fields}
        draft = self._try([Induced("train_step", body, pattern, None, [EXAMPLE.encode()])], {}, questions)
        assert draft is not None  # the invented rule passes the lint for any log
        return draft

    def _of_guess(self, guess: Guess, heading: Induced | None = None) -> Proposal | None:
        """Return the draft of a guess, with the rule ``heading`` for the line that announces its epochs."""
        questions = [question for question in guess.questions if heading is None or question != NO_EPOCH]
        rules = [*([heading] if heading is not None else []), guess.rule]
        forms = simple_forms(guess.rule.body, guess.rule.samples)
        drafts = (self._try(rules, {guess.rule.name: form}, questions) for form in forms)
        return next((draft for draft in drafts if draft is not None), None)

    def _definition(self, bodies: Mapping[str, Body]) -> dict[str, Any]:
        return {**Learned((), 0, (), False, False).definition(self.name, 1, f"{self.name}, learned from a log"), "rules": bodies}

    def _grammar(self, bodies: Mapping[str, Body]) -> Grammar:
        return build_grammar(self._definition(bodies), f"{self.name}.yaml", "0" * 64)

    def _read_with(self, grammar: Grammar) -> Derivation:
        with closing(reopened(self.source)) as again:
            return derive(again, using=grammar, workers=1)

    def _try(
        self,
        rules: Sequence[Induced],
        forms: Mapping[str, Body],
        questions: Sequence[Question],
        silent: Sequence[str] = (),
        least: Derivation | None = None,
    ) -> Proposal | None:
        """Return the draft of ``rules``, some in other ``forms``; None if it fails the lint or reads less than ``least``."""
        bodies, where = {rule.name: forms.get(rule.name, rule.body) for rule in rules}, f"{self.name}.yaml"
        grammar = self._grammar(bodies)
        read = self._read_with(grammar)
        if least is not None and not covers(read, least):
            return None
        samples = {rule.name: rule.samples for rule in rules}
        shown = {rule.name: self._samples(samples[rule.name], rule, grammar) for rule in grammar.rules}
        if not all(shown.values()):
            return None
        quiet = [line for line in silent if not any(read_sample(rule, line) for rule in grammar.rules)]
        remarks = {rule.name: _remarks(shown[rule.name], rule.records) for rule in rules}
        text = write_draft(self._definition(bodies), shown, quiet[:MAX_SILENT], _comment(questions), remarks).encode("utf-8")
        if lint_grammar(text, where):
            return None
        return Proposal(text, load_grammar(text, where), read, tuple(dict.fromkeys(questions)))

    def _samples(self, raws: Sequence[bytes], rule: Rule, grammar: Grammar) -> list[dict[str, Any]]:
        """Return records of the log as samples, with masked secrets and the fields that ``rule`` reads."""
        others = [each for each in grammar.rules if each is not rule]
        found: list[dict[str, Any]] = []
        for raw in raws:
            line = self._shown(raw)
            line = matched_text(rule, line) if line is not None else None
            fields = read_sample(rule, line) if line is not None else None
            known = fields or (fields is not None and not rule.fields)
            if known and not any(read_sample(other, line or "") for other in others):
                found.append({"line": line, "fields": fields})
        return found[:MAX_SAMPLES]

    def _shown(self, raw: bytes) -> str | None:
        """Return a record as text for a file; None if it is not printable, or contains part of a secret."""
        try:
            text = mask_secrets(raw.decode("utf-8"))
        except UnicodeDecodeError:
            return None
        at = self.log.find(raw)
        if at >= 0:
            start, end = self.log.rfind(b"\n", 0, at) + 1, self.log.find(b"\n", at + len(raw))
            line = mask_secrets(self.log[start : end if end >= 0 else len(self.log)].decode("utf-8", "replace"))
            if text not in line:
                return None
        return text if all(c.isprintable() or c in "\t\n" for c in text) else None


def covers(read: Derivation, least: Derivation) -> bool:
    """Return whether ``read`` has every value of ``least``; it may have more metrics."""
    if len(read.summaries) != len(least.summaries):
        return False
    for have, want in zip(read.summaries, least.summaries, strict=True):
        if (have.record_count, have.first, have.last) != (want.record_count, want.first, want.last):
            return False
        found, wanted = {**have.metrics, **have.other_metrics}, {**want.metrics, **want.other_metrics}
        if any(name not in found or repr(found[name]) != repr(value) for name, value in wanted.items()):
            return False
    return True


def _comment(questions: Sequence[Question]) -> list[str]:
    lines = ["A draft, learned from one log: check every name and unit before it is trusted."]
    lines += ["receipt grammar lint FILE proves it; docs/your-trainer.md explains every key."]
    if questions:
        lines.append("Questions, each with the answers that settle it (receipt grammar learn LOG --answer …):")
    for question in dict.fromkeys(questions):
        lines.append(f"  ? {safe_text(question.text, 3 * SHOWN)}")
        lines += [f"      --answer {safe_text(' or '.join(question.answers), SHOWN)}"] if question.answers else []
    return lines


def _remarks(samples: Sequence[Mapping[str, Any]], seen: int) -> list[str]:
    """Return comment lines with the fields that a rule reads on its first sample."""
    fields = ", ".join(f"{name} {value}" for name, value in samples[0]["fields"].items())
    count = f"{seen:,} {'record' if seen == 1 else 'records'}" if seen else "Records"
    return [f"{count} such as: {safe_text(str(samples[0]['line']), SHOWN)}", f"in which it reads {safe_text(fields, SHOWN)}"]


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
    """Return the values that the draft reads from the log, as plain data for a table."""
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
        "questions": [{"text": question.text, "answers": list(question.answers)} for question in proposal.questions],
    }
