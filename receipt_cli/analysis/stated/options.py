"""Options of a derivation: the caller's statements about a log, recorded in the receipt for replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from receipt_cli.analysis.goodput.model import Wall, recorded_wall

STATED = "stated"
"""Source of a fact that the caller states."""


class StatedFact(NamedTuple):
    """A stated fact: its name, its value in base units, and its source.

    The source is ``stated`` or ``header:POINTER``, a value of the job's header.
    """

    name: str
    value: float | str
    source: str = STATED


class JobEnd(NamedTuple):
    """How a job ended by its scheduler: the deciding fields of an ``evidence`` entry of a receipt."""

    source: str
    ended: str
    state: str | None
    exit_code: int | None

    @classmethod
    def of(cls, evidence: Sequence[Mapping[str, Any]]) -> JobEnd | None:
        """Return the first entry with an end; None if every job may still run."""
        ends = [cls(*(entry[key] for key in cls._fields)) for entry in evidence]
        return next((end for end in ends if end.ended not in ("not_ended", "unknown")), None)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a derivation; recorded in the receipt."""

    grammar: str | None = None
    exit_code: int | None = None
    wall: Wall | None = None
    log_complete: bool | None = None
    """False if output is missing at the end of the log."""
    facts: tuple[StatedFact, ...] = ()
    """Stated facts, one per name, in order of their names."""
    running: bool = False
    """Whether the job may still run, so that the end of the log proves nothing."""
    job: JobEnd | None = None
    """The scheduler's record of the job's end."""
    replaced_bytes: int | None = None
    """Bytes of the followed file lost when it was replaced or rewritten."""

    @classmethod
    def recorded(cls, options: Mapping[str, Any]) -> Options:
        """Return the options recorded in a receipt of any version."""
        facts = tuple(StatedFact(**fact) for fact in options.get("facts", ()))
        whole, running = options.get("log_complete"), options.get("running") is True
        job = None if options.get("job") is None else JobEnd(**options["job"])
        wall, replaced = recorded_wall(options), options.get("replaced_bytes")
        return cls(options["grammar"], options["exit_code"], wall, whole, facts, running, job, replaced)

    def of_earlier_run(self) -> Options:
        """Return the options for an earlier run in the log: the job's end does not concern it."""
        return replace(self, exit_code=None, wall=None, log_complete=None, running=False, job=None)

    def document(self) -> dict[str, Any]:
        """Return the options block of a receipt; keys of receipt/1.3 are absent if not stated."""
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
