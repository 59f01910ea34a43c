"""Options of a derivation: what a caller states about a log. A receipt records them, so that they can be replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from receipt_cli.analysis.goodput.model import Wall, recorded_wall

STATED = "stated"
"""Source of a fact that the caller states."""


class StatedFact(NamedTuple):
    """A fact that the caller states: its name, its value in base units, and its source.

    The source is ``stated`` or ``header:POINTER``, a value of the header that the job collected.
    """

    name: str
    value: float | str
    source: str = STATED


class JobEnd(NamedTuple):
    """How a job ended as its scheduler records it: fields of the entry of ``evidence`` of a receipt that decide."""

    source: str
    ended: str
    state: str | None
    exit_code: int | None

    @classmethod
    def of(cls, evidence: Sequence[Mapping[str, Any]]) -> JobEnd | None:
        """Return the end of the first entry that has one; None where every job may still run."""
        ends = [cls(*(entry[key] for key in cls._fields)) for entry in evidence]
        return next((end for end in ends if end.ended not in ("not_ended", "unknown")), None)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a derivation; recorded in the receipt."""

    grammar: str | None = None
    exit_code: int | None = None
    wall: Wall | None = None
    log_complete: bool | None = None
    """False where output is missing at the end of the log."""
    facts: tuple[StatedFact, ...] = ()
    """Facts that the caller states, one a name, in the order of their names."""
    running: bool = False
    """True where the caller read the log of a job that may still run: where it breaks off says nothing of the end."""
    job: JobEnd | None = None
    """How a scheduler says that the job ended."""
    replaced_bytes: int | None = None
    """Bytes that the followed file held before it was replaced or rewritten: they are not in the log."""

    @classmethod
    def recorded(cls, options: Mapping[str, Any]) -> Options:
        """Return the options that a receipt of any version records."""
        facts = tuple(StatedFact(**fact) for fact in options.get("facts", ()))
        whole, running = options.get("log_complete"), options.get("running") is True
        job = None if options.get("job") is None else JobEnd(**options["job"])
        wall, replaced = recorded_wall(options), options.get("replaced_bytes")
        return cls(options["grammar"], options["exit_code"], wall, whole, facts, running, job, replaced)

    def of_earlier_run(self) -> Options:
        """Return the options of a run that another one follows in the log: how the job ended says nothing of it."""
        return replace(self, exit_code=None, wall=None, log_complete=None, running=False, job=None)

    def document(self) -> dict[str, Any]:
        """Return the block that a receipt records. A key of receipt/1.3 is absent where nothing was stated."""
        return {
            "grammar": self.grammar,
            "exit_code": self.exit_code,
            "wall": None if self.wall is None else self.wall._asdict(),
            **({} if self.log_complete is not False else {"log_complete": False}),
            **({"running": True} if self.running else {}),
            **({} if self.job is None else {"job": self.job._asdict()}),
            **({} if self.replaced_bytes is None else {"replaced_bytes": self.replaced_bytes}),
            **({"facts": [fact._asdict() for fact in self.facts]} if self.facts else {}),
        }
