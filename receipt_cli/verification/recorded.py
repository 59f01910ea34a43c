"""The recorded inputs of a receipt's derived part: definitions, options, the run and the files of its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from receipt_cli.derive import Options
from receipt_cli.detect.choose import Choice, Chosen
from receipt_cli.grammar.catalog import INDUCED, find_recorded, shipped_by
from receipt_cli.grammar.model import Grammar


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """One of several files of a receipt's log: its name, and the digest of its decompressed bytes."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The inputs of a derivation. ``grammars`` are the receipt's entries; ``launch`` is the index of the run, from 0."""

    grammars: tuple[Mapping[str, Any], ...]
    options: Options
    launch: int | None
    files: tuple[RecordedFile, ...]
    tool_version: str

    @classmethod
    def of(cls, derivation: Mapping[str, Any]) -> Recorded:
        """Return the inputs recorded in the block ``derivation`` of a receipt, which must be valid."""
        options, launches = derivation["options"], derivation.get("launches")
        return cls(
            grammars=tuple(derivation["grammars"]),
            options=Options.recorded(options),
            launch=launches["used"] - 1 if launches else None,
            files=tuple(RecordedFile(file["name"], file["sha256"]) for file in derivation["log"].get("files", ())),
            tool_version=derivation["tool_version"],
        )

    def forced(self, own: Sequence[Grammar] = ()) -> Grammar | None:
        """Return the grammar that the caller chose, or None without such a choice.

        ``own`` are a site's grammars. Raises ``DataError`` for an unknown grammar.
        """
        name, _, version = (self.options.grammar or "").partition("@v")
        if not name or name == INDUCED:
            return None
        digest = next((entry["sha256"] for entry in self.grammars if entry["id"] == name), "")
        return find_recorded(name, int(version) if version.isdecimal() else 0, digest, own)

    def choice(self, own: Sequence[Grammar] = ()) -> Choice | None:
        """Return the detected grammars, or None if the caller chose one.

        The candidates are ``own`` and the grammars of the same release, so that later ones have no effect. Raises as
        ``forced`` does.
        """
        if self.options.grammar is not None:
            return None
        known = [entry for entry in self.grammars if entry["id"] != INDUCED]
        chosen = tuple(Chosen(find_recorded(e["id"], e["version"], e["sha256"], own), e["chosen_by"]) for e in known)
        among = {grammar.ref: grammar for grammar in (*shipped_by(self.tool_version), *own, *(c.grammar for c in chosen))}
        catalogue = sorted(among.values(), key=lambda grammar: (grammar.id, grammar.version))
        return Choice(chosen, tuple(catalogue), generic=len(known) < len(self.grammars))
