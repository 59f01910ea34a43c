"""``tests/contract/features.yaml`` → ``docs/coverage.md``: the features, each with what shows it and the tests that prove it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

PATH = Path("docs/coverage.md")
TABLE = Path(__file__).resolve().parents[1] / "contract" / "features.yaml"
ANSWERS = ("yes", "part", "no")
HEAD = """# Feature coverage

Four lists, made in November 2026. Two come from ten programs that parse, store, compare or show runs: ninety
features that at least one of them or of their relatives has, and twenty-three that none of the ten has. The third
lists the needs of the systems from which this project grew, the fourth what 1.0 adds to all of them. Each row has an
answer (*yes*, *part* or *no*), the command, field or file that shows it, and a test. *Part* names what is missing; a
feature without a test has the answer *no*.

Words in capitals in a command are placeholders. The page is written from `tests/contract/features.yaml` by
`make goldens`; `tests/contract/test_coverage.py` holds it: every command must parse, every field, file and test must
exist, and no test may be skipped.
"""


class Row(NamedTuple):
    """A feature: its number in its part, what shows it, the tests that prove it, and a note on what it is or lacks."""

    number: int
    feature: str
    shown_by: tuple[str, ...]
    tests: tuple[str, ...]
    note: str
    lacks: bool

    @property
    def answer(self) -> str:
        """Whether the feature is there; without a test it is not."""
        return "no" if not self.tests else "part" if self.lacks else "yes"


class Part(NamedTuple):
    """A part of the page: its title, and sections (None: without a title) with their features."""

    title: str
    sections: tuple[tuple[str | None, tuple[Row, ...]], ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The features of all sections."""
        return tuple(row for _, rows in self.sections for row in rows)


def parts() -> tuple[Part, ...]:
    """Return the parts of the page."""
    return tuple(Part(part["part"], tuple(_sections(part))) for part in yaml.safe_load(TABLE.read_text("utf-8")))


def _sections(part: dict[str, Any]) -> Iterator[tuple[str | None, tuple[Row, ...]]]:
    number = 0
    for section in part["sections"]:
        rows = []
        for entry in section["features"]:
            number += 1
            lacks = entry.get("lacks")
            shown, tests = tuple(entry.get("shown_by") or ()), tuple(entry.get("tests") or ())
            rows.append(Row(number, entry["feature"], shown, tests, lacks or entry.get("note") or "", lacks is not None))
        yield section["section"], tuple(rows)


def page() -> str:
    """Return the page."""
    return HEAD + "".join(f"\n{_part(part)}" for part in parts())


def _part(part: Part) -> str:
    counts = [sum(row.answer == answer for row in part.rows) for answer in ANSWERS]
    text = f"## {part.title}\n\n{len(part.rows)} features: {counts[0]} yes, {counts[1]} in part, {counts[2]} no.\n"
    for title, rows in part.sections:
        text += f"\n### {title}\n" if title else ""
        text += "\n| # | feature | | shown by | test | note |\n|--:|---|---|---|---|---|\n" + "".join(map(_line, rows))
    return text


def _line(row: Row) -> str:
    shown, tests = (", ".join(f"`{each}`" for each in spans) for spans in (row.shown_by, row.tests))
    return f"| {row.number} | {row.feature} | {row.answer} | {shown} | {tests} | {row.note + ' ' if row.note else ''}|\n"
