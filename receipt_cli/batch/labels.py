"""Name, lane and preset of runs by the paths of their logs: from templates, and from a file that maps paths."""

from __future__ import annotations

import csv
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath

from receipt_cli.errors import InputError, UsageError
from receipt_cli.io.compression import unpacked
from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.store.places import FIELDS, Place

PARTS = ("path", "dir", "parent", "file", "stem")
_STEM = {"name": "{stem}"}
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of a mapping file: values for logs whose path matches ``pattern``."""

    pattern: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Labels:
    """Templates by field, and the rules of a mapping file, which take precedence.

    A template may contain ``{path}`` (below the archive's root), ``{dir}`` (its folder), ``{parent}`` (that folder's name),
    ``{file}`` and ``{stem}`` (the file name without suffixes). Raises ``UsageError`` for any other part.
    """

    templates: Mapping[str, str]
    rules: Sequence[Rule] = ()

    def __post_init__(self) -> None:
        for field, template in self.templates.items():
            try:
                parts = [part for _, part, spec, _ in string.Formatter().parse(template) if part is not None or spec]
            except ValueError as error:
                raise UsageError(f"--{field} is not a valid template", where=template, why=str(error)) from error
            wrong = next((part for part in parts if part not in PARTS), None)
            if wrong is not None:
                known = ", ".join(f"{{{part}}}" for part in PARTS)
                raise UsageError(f"--{field} has no part {{{wrong}}}", where=template, why=f"the parts are {known}")

    def place(self, name: str) -> Place:
        """Return the place of the log ``name``, its path below the archive's root, or its URL."""
        parts = _parts(name)
        values: dict[str, str] = {}
        for field in FIELDS:
            rule = next((r for r in self.rules if field in r.values and fnmatchcase(name, r.pattern)), None)
            template = self.templates.get(field) or _STEM.get(field)
            if rule is not None:
                values |= {field: rule.values[field], f"{field}_source": "mapping"}
            elif template is not None and (text := template.format(**parts).strip(" /")):
                source = "template" if field in self.templates else "stem"
                values |= {field: mask_secrets(text)[:_MAX_TEXT], f"{field}_source": source}
        return Place(name, **values)


BY_STEM = Labels({})
"""Names are the stems of file names; there are no lanes and presets."""


def read_mapping(path: str) -> list[Rule]:
    """Return the rules of a CSV file with a column ``path`` (may be a pattern) and any of name, lane and preset.

    For each field the first matching line counts. Raises ``InputError``.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            columns = rows.fieldnames or ()
            if "path" not in columns or not set(columns) & set(FIELDS):
                why = f"the first line has {', '.join(map(str, columns)) or 'nothing'}"
                raise InputError("a mapping needs the columns path and one of name, lane and preset", where=path, why=why)
            return [_rule(row) for row in rows if row["path"]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError("cannot read the mapping", where=path, why=why) from error


def _rule(row: Mapping[str, str | None]) -> Rule:
    values = {field: mask_secrets(text)[:_MAX_TEXT] for field in FIELDS if (text := (row.get(field) or "").strip())}
    return Rule(str(row["path"]), values)


@lru_cache(maxsize=1024)
def _parts(name: str) -> dict[str, str]:
    path = PurePosixPath(name)
    parent = path.parent
    folder = str(parent)
    return {
        "path": name,
        "dir": "" if folder == "." else folder,
        "parent": parent.name,
        "file": path.name,
        "stem": PurePosixPath(unpacked(path.name)).stem or path.name,
    }
