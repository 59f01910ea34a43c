"""Grammars and logs made in a test, and the fold of a log up to any stage, without a file."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property

from receipt_cli.checks import Checks, evaluate
from receipt_cli.consistency import phase_facts
from receipt_cli.detect import Detection, count_explained, detect
from receipt_cli.failure import Ending, judge
from receipt_cli.grammar import Grammar
from receipt_cli.grammar_file import check_patterns, load_grammar
from receipt_cli.markers import load_catalogue
from receipt_cli.model import Problem
from receipt_cli.numbering import number_steps
from receipt_cli.phases import Phase, split_phases
from receipt_cli.registry import load_registry
from receipt_cli.scan import Engine
from receipt_cli.stretch import Body
from receipt_cli.summary import Summary, summarise
from receipt_cli.timeline import Event, read_events

STEP = r"""
step_line:
  event: step
  literal: 'toy step '
  pattern: 'toy step (?P<step>\d++)(?:/(?P<planned_steps>\d++))?+ loss (?P<loss>[-\w.]++)(?: time (?P<step_time_s>[-\w.]++))?+(?: mfu (?P<mfu_ratio>[\d.]++))?+(?: tps (?P<tokens_per_s>[\d.e]++))?+'
  fields:
    step: {type: integer}
    planned_steps: {type: integer}
    loss: {type: number}
    step_time_s: {type: number}
    mfu_ratio: {type: number}
    tokens_per_s: {type: number, scope: global}
"""  # noqa: E501
EVAL = r"""
eval_line:
  event: eval
  literal: 'toy eval'
  pattern: 'toy eval(?: at (?P<step>\d++))?+ val_loss (?P<val_loss>[-\w.]++)'
  fields: {step: {type: integer}, val_loss: {type: number}}
"""
END = r"""
end_line:
  event: end
  literal: 'toy end'
  pattern: 'toy end(?: status (?P<status>\w++))?+(?: after (?P<training_time_s>[\d.]++) s)?+'
  fields: {status: {type: string}, training_time_s: {type: number}}
"""
PHASE = r"""
phase_line:
  event: phase
  literal: 'toy phase '
  pattern: 'toy phase (?P<phase>.++)'
  fields: {phase: {type: string}}
"""


def header(name: str, fact: str) -> str:
    """Return a header rule that prints the fact ``fact`` as ``toy <name> <value>``."""
    return (
        f"{name}_line:\n  event: header\n  literal: 'toy {name} '\n  pattern: 'toy {name} (?P<{fact}>[-\\w.+]++)'\n"
        f"  fields: {{{fact}: {{type: number}}}}\n"
    )


def grammar_text(*rules: str, name: str = "toy", version: int = 1, **top: str) -> bytes:
    """Return the YAML of a grammar; ``rules`` are blocks as above, ``top`` further keys as YAML text."""
    keys = {"layer": "trainer", "completion": "none", **top}
    lines = [f"grammar: {name}", f"version: {version}", "title: made in a test", f"trainer: {name}"]
    lines += [f"{key}: {value}" for key, value in keys.items()]
    body = "\n".join(textwrap.indent(textwrap.dedent(rule).strip("\n"), "  ") for rule in rules)
    return ("\n".join(lines) + "\nrules:\n" + body + "\n").encode()


def make_grammar(*rules: str, name: str = "toy", version: int = 1, **top: str) -> Grammar:
    """Return the grammar itself, its patterns checked."""
    return check_patterns(load_grammar(grammar_text(*rules, name=name, version=version, **top), f"{name}.yaml"))


TOY = make_grammar(STEP, EVAL, END, PHASE, header("parameters", "parameter_count"), header("tokens", "tokens_per_step"))
CERTAIN = make_grammar(STEP, EVAL, END, completion="reliable")
"""A trainer that always prints an end."""


@dataclass(frozen=True)
class Fold:
    """A log read by some grammars, each stage on demand."""

    log: bytes
    grammars: tuple[Grammar, ...] = (TOY,)
    exit_code: int | None = None

    @cached_property
    def engine(self) -> Engine:
        """The engine that reads the log."""
        return Engine(self.grammars, load_catalogue())

    @cached_property
    def body(self) -> Body:
        """The scanned log."""
        return self.engine.finish(self.engine.scan([self.log]))[0]

    @cached_property
    def detection(self) -> Detection:
        """The grammars that read it."""
        return detect(self.engine, self.body)

    @cached_property
    def chosen(self) -> list[Grammar]:
        """The grammars that were chosen."""
        return [chosen.grammar for chosen in self.detection.chosen]

    @cached_property
    def _read(self) -> tuple[list[Event], list[Problem]]:
        return read_events(self.engine, self.body, self.chosen)

    @cached_property
    def events(self) -> list[Event]:
        """The events in log order."""
        return self._read[0]

    @cached_property
    def problems(self) -> list[Problem]:
        """What could not be read, of the records and of naming table cells."""
        return [problem for _, problem in self.body.problems.first] + self._read[1]

    @cached_property
    def phases(self) -> list[Phase]:
        """The phases, resolved."""
        return split_phases(number_steps(self.events))

    @cached_property
    def summaries(self) -> list[Summary]:
        """The summary of every phase."""
        made: list[Summary] = []
        known: dict[str, float | str] = {}
        for phase in self.phases:
            known = phase_facts(phase, known)
            made.append(summarise(phase, known, load_registry()))
        return made

    @property
    def summary(self) -> Summary:
        """The only phase's summary."""
        (summary,) = self.summaries
        return summary

    @cached_property
    def ending(self) -> Ending:
        """How the run ended."""
        return judge(self.body, self.engine.catalogue, self.phases, self.exit_code)

    @cached_property
    def checks(self) -> Checks:
        """The three-valued checks."""
        return evaluate(self.phases, self.summaries, self.ending)

    @property
    def lines(self) -> tuple[int, int, int]:
        """Matched, ignored and undecodable records."""
        return count_explained(self.engine, self.body, self.chosen)


def fold(*lines: str | bytes, grammars: tuple[Grammar, ...] = (TOY,), exit_code: int | None = None) -> Fold:
    """Return the fold of a log with these lines, each closed by a newline."""
    raw = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    return Fold(raw, grammars, exit_code)


def step(number: int, loss: object = 2.5, *, planned: int | None = None, time: object = None, mfu: object = None, tps: object = None) -> str:  # noqa: E501
    """Return a step line of the toy trainer."""
    parts = [f"toy step {number}" + (f"/{planned}" if planned is not None else ""), f"loss {loss}"]
    parts += [f"{key} {value}" for key, value in (("time", time), ("mfu", mfu), ("tps", tps)) if value is not None]
    return " ".join(parts)


def steps(first: int, last: int, loss: object = 2.5, **more: object) -> list[str]:
    """Return the step lines ``first`` to ``last``, both included."""
    return [step(number, loss, **more) for number in range(first, last + 1)]  # type: ignore[arg-type]
