"""Count the reports of a batch, and convert them to JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from receipt_cli.batch.model import REASONS, LeftOut, Log, Report
from receipt_cli.documents.diff import Difference

MAX_TOLD = 20
"""Most logs listed individually in quarantine, and with differences."""
_CAUSES = {
    "/derivation/grammars": "grammars",
    "/derivation/markers": "failure markers",
    "/derivation/registry": "metrics",
    "/derivation/peaks": "accelerators",
    "/derivation/options": "options",
}


@dataclass
class Tally:
    """Outcomes of a batch so far. Bytes are those of the derived logs, decompressed."""

    changes: Counter[str] = field(default_factory=Counter)
    derived: int = 0
    derived_bytes: int = 0
    same: int = 0
    unrecognised: int = 0
    runs: int = 0
    """Runs in logs with several runs."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Paths that are not logs, by reason."""
    quarantine: list[Report] = field(default_factory=list)
    """The first ``MAX_TOLD`` of them."""
    worst_exit_code: int = 0

    @property
    def logs(self) -> int:
        """Number of paths reported so far."""
        return self.changes.total() + self.same

    def add(self, report: Report) -> None:
        """Count one report; a log with the same bytes as another is counted separately."""
        if report.same_as is not None:
            self.same += 1
            return
        if report.reason is not None:
            self.left_out[report.reason] += 1
            return
        self.changes[report.change] += 1
        self.runs += report.runs if report.runs > 1 else 0
        self.unrecognised += report.recognised is False
        if report.derived and report.identity is not None:
            self.derived += 1
            self.derived_bytes += report.identity.size_bytes
        if report.change == "quarantined" and report.failure is not None:
            self.worst_exit_code = max(self.worst_exit_code, report.failure.exit_code)
            if len(self.quarantine) < MAX_TOLD:
                self.quarantine.append(report)


def left_out_report(path: LeftOut) -> Report:
    """Return the report of a path that is not a log."""
    return Report(Log(path.name, path.name, False, 0, "", False), "left_out", reason=path.reason)


def report_document(report: Report, *, compared: bool = False) -> Mapping[str, Any]:
    """Return the JSON object of one report, the same on any engine for the same archive, definitions and store."""
    identity, failure = report.identity, report.failure
    document: dict[str, Any] = {
        "path": report.log.name,
        "outcome": report.change,
        "log_sha256": identity.sha256 if identity else None,
        "log_size_bytes": identity.size_bytes if identity else None,
        "receipt": report.receipt or None,
        "recognised": report.recognised,
        "derived": report.derived,
        "same_as": report.same_as,
        "runs": report.runs if report.receipt else 0,
        "exit_code": failure.exit_code if failure else None,
        "error": failure.error if failure else report.reason,
        "why": failure.why if failure else REASONS[report.reason] if report.reason else None,
        "notes": list(report.notes),
    }
    if not compared:
        return document
    return {**document, "differences": [d.document() for d in report.differences], "causes": find_causes(report.differences)}


def find_causes(differences: Sequence[Difference]) -> list[str]:
    """Return the inputs of a derivation that have changed: rules, grammars, definitions."""
    causes: list[str] = []
    for difference in differences:
        if difference.pointer == "/derivation/rules":
            causes.append(f"rules {difference.old} → {difference.new}")
        causes += [cause for start, cause in _CAUSES.items() if difference.pointer.startswith(start) and cause not in causes]
    return causes
