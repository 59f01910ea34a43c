"""The matrix of supported trainers: grammar versions, the eras that they read, metrics, and fixture logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.grammar.catalog import Entry, Fixtures, list_fixtures, list_grammars, shipped
from receipt_cli.grammar.model import Grammar

COLUMNS = ("trainer", "grammar", "eras", "metrics", "evidence")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a grammar."""

    version: int
    status: str
    title: str
    eras: tuple[str, ...]
    fixtures: Fixtures


@dataclass(frozen=True, slots=True)
class Row:
    """One grammar with all its versions. ``metrics`` are canonical names in registry order."""

    grammar: str
    trainer: str
    upstream: str
    versions: tuple[Version, ...]
    metrics: tuple[str, ...]

    @property
    def cells(self) -> dict[str, str]:
        """Column → text of the row's cell."""
        run, written = (sum(getattr(v.fixtures, kind) for v in self.versions) for kind in ("run", "written"))
        kept = [f"{number} {kind}" for number, kind in ((run, "run"), (written, "written")) if number]
        numbers = ", ".join(f"v{v.version}" for v in self.versions)
        return {
            "trainer": self.trainer,
            "grammar": f"{self.grammar} {numbers}",
            "eras": "; ".join(dict.fromkeys(era for v in self.versions for era in v.eras)),
            "metrics": ", ".join(self.metrics),
            "evidence": ", ".join(kept),
        }


def matrix() -> list[Row]:
    """Return a row for each shipped grammar, ordered by trainer. Raises ``DataError``."""
    entries = {entry.ref: entry for entry in list_grammars()}
    by_id: dict[str, list[Grammar]] = {}
    for grammar in shipped():
        by_id.setdefault(grammar.id, []).append(grammar)
    rows = [_row(versions, entries) for versions in by_id.values()]
    return sorted(rows, key=lambda row: (row.trainer.lower(), row.grammar))


def _row(versions: Sequence[Grammar], entries: dict[str, Entry]) -> Row:
    kept = list_fixtures()
    read = {field.target[1] for g in versions for r in g.rules for field in r.fields.values() if field.target[0] == "metric"}
    last = versions[-1]
    return Row(
        grammar=last.id,
        trainer=last.trainer,
        upstream=last.upstream,
        versions=tuple(Version(g.version, entries[g.ref].status, g.title, g.eras, kept.get(g.ref, Fixtures())) for g in versions),
        metrics=tuple(metric.name for metric in load_registry().by_name.values() if metric.name in read),
    )


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table, with each trainer linked to its source."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for row in rows:
        cells = {name: text.replace("|", "\\|") or "–" for name, text in row.cells.items()}
        if row.upstream.startswith("https://"):
            cells["trainer"] = f"[{cells['trainer']}]({row.upstream.split()[0]})"
        lines.append(f"| {' | '.join(cells[name] for name in COLUMNS)} |")
    return "\n".join(lines) + "\n"
