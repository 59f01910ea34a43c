"""Compare two versions of a schema: list the changes, and whether a reader of the old version can read the new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from receipt_cli.documents.schema_fields import Field, Schema, list_fields


@dataclass(frozen=True, slots=True)
class Change:
    """One changed property of a field.

    ``what`` is ``field`` for a whole field added or removed, else ``type``, ``required``, ``description`` or the keyword
    of the schema. ``old`` and ``new`` are the values in each schema, None if absent. ``compatible``: a minor version may
    make this change, which is to add optional fields (with anything inside them) or to change a description.
    """

    pointer: str
    kind: Literal["added", "removed", "changed"]
    what: str
    old: object
    new: object
    compatible: bool

    def document(self) -> dict[str, object]:
        """Return the change as JSON values."""
        return asdict(self)


def compare_schemas(old: Schema, new: Schema) -> list[Change]:
    """Return the changes in the order of ``new``, then the removed fields; ``/schema_version`` is not compared."""
    before = {field.pointer: field for field in list_fields(old, again=True)}
    after = {field.pointer: field for field in list_fields(new, again=True)}
    found: list[Change] = []
    for pointer, field in after.items():
        if pointer == "/schema_version":
            continue
        if pointer not in before:
            inside_new = pointer.rpartition("/")[0] not in before and pointer.count("/") > 1
            found.append(Change(pointer, "added", "field", None, field.kind, inside_new or not field.required))
        else:
            found += _changes(before[pointer], field)
    found += [Change(at, "removed", "field", field.kind, None, False) for at, field in before.items() if at not in after]
    return found


def is_compatible(changes: list[Change]) -> bool:
    """Return whether a reader of the old schema can read every document of the new one if it ignores unknown fields."""
    return all(change.compatible for change in changes)


def _changes(old: Field, new: Field) -> Iterator[Change]:
    pairs: list[tuple[str, object, object]] = [
        ("type", " or ".join(old.types), " or ".join(new.types)),
        ("required", old.required, new.required),
        *((name, old.limits.get(name), new.limits.get(name)) for name in dict.fromkeys((*old.limits, *new.limits))),
        ("description", old.description, new.description),
    ]
    for what, before, after in pairs:
        if before != after:
            yield Change(new.pointer, "changed", what, before, after, what == "description")
